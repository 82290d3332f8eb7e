"""The limiter against the window that a portal would count, on a real event loop."""

import asyncio
import random
import time
from bisect import bisect_left

import pytest

from portals.cards import Limit
from portals.limiter import Block, Limiter, Stopping, UsedUp


def most_in_a_window(arrivals: list[float], seconds: float) -> int:
    """The fullest window, as the portal sees it."""
    arrivals = sorted(arrivals)
    return max(
        index + 1 - bisect_left(arrivals, at - seconds, 0, index + 1)
        for index, at in enumerate(arrivals)
    )


async def send(limiter: Limiter, arrivals: list[float], delays: random.Random) -> None:
    """One request whose way there and back takes its time."""
    grant = await limiter.permit(2, timeout=1.0)
    await asyncio.sleep(delays.uniform(0.0, 0.05))
    arrivals.append(time.monotonic())
    await asyncio.sleep(delays.uniform(0.0, 0.02))
    grant.answered()


def test_no_window_is_ever_fuller_than_the_limit() -> None:
    arrivals: list[float] = []

    async def flood() -> None:
        limiter = Limiter([Limit(requests=20, seconds=0.5)], 50)
        delays = random.Random(1)
        await asyncio.gather(*(send(limiter, arrivals, delays) for _ in range(90)))

    started = time.monotonic()
    asyncio.run(flood())

    assert len(arrivals) == 90
    assert most_in_a_window(arrivals, 0.5) <= 18  # two slots are reserved for what is urgent
    assert time.monotonic() - started < 5.0


def test_no_more_are_under_way_than_allowed() -> None:
    under_way: list[int] = []

    async def one(limiter: Limiter) -> None:
        grant = await limiter.permit(2, timeout=1.0)
        under_way.append(limiter.under_way)
        await asyncio.sleep(0.01)
        grant.answered()

    async def flood() -> None:
        limiter = Limiter([Limit(requests=1000, seconds=1)], 3)
        await asyncio.gather(*(one(limiter) for _ in range(20)))

    asyncio.run(flood())

    assert max(under_way) == 3
    assert len(under_way) == 20


def test_urgent_overtakes_bulk_that_waits() -> None:
    order: list[int] = []

    async def one(limiter: Limiter, rank: int) -> None:
        grant = await limiter.permit(rank, timeout=1.0)
        order.append(rank)
        grant.answered()

    async def both() -> None:
        limiter = Limiter([Limit(requests=2, seconds=0.1)], 1, quiet_for=1.0)
        bulk = [asyncio.create_task(one(limiter, 2)) for _ in range(4)]
        await asyncio.sleep(0.01)
        await asyncio.gather(one(limiter, 1), *bulk)

    asyncio.run(both())

    assert order[:2] == [2, 1]


def test_an_unanswered_request_counts_until_it_can_no_longer_arrive() -> None:
    async def wait() -> float:
        limiter = Limiter([Limit(requests=1, seconds=0.1)], 5)
        first = await limiter.permit(1, timeout=0.3)
        first.unanswered()
        started = time.monotonic()
        await limiter.permit(1, timeout=0.3)
        return time.monotonic() - started

    assert asyncio.run(wait()) >= 0.39


def test_what_never_left_frees_its_slot_at_once() -> None:
    async def wait() -> float:
        limiter = Limiter([Limit(requests=1, seconds=5)], 5)
        (await limiter.permit(1, timeout=1)).never_left()
        started = time.monotonic()
        await limiter.permit(1, timeout=1)
        return time.monotonic() - started

    assert asyncio.run(wait()) < 0.1


def test_a_new_owner_waits_out_what_the_last_may_have_sent() -> None:
    async def wait(quiet_for: float) -> float:
        limiter = Limiter([Limit(requests=5, seconds=0.3)], 5, quiet_for=quiet_for)
        started = time.monotonic()
        await limiter.permit(1, timeout=1)
        return time.monotonic() - started

    assert asyncio.run(wait(0.0)) >= 0.29
    assert asyncio.run(wait(1.0)) < 0.1


def test_who_waits_is_sent_home_when_the_lane_stops() -> None:
    async def stop() -> None:
        limiter = Limiter([Limit(requests=1, seconds=9)], 5)
        await limiter.permit(1, timeout=1)
        waiting = asyncio.create_task(limiter.permit(1, timeout=1))
        await asyncio.sleep(0.01)
        limiter.stop()
        await waiting

    with pytest.raises(Stopping):
        asyncio.run(stop())


def test_a_cancelled_wait_takes_no_slot() -> None:
    async def cancel() -> int:
        limiter = Limiter([Limit(requests=1, seconds=0.05)], 5)
        held = await limiter.permit(1, timeout=1)
        waiting = asyncio.create_task(limiter.permit(1, timeout=1))
        await asyncio.sleep(0.01)
        waiting.cancel()
        held.answered()
        await asyncio.sleep(0.1)
        return limiter.under_way

    assert asyncio.run(cancel()) == 0


class Paper:
    """Blocks on paper instead of in a database."""

    def __init__(self, ceiling: int) -> None:
        self.left = ceiling
        self.closed: list[int] = []

    async def open(self, limit: Limit, wanted: int) -> Block | float:
        got = min(wanted, self.left)
        self.left -= got
        return Block(1, got) if got else 3600.0

    async def close(self, block: Block, *, ago: float) -> None:
        self.closed.append(block.left)


def test_a_used_up_day_says_how_long_it_lasts() -> None:
    async def spend() -> None:
        limiter = Limiter([Limit(requests=3, seconds=86_400)], 5, blocks=Paper(3))
        for _ in range(4):
            (await limiter.permit(1, timeout=1)).answered()

    with pytest.raises(UsedUp) as used:
        asyncio.run(spend())

    assert used.value.seconds == 3600.0


def test_what_was_set_aside_and_not_used_is_given_back() -> None:
    paper = Paper(500)

    async def spend() -> None:
        limiter = Limiter([Limit(requests=500, seconds=86_400)], 5, blocks=paper)
        for _ in range(3):
            (await limiter.permit(1, timeout=1)).answered()
        await limiter.close()

    asyncio.run(spend())

    assert paper.closed == [7]  # a block of ten, three used
