"""California bizfile: refuses duplicates for 72 hours, strict about text."""

from portals.contract import ContractAdapter


class Adapter(ContractAdapter):
    """The contract without a session; a 409 sends us to the look-up."""
