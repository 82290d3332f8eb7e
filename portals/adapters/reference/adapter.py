"""Any portal that speaks the reference contract."""

from portals.contract import ContractAdapter


class Adapter(ContractAdapter):
    """The contract as it stands; the card says which parts a portal offers."""
