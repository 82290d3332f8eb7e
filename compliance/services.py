"""Changes to deadlines: who sees to them, what is met, waived or paused."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from django.contrib.auth.models import User
from django.utils import timezone

from compliance import ledger
from compliance.deadlines import Facts
from compliance.errors import Malformed, NotAllowed
from compliance.history import update_tracked
from compliance.models import Deadline, DeadlineQuerySet, Registration, people_of

CHUNK = 500
REASON_LENGTH = 100  # of a history row; the ledger keeps the whole reason
# What a deadline may become from each status. Met and waived are final.
MOVES: dict[str, tuple[str, ...]] = {
    Deadline.Status.OWED: (
        Deadline.Status.MET,
        Deadline.Status.WAIVED,
        Deadline.Status.NOT_DUE,
    ),
    # A filing that was under way may still be accepted.
    Deadline.Status.NOT_DUE: (
        Deadline.Status.OWED,
        Deadline.Status.MET,
        Deadline.Status.WAIVED,
    ),
}


def facts_of(
    registration: Registration, events: Mapping[str, tuple[date, ...]] | None = None
) -> Facts:
    """What the law needs to know of a registration; who has read its events hands them in."""
    entity = registration.entity
    return Facts(
        kind=entity.kind,
        formed_on=entity.formed_on,
        is_foreign=registration.is_foreign,
        registered_on=registration.registered_on,
        ended_on=registration.ended_on,
        fiscal_year_end=(entity.fiscal_year_end_month, entity.fiscal_year_end_day),
        traits=frozenset(registration.traits),
        events=_events_of(registration) if events is None else events,
    )


def _events_of(registration: Registration) -> dict[str, tuple[date, ...]]:
    """When each thing happened; filtered here, so that a prefetch of all serves it."""
    told: dict[str, tuple[date, ...]] = {}
    for event in registration.events.all():
        if event.retracted_at is None:
            told[event.name] = (*told.get(event.name, ()), event.happened_on)
    return told


def meet_deadlines(
    deadlines: Iterable[Deadline], *, on: date, by: User, reason: str
) -> list[Deadline]:
    """Note that these were met on that day; those already settled stay as they are."""
    return _move_deadlines(deadlines, Deadline.Status.MET, on=on, by=by, reason=reason)


def waive_deadline(deadline: Deadline, *, on: date, by: User, reason: str) -> Deadline:
    """Note that this need not be met, and why."""
    if not reason.strip():
        raise NotAllowed("A deadline is not waived without a reason. Say why it need not be met.")
    moved = _move_deadlines([deadline], Deadline.Status.WAIVED, on=on, by=by, reason=reason)
    if not moved:
        deadline.refresh_from_db()
        raise NotAllowed(
            f"“{deadline}” is already {deadline.get_status_display().lower()}, and that is final. "
            "Reload the page to see who settled it."
        )
    return moved[0]


def assign_deadlines(
    deadlines: Iterable[Deadline], *, owner: User | None, backup: User | None, by: User
) -> list[Deadline]:
    """Name who sees to these that are still owed, and who stands in; both can see all of them."""
    if owner is not None and owner == backup:
        raise NotAllowed(f"{owner.username} cannot stand in for themselves. Name somebody else.")
    keys = sorted({deadline.pk for deadline in deadlines})
    assigned: list[Deadline] = []
    with ledger.recording(by=by):
        for start in range(0, len(keys), CHUNK):
            rows = _locked(keys[start : start + CHUNK], [Deadline.Status.OWED])
            _require_sight(rows, owner, backup)
            update_tracked(rows, reason="Assigned", owner=owner, backup=backup)
            for row in rows:
                _record(
                    row, "deadline.assigned", by,
                    owner=owner.username if owner else None,
                    backup=backup.username if backup else None,
                )  # fmt: skip
            assigned += rows
    return assigned


def _require_sight(rows: Sequence[Deadline], *people: User | None) -> None:
    portfolios = {row.registration.entity.portfolio_id for row in rows}
    able = set(people_of(portfolios).filter(pk__in=[one.pk for one in people if one]))
    for one in people:
        if one is not None and one not in able:
            raise NotAllowed(
                f"{one.username} cannot see all of these deadlines. Name an active member of "
                "their portfolio, or add a membership first."
            )


def set_management(
    registration: Registration, to: str, *, by: User, reason: str, today: date | None = None
) -> Registration:
    """Begin or stop looking after a registration; its deadlines to come go, or come back.

    What is overdue when we stop stays owed. What fell due while we were away comes back overdue:
    a person settles it.
    """
    if to not in Registration.Management.values:
        known = ", ".join(Registration.Management.values)
        raise Malformed(f"“{to}” is no way to manage a registration. Write one of {known}.")
    if not reason.strip():
        raise NotAllowed("Say in a sentence why this changes; the reason goes on the ledger.")
    with ledger.recording(by=by):
        locked = Registration.objects.select_for_update(of=("self",)).select_related("entity")
        row: Registration = locked.get(pk=registration.pk)
        if row.management == to:
            return row
        came_from = row.management
        update_tracked([row], reason=reason[:REASON_LENGTH], management=to)
        ledger.record(
            type="registration.management",
            subject=f"registration:{row.pk}",
            actor=by.username,
            portfolio_id=row.entity.portfolio_id,
            came_from=came_from,
            to=to,
            reason=reason,
        )
        _follow_management(row, by, reason, today or timezone.localdate())
        return row


def moved_by_management(registration: Registration, to: str, *, today: date) -> DeadlineQuerySet:
    """The deadlines that go, or come back, when it is managed in that way."""
    found = Deadline.objects.filter(registration=registration)
    if to == Registration.Management.MANAGED:
        return found.filter(status=Deadline.Status.NOT_DUE)
    return found.unmet().filter(due_on__gte=today)


def _follow_management(registration: Registration, by: User, reason: str, today: date) -> None:
    to = registration.management
    is_back = to == Registration.Management.MANAGED
    status = Deadline.Status.OWED if is_back else Deadline.Status.NOT_DUE
    rows = moved_by_management(registration, to, today=today)
    _move_deadlines(rows, status, on=None, by=by, reason=reason)


def _move_deadlines(
    deadlines: Iterable[Deadline], to: Deadline.Status, *, on: date | None, by: User, reason: str
) -> list[Deadline]:
    """The only writer of a deadline's status: rows, history and ledger in one transaction."""
    movable = [status for status, targets in MOVES.items() if to in targets]
    keys = sorted({deadline.pk for deadline in deadlines})
    moved: list[Deadline] = []
    with ledger.recording(by=by):
        for start in range(0, len(keys), CHUNK):  # a database takes only so many keys at once
            rows = _locked(keys[start : start + CHUNK], movable)
            came_from = {row.pk: row.status for row in rows}
            update_tracked(rows, reason=reason[:REASON_LENGTH], status=to, settled_on=on)
            for row in rows:
                _record(
                    row,
                    f"deadline.{to}",
                    by,
                    came_from=came_from[row.pk],
                    settled_on=on.isoformat() if on else None,
                    due_on=row.due_on.isoformat(),
                    reason=reason,
                )
            moved += rows
    return moved


def _locked(keys: Sequence[int], statuses: Sequence[str]) -> list[Deadline]:
    return list(
        Deadline.objects.filter(pk__in=keys, status__in=statuses)
        .select_related("registration__entity")
        .select_for_update(of=("self",))
        .order_by("pk")
    )


def _record(row: Deadline, type: str, by: User, **data: object) -> None:
    ledger.record(
        type=type,
        subject=f"deadline:{row.pk}",
        actor=by.username,
        portfolio_id=row.registration.entity.portfolio_id,
        **data,
    )
