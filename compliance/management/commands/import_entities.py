"""Imports entities from a file of rows."""

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import Progress

from compliance.errors import DomainError, NotAllowed
from compliance.history import find_user, service_user
from compliance.imports.raw import COLUMNS, RawRow, visible
from compliance.imports.readers import open_source
from compliance.imports.returns import Return, open_return
from compliance.imports.services import ImportCounts, Keep, find_portfolio, import_entities
from compliance.wording import counted


class Command(BaseCommand):
    help = (
        "Create and change entities from a .csv, .xlsx or .ndjson file; a row is an entity with "
        f"at most one registration. Columns: {', '.join(COLUMNS)}. Of a registration, traits are "
        "all that hold (“a;b”), events are added to those told (“last_filing=2026-02-27;…”). The "
        "same file again changes nothing. Exits 1 if a row was refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--portfolio", metavar="P", help="default: the only one there is")
        parser.add_argument("--by", metavar="USER", help="default: the service account")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen")
        parser.add_argument(
            "--all-or-nothing", action="store_true", help="import nothing if a row is refused"
        )
        parser.add_argument("--errors", type=Path, metavar="FILE", help="for the refused rows")
        parser.add_argument("--json", action="store_true", help="one line of JSON at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            counts = self._import(options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        if counts.unknown_columns:
            names = visible(", ".join(counts.unknown_columns))
            self.stderr.write(f"Not known and left out: {names}.")
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(counts), "dry_run": options["dry_run"]}))
        else:
            self.stdout.write(sentence(counts, dry_run=options["dry_run"]))
        if counts.refused:
            raise CommandError(f"{counted(counts.refused, 'row')} refused; see above.")

    def _import(self, options: dict[str, Any]) -> ImportCounts:
        path, errors = options["file"], options["errors"]
        if errors and errors.resolve() == path.resolve():
            raise NotAllowed("--errors would overwrite the file itself. Name another.")
        portfolio = find_portfolio(options["portfolio"])
        by = find_user(options["by"]) if options["by"] else service_user("import_entities")
        with (
            open_source(path) as source,
            open_return(errors, source) if errors else nullcontext() as give_back,
            Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar,
        ):
            task = bar.add_task("Rows", total=source.total)
            return import_entities(
                source,
                portfolio=portfolio,
                by=by,
                keep=_keep(options),
                on_refused=self._teller(give_back),
                on_progress=lambda done, total: bar.update(task, completed=done, total=total),
            )

    def _teller(self, give_back: Return | None) -> Return:
        def tell(row: RawRow, problems: Sequence[str]) -> None:
            for problem in problems:
                self.stderr.write(visible(f"Line {row.line}: {problem}"))
            if give_back:
                give_back(row, problems)

        return tell


def sentence(counts: ImportCounts, *, dry_run: bool) -> str:
    """What was done, for a person."""
    told = (
        f"{counted(counts.rows, 'row')} read: {counts.created:,} created, {counts.changed:,} "
        f"changed, {counts.unchanged:,} as they were, {counts.refused:,} refused."
    )
    if dry_run:
        return f"Rehearsed, and nothing was kept. {told}"
    if not counts.kept:
        return f"Nothing was imported, because rows were refused. {told}"
    if counts.created == counts.changed == 0:
        return f"Nothing has changed. {told}"
    return told


def _keep(options: dict[str, Any]) -> Keep:
    if options["dry_run"]:
        return Keep.NOTHING
    return Keep.ALL_OR_NOTHING if options["all_or_nothing"] else Keep.GOOD_ROWS
