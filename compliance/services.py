"""Changes to deadlines: what comes to be owed, who sees to it, what is met, waived or paused."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from compliance import ledger, rules
from compliance.calendars import is_calendar, working_days_before
from compliance.deadlines import Facts, Owed, deadlines_for
from compliance.due import add_months
from compliance.errors import Malformed, NotAllowed
from compliance.history import remember, update_tracked
from compliance.models import Deadline, Registration

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
# What a deadline is given when it is made; its registration, duty and period name it.
COPIED = (
    "title", "opens_on", "due_on", "fee", "currency", "penalty", "portal", "form", "citation",
    "confidence",
)  # fmt: skip


@dataclass
class SyncCounts:
    """What a synchronisation saw and did."""

    registrations: int = 0
    not_managed: int = 0
    created: int = 0
    kept: int = 0
    # The law or the facts now say another date than the row, or none; a person decides.
    differing: int = 0
    without_pack: dict[str, int] = field(default_factory=dict)


def facts_of(registration: Registration) -> Facts:
    """What the law needs to know of a registration."""
    entity = registration.entity
    return Facts(
        kind=entity.kind,
        formed_on=entity.formed_on,
        is_foreign=registration.is_foreign,
        registered_on=registration.registered_on,
        ended_on=registration.ended_on,
        fiscal_year_end=(entity.fiscal_year_end_month, entity.fiscal_year_end_day),
        traits=frozenset(registration.traits),
        events=_events_of(registration),
    )


def _events_of(registration: Registration) -> dict[str, tuple[date, ...]]:
    """When each thing happened; filtered here, so that a prefetch of all serves it."""
    told: dict[str, tuple[date, ...]] = {}
    for event in registration.events.all():
        if event.retracted_at is None:
            told[event.name] = (*told.get(event.name, ()), event.happened_on)
    return told


def sync_deadlines(
    registrations: "QuerySet[Registration] | None" = None,
    *,
    through: date,
    by: User,
    today: date | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> SyncCounts:
    """Create every missing deadline of what is managed, from a year ago on. Moves none."""
    chosen = Registration.objects.all() if registrations is None else registrations
    since = add_months(today or timezone.localdate(), -12)
    packs = rules.packs()
    counts = SyncCounts()
    last = 0
    while True:
        with ledger.recording(by=by):
            chunk = _next_chunk(chosen, after=last)
            if not chunk:
                return counts
            _sync_chunk(chunk, packs, (since, through), by, counts)
        last = chunk[-1].pk
        on_progress(counts.registrations)


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
    """Name who sees to these that are still owed, and who stands in."""
    if owner is not None and owner == backup:
        raise NotAllowed(f"{owner.username} cannot stand in for themselves. Name somebody else.")
    keys = sorted({deadline.pk for deadline in deadlines})
    assigned: list[Deadline] = []
    with ledger.recording(by=by):
        for start in range(0, len(keys), CHUNK):
            rows = _locked(keys[start : start + CHUNK], [Deadline.Status.OWED])
            update_tracked(rows, reason="Assigned", owner=owner, backup=backup)
            for row in rows:
                _record(
                    row, "deadline.assigned", by,
                    owner=owner.username if owner else None,
                    backup=backup.username if backup else None,
                )  # fmt: skip
            assigned += rows
    return assigned


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


def _follow_management(registration: Registration, by: User, reason: str, today: date) -> None:
    found = Deadline.objects.filter(registration=registration)
    if registration.management == Registration.Management.MANAGED:
        paused = found.filter(status=Deadline.Status.NOT_DUE)
        _move_deadlines(paused, Deadline.Status.OWED, on=None, by=by, reason=reason)
    else:
        ahead = found.unmet().filter(due_on__gte=today)
        _move_deadlines(ahead, Deadline.Status.NOT_DUE, on=None, by=by, reason=reason)


def _next_chunk(chosen: "QuerySet[Registration]", *, after: int) -> list[Registration]:
    """The next registrations by key, locked, so that two synchronisations cannot meet."""
    rows = chosen.filter(pk__gt=after).order_by("pk").select_related("entity")
    return list(rows.prefetch_related("events").select_for_update(of=("self",))[:CHUNK])


def _sync_chunk(
    chunk: Sequence[Registration],
    packs: dict[str, rules.Pack],
    span: tuple[date, date],
    by: User,
    counts: SyncCounts,
) -> None:
    known: dict[int, dict[tuple[str, str], tuple[date, str]]] = defaultdict(dict)
    for registration_id, duty, period, due_on, status in Deadline.objects.filter(
        registration__in=chunk
    ).values_list("registration_id", "duty", "period", "due_on", "status"):
        known[registration_id][duty, period] = (due_on, status)
    missing = []
    for registration in chunk:
        counts.registrations += 1
        if registration.management != Registration.Management.MANAGED:
            counts.not_managed += 1
            continue
        pack = packs.get(registration.jurisdiction)
        if pack is None:
            left_out = counts.without_pack.get(registration.jurisdiction, 0)
            counts.without_pack[registration.jurisdiction] = left_out + 1
            continue
        there = known.pop(registration.pk, {})
        for owed in _owed_by(registration, pack, *span):
            found = there.pop((owed.duty, owed.period), None)
            if found is None:
                missing.append(_row(registration, owed, pack))
                continue
            counts.kept += 1
            counts.differing += found[0] != owed.due_on
        counts.differing += _without_ground(there, max(registration.registered_on, span[0]), span)
    _create(missing, by)
    counts.created += len(missing)


def _without_ground(
    left: dict[tuple[str, str], tuple[date, str]], since: date, span: tuple[date, date]
) -> int:
    """How many still count as owed in that time although the law or the facts no longer ask."""
    return sum(
        status == Deadline.Status.OWED and since <= due_on <= span[1]
        for due_on, status in left.values()
    )


def _owed_by(
    registration: Registration, pack: rules.Pack, since: date, through: date
) -> Iterator[Owed]:
    start = max(registration.registered_on, since)
    yield from deadlines_for(pack, facts_of(registration), through, start)


def _row(registration: Registration, owed: Owed, pack: rules.Pack) -> Deadline:
    values = asdict(owed)
    return Deadline(
        registration=registration,
        duty=owed.duty,
        period=owed.period,
        pack_sha256=pack.sha256,
        target_on=_target_on(owed, pack),
        **{name: values[name] for name in COPIED},
    )


def _target_on(owed: Owed, pack: rules.Pack) -> date | None:
    """Our own target, never before it can be filed; none where we know no working days."""
    country = pack.jurisdiction[:2]
    if not is_calendar(country):
        return None
    target = working_days_before(owed.due_on, settings.DEADLINE_LEAD_DAYS, country)
    return max(target, owed.opens_on) if owed.opens_on else target


def _create(rows: list[Deadline], by: User) -> None:
    made = Deadline.objects.bulk_create(rows, batch_size=CHUNK)
    remember(made, reason="Owed by law", created=True)
    for row in made:
        _record(
            row,
            "deadline.owed",
            by,
            registration=row.registration_id,
            duty=row.duty,
            period=row.period,
            due_on=row.due_on.isoformat(),
            target_on=row.target_on.isoformat() if row.target_on else None,
            fee=None if row.fee is None else str(row.fee),
            currency=row.currency,
            citation=row.citation,
            confidence=row.confidence,
            pack_sha256=row.pack_sha256,
        )


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
