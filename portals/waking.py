"""Wakes the lanes when there is something for them to do.

Losing a wake-up loses nothing: a standing schedule, made by a migration, wakes them every minute.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django_q.tasks import async_task

from portals.models import Lane

TASK = "portals.tasks.wake_lanes"
FRESH = timedelta(seconds=5)


def wake(portal_id: int) -> None:
    """Wake the lanes once this transaction is committed, unless that was just done.

    Only then, because the lane's row is locked first by whoever works it.
    """
    transaction.on_commit(lambda: _wake(portal_id))


def _wake(portal_id: int) -> None:
    now = timezone.now()
    stale = Q(woken_at__isnull=True) | Q(woken_at__lt=now - FRESH)
    if Lane.objects.filter(stale, portal_id=portal_id).update(woken_at=now):
        async_task(TASK)
