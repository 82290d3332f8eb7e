"""Changes to deadlines: what comes to be owed, what is met, what is waived."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from compliance import ledger, rules
from compliance.deadlines import Facts, Owed, deadlines_for
from compliance.due import add_months
from compliance.errors import NotAllowed
from compliance.history import remember, update_tracked
from compliance.models import Deadline, Registration

CHUNK = 500
REASON_LENGTH = 100  # of a history row; the ledger keeps the whole reason
# What a deadline may become from each status. Met and waived are final.
MOVES: dict[str, tuple[str, ...]] = {
    Deadline.Status.OWED: (Deadline.Status.MET, Deadline.Status.WAIVED),
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
    created: int = 0
    kept: int = 0
    # The law or the facts now say another date than the row; a person decides.
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
    )


def sync_deadlines(
    registrations: "QuerySet[Registration] | None" = None,
    *,
    through: date,
    by: User,
    today: date | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> SyncCounts:
    """Create every deadline that is missing, from a year ago on. Moves none that exists."""
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


def _next_chunk(chosen: "QuerySet[Registration]", *, after: int) -> list[Registration]:
    """The next registrations by key, locked, so that two synchronisations cannot meet."""
    rows = chosen.filter(pk__gt=after).order_by("pk").select_related("entity")
    return list(rows.select_for_update(of=("self",))[:CHUNK])


def _sync_chunk(
    chunk: Sequence[Registration],
    packs: dict[str, rules.Pack],
    span: tuple[date, date],
    by: User,
    counts: SyncCounts,
) -> None:
    known = {
        (registration_id, duty, period): due_on
        for registration_id, duty, period, due_on in Deadline.objects.filter(
            registration__in=chunk
        ).values_list("registration_id", "duty", "period", "due_on")
    }
    missing = []
    for registration in chunk:
        counts.registrations += 1
        pack = packs.get(registration.jurisdiction)
        if pack is None:
            left_out = counts.without_pack.get(registration.jurisdiction, 0)
            counts.without_pack[registration.jurisdiction] = left_out + 1
            continue
        for owed in _owed_by(registration, pack, *span):
            due_on = known.get((registration.pk, owed.duty, owed.period))
            if due_on is None:
                missing.append(_row(registration, owed, pack))
            counts.kept += due_on is not None
            counts.differing += due_on not in (None, owed.due_on)
    _create(missing, by)
    counts.created += len(missing)


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
        **{name: values[name] for name in COPIED},
    )


def _create(rows: list[Deadline], by: User) -> None:
    made = Deadline.objects.bulk_create(rows, batch_size=CHUNK)
    remember(made, reason="Owed by law", created=True)
    for row in made:
        ledger.record(
            type="deadline.owed",
            subject=f"deadline:{row.pk}",
            actor=by.username,
            portfolio_id=row.registration.entity.portfolio_id,
            registration=row.registration_id,
            duty=row.duty,
            period=row.period,
            due_on=row.due_on.isoformat(),
            fee=None if row.fee is None else str(row.fee),
            currency=row.currency,
            citation=row.citation,
            confidence=row.confidence,
            pack_sha256=row.pack_sha256,
        )


def _move_deadlines(
    deadlines: Iterable[Deadline], to: Deadline.Status, *, on: date, by: User, reason: str
) -> list[Deadline]:
    """The only writer of a deadline's status: rows, history and ledger in one transaction."""
    movable = [status for status, targets in MOVES.items() if to in targets]
    keys = sorted({deadline.pk for deadline in deadlines})
    moved: list[Deadline] = []
    with ledger.recording(by=by):
        for start in range(0, len(keys), CHUNK):  # a database takes only so many keys at once
            rows = list(
                Deadline.objects.filter(pk__in=keys[start : start + CHUNK], status__in=movable)
                .select_related("registration__entity")
                .select_for_update(of=("self",))
                .order_by("pk")
            )
            update_tracked(rows, reason=reason[:REASON_LENGTH], status=to, settled_on=on)
            _record_moves(rows, on, by, reason)
            moved += rows
    return moved


def _record_moves(rows: Iterable[Deadline], on: date, by: User, reason: str) -> None:
    for row in rows:
        ledger.record(
            type=f"deadline.{row.status}",
            subject=f"deadline:{row.pk}",
            actor=by.username,
            portfolio_id=row.registration.entity.portfolio_id,
            settled_on=on.isoformat(),
            due_on=row.due_on.isoformat(),
            reason=reason,
        )
