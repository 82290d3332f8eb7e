"""Mail about notices: one message for each person, made from what is recorded and not yet mailed.

A copy is marked after its message was handed over, so a crash in between sends it again: mail
comes at least once.
"""

import logging
from dataclasses import dataclass
from datetime import date

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db.models import QuerySet
from django.utils import timezone

from compliance import wording
from compliance.models import Deadline, NoticeCopy, Rung

LINES = 100  # of one rung in one message; the list in the admin has the rest
HEADINGS = {
    Rung.EVERYONE: "Everyone is told",
    Rung.OFFICER: "The compliance officers are told",
    Rung.BACKUP: "The backup is told",
    Rung.OWNER: "The owner is told",
}

log = logging.getLogger(__name__)


@dataclass
class Mailed:
    """What became of the messages of a run."""

    sent: int = 0
    failed: int = 0
    without_address: int = 0


def send_digests(*, today: date) -> Mailed:
    """Mail every person what was recorded for them and not mailed yet, in one message each."""
    mailed = Mailed()
    waiting = _unmailed().order_by().values("user")
    for user in User.objects.filter(pk__in=waiting, is_active=True).order_by("pk"):
        if not user.email:
            mailed.without_address += 1
            continue
        try:
            _send(user, today)
        except OSError:  # what smtplib raises: the next run tries again
            log.exception("The digest for %s could not be mailed.", user.username)
            mailed.failed += 1
        else:
            mailed.sent += 1
    return mailed


def _unmailed() -> "QuerySet[NoticeCopy]":
    """Copies that wait; what was settled since needs no mail any more."""
    return NoticeCopy.objects.filter(
        mailed_at__isnull=True, notice__deadline__status=Deadline.Status.OWED
    )


def _send(user: User, today: date) -> None:
    copies = _unmailed().filter(user=user)
    newest = copies.order_by("-pk").values_list("pk", flat=True).first()
    if newest is None:
        return
    covered = copies.filter(pk__lte=newest)  # another run may add to them meanwhile
    count = covered.order_by().values("notice__deadline").distinct().count()
    needs = "needs" if count == 1 else "need"
    subject = f"{wording.counted(count, 'deadline')} {needs} you"
    send_mail(subject, _text(user, covered, today), None, [user.email])
    NoticeCopy.objects.filter(user=user, mailed_at=None, pk__lte=newest).update(
        mailed_at=timezone.now()
    )


def _text(user: User, copies: "QuerySet[NoticeCopy]", today: date) -> str:
    """The message: what reached this person, the last rung first, each deadline once."""
    parts = [f"{user.get_full_name() or user.username}, these deadlines are still owed."]
    above: list[Rung] = []
    for rung, heading in HEADINGS.items():
        told_above = copies.filter(notice__rung__in=above).values("notice__deadline")
        chosen = copies.filter(notice__rung=rung).exclude(notice__deadline__in=told_above)
        parts += _section(heading, chosen, today)
        above.append(rung)
    if settings.SITE_URL:
        parts.append(f"\n{settings.SITE_URL}/admin/compliance/deadline/?due=30")
    return "\n".join(parts) + "\n"


def _section(heading: str, copies: "QuerySet[NoticeCopy]", today: date) -> list[str]:
    count = copies.count()
    if not count:
        return []
    rows = copies.select_related("notice__deadline__registration__entity")
    rows = rows.defer("notice__deadline__registration__entity__tax_id")
    lines = [f"\n{heading}"]
    lines += [_line(copy, today) for copy in rows.order_by("notice__deadline__due_on")[:LINES]]
    return lines + ([f"* and {count - LINES:,} more"] if count > LINES else [])


def _line(copy: NoticeCopy, today: date) -> str:
    deadline = copy.notice.deadline
    due = wording.day_and_distance(deadline.due_on, today=today)
    nobody = " Nobody owns it." if copy.notice.is_unowned else ""
    return f"* {due}: {deadline}.{nobody}"
