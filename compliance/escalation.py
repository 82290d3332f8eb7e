"""The escalation ladder: each rung that a deadline has reached is told once, to the right people.

A notice is recorded exactly once, with its ledger entry and its event, in one transaction. Mail
goes out afterwards, from what is recorded (`compliance/digests.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from compliance import ledger
from compliance.digests import Mailed, send_digests
from compliance.events import emit_many
from compliance.models import (
    Deadline,
    Event,
    Membership,
    Notice,
    NoticeCopy,
    Rung,
    ladder,
)
from compliance.services import CHUNK

TOLD = "deadline.told"
OFFICERS = "Compliance officer"  # the group that `setup_roles` makes


@dataclass
class Escalated:
    """What a run told, or would tell."""

    told: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Rung.values, 0))
    unowned: int = 0
    # Neither an owner nor an officer could be told, so these wait for the next run.
    nobody_to_tell: int = 0
    mail: Mailed = field(default_factory=Mailed)


@dataclass(frozen=True)
class Telling:
    """One rung of one deadline, and who is to be told."""

    deadline: Deadline
    rung: Rung
    days_left: int
    is_unowned: bool
    people: tuple[User, ...]


def escalate_deadlines(*, by: User, today: date | None = None) -> Escalated:
    """Tell every rung that was reached and not told yet; then mail each person one digest.

    A chunk is a transaction. Broken off, the next run goes on where this one stopped, and mails
    what was recorded and not mailed: a mail may come twice, a notice never.
    """
    today = today or timezone.localdate()
    report = Escalated()
    last: int | None = 0
    while last is not None:
        with ledger.recording(by=by):
            rows = _reached(today).select_for_update(of=("self",))
            chunk = list(rows.filter(pk__gt=last)[:CHUNK])
            _record([*_tellings(chunk, today, report)], by)
            last = chunk[-1].pk if chunk else None
    report.mail = send_digests(today=today)
    return report


def preview_escalation(*, today: date | None = None) -> Escalated:
    """What `escalate_deadlines` would tell now; nothing is written, nothing is mailed."""
    today = today or timezone.localdate()
    report = Escalated()
    last = 0
    while chunk := list(_reached(today).filter(pk__gt=last)[:CHUNK]):
        for _ in _tellings(chunk, today, report):
            pass  # the report counts them
        last = chunk[-1].pk
    return report


def _reached(today: date) -> "QuerySet[Deadline]":
    """What is owed and has reached a rung that was not told."""
    untold = Q(pk__in=[])
    for days, rung in ladder():
        told = Notice.objects.filter(deadline=OuterRef("pk"), rung=rung)
        untold |= Q(~Exists(told), due_on__lte=today + timedelta(days=days))
    owed = Deadline.objects.unmet().filter(untold).order_by("pk")
    related = owed.select_related("registration__entity", "owner", "backup")
    return related.defer("registration__entity__tax_id")


def _tellings(chunk: Sequence[Deadline], today: date, report: Escalated) -> Iterator[Telling]:
    """What to tell of these deadlines, counted in the report."""
    told = set(Notice.objects.filter(deadline__in=chunk).values_list("deadline_id", "rung"))
    audience = Audience(chunk)
    for deadline in chunk:
        left = (deadline.due_on - today).days
        for days, rung in ladder():
            if left > days or (deadline.pk, rung) in told:
                continue
            people = audience.of(deadline, rung)
            if not people:
                report.nobody_to_tell += 1
                continue
            unowned = audience.owner(deadline) is None
            report.told[rung] += 1
            report.unowned += unowned
            yield Telling(deadline, rung, left, unowned, people)


class Audience:
    """Who is to be told of some deadlines: only people who may see them, and are still here."""

    def __init__(self, deadlines: Sequence[Deadline]) -> None:
        portfolios = {row.registration.entity.portfolio_id for row in deadlines}
        members = Membership.objects.filter(portfolio__in=portfolios, user__is_active=True)
        people = {user.pk for row in deadlines for user in (row.owner, row.backup) if user}
        self.members = set(members.filter(user__in=people).values_list("portfolio_id", "user_id"))
        self.officers: dict[int, list[User]] = {}
        officers = members.filter(user__groups__name=OFFICERS).select_related("user")
        for membership in officers.order_by("user__username"):
            self.officers.setdefault(membership.portfolio_id, []).append(membership.user)

    def owner(self, deadline: Deadline) -> User | None:
        """The owner, if they can be told."""
        return self._able(deadline, deadline.owner)

    def of(self, deadline: Deadline, rung: Rung) -> tuple[User, ...]:
        """Whom this rung and those below it name; the officers where that is nobody."""
        named = [self.owner(deadline)]
        officers = self.officers.get(deadline.registration.entity.portfolio_id, [])
        if rung != Rung.OWNER:
            named.append(self._able(deadline, deadline.backup))
        if rung in (Rung.OFFICER, Rung.EVERYONE):
            named += officers
        found = [user for user in named if user is not None]
        return tuple(dict.fromkeys(found or officers))

    def _able(self, deadline: Deadline, user: User | None) -> User | None:
        if user is None or not user.is_active:
            return None
        place = deadline.registration.entity.portfolio_id, user.pk
        return user if user.is_superuser or place in self.members else None


def _record(tellings: Sequence[Telling], by: User) -> None:
    """Notices, copies, ledger entries and events of a chunk, inside its transaction."""
    notices = Notice.objects.bulk_create(
        Notice(
            deadline=one.deadline, rung=one.rung, days_left=one.days_left,
            is_unowned=one.is_unowned,
        )
        for one in tellings
    )  # fmt: skip
    pairs = list(zip(notices, tellings, strict=True))
    copies = (NoticeCopy(notice=notice, user=user) for notice, one in pairs for user in one.people)
    NoticeCopy.objects.bulk_create(copies, batch_size=CHUNK)
    emit_many([_told(one, by) for one in tellings])


def _told(one: Telling, by: User) -> Event:
    """The ledger entry of a notice, and its event."""
    subject = f"deadline:{one.deadline.pk}"
    portfolio_id = one.deadline.registration.entity.portfolio_id
    data: dict[str, Any] = {
        "rung": str(one.rung),
        "days_left": one.days_left,
        "is_unowned": one.is_unowned,
        "people": [user.username for user in one.people],
    }
    ledger.record(type=TOLD, subject=subject, actor=by.username, portfolio_id=portfolio_id, **data)
    return Event(type=TOLD, subject=subject, portfolio_id=portfolio_id, data=data)
