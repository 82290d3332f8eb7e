"""Who owns a lane: a lease with an epoch in the database, renewed while its owner works."""

import os
import socket
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from compliance import ledger
from portals import intents
from portals.models import Intent, Lane, LimitBlock
from portals.protocol import Hold


def database_now() -> datetime:
    """The one clock that every owner shares; machines may disagree about the time."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def owner_name() -> str:
    """This process, so that others on the same machine can tell whether it still lives."""
    namespace = Path("/proc/self/ns/pid")  # a number names a process only within its namespace
    space = namespace.stat().st_ino if namespace.exists() else 0
    started = _started(os.getpid()) or "0"
    return f"{socket.gethostname()}/{space}/{os.getpid()}/{started}/{uuid.uuid4().hex[:8]}"


def lanes_with_work(portals: list[str] | None = None) -> QuerySet[Lane]:
    """Lanes that may run now and have something due."""
    now = timezone.now()
    due = Intent.objects.filter(portal_id=OuterRef("portal_id"), not_before__lte=now).filter(
        Q(state__in=["ready", "in_doubt", "receipted", "armed"])
    )
    found = Lane.objects.filter(
        Exists(due), Q(paused_until__isnull=True) | Q(paused_until__lte=now),
        needs_person=False, portal__is_enabled=True,
    )  # fmt: skip
    if portals is not None:
        found = found.filter(portal__slug__in=portals)
    return found.select_related("portal")


def take(lane_id: int, owner: str) -> Lane | None:
    """Become the owner of a lane that is free, or whose owner is gone.

    What the last owner left armed is in doubt from here on, in the same transaction.
    """
    with ledger.recording():
        lane = (
            Lane.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("portal")
            .filter(pk=lane_id)
            .first()
        )
        now = database_now()
        if lane is None or (lane.owner and not _is_gone(lane, now)):
            return None
        if lane.owner or lane.quiet_since is None:
            lane.quiet_since = now  # the last owner may have sent until a moment ago
        lane.epoch += 1
        lane.owner = owner
        lane.lease_until = now + timedelta(seconds=settings.LANE_LEASE_SECONDS)
        lane.save(update_fields=["epoch", "owner", "lease_until", "quiet_since"])
        LimitBlock.objects.filter(lane=lane, closed_at__isnull=True).update(
            closed_at=now + timedelta(seconds=settings.WIRE_SETTLE_SECONDS)
        )
        LimitBlock.objects.filter(lane=lane, closed_at__lt=now - timedelta(days=2)).delete()
        intents.doubt_orphans(lane)
        intents.promote_urgent(lane.portal_id, now=now)
        return lane


def renew(lanes: list[Lane]) -> set[int]:
    """Keep our lanes; the ones that are not ours any more are missing from the answer."""
    until = database_now() + timedelta(seconds=settings.LANE_LEASE_SECONDS)
    kept = set()
    for lane in lanes:
        if Lane.objects.filter(pk=lane.pk, owner=lane.owner, epoch=lane.epoch).update(
            lease_until=until
        ):
            kept.add(lane.pk)
    return kept


def hold(lane: Lane, held: Hold | None) -> None:
    """Keep the whole lane away from its portal, or let it work again."""
    Lane.objects.filter(pk=lane.pk).update(
        needs_person=held is not None and held.until is None,
        paused_until=held.until if held else None,
        pause_cause=held.cause[:300] if held else "",
    )


def give_back(lane: Lane) -> None:
    """End of the slice: nothing is under way, and the next owner may start at once."""
    Lane.objects.filter(pk=lane.pk, owner=lane.owner, epoch=lane.epoch).update(
        owner="", lease_until=None, quiet_since=database_now()
    )


def _is_gone(lane: Lane, now: datetime) -> bool:
    """Its lease has run out, or it was a process of this machine and is no more."""
    if lane.lease_until is None or lane.lease_until < now:
        return True
    host, space, pid, started, _ = lane.owner.split("/")
    mine = owner_name().split("/")
    return (host, space) == (mine[0], mine[1]) and _started(int(pid)) != started


def _started(pid: int) -> str | None:
    """When a process of this machine started, in the kernel's ticks; None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started
