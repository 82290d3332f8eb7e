"""The reference contract on localhost, without quirks."""

from portals.simulator.contract import ContractSimulator as Simulator

__all__ = ["Simulator"]
