"""New York Department of State: a session with a CSRF token, and an idempotency key."""

from portals.contract import ContractAdapter


class Adapter(ContractAdapter):
    """The contract over a session whose token every submission carries."""
