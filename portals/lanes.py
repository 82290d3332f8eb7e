"""One lane at work: waves of intents, under the limiter, while the lease lasts.

A wave is read, looked up, armed in one transaction, sent under the limiter, and settled in one
transaction. No transaction is open while the network is.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError, connections
from django.utils import timezone

from portals import delivery, intents, leases, protocol
from portals.base import Portal as PortalAdapter
from portals.base import Receipt, Standing
from portals.cards import Card
from portals.clock import database_now, steady
from portals.crash import crash_point
from portals.delivery import Ending
from portals.errors import Blocked, Changed, InDoubt, PortalError, Unavailable
from portals.handlers import handler_of
from portals.http import Attempting, NotSent, Wire, attempting
from portals.intents import Result, Work
from portals.models import Attempt, Intent, Lane
from portals.protocol import Hold, Move, State, Step

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
SMALLEST_WAVE, LARGEST_WAVE = 1, 256
IDLE_SECONDS = 0.25
SETTLE_AGAIN_SECONDS = (0.5, 2.0, 5.0)
MOVING = (State.READY, State.ARMED, State.IN_DOUBT, State.RECEIPTED)


def in_database(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run a service in the one thread that has our database connection."""
    return sync_to_async(function, thread_sensitive=True)


class LaneRun:
    """One lane while we own it."""

    def __init__(self, lane: Lane, card: Card, portal: PortalAdapter, wire: Wire) -> None:
        self.lane = lane
        self.card = card
        self.portal = portal
        self.wire = wire
        self.wave = max(SMALLEST_WAVE, 2 * card.max_concurrency)
        self.stopping = False  # an orderly end: what is not under way is not sent
        self.lease_ends = 0.0
        self.settled = 0

    def stop(self) -> None:
        """Send nothing more, and wait for no more turns; what is under way ends by itself."""
        self.stopping = True
        self.wire.limiter.stop()

    async def work(self, until: float) -> None:
        """Send waves until nothing is due in this slice, the lane is held, or the slice ends."""
        if self.lane.pause_cause and not await self._may_resume():
            return
        while not self.stopping and self._lease_lasts() and time.monotonic() < until:
            if await self._turn():
                continue
            due = await in_database(next_due)(self.lane.portal_id)
            if due is None or time.monotonic() + due > until:
                return
            await asyncio.sleep(min(max(due, 0.01), IDLE_SECONDS))

    async def _turn(self) -> bool:
        """What is in doubt first, then what is ready, then what the portal has yet to decide."""
        did = await self._ask(State.IN_DOUBT)
        did = await self._send_wave() or did
        return await self._ask(State.RECEIPTED) or did

    async def _ask(self, state: str) -> bool:
        now = await in_database(database_now)()
        works = await in_database(intents.open_questions)(
            self.lane.portal_id, state, self.wave, now=now
        )
        if works:
            await self._settle(await _gather(lambda work: self._answer(work, now), works))
        return bool(works)

    async def _answer(self, work: Work, now: datetime) -> Result | None:
        """One way out of a doubt, or one more look at what was received.

        `now` is from before the look: what it does not find was absent then.
        """
        step = protocol.way_out(work.known, self.card, now)
        if work.known.state == State.RECEIPTED:
            step = Step.LOOK_UP
        if step == Step.RESEND:
            return _decided(work, protocol.resend(work.known, now))
        if step == Step.ASK_A_PERSON:
            return _decided(work, protocol.ask_a_person(work.known, self.card))
        attempt = self._attempting(
            Intent.Rank.RECONCILE if work.known.state == State.IN_DOUBT else Intent.Rank.POLL
        )
        found = await self._guarded(delivery.look_up(self.portal, work, attempt), attempt)
        if isinstance(found, NotSent):
            return None
        settle = settings.SEND_WITHIN_SECONDS + settings.WIRE_SETTLE_SECONDS
        move = protocol.after_look_up(found, work.known, self.card, now, settle=settle)
        if move.cause == "proved_absent":
            # The next send comes in a new session; a portal with one at a time then refuses
            # whatever of the old one may still be on its way.
            self.portal.forget_session()
        return _result(work, move, Attempt.Purpose.LOOK_UP, found, attempt)

    async def _send_wave(self) -> bool:
        works = await in_database(intents.next_work)(
            self.lane.portal_id, self.wave, now=timezone.now()
        )
        if not works:
            return False
        started = time.monotonic()
        looked = await _gather(self._look_before, works)
        clear = [work for work in looked if isinstance(work, Work)]
        await self._settle([result for result in looked if isinstance(result, Result)])
        if clear and not self.stopping:
            fence = steady() + settings.SEND_WITHIN_SECONDS
            armed = await in_database(intents.arm)(self.lane, clear, self.card)
            crash_point("armed")
            results = await _gather(lambda work: self._send(work, fence), armed)
            crash_point("answered")
            await self._settle(results)
            crash_point("settled")
        self._adapt(time.monotonic() - started)
        return True

    async def _look_before(self, work: Work) -> Work | Result | None:
        """The work itself if the way is clear and all is prepared; else what was found."""
        if work.known.is_read:
            return work
        attempt = self._attempting(work.rank)
        found = await self._guarded(self._clear_the_way(work, attempt), attempt)
        match found:
            case None:
                return work
            case NotSent():
                return None
            case str():
                move = protocol.filed_elsewhere(found, self.card)
            case Receipt():
                move = protocol.after_look_up(
                    found, work.known, self.card, timezone.now(), settle=0
                )
            case _:
                move = protocol.after_look_before(found, work.known, timezone.now())
        return _result(work, move, Attempt.Purpose.LOOK_UP, found, attempt)

    async def _clear_the_way(self, work: Work, attempt: Attempting) -> Ending | str | None:
        """Is it there already? If not, do all that comes before the point of no return."""
        if self.card.lookup:
            by_key = self.card.doubt_class == "C" or work.known.sends > 0
            found = await delivery.look_before(self.portal, work, attempt, by_key=by_key)
            if found is not None:
                return found
        return await delivery.prepare(self.portal, work, attempt)

    async def _send(self, work: Work, fence: float) -> Result:
        """One armed intent: read, or pass its point of no return."""
        attempt = self._attempting(work.rank, fence)
        ending: Ending
        if handler_of(work.kind).road == "standing":
            ending = await self._guarded(delivery.read(self.portal, work, attempt), attempt)
            move = protocol.after_read(ending, work.known, timezone.now())
            return _result(work, move, Attempt.Purpose.READ, ending, attempt)
        if self.stopping:
            ending = NotSent("The lane was stopping.", "stopping")
        else:
            ending = await self._guarded(delivery.submit(self.portal, work, attempt), attempt)
        move = protocol.after_send(ending, work.known, self.card, timezone.now())
        return _result(work, move, Attempt.Purpose.SEND, ending, attempt)

    async def _guarded(self, call: Awaitable[T], attempt: Attempting) -> T | Ending:
        """Our own mistakes must not stop the lane, nor pass for an answer."""
        try:
            ending = await call
        except Exception as error:
            logger.exception("The adapter of %s failed", self.card.slug)
            detail = f"Our adapter failed: {type(error).__name__}: {error}."
            if attempt.committed:
                return InDoubt(f"{detail} It may have arrived.", "adapter failed")
            return Changed(detail, "adapter failed")
        if _is_hold(ending):
            self.stop()
        return ending

    async def _settle(self, results: Sequence[Result | None]) -> None:
        """Write what is known. A failing database must not make us forget an answer."""
        known = [result for result in results if result is not None]
        if not known:
            return
        for patience in (*SETTLE_AGAIN_SECONDS, None):
            try:
                await in_database(intents.settle)(self.lane, known)
                break
            except OperationalError:
                if patience is None or not self._lease_lasts():
                    raise
                logger.warning("%s: the database failed; settling again", self.card.slug)
                await in_database(connections.close_all)()
                await asyncio.sleep(patience)
        self.settled += len(known)

    async def _may_resume(self) -> bool:
        """After a block, one harmless look before anything is sent."""
        attempt = self._attempting(Intent.Rank.RECONCILE)
        token = attempting.set(attempt)
        hold: Hold | None = None
        try:
            await self.wire.ask("HEAD", "/health")
        except PortalError as error:
            hold = protocol.still_held(error, self.lane.pause_cause, timezone.now())
        finally:
            attempting.reset(token)
        await in_database(leases.hold)(self.lane, hold)
        return hold is None

    def _attempting(self, rank: int, fence: float | None = None) -> Attempting:
        def may_ask() -> bool:
            return not self.stopping and self._lease_lasts()

        def may_commit() -> bool:
            return may_ask() and fence is not None and steady() < fence

        return Attempting(rank, may_ask, may_commit)

    def _lease_lasts(self) -> bool:
        """Whether a request that leaves now is over before another may take the lane."""
        return steady() + self.card.timeout_seconds < self.lease_ends

    def _adapt(self, took: float) -> None:
        """Small waves where the portal is slow, so that a crash leaves little in doubt."""
        if took < 0.5:
            self.wave = min(LARGEST_WAVE, self.wave * 2)
        elif took > 1.5:
            self.wave = max(SMALLEST_WAVE, self.wave // 2)


async def _gather(do: Callable[[Work], Awaitable[T]], works: Sequence[Work]) -> list[T]:
    """All of them to their end, also when one fails: nothing goes on behind our back."""
    endings = await asyncio.gather(*(do(work) for work in works), return_exceptions=True)
    for ending in endings:
        if isinstance(ending, BaseException):
            raise ending
    return cast(list[T], endings)


def _decided(work: Work, move: Move) -> Result:
    """A way out that needs no look at the portal."""
    return Result(work, move, Attempt.Purpose.LOOK_UP, Attempt.Outcome.NOT_SENT, "no look needed")


def _result(
    work: Work, move: Move, purpose: str, ending: Ending | str | None, attempt: Attempting
) -> Result:
    error = ending if isinstance(ending, PortalError) else None
    recognised = ending if isinstance(ending, Receipt | Standing) else None
    return Result(
        work,
        move,
        purpose,
        delivery.outcome_word(ending),
        rule=error.rule if error else recognised.rule if recognised else "",
        detail=error.detail if error else move.detail,
        category=str(getattr(error, "category", "")),
        exchanges=tuple(attempt.exchanges),
    )


def _is_hold(ending: object) -> bool:
    """The portal told the whole lane to keep away."""
    return isinstance(ending, Blocked) or (
        isinstance(ending, Unavailable) and ending.retry_after is not None
    )


def next_due(portal_id: int) -> float | None:
    """In how many seconds this portal's next work is due; None if there is none."""
    return seconds_to(
        Intent.objects.filter(portal_id=portal_id, state__in=MOVING)
        .order_by("not_before")
        .values_list("not_before", flat=True)
        .first()
    )


def seconds_to(when: datetime | None) -> float | None:
    """From now on; what is past is due at once."""
    return None if when is None else max(0.0, (when - timezone.now()).total_seconds())
