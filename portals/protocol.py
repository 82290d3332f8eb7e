"""What follows from what happened: every decision about an intent, pure and in one place.

The caller gives the facts and the time, and gets the move to make. Nothing here reads a clock, a
database or the network, so that each rule can be tested by itself.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from portals.base import Outcome, Receipt, Standing
from portals.cards import Card
from portals.errors import Blocked, Changed, InDoubt, PortalError, Rejected, Unavailable
from portals.http import NotSent
from portals.models import Intent

State = Intent.State

MOST_TRIES = 60  # could not be reached this often: hours for bulk, half an hour for urgent
MOST_DOUBTS = 3  # times a portal may leave one thing in doubt before a person looks
MOST_UNREADABLE = 4  # strange answers to what may be repeated, before the portal has changed
MOST_LOOKS = 40  # look-ups of a doubt without a verdict, likewise
MOST_POLLS = 1000  # looks at what was received: about forty days
LONGEST_BACKOFF = 300.0
LONGEST_URGENT_BACKOFF = 30.0
LONGEST_POLL = 3600.0  # who has received it may take weeks to decide
FIRST_LOOK_SECONDS = 1.0
POLL_SECONDS = 2.0
PROBE_AGAIN_SECONDS = 30.0
SAFETY = timedelta(minutes=5)  # a repeat must arrive well before the portal forgets the first


class Step(StrEnum):
    """How to leave a doubt."""

    RESEND = "resend"
    LOOK_UP = "look_up"
    ASK_A_PERSON = "ask_a_person"


@dataclass(frozen=True)
class Known:
    """What we know of an intent when we decide about it."""

    state: str
    is_read: bool
    is_urgent: bool
    tries: int
    sends: int
    doubts: int
    absences: int
    payload_sha256: str
    cause: str = ""
    first_sent_at: datetime | None = None
    last_sent_at: datetime | None = None
    resend_by: datetime | None = None
    jitter: float = 0.5  # between 0 and 1, so that retries do not come in step


@dataclass(frozen=True)
class Hold:
    """The whole lane keeps away from its portal."""

    until: datetime | None  # None: until a person resumes it
    cause: str


@dataclass(frozen=True)
class Move:
    """Where an intent goes, what else is written with it, and what its subject is told."""

    to: str
    cause: str = ""
    detail: str = ""
    number: str = ""
    reasons: tuple[str, ...] = ()
    standing: Standing | None = None
    category: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    hold: Hold | None = None


def after_send(outcome: Outcome | NotSent, known: Known, card: Card, now: datetime) -> Move:
    """The move that the end of an attempt makes an intent take."""
    match outcome:
        case Receipt(final=True, number=number):
            return Move(State.ACCEPTED, number=number)
        case Receipt(number=number):
            return _received(number, card, now)
        case Rejected():
            return _refused(outcome, known, card)
        case InDoubt():
            return _doubt(outcome, known, card, now)
        case NotSent():
            return _not_sent(outcome, known, now)
        case Unavailable() | Blocked():
            return _not_processed(outcome, known, now)
        case Changed():
            return _unreadable(outcome, known, now)
        case Standing():
            return Move(State.ACCEPTED, standing=outcome, detail=outcome.words)
        case _:
            assert_never(outcome)


def after_look_before(outcome: Outcome, known: Known, now: datetime) -> Move:
    """The move that follows when the look before the first send met something else than a yes."""
    match outcome:
        case Rejected(reasons=reasons, detail=detail):
            return Move(State.REJECTED, "rejected", detail, reasons=reasons)
        case InDoubt(detail=detail, rule=rule):
            return _not_processed(Unavailable(detail, rule), _tried(known), now)
        case Unavailable() | Blocked():
            return _not_processed(outcome, _tried(known), now)
        case Changed():
            return _unreadable(outcome, _tried(known), now)
        case Receipt() | Standing():
            raise TypeError("an answer to a look-up is settled as one")
        case _:
            assert_never(outcome)


def filed_elsewhere(number: str, card: Card) -> Move:
    """Somebody filed this duty and period already: ours is not sent."""
    return Move(
        State.FALLOUT,
        "filed_elsewhere",
        f"{card.title} already shows a filing for this period: {number}. Ours was not sent.",
        number=number,
    )


def after_read(outcome: Outcome | NotSent, known: Known, now: datetime) -> Move:
    """A read is never in doubt: a fault is tried again, and at last given up as unknown."""
    match outcome:
        case Standing():
            return Move(State.ACCEPTED, standing=outcome, detail=outcome.words)
        case NotSent():
            return Move(State.READY, values={"tries": max(0, known.tries - 1)})
        case InDoubt(detail=detail, rule=rule):
            return _not_processed(Unavailable(detail, rule), known, now)
        case Unavailable() | Blocked():
            return _not_processed(outcome, known, now)
        case Changed():
            return _unreadable(outcome, known, now)
        case Rejected(detail=detail, category=category):
            return Move(State.WITHDRAWN, "refused", detail, category=category)
        case Receipt():
            raise TypeError("a read gives a standing, not a receipt")
        case _:
            assert_never(outcome)


def way_out(known: Known, card: Card, now: datetime) -> Step:
    """How the portal's class lets a doubt be left."""
    in_time = known.resend_by is not None and now < known.resend_by
    if known.cause == "duplicate" and card.lookup:
        return Step.LOOK_UP  # the portal says that it has it: only its look-up can tell what
    match card.doubt_class:
        case "A" if in_time:
            return Step.RESEND
        case "A" | "B" | "C" if card.lookup:
            return Step.LOOK_UP
        case "D" if in_time and known.sends == 1:
            return Step.RESEND
        case _:
            return Step.ASK_A_PERSON


def resend(known: Known, now: datetime) -> Move:
    """Back to the lane, to be sent again with the same key and the same bytes."""
    later = now + timedelta(seconds=_backoff(replace(known, tries=known.sends)))
    return Move(State.READY, "resend", values={"not_before": later, "absences": 0})


def too_late_to_repeat(card: Card) -> Move:
    """The portal may have forgotten the first one: a repeat would be a second filing."""
    return Move(
        State.FALLOUT,
        "repeat_expired",
        f"It may have arrived, and {card.title} no longer recognises a repeat. Look there, and "
        "say what you found.",
    )


def ask_a_person(known: Known, card: Card) -> Move:
    """Nothing the portal offers settles it."""
    return Move(
        State.FALLOUT,
        "in_doubt",
        f"It may have arrived. {card.title} offers no way for us to find out: look there, or in "
        "the fee statement, and say what you found.",
    )


def after_look_up(
    found: Outcome | None, known: Known, card: Card, now: datetime, *, settle: float
) -> Move:
    """The move that a look-up makes something in doubt, or received, take."""
    match found:
        case Receipt(payload_sha256=digest) if digest and digest != known.payload_sha256:
            return Move(
                State.FALLOUT,
                "content_differs",
                f"{card.title} holds our submission {found.number}, but with other content than "
                "we sent. Compare, and amend there if needed.",
                number=found.number,
            )
        case Receipt(final=True, number=number):
            return Move(State.ACCEPTED, number=number)
        case Receipt():
            return _wait(known, now, State.RECEIPTED)
        case Rejected(reasons=reasons, detail=detail):
            return Move(State.REJECTED, "rejected", detail, reasons=reasons)
        case None:
            return _absent(known, card, now, settle)
        case Unavailable(retry_after=float() as seconds, detail=detail):
            return replace(_wait(known, now, known.state), hold=_hold(now, seconds, detail))
        case Blocked(retry_after=seconds, needs_person=needs_person, detail=detail):
            hold = Hold(None, detail) if needs_person else _hold(now, seconds or 60.0, detail)
            return replace(_wait(known, now, known.state), hold=hold)
        case Unavailable() | InDoubt() | Changed():
            return _wait(known, now, known.state, detail=found.detail)
        case Standing():
            raise TypeError("a look-up gives a receipt, not a standing")
        case _:
            assert_never(found)


def still_held(error: PortalError, cause: str, now: datetime) -> Hold:
    """What the harmless look after a hold says about the rest of it."""
    match error:
        case Blocked(needs_person=True, detail=detail):
            return Hold(None, detail)
        case Blocked(retry_after=float() as seconds) | Unavailable(retry_after=float() as seconds):
            return _hold(now, seconds, cause)
        case _:
            return _hold(now, PROBE_AGAIN_SECONDS, cause)


def _received(number: str, card: Card, now: datetime) -> Move:
    if not card.lookup:
        return Move(
            State.FALLOUT,
            "no_look_up",
            f"{card.title} has received it as {number} and offers no way to ask what became of "
            "it. Watch for its answer, and record it here.",
            number=number,
        )
    soon = now + timedelta(seconds=POLL_SECONDS)
    return Move(State.RECEIPTED, number=number, values={"not_before": soon, "tries": 0})


def _refused(outcome: Rejected, known: Known, card: Card) -> Move:
    """A refusal ends it, unless it is of a repeat: what was sent before may have been taken."""
    if known.sends <= 1 or card.doubt_class == "A":
        return Move(State.REJECTED, "rejected", outcome.detail, reasons=outcome.reasons)
    told = "; ".join(outcome.reasons) or outcome.detail
    return Move(
        State.FALLOUT,
        "refused_after_doubt",
        f"{card.title} refused a repeat ({told}). The first may have been accepted: look there.",
    )


def _not_sent(outcome: NotSent, known: Known, now: datetime) -> Move:
    """Nothing left. If it missed its moment that may happen again, so it waits a little."""
    if outcome.rule == "fence":
        return _not_processed(Unavailable(outcome.detail, "fence"), known, now)
    return Move(State.READY, values=_unsent(known) | {"tries": max(0, known.tries - 1)})


def _doubt(outcome: InDoubt, known: Known, card: Card, now: datetime) -> Move:
    is_duplicate = outcome.rule.startswith("409")
    doubts = known.doubts + 1
    if is_duplicate and not (card.lookup and card.doubt_class in "ABC"):
        return Move(
            State.FALLOUT,
            "arrived_without_number",
            f"{card.title} says that it has it, but cannot tell us the number. Fetch it there.",
            values={"doubts": doubts},
        )
    if doubts > MOST_DOUBTS:
        return replace(ask_a_person(known, card), values={"doubts": doubts})
    soon = now + timedelta(seconds=FIRST_LOOK_SECONDS)
    values = {"not_before": soon, "absences": 0, "tries": 0, "doubts": doubts}
    cause = "duplicate" if is_duplicate else "no_answer"
    return Move(State.IN_DOUBT, cause, outcome.detail, values=values)


def _not_processed(outcome: Unavailable | Blocked, known: Known, now: datetime) -> Move:
    """It did not count: back to the lane, later; and the whole lane waits if it was told to."""
    values: dict[str, Any] = {} if known.is_read else _unsent(known)
    if isinstance(outcome, Blocked):
        seconds = outcome.retry_after or 60.0
        hold = Hold(None, outcome.detail) if outcome.needs_person else None
        values |= {"not_before": now, "tries": max(0, known.tries - 1)}
        return Move(
            State.READY, "blocked", outcome.detail, category=outcome.category,
            values=values, hold=hold or _hold(now, seconds, outcome.detail),
        )  # fmt: skip
    if outcome.retry_after is not None:
        values |= {"not_before": now, "tries": max(0, known.tries - 1)}
        hold = _hold(now, outcome.retry_after, outcome.detail)
        return Move(
            State.READY, "told_to_wait", outcome.detail, category=outcome.category,
            values=values, hold=hold,
        )  # fmt: skip
    if known.tries >= MOST_TRIES:
        end = State.WITHDRAWN if known.is_read else State.FALLOUT
        detail = f"Tried {known.tries} times; last: {outcome.detail}"
        return Move(end, "unavailable", detail, category=outcome.category, values=values)
    values |= {"not_before": now + timedelta(seconds=_backoff(known)), "tries": known.tries}
    return Move(
        State.READY, "unavailable", outcome.detail, category=outcome.category, values=values
    )


def _unreadable(outcome: Changed, known: Known, now: datetime) -> Move:
    """A strange page may be a passing one: nothing was sent, so look again before giving up."""
    values: dict[str, Any] = {} if known.is_read else _unsent(known)
    if known.tries < MOST_UNREADABLE:
        values |= {"not_before": now + timedelta(seconds=_backoff(known)), "tries": known.tries}
        return Move(State.READY, "unreadable", outcome.detail, values=values)
    end = State.WITHDRAWN if known.is_read else State.FALLOUT
    return Move(end, "changed", outcome.detail, category=outcome.category, values=values)


def _absent(known: Known, card: Card, now: datetime, settle: float) -> Move:
    """Not found counts once it can no longer be on its way and the register is up to date."""
    if known.state == State.RECEIPTED:
        return _wait(known, now, known.state, detail="The portal no longer finds its own receipt.")
    lag = timedelta(seconds=card.lookup_lag_seconds)
    sent = known.last_sent_at or now
    at_work = timedelta(seconds=card.timeout_seconds + settle + card.processing_seconds)
    certain = sent + at_work + lag
    if now < certain:
        cause = known.cause if known.cause == "duplicate" else "not_found_yet"
        return Move(State.IN_DOUBT, cause, values={"not_before": certain})
    if known.cause == "duplicate":
        return Move(
            State.FALLOUT,
            "duplicate_not_found",
            f"{card.title} calls it a duplicate, but does not find it. Ask there what it has.",
        )
    if card.doubt_class == "A":
        return ask_a_person(known, card)  # the key was forgotten: a repeat would be a new filing
    if card.doubt_class == "C" and known.absences == 0:
        again = now + lag + timedelta(seconds=1)
        values = {"not_before": again, "absences": 1}
        return Move(State.IN_DOUBT, "not_found_once", values=values)
    values = {"not_before": now, "absences": 0, "tries": 0, **_unsent(replace(known, sends=1))}
    return Move(State.READY, "proved_absent", "Looked up and not found: it never arrived.",
                values=values)  # fmt: skip


def _wait(known: Known, now: datetime, state: str, *, detail: str = "") -> Move:
    """Look again later; at last ask a person."""
    received = state == State.RECEIPTED
    if known.tries >= (MOST_POLLS if received else MOST_LOOKS):
        told = detail or "The portal has it but has not decided."
        return Move(State.FALLOUT, "no_verdict", f"Asked {known.tries} times. {told}")
    calm = replace(known, is_urgent=False) if received else known
    wait = timedelta(seconds=_backoff(calm, LONGEST_POLL if received else LONGEST_BACKOFF))
    values = {"not_before": now + wait, "tries": known.tries + 1, "absences": 0}
    cause = "duplicate" if known.cause == "duplicate" else "waiting"
    return Move(state, cause, detail, values=values)


def _tried(known: Known) -> Known:
    return replace(known, tries=known.tries + 1)


def _unsent(known: Known) -> dict[str, Any]:
    """Take back what arming wrote, because nothing arrived."""
    if known.sends <= 1:
        return {"sends": 0, "first_sent_at": None, "last_sent_at": None, "resend_by": None}
    return {"sends": known.sends - 1}


def _backoff(known: Known, longest: float = LONGEST_BACKOFF) -> float:
    """Longer with each try, never in step with others; shorter for what is urgent."""
    longest = min(longest, LONGEST_URGENT_BACKOFF) if known.is_urgent else longest
    return min(longest, 2.0 ** min(known.tries, 12)) * (0.5 + known.jitter)


def _hold(now: datetime, seconds: float, cause: str) -> Hold:
    return Hold(now + timedelta(seconds=seconds), cause)


def repeat_until(card: Card, first_sent_at: datetime) -> datetime | None:
    """Until when the portal recognises a repeat of what was first sent at that time."""
    hours = {"A": card.key_retention_hours, "D": card.duplicate_window_hours}.get(card.doubt_class)
    return first_sent_at + timedelta(hours=hours) - SAFETY if hours else None
