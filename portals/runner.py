"""The runner: takes lanes that are free and have work, and hosts them on one loop."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, cast

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone

from portals import leases
from portals.base import Portal as PortalAdapter
from portals.blocks import RecordedBlocks
from portals.cards import Card
from portals.clock import database_now, steady
from portals.crash import crash_point
from portals.credentials import credential_for
from portals.http import Wire
from portals.intents import LaneHeld, LostLane
from portals.lanes import IDLE_SECONDS, LaneRun, in_database, next_due, seconds_to
from portals.limiter import Limiter
from portals.models import Lane
from portals.protocol import Hold
from portals.registry import card_of, module_of

logger = logging.getLogger(__name__)

FAILED_LANE_SECONDS = 60.0


class AdapterModule(Protocol):
    """A portal's `adapter.py`."""

    Adapter: Callable[..., PortalAdapter]


@dataclass
class Report:
    """What a run did."""

    settled: int = 0
    lanes: set[str] = field(default_factory=set)


class Runner:
    """Hosts many lanes on one loop, until a time or until nothing is left to do."""

    def __init__(self, portals: list[str] | None = None) -> None:
        self.portals = portals
        self.owner = leases.owner_name()
        self.runs: dict[int, LaneRun] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.stopping = False
        self.report = Report()

    async def run(self, until: float, *, patience: float | None) -> Report:
        """Work lanes until the time is over, or nothing is due within our patience.

        Without a patience it waits for work until it is stopped.
        """
        renewing = asyncio.create_task(self._renew())
        try:
            while not self.stopping and time.monotonic() < until:
                await self._take_free_lanes(until)
                self._reap()
                if not self.tasks and not await self._worth_waiting(until, patience):
                    break
                await asyncio.sleep(IDLE_SECONDS)
            self.stop()
            await asyncio.gather(*self.tasks.values())
        finally:
            renewing.cancel()
            await in_database(connections.close_all)()
        return self.report

    def stop(self) -> None:
        """An orderly end: finish what is under way, send nothing more, leave nothing in doubt."""
        self.stopping = True
        for run in self.runs.values():
            run.stop()

    async def _take_free_lanes(self, until: float) -> None:
        for lane_id, slug in await in_database(self._candidates)():
            if lane_id in self.tasks:
                continue
            asked = steady()
            lane = await in_database(leases.take)(lane_id, self.owner)
            if lane is None:
                continue
            crash_point("taken")
            self.report.lanes.add(slug)
            lease_ends = asked + settings.LANE_LEASE_SECONDS
            self.tasks[lane_id] = asyncio.create_task(self._host(lane, lease_ends, until))

    def _candidates(self) -> list[tuple[int, str]]:
        return list(leases.lanes_with_work(self.portals).values_list("pk", "portal__slug"))

    async def _host(self, lane: Lane, lease_ends: float, until: float) -> None:
        """Work one lane and give it back; what goes wrong in it stays in it."""
        try:
            await self._work(lane, lease_ends, until)
        except (LostLane, LaneHeld) as error:
            logger.warning("%s: %s", lane.portal.slug, error)
        except Exception as error:
            logger.exception("The lane of %s failed", lane.portal.slug)
            cause = f"Our own failure: {type(error).__name__}: {error}"
            again = timezone.now() + timedelta(seconds=FAILED_LANE_SECONDS)
            await in_database(leases.hold)(lane, Hold(again, cause))
        finally:
            await in_database(leases.give_back)(lane)

    async def _work(self, lane: Lane, lease_ends: float, until: float) -> None:
        """Open the lane's own line to its portal, and work it."""
        card = card_of(lane.portal.slug)
        credential = await in_database(credential_for)(lane.portal)
        limiter = await in_database(limiter_for)(lane, card)
        async with Wire(card, limiter, version=settings.VERSION) as wire:
            adapter = cast(AdapterModule, module_of(card, "adapter")).Adapter(
                wire, card, user=credential.username, secret=credential.secret
            )
            run = LaneRun(lane, card, adapter, wire)
            run.lease_ends = lease_ends
            self.runs[lane.pk] = run
            try:
                await run.work(until)
            finally:
                self.runs.pop(lane.pk)
                self.report.settled += run.settled
                await limiter.close()

    def _reap(self) -> None:
        for lane_id in [pk for pk, task in self.tasks.items() if task.done()]:
            self.tasks.pop(lane_id).result()

    async def _worth_waiting(self, until: float, patience: float | None) -> bool:
        if patience is None:
            return True
        due = await in_database(_next_due_anywhere)(self.portals)
        return due is not None and due <= min(patience, until - time.monotonic())

    async def _renew(self) -> None:
        """Keep the leases alive; a lane that is no longer ours sends nothing more."""
        while True:
            await asyncio.sleep(settings.LANE_LEASE_SECONDS / 4)
            runs = dict(self.runs)
            asked = steady()
            try:
                kept = await in_database(leases.renew)([run.lane for run in runs.values()])
            except DatabaseError:
                logger.exception("The leases could not be renewed; trying again")
                await in_database(connections.close_all)()
                continue  # a lane whose lease runs out meanwhile stops by itself
            for lane_id, run in runs.items():
                if lane_id in kept:
                    run.lease_ends = asked + settings.LANE_LEASE_SECONDS
                else:
                    run.stop()


async def run_lanes(
    *, until: float, portals: list[str] | None = None, patience: float | None = 0.0
) -> Report:
    """Work every lane that is free and has something due."""
    return await Runner(portals).run(until, patience=patience)


def limiter_for(lane: Lane, card: Card) -> Limiter:
    """A limiter that knows how long the last owner has been quiet, by the clock both share."""
    quiet_for = (database_now() - (lane.quiet_since or database_now())).total_seconds()
    return Limiter(
        card.limits, card.max_concurrency, blocks=RecordedBlocks(lane), quiet_for=quiet_for
    )


def _next_due_anywhere(portals: list[str] | None) -> float | None:
    """The same for every lane that may run, and with the time until which it is held."""
    lanes = Lane.objects.filter(needs_person=False, portal__is_enabled=True)
    if portals is not None:
        lanes = lanes.filter(portal__slug__in=portals)
    found = []
    for lane in lanes:
        due = next_due(lane.portal_id)
        if due is not None:
            found.append(max(due, seconds_to(lane.paused_until) or 0.0))
    return min(found, default=None)
