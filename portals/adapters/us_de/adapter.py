"""Delaware Division of Corporations: one session, one request at a time, look-up only."""

from portals.contract import ContractAdapter


class Adapter(ContractAdapter):
    """The contract over a serial session; the card's max_concurrency of 1 keeps it serial."""
