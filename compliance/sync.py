"""Deadlines come to be: what the law asks of every registration, written once.

Everything moves in chunks: a chunk is locked, compared with what is there, and what is missing is
written with its history and its ledger entries in one transaction. Memory does not grow. What was
worked out before from the same law and the same facts is passed over.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from compliance import ledger, rules
from compliance.bulk import insert_rows, read_by_index, reserve_keys
from compliance.calendars import is_calendar, working_days_before
from compliance.deadlines import Facts, Owed, deadlines_for
from compliance.due import add_months
from compliance.history import remember_keys
from compliance.models import Deadline, Reckoning, Registration, RegistrationEvent
from compliance.services import facts_of

CHUNK = 1_000
# What a deadline is given when it is made, in the order in which it is written.
COPIED = (
    "duty", "period", "title", "opens_on", "due_on", "fee", "currency", "penalty", "portal",
    "form", "citation", "confidence",
)  # fmt: skip
# What the law asks about; the rest of a registration is not read.
READ = (
    "jurisdiction", "is_foreign", "registered_on", "ended_on", "management", "traits",
    "entity__kind", "entity__formed_on", "entity__fiscal_year_end_month",
    "entity__fiscal_year_end_day", "entity__portfolio",
)  # fmt: skip
COLUMNS = ("id", "registration", "pack_sha256", "target_on", "status", *COPIED)


@dataclass
class SyncCounts:
    """What a synchronisation saw and did."""

    registrations: int = 0
    not_managed: int = 0
    unchanged: int = 0  # registrations whose law and facts are those of the last time
    created: int = 0
    kept: int = 0
    # The law or the facts now say another date than the row, or none; a person decides.
    differing: int = 0
    without_pack: dict[str, int] = field(default_factory=dict)


class Known(NamedTuple):
    """What is on file of a deadline."""

    due_on: date
    status: str


@dataclass(frozen=True)
class Asked:
    """A registration, the law that it is under, and what that law asks about."""

    registration: Registration
    pack: rules.Pack
    facts: Facts

    @cached_property
    def sha256(self) -> str:
        """Of the law and the facts: the same as long as neither changes."""
        facts = self.facts
        told = (
            self.pack.sha256, facts.kind, facts.formed_on, facts.is_foreign, facts.registered_on,
            facts.ended_on, facts.fiscal_year_end, sorted(facts.traits),
            sorted(facts.events.items()),
        )  # fmt: skip
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def owed(self, since: date, through: date) -> list[Owed]:
        """What falls due in those days, but nothing from before the registration."""
        start = max(self.registration.registered_on, since)
        return deadlines_for(self.pack, self.facts, through, start)


@dataclass(frozen=True, slots=True)
class Missing:
    """A deadline that is not there yet."""

    asked: Asked
    owed: Owed

    @property
    def target_on(self) -> date | None:
        """Our own target, never before it can be filed; none where we know no working days."""
        country = self.asked.pack.jurisdiction[:2]
        if not _has_calendar(country):
            return None
        target = working_days_before(self.owed.due_on, settings.DEADLINE_LEAD_DAYS, country)
        return max(target, self.owed.opens_on) if self.owed.opens_on else target


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
            read_by_index()
            chunk = _next_chunk(chosen, after=last)
            if not chunk:
                return counts
            _sync_chunk(_to_reckon(chunk, packs, through, counts), (since, through), by, counts)
        last = chunk[-1].pk
        on_progress(counts.registrations)


def _next_chunk(chosen: "QuerySet[Registration]", *, after: int) -> list[Registration]:
    """The next registrations by key, locked, so that two synchronisations cannot meet."""
    rows = chosen.filter(pk__gt=after).order_by("pk").select_related("entity")
    return list(rows.only(*READ).select_for_update(of=("self",))[:CHUNK])


def _events_of(keys: Sequence[int]) -> dict[int, dict[str, tuple[date, ...]]]:
    """What happened to each; few have events, and a prefetch would cost something for all."""
    holding = RegistrationEvent.objects.holding().filter(registration__in=keys)
    told: dict[int, dict[str, tuple[date, ...]]] = defaultdict(dict)
    rows = holding.order_by("happened_on").values_list("registration_id", "name", "happened_on")
    for registration, name, happened_on in rows:
        told[registration][name] = (*told[registration].get(name, ()), happened_on)
    return told


def _to_reckon(
    chunk: Sequence[Registration],
    packs: dict[str, rules.Pack],
    through: date,
    counts: SyncCounts,
) -> list[Asked]:
    """Those that are managed, have a law, and are not as they were the last time."""
    keys = [registration.pk for registration in chunk]
    reckoned = Reckoning.objects.filter(registration__in=keys, through__gte=through)
    before = dict(reckoned.values_list("registration_id", "sha256"))
    events = _events_of(keys)
    counts.registrations += len(chunk)
    asked = []
    for registration in chunk:
        pack = packs.get(registration.jurisdiction)
        if registration.management != Registration.Management.MANAGED:
            counts.not_managed += 1
        elif pack is None:
            left_out = counts.without_pack.get(registration.jurisdiction, 0)
            counts.without_pack[registration.jurisdiction] = left_out + 1
        else:
            facts = facts_of(registration, events.get(registration.pk, {}))
            one = Asked(registration, pack, facts)
            if before.get(registration.pk) == one.sha256:
                counts.unchanged += 1
            else:
                asked.append(one)
    return asked


def _sync_chunk(
    asked: Sequence[Asked], span: tuple[date, date], by: User, counts: SyncCounts
) -> None:
    known = _known(asked)
    missing: list[Missing] = []
    settled: list[Asked] = []
    for one in asked:
        there = known.pop(one.registration.pk, {})
        differing = 0
        for owed in one.owed(*span):
            found = there.pop((owed.duty, owed.period), None)
            if found is None:
                missing.append(Missing(one, owed))
            else:
                counts.kept += 1
                differing += found.due_on != owed.due_on
        since = max(one.registration.registered_on, span[0])
        differing += _without_ground(there.values(), since, span[1])
        counts.differing += differing
        if not differing:  # what a person must decide is told every time
            settled.append(one)
    _create(missing, by)
    counts.created += len(missing)
    _note_reckoned(settled, span[1])


def _without_ground(left: Iterable[Known], since: date, through: date) -> int:
    """How many still count as owed in that time although the law or the facts no longer ask."""
    return sum(
        row.status == Deadline.Status.OWED and since <= row.due_on <= through for row in left
    )


def _note_reckoned(settled: Sequence[Asked], through: date) -> None:
    rows = [
        Reckoning(registration=one.registration, sha256=one.sha256, through=through)
        for one in settled
    ]
    Reckoning.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=["sha256", "through"],
        unique_fields=["registration"],
    )


def _known(asked: Sequence[Asked]) -> dict[int, dict[tuple[str, str], Known]]:
    keys = [one.registration.pk for one in asked]
    rows = Deadline.objects.filter(registration__in=keys).order_by()
    found: dict[int, dict[tuple[str, str], Known]] = defaultdict(dict)
    columns = ("registration_id", "duty", "period", "due_on", "status")
    for registration, duty, period, due_on, status in rows.values_list(*columns):
        found[registration][duty, period] = Known(due_on, status)
    return found


def _create(missing: Sequence[Missing], by: User) -> None:
    if not missing:
        return
    keys = reserve_keys(Deadline, len(missing))
    insert_rows(Deadline, COLUMNS, map(_row, keys, missing))
    remember_keys(Deadline, keys, reason="Owed by law", created=True)
    for key, one in zip(keys, missing, strict=True):
        _record(key, one, by)


def _row(key: int, one: Missing) -> tuple[Any, ...]:
    owed = one.owed
    return (
        key,
        one.asked.registration.pk,
        one.asked.pack.sha256,
        one.target_on,
        Deadline.Status.OWED.value,
        *(getattr(owed, name) for name in COPIED),
    )


def _record(key: int, one: Missing, by: User) -> None:
    owed, target = one.owed, one.target_on
    ledger.record(
        type="deadline.owed",
        subject=f"deadline:{key}",
        actor=by.username,
        portfolio_id=one.asked.registration.entity.portfolio_id,
        registration=one.asked.registration.pk,
        duty=owed.duty,
        period=owed.period,
        due_on=owed.due_on.isoformat(),
        target_on=target.isoformat() if target else None,
        fee=None if owed.fee is None else str(owed.fee),
        currency=owed.currency,
        citation=owed.citation,
        confidence=owed.confidence,
        pack_sha256=one.asked.pack.sha256,
    )


@lru_cache(maxsize=64)
def _has_calendar(country: str) -> bool:
    return is_calendar(country)
