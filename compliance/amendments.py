"""Amendments of the law: what one changes, what it would do to us, and applying it.

A pack is edited, compared with the one before (`compare_packs`), weighed against the registrations
on file (`impact_of`), and only then brought to the deadlines that exist (`apply_amendment`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from compliance import ledger
from compliance.deadlines import Owed, deadlines_for
from compliance.due import Due, First, Opens
from compliance.errors import Malformed, NotAllowed
from compliance.history import remember
from compliance.models import Deadline, DeadlineQuerySet, Registration
from compliance.reference import first_words, opens_words
from compliance.rules import Duty, Fee, Late, Pack, pack_of, read_pack
from compliance.services import CHUNK, REASON_LENGTH, facts_of

# An amended date may leave the days that were asked for; looked for this far, it is still a move.
REACH = timedelta(days=400)
# What the law decides alone; what a filing under way has already taken over; and the dates.
TERMS = ("fee", "currency", "penalty", "citation", "confidence")
ROUTE = ("title", "portal", "form")
DATES = ("opens_on", "due_on")
KEPT = (*TERMS, *ROUTE, *DATES, "target_on", "pack_sha256")  # in the revision, to compare

Versions: TypeAlias = tuple[Pack | None, Pack | None]


# --- Reading ----------------------------------------------------------------------------------


def read_packs(folder: Path) -> dict[str, Pack]:
    """The pack of a folder, or every pack in the folders below it, by jurisdiction."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise Malformed(f"“{folder}” is not a folder. Name a pack's folder, or one of packs.")
    if (folder / "pack.toml").exists():
        found = [read_pack(folder)]
    else:
        found = [read_pack(path.parent) for path in sorted(folder.glob("*/pack.toml"))]
    if not found:
        raise Malformed(f"There is no pack.toml in “{folder}”, nor in a folder of it.")
    return {pack.jurisdiction: pack for pack in found}


def paired(before: dict[str, Pack], after: dict[str, Pack]) -> dict[str, Versions]:
    """The packs to compare; a single pack is compared with its like alone."""
    codes = before.keys() | after.keys()
    for side in (before, after):
        if len(side) == 1:
            codes &= side.keys()
    if not codes:
        raise Malformed(
            f"{', '.join(before)} and {', '.join(after)} are different jurisdictions. "
            "Name two versions of the same one."
        )
    return {code: (before.get(code), after.get(code)) for code in sorted(codes)}


# --- Comparing: pure --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that an amendment does to one duty; a field only where it keeps the duty."""

    duty: str
    title: str
    applies_to: tuple[str, ...]
    what: str  # added, removed, changed
    field: str = ""
    before: str = ""
    after: str = ""


def compare_packs(before: Pack | None, after: Pack | None) -> list[Change]:
    """What lies between two versions of a law, duty by duty."""
    old = before.duty if before else ()
    new = after.duty if after else ()
    pairs = dict(_matches(old, new))
    kept = set(pairs.values())
    changes: list[Change] = []
    for at, duty in enumerate(old):
        if at in pairs:
            changes += _changes(duty, new[pairs[at]])
        else:
            changes.append(_whole(duty, "removed"))
    added = (duty for at, duty in enumerate(new) if at not in kept)
    return changes + [_whole(duty, "added") for duty in added]


def _matches(old: Sequence[Duty], new: Sequence[Duty]) -> Iterator[tuple[int, int]]:
    """Which duty became which, the likest first: an id is shared by kinds and by times."""
    pairs = product(range(len(old)), range(len(new)))
    ranked = sorted(pairs, key=lambda pair: -_likeness(old[pair[0]], new[pair[1]]))
    seen_old: set[int] = set()
    seen_new: set[int] = set()
    for one, other in ranked:
        if one in seen_old or other in seen_new or not _likeness(old[one], new[other]):
            continue
        seen_old.add(one)
        seen_new.add(other)
        yield one, other


def _likeness(one: Duty, other: Duty) -> int:
    if one.id != other.id or not one.targets & other.targets:
        return 0
    same = (one.targets == other.targets, one.since == other.since, one.only_if == other.only_if)
    return 1 + sum(same)


def _whole(duty: Duty, what: str) -> Change:
    return Change(duty.id, duty.title, duty.applies_to, what)


def _changes(one: Duty, other: Duty) -> Iterator[Change]:
    before, after = dict(_fields(one)), dict(_fields(other))
    for name, value in before.items():
        if value != after[name]:
            told = _told(value), _told(after[name])
            yield Change(one.id, one.title, one.applies_to, "changed", name, *told)


def _fields(duty: Duty) -> Iterator[tuple[str, Any]]:
    for name in Duty.model_fields:  # the duty itself would also tell what it keeps at hand
        value = getattr(duty, name)
        if isinstance(value, Late):
            yield from ((f"late.{part}", item) for part, item in value)
        elif name != "id":
            yield name, value


def _told(value: Any) -> str:
    """A value of a pack as a person reads it."""
    match value:
        case Due():
            return value.text
        case First():
            return first_words(value)
        case Opens():
            return opens_words(value)
        case Fee():
            since = f" from {value.since}" if value.since else ""
            return f"{value.amount}{since} ({value.cite})"
        case tuple():
            return "; ".join(_told(item) for item in value)
        case None:
            return ""
        case _:
            return str(value)


# --- Weighing ---------------------------------------------------------------------------------


@dataclass
class Impact:
    """What an amendment would do to the registrations of a jurisdiction in a stretch of time."""

    registrations: int = 0
    moved: int = 0
    fees_changed: int = 0
    come: int = 0
    gone: int = 0
    more: Decimal = Decimal(0)  # fees after, less fees before
    currency: str = "USD"


def impact_of(before: Pack | None, after: Pack | None, *, since: date, through: date) -> Impact:
    """Every deadline of what is managed, by both laws; rows are streamed, none is changed."""
    law = after or before
    if law is None:
        return Impact()
    impact = Impact(currency=law.currency)
    rows = Registration.objects.filter(
        jurisdiction=law.jurisdiction, management=Registration.Management.MANAGED
    )
    complete = rows.select_related("entity").prefetch_related("events").order_by("pk")
    streamed = complete.defer("entity__tax_id")
    for registration in streamed.iterator(chunk_size=CHUNK):
        impact.registrations += 1
        old = _by_period(before, registration, since - REACH, through + REACH)
        new = _by_period(after, registration, since - REACH, through + REACH)
        for key in old.keys() | new.keys():
            pair = old.get(key), new.get(key)
            if any(owed and since <= owed.due_on <= through for owed in pair):
                _weigh(impact, *pair)
    return impact


def _weigh(impact: Impact, old: Owed | None, new: Owed | None) -> None:
    fees = [owed.fee if owed else None for owed in (old, new)]
    impact.come += old is None
    impact.gone += new is None
    if old and new:
        impact.moved += old.due_on != new.due_on
        impact.fees_changed += fees[0] != fees[1]
    impact.more += (fees[1] or 0) - (fees[0] or 0)


def _by_period(
    pack: Pack | None, registration: Registration, since: date, through: date
) -> dict[tuple[str, str], Owed]:
    if pack is None:
        return {}
    start = max(registration.registered_on, since)
    owed = deadlines_for(pack, facts_of(registration), through, start)
    return {(one.duty, one.period): one for one in owed}


# --- Applying ---------------------------------------------------------------------------------

# Which of these deadlines, by id, somebody is already filing: their dates stay.
Busy = Callable[[Collection[int]], Collection[int]]


def nobody_files(_deadlines: Collection[int]) -> Collection[int]:
    """No deadline has a filing under way."""
    return ()


@dataclass
class Applied:
    """What applying an amendment did, or would do."""

    jurisdiction: str
    pack_sha256: str
    deadlines: int = 0
    moved: int = 0
    fees_changed: int = 0
    # The law now gives another date, but this one is due already or is being filed.
    held: int = 0
    # The pack does not ask them of the facts on file; a person decides whether to waive them.
    unknown: int = 0
    more: Decimal = Decimal(0)
    currency: str = "USD"


@dataclass(frozen=True)
class Revision:
    """A deadline with its new values set, and what they were before."""

    row: Deadline
    before: dict[str, Any]
    law_due_on: date

    @property
    def changed(self) -> list[str]:
        """The columns that have another value now; the pack's digest always has."""
        return [name for name, value in self.before.items() if getattr(self.row, name) != value]


def require_two_people(by: User, approved_by: User, reason: str) -> None:
    """Refuse an amendment that one person answers for alone, or that nobody explains."""
    if by.pk == approved_by.pk:
        raise NotAllowed(
            "An amendment is applied by one person and approved by another. Name two people."
        )
    if not reason.strip():
        raise NotAllowed("An amendment is not applied without a reason. Say what was amended.")


def preview_amendment(
    jurisdiction: str,
    *,
    busy: Busy = nobody_files,
    today: date | None = None,
    among: DeadlineQuerySet | None = None,
    on_revision: Callable[[Revision], None] = lambda revision: None,
) -> Applied:
    """What `apply_amendment` would do now, to all deadlines or to some; nothing is written."""
    pack = pack_of(jurisdiction)
    counts = Applied(jurisdiction, pack.sha256, currency=pack.currency)
    for chunk in _chunks(_outdated(pack, among)):
        for revision in _revise(chunk, pack, busy, today, counts):
            on_revision(revision)
    return counts


def apply_amendment(
    jurisdiction: str,
    *,
    by: User,
    approved_by: User,
    reason: str,
    busy: Busy = nobody_files,
    today: date | None = None,
) -> Applied:
    """Bring what is owed in a jurisdiction up to its pack as installed; two people answer for it.

    A chunk is a transaction; broken off, it is simply applied again. A date that is due already,
    or that somebody is filing for, stays.
    """
    require_two_people(by, approved_by, reason)
    pack = pack_of(jurisdiction)
    counts = Applied(jurisdiction, pack.sha256, currency=pack.currency)
    people = {"by": by.username, "approved_by": approved_by.username, "reason": reason}
    last: int | None = 0
    while last is not None:
        with ledger.recording(by=by):
            rows = _outdated(pack).select_for_update(of=("self",))
            chunk = list(rows.filter(pk__gt=last)[:CHUNK])
            revisions = _revise(chunk, pack, busy, today, counts)
            _write(revisions, people)
            last = chunk[-1].pk if chunk else None
            if last is None and counts.deadlines:
                _record_applied(counts, people)
    return counts


def _outdated(pack: Pack, among: DeadlineQuerySet | None = None) -> "QuerySet[Deadline]":
    """What is owed by another version of the pack than the one installed."""
    chosen = Deadline.objects.all() if among is None else among
    owed = chosen.unmet().filter(registration__jurisdiction=pack.jurisdiction)
    rows = owed.exclude(pack_sha256=pack.sha256).select_related("registration__entity")
    complete = rows.prefetch_related("registration__events").order_by("pk")
    return complete.defer("registration__entity__tax_id")


def _chunks(rows: "QuerySet[Deadline]") -> Iterator[list[Deadline]]:
    last = 0
    while chunk := list(rows.filter(pk__gt=last)[:CHUNK]):
        yield chunk
        last = chunk[-1].pk


def _revise(
    chunk: Sequence[Deadline], pack: Pack, busy: Busy, today: date | None, counts: Applied
) -> list[Revision]:
    """Give each row the values that the pack now has for it, in memory."""
    now = today or timezone.localdate()
    taken = set(busy([row.pk for row in chunk]))
    revisions = []
    for row in chunk:
        window = row.due_on - REACH, row.due_on + REACH
        owed = _by_period(pack, row.registration, *window).get((row.duty, row.period))
        if owed is None:
            counts.unknown += 1
            continue
        revision = _revised(row, owed, pack, may_reroute=row.pk not in taken, today=now)
        revisions.append(revision)
        _count(counts, revision)
    return revisions


def _revised(row: Deadline, owed: Owed, pack: Pack, *, may_reroute: bool, today: date) -> Revision:
    names = [*TERMS]
    if may_reroute:
        names += ROUTE
    if may_reroute and row.due_on > today:
        names += DATES
    before = {name: getattr(row, name) for name in KEPT}
    for name in names:
        setattr(row, name, getattr(owed, name))
    row.target_on = _shifted_target(row, before["due_on"])
    row.pack_sha256 = pack.sha256
    return Revision(row, before, owed.due_on)


def _shifted_target(row: Deadline, due_before: date) -> date | None:
    """Our own target as far from the new date as it was from the old, and not before it opens."""
    if row.target_on is None or row.due_on == due_before:
        return row.target_on
    target = row.target_on + (row.due_on - due_before)
    return max(target, row.opens_on) if row.opens_on else target


def _count(counts: Applied, revision: Revision) -> None:
    row, before = revision.row, revision.before
    counts.deadlines += 1
    counts.moved += row.due_on != before["due_on"]
    counts.held += row.due_on != revision.law_due_on
    counts.fees_changed += row.fee != before["fee"]
    counts.more += (row.fee or 0) - (before["fee"] or 0)


def _write(revisions: Sequence[Revision], people: dict[str, str]) -> None:
    rows = [revision.row for revision in revisions]
    # Only the columns that some row needs: each costs a statement as long as the chunk.
    columns = sorted({name for revision in revisions for name in revision.changed})
    if rows:
        Deadline.objects.bulk_update(rows, columns, batch_size=CHUNK)
    remember(rows, reason=people["reason"][:REASON_LENGTH])
    for revision in revisions:
        row, changed = revision.row, revision.changed
        ledger.record(
            type="deadline.amended",
            subject=f"deadline:{row.pk}",
            actor=people["by"],
            portfolio_id=row.registration.entity.portfolio_id,
            approved_by=people["approved_by"],
            reason=people["reason"],
            before={name: _plain(revision.before[name]) for name in changed},
            after={name: _plain(getattr(row, name)) for name in changed},
            law_due_on=revision.law_due_on.isoformat(),
        )


def _record_applied(counts: Applied, people: dict[str, str]) -> None:
    ledger.record(
        type="pack.applied",
        subject=f"pack:{counts.jurisdiction}",
        actor=people["by"],
        approved_by=people["approved_by"],
        reason=people["reason"],
        pack_sha256=counts.pack_sha256,
        deadlines=counts.deadlines,
        moved=counts.moved,
        held=counts.held,
        fees_changed=counts.fees_changed,
        unknown=counts.unknown,
        more=str(counts.more),
        currency=counts.currency,
    )


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)
