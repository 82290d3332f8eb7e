"""The import of entities: good rows in, bad rows back, each whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from django.contrib.auth.models import User
from django.db import DataError, IntegrityError

from compliance import ledger, rules
from compliance.errors import Malformed, NotAllowed, NotFound
from compliance.imports.plans import Change, Plan, Told
from compliance.imports.raw import RawRow, Source
from compliance.imports.rows import EntityRow, read_row
from compliance.imports.values import Jurisdictions
from compliance.models import Portfolio

CHUNK = 500

OnRefused = Callable[[RawRow, Sequence[str]], None]
OnProgress = Callable[[int, int | None], None]


class Keep(Enum):
    """What an import leaves behind."""

    GOOD_ROWS = "good rows"
    ALL_OR_NOTHING = "all or nothing"
    NOTHING = "nothing"  # a rehearsal


@dataclass
class ImportCounts:
    """What an import saw and did, in rows."""

    rows: int = 0
    created: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0
    problems: int = 0
    unknown_columns: list[str] = field(default_factory=list)
    kept: bool = True


class _TakenBack(Exception):
    """Ends a transaction that must leave nothing behind."""


@dataclass
class _Chunk:
    """A chunk of rows and what became of each."""

    changes: list[Change] = field(default_factory=list)
    refused: list[tuple[RawRow, tuple[str, ...]]] = field(default_factory=list)


def find_portfolio(slug: str | None) -> Portfolio:
    """The portfolio of that name; without a name, the only one there is."""
    known = dict(Portfolio.objects.values_list("slug", "pk"))
    if slug is None and len(known) == 1:
        slug = next(iter(known))
    if slug not in known:
        asked = f"There is no portfolio “{slug}”." if slug else "Name the portfolio."
        names = ", ".join(sorted(known)) or "none; create one in the admin first"
        raise NotFound(f"{asked} Use --portfolio with one of these: {names}.")
    return Portfolio.objects.get(pk=known[slug])


def import_entities(
    source: Source,
    *,
    portfolio: Portfolio,
    by: User,
    keep: Keep = Keep.GOOD_ROWS,
    on_refused: OnRefused = lambda row, problems: None,
    on_progress: OnProgress = lambda done, total: None,
) -> ImportCounts:
    """Create and change the entities that a file names; what is as it says stays untouched."""
    counts = ImportCounts()
    told = Told()
    jurisdictions = Jurisdictions(rules.packs())
    try:
        # One transaction for all, or one for each chunk; a rehearsal must see its own rows.
        with _whole(keep, by):
            for raws in _chunks(source.rows()):
                chunk = _import_chunk(raws, jurisdictions, portfolio, by, told)
                _count(chunk, counts, on_refused)
                on_progress(source.done, source.total)
            if keep is Keep.NOTHING or (keep is Keep.ALL_OR_NOTHING and counts.refused):
                raise _TakenBack  # noqa: TRY301 - the only way out of a transaction
    except _TakenBack:
        counts.kept = False
    counts.unknown_columns = list(source.unknown)
    return counts


def _whole(keep: Keep, by: User) -> AbstractContextManager[None]:
    return nullcontext() if keep is Keep.GOOD_ROWS else ledger.recording(by=by)


def _chunks(rows: Iterator[RawRow]) -> Iterator[list[RawRow]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _import_chunk(
    raws: Sequence[RawRow],
    jurisdictions: Jurisdictions,
    portfolio: Portfolio,
    by: User,
    told: Told,
) -> _Chunk:
    """Write the good rows of a chunk in one transaction."""
    chunk = _Chunk()
    rows = []
    for raw in raws:
        try:
            rows.append(read_row(raw, jurisdictions))
        except Malformed as error:
            chunk.refused.append((raw, error.problems))
    with ledger.recording(by=by):
        try:
            written = _write(rows, portfolio, by, told)
            chunk.changes += written.changes
            chunk.refused += written.refused
        except (IntegrityError, DataError):
            # The database refuses one of them; alone, each is written or shows itself.
            for row in rows:
                _write_alone(row, portfolio, by, told, chunk)
    chunk.refused.sort(key=lambda refusal: refusal[0].line)
    return chunk


def _write(rows: Sequence[EntityRow], portfolio: Portfolio, by: User, told: Told) -> _Chunk:
    """Plan and write some rows inside of one savepoint."""
    written = _Chunk()
    if not rows:
        return written
    with ledger.recording():
        plan = Plan(portfolio, rows, told)
        for row in rows:
            try:
                plan.add(row)
            except NotAllowed as error:
                written.refused.append((row.raw, (str(error),)))
        plan.write(by, told)
    written.changes = plan.changes
    return written


def _write_alone(
    row: EntityRow, portfolio: Portfolio, by: User, told: Told, chunk: _Chunk
) -> None:
    try:
        written = _write([row], portfolio, by, told)
    except (IntegrityError, DataError) as error:
        why = str(error).splitlines()[0]
        chunk.refused.append((row.raw, (f"The database refuses it: {why}. Correct the row.",)))
        return
    chunk.changes += written.changes
    chunk.refused += written.refused


def _count(chunk: _Chunk, counts: ImportCounts, on_refused: OnRefused) -> None:
    for change in chunk.changes:
        counts.created += change.created
        counts.changed += bool(change.names) and not change.created
        counts.unchanged += not change.names and not change.created
    for raw, problems in chunk.refused:
        counts.refused += 1
        counts.problems += len(problems)
        on_refused(raw, problems)
    counts.rows += len(chunk.changes) + len(chunk.refused)
