"""One try at the portal: errors become values here, and nothing unrecognised counts."""

from collections.abc import Awaitable
from typing import TypeVar

from portals.base import Outcome, Portal, Receipt, Standing
from portals.errors import Blocked, Changed, InDoubt, Rejected, Unavailable
from portals.http import Attempting, NotSent, attempting
from portals.intents import Work

Answer = TypeVar("Answer")
Ending = Outcome | NotSent


async def submit(portal: Portal, work: Work, attempt: Attempting) -> Ending:
    """Send a payload at most once and say what is now known about it."""
    ending = await _valued(portal.submit(work.payload), attempt)
    passed = attempt.committed and not attempt.refused
    if passed and isinstance(ending, Unavailable | Blocked | Changed):
        # It failed after the point of no return, and no answer says that it was not processed.
        return InDoubt(f"{ending.detail} It may have arrived.", ending.rule)
    return ending


async def look_up(portal: Portal, work: Work, attempt: Attempting) -> Ending | None:
    """Ask by our key what became of it."""
    return await _valued(portal.find(work.payload), attempt)


async def look_before(
    portal: Portal, work: Work, attempt: Attempting, *, by_key: bool
) -> Ending | str | None:
    """Before a send: was this duty and period filed by somebody else? Or by us?

    `by_key` also asks for our own key when the register shows nothing: after a restored backup it
    may be ours, sent and forgotten, and received but not yet listed.
    """
    elsewhere = await _valued(portal.filed_elsewhere(work.payload), attempt)
    if elsewhere is not None and not isinstance(elsewhere, str):
        return elsewhere
    if elsewhere is None and not by_key:
        return None
    ours = await _valued(portal.find(work.payload), attempt)
    return elsewhere if ours is None else ours


async def prepare(portal: Portal, work: Work, attempt: Attempting) -> Ending | None:
    """What may be repeated and takes its time: log in, create, attach."""
    return await _valued(portal.prepare(work.payload), attempt)


async def read(portal: Portal, work: Work, attempt: Attempting) -> Ending:
    """Read a standing."""
    return await _valued(portal.standing(work.payload), attempt)


async def _valued(call: Awaitable[Answer], attempt: Attempting) -> Answer | Ending:
    token = attempting.set(attempt)
    try:
        return await call
    except (Unavailable, Rejected, InDoubt, Blocked, Changed, NotSent) as error:
        return error
    finally:
        attempting.reset(token)


def outcome_word(ending: Ending | str | None) -> str:
    """The word under which an attempt is kept."""
    match ending:
        case None:
            return "not_found"
        case str() | Standing():
            return "answered"
        case Receipt(final=final):
            return "accepted" if final else "received"
        case Rejected():
            return "rejected"
        case Unavailable():
            return "unavailable"
        case InDoubt():
            return "in_doubt"
        case Blocked():
            return "blocked"
        case Changed():
            return "changed"
        case NotSent():
            return "not_sent"
