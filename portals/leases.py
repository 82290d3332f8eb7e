"""Who owns a lane: a lease with an epoch in the database, renewed while its owner works."""

import os
import socket
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from compliance import ledger
from compliance.errors import NotFound
from portals import intents
from portals.clock import database_now
from portals.models import Intent, Lane, LimitBlock
from portals.protocol import Hold
from portals.registry import card_of

ON_ITS_WAY = timedelta(seconds=1)


def owner_name() -> str:
    """This process, so that others on the same machine can tell whether it still lives."""
    namespace = Path("/proc/self/ns/pid")  # a number names a process only within its namespace
    space = namespace.stat().st_ino if namespace.exists() else 0
    started = _started(os.getpid()) or "0"
    return f"{_machine()}/{space}/{os.getpid()}/{started}/{uuid.uuid4().hex[:8]}"


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
            # The last owner may have sent until a moment ago, and the network may still carry it.
            lane.quiet_since = now + ON_ITS_WAY
        lane.epoch += 1
        lane.owner = owner
        lane.lease_until = now + timedelta(seconds=settings.LANE_LEASE_SECONDS)
        lane.save(update_fields=["epoch", "owner", "lease_until", "quiet_since"])
        LimitBlock.objects.filter(lane=lane, closed_at__isnull=True).update(
            closed_at=now + timedelta(seconds=settings.WIRE_SETTLE_SECONDS)
        )
        _forget_blocks(lane, now)
        intents.doubt_orphans(lane)
        intents.promote_urgent(lane.portal_id, now=now)
        return lane


def renew(lanes: list[Lane]) -> set[int]:
    """Keep our lanes; missing from the answer are those not ours any more, or switched off."""
    now = database_now()
    until = now + timedelta(seconds=settings.LANE_LEASE_SECONDS)
    kept = set()
    for lane in lanes:
        ours = Lane.objects.filter(pk=lane.pk, owner=lane.owner, epoch=lane.epoch)
        if ours.filter(portal__is_enabled=True).update(lease_until=until):
            kept.add(lane.pk)
            intents.promote_urgent(lane.portal_id, now=now)
    return kept


def hold(lane: Lane, held: Hold | None) -> None:
    """Its owner keeps the whole lane away from the portal, or lets it work again."""
    Lane.objects.filter(pk=lane.pk, owner=lane.owner, epoch=lane.epoch).update(
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
    machine, space, pid, started, _ = lane.owner.split("/")
    mine = owner_name().split("/")
    return (machine, space) == (mine[0], mine[1]) and _started(int(pid)) != started


def _forget_blocks(lane: Lane, now: datetime) -> None:
    """Blocks that count in no window any more."""
    try:
        seconds = max(limit.seconds for limit in card_of(lane.portal.slug).limits)
    except NotFound:
        return  # its folder is gone for now; what it allowed may count again
    over = now - timedelta(seconds=seconds, days=1)
    LimitBlock.objects.filter(lane=lane, closed_at__lt=over).delete()


def _machine() -> str:
    """This machine since it was started; two with the same host name differ in it."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.exists() else socket.gethostname()


def _started(pid: int) -> str | None:
    """When a process of this machine started, in the kernel's ticks; None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started
