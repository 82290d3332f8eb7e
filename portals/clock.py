"""The two clocks that the protocol rests on."""

import time
from datetime import datetime

from django.db import connection
from django.utils import timezone


def steady() -> float:
    """Seconds that only grow, and go on while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def database_now() -> datetime:
    """The one clock that every owner shares; machines may disagree about the time."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
