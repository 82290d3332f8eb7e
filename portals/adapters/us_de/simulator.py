"""Delaware on localhost: one session, one request at a time, and a block for who hurries."""

from portals.simulator.answers import Answer, blocked
from portals.simulator.contract import ContractSimulator


class Simulator(ContractSimulator):
    """The contract with a serial session and 403 instead of 429."""

    one_session_at_a_time = True

    def refuse(self, keep_away: float) -> Answer | None:
        """Too many requests, or two at once: blocked, until a moment given in epoch seconds."""
        return blocked(keep_away, absolute=True)
