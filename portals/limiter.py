"""Keeps a portal's limits as the portal counts them: by arrivals, not by our sending.

A request holds its slot from the grant until one window after its answer was seen; one without an
answer until one window after it can no longer arrive. A grant is given only while fewer than N
slots are held. Suppose N+1 requests arrived within one window, and take the one granted last, at
t: every other arrived after t - W, and was answered no earlier, so all N slots were still held at
t, and it was not granted.
"""

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from portals.cards import LONG_SECONDS, Limit

BULK = 2  # ranks from here on leave a reserve to reconciliation and to what is urgent
SHORT_SECONDS = LONG_SECONDS  # up to this a new owner waits windows out; longer are on record


PATIENCE_SECONDS = 2.0  # for a slot of a long window; beyond it the lane had better do without


class UsedUp(Exception):
    """A long window is full; the next slot is so many seconds away."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The next request may leave in {seconds:.0f} s.")
        self.seconds = seconds


class Stopping(Exception):
    """The lane is being given back; nobody waits for a slot any more."""


@dataclass
class Block:
    """Requests set aside on record; none of them can be under way once it is closed."""

    id: int
    left: int
    under_way: int = 0


class Blocks(Protocol):
    """Where requests of long windows are set aside before they are sent."""

    async def open(self, limit: Limit, wanted: int) -> Block | float:
        """Set up to `wanted` aside, or say in how many seconds one may be free."""

    async def close(self, block: Block, *, ago: float) -> None:
        """The last of a block ended so long ago; what is left of it was not used."""


@dataclass
class Window:
    """One (N, W) pair that fits in memory: what is under way, and what still counts."""

    limit: Limit
    under_way: int = 0
    leaving: deque[float] = field(default_factory=deque)  # when each answered one stops counting

    def held(self, now: float) -> int:
        """Slots held at this moment."""
        while self.leaving and self.leaving[0] <= now:
            self.leaving.popleft()
        return self.under_way + len(self.leaving)

    def room(self, now: float, *, reserve: bool) -> bool:
        """Whether another request may be granted."""
        ceiling = self.limit.requests
        if reserve and ceiling >= 2:
            ceiling -= ceil(ceiling / 10)
        return self.held(now) < ceiling


@dataclass
class LongWindow:
    """One (N, W) pair that outlives us: requests are set aside in blocks, on record."""

    limit: Limit
    block: Block | None = None
    ended: list[tuple[Block, float]] = field(default_factory=list)  # to be closed on record


@dataclass
class Grant:
    """The right to send one request now."""

    limiter: "Limiter"
    over_at: float  # after this an unanswered request can no longer arrive
    blocks: list[Block]

    def answered(self) -> None:
        """The answer was seen: the slot counts one more window from now."""
        self.limiter._release(self.blocks, self.limiter.clock())

    def unanswered(self) -> None:
        """No answer: it may still arrive until its deadline."""
        self.limiter._release(self.blocks, max(self.over_at, self.limiter.clock()))

    def never_left(self) -> None:
        """Nothing was sent, so nothing arrives."""
        self.limiter._release(self.blocks, None)


class Limiter:
    """All limits of one portal, and its cap on requests under way, for one owner."""

    def __init__(
        self,
        limits: Sequence[Limit],
        max_concurrency: int,
        *,
        blocks: Blocks | None = None,
        quiet_for: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.max_concurrency = max_concurrency
        self.under_way = 0
        self.short = [Window(limit) for limit in limits if limit.seconds <= SHORT_SECONDS]
        self.long = [LongWindow(limit) for limit in limits if limit.seconds > SHORT_SECONDS]
        self.blocks = blocks
        self.opens_at = clock() + self._still_counting(quiet_for)
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._block_lock = asyncio.Lock()
        self._is_stopping = False

    def _still_counting(self, quiet_for: float) -> float:
        """How long a former owner's requests may still fill our short windows."""
        longest = max((window.limit.seconds for window in self.short), default=0.0)
        return max(0.0, longest - quiet_for)

    async def permit(self, rank: int, *, timeout: float) -> Grant:
        """Wait until a request may leave: lower ranks first, among equals in order of asking."""
        await self._turn(rank)
        try:
            blocks = await self._set_all_aside()
        except BaseException:
            self._release([], None)
            raise
        return Grant(self, self.clock() + timeout, blocks)

    async def _turn(self, rank: int) -> None:
        """Wait for a slot of every short window."""
        if self._is_stopping:
            raise Stopping
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._order), turn))
        self._pump()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release([], None)  # granted in the same breath: give it back
            raise

    async def _set_all_aside(self) -> list[Block]:
        """One request of each long window, only now that it can leave at once."""
        blocks: list[Block] = []
        try:
            for window in self.long:
                blocks.append(await self._set_aside(window))
        except BaseException:
            self._return(blocks, None)
            raise
        return blocks

    def stop(self) -> None:
        """Send everybody home who still waits for a slot."""
        self._is_stopping = True
        for _, _, turn in self._waiting:
            if not turn.done():
                turn.set_exception(Stopping())
        self._waiting.clear()

    async def close(self) -> None:
        """Give back what was set aside and not used; nothing may be under way."""
        for window in self.long:
            await self._close_ended(window)
            if window.block is not None and self.blocks is not None:
                await self.blocks.close(window.block, ago=0.0)
                window.block = None

    def _pump(self) -> None:
        """Grant as many as fit, in order; then sleep until the next slot is free."""
        now = self.clock()
        while self._waiting:
            rank, _, turn = self._waiting[0]
            if turn.done():
                heapq.heappop(self._waiting)
                continue
            if not self._fits(now, rank):
                break
            heapq.heappop(self._waiting)
            self.under_way += 1
            for window in self.short:
                window.under_way += 1
            turn.set_result(None)
        self._sleep_until_next(now)

    def _fits(self, now: float, rank: int) -> bool:
        if now < self.opens_at or self.under_way >= self.max_concurrency:
            return False
        return all(window.room(now, reserve=rank >= BULK) for window in self.short)

    def _sleep_until_next(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting or self.under_way >= self.max_concurrency:
            return  # nobody waits, or the next answer will wake us
        times = [window.leaving[0] for window in self.short if window.held(now) and window.leaving]
        if now < self.opens_at:
            times.append(self.opens_at)
        if times:
            delay = max(0.0, min(times) - now)
            self._timer = asyncio.get_running_loop().call_later(delay + 0.0005, self._pump)

    def _release(self, blocks: list[Block], arrived_by: float | None) -> None:
        """A request is over; from `arrived_by` on it counts one more window, or not at all."""
        self.under_way -= 1
        for window in self.short:
            window.under_way -= 1
            if arrived_by is not None:
                late = window.leaving and window.leaving[-1] > arrived_by + window.limit.seconds
                window.leaving.append(arrived_by + window.limit.seconds)
                if late:
                    window.leaving = deque(sorted(window.leaving))
        self._return(blocks, arrived_by)
        self._pump()

    def _return(self, blocks: list[Block], arrived_by: float | None) -> None:
        for window, block in zip(self.long, blocks, strict=False):
            block.under_way -= 1
            block.left += arrived_by is None
            if block.under_way == 0 and (block.left == 0 or block is not window.block):
                window.ended.append((block, arrived_by or self.clock()))
                if window.block is block:
                    window.block = None

    async def _set_aside(self, window: LongWindow) -> Block:
        """Take one request out of a block on record, opening the next one when it is used up."""
        if self.blocks is None:
            raise RuntimeError("a limit over a long window needs a place on record")
        async with self._block_lock:
            await self._close_ended(window)
            while window.block is None or window.block.left == 0:
                got = await self.blocks.open(window.limit, max(1, window.limit.requests // 50))
                if isinstance(got, Block):
                    window.block = got
                elif got > PATIENCE_SECONDS or self._is_stopping:
                    raise UsedUp(got)
                else:
                    await asyncio.sleep(got)
                    await self._close_ended(window)
            window.block.left -= 1
            window.block.under_way += 1
            return window.block

    async def _close_ended(self, window: LongWindow) -> None:
        while window.ended and self.blocks is not None:
            block, at = window.ended.pop()
            await self.blocks.close(block, ago=self.clock() - at)
