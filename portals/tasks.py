"""What django-q2 calls. A task is only a wake-up: the truth is in our tables."""

import asyncio
import time

from django.conf import settings

from portals.models import Lane
from portals.runner import run_lanes


def wake_lanes() -> int:
    """Work every lane that is free and has something due, for one time slice."""
    Lane.objects.filter(woken_at__isnull=False).update(woken_at=None)
    slice_ends = time.monotonic() + settings.LANE_SLICE_SECONDS
    report = asyncio.run(run_lanes(until=slice_ends, patience=settings.LANE_SLICE_SECONDS))
    return report.settled
