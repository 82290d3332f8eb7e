"""The funder contract on localhost, without quirks."""

from portals.simulator.funder import FunderSimulator as Simulator

__all__ = ["Simulator"]
