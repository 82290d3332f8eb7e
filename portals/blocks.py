"""Requests of long windows, set aside in the database before they are sent."""

from datetime import timedelta

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import Min, Q, Sum
from django.utils import timezone

from portals.cards import Limit
from portals.limiter import Block
from portals.models import Lane, LimitBlock


class RecordedBlocks:
    """The blocks of one lane. A crash loses nothing: what was set aside counts as sent."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane

    async def open(self, limit: Limit, wanted: int) -> Block | float:
        """Set up to `wanted` aside, or say in how many seconds one may be free."""
        return await sync_to_async(self._open, thread_sensitive=True)(limit, wanted)

    async def close(self, block: Block, *, ago: float) -> None:
        """The last of a block ended so long ago; what is left of it was not used."""
        await sync_to_async(self._close, thread_sensitive=True)(block, ago)

    def _open(self, limit: Limit, wanted: int) -> Block | float:
        now = timezone.now()
        since = now - timedelta(seconds=limit.seconds)
        with transaction.atomic():
            Lane.objects.select_for_update().get(pk=self.lane.pk)
            counting = LimitBlock.objects.filter(lane=self.lane, seconds=limit.seconds).filter(
                Q(closed_at__isnull=True) | Q(closed_at__gt=since)
            )
            held = counting.aggregate(held=Sum("requests"), first=Min("closed_at"))
            free = min(wanted, limit.requests - (held["held"] or 0))
            if free > 0:
                row = LimitBlock.objects.create(
                    lane=self.lane, seconds=limit.seconds, requests=free
                )
                return Block(row.pk, free)
        first = held["first"]
        return max(0.05, (first - since).total_seconds()) if first else 1.0

    def _close(self, block: Block, ago: float) -> None:
        row = LimitBlock.objects.filter(pk=block.id)
        if block.left and not row.exclude(requests__gt=block.left).delete()[0]:
            used = row.values_list("requests", flat=True).get() - block.left
            row.update(requests=used)
        row.update(closed_at=timezone.now() - timedelta(seconds=ago))
