"""Reads every pack, works every case, and shows what is covered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from compliance.deadlines import case_failure, duties_without_case
from compliance.errors import DomainError, Malformed
from compliance.rules import KINDS, Case, Pack, pack_folders, read_cases, read_pack

# Wide enough for the longest row, so that a log shows the whole table.
WIDTH = 140
LEGEND = (
    "“no, …”: the law asks nothing; “–”: binds others only; “?”: the pack is silent; "
    "what is not high needs review"
)


@dataclass
class Report:
    """What a check of the packs saw."""

    table: Table
    cases: int = 0
    problems: list[str] = field(default_factory=list)


class Command(BaseCommand):
    help = "Read every pack and work every case; exit 1 if any is wrong or none was found."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            folders = pack_folders()
        except DomainError as error:
            raise CommandError(str(error)) from error
        report = check(folders)
        Console(file=cast(IO[str], self.stdout), width=WIDTH).print(report.table)
        for problem in report.problems:
            self.stderr.write(problem)
        if report.problems or not report.cases:
            raise CommandError(
                f"{len(report.problems)} problems in {len(folders)} packs, {report.cases} cases."
            )
        self.stdout.write(f"{len(folders)} packs and {report.cases} cases are as they should be.")


def check(folders: dict[str, Path]) -> Report:
    """Read the packs one by one, so that one that is broken hides none of the others."""
    title = "How sure we are of each duty, at home / as a foreign entity"
    report = Report(Table("pack", "duty", *KINDS, "cases", title=title, caption=LEGEND))
    for code, folder in folders.items():
        try:
            pack, cases = read_pack(folder), read_cases(folder)
        except Malformed as error:
            report.problems.append(str(error))
            continue
        report.cases += len(cases)
        report.problems += _problems(pack, cases, folder)
        for row in _rows(pack, cases):
            report.table.add_row(code, *row)
        report.table.add_section()
    return report


def _problems(pack: Pack, cases: Sequence[Case], folder: Path) -> list[str]:
    failures = [(case, case_failure(pack, case)) for case in cases]
    wrong = [f"{folder / 'cases.toml'}: {case.name}: {why}." for case, why in failures if why]
    untested = [
        f"{folder / 'cases.toml'}: no case tests the duty “{duty.id}” of "
        f"{', '.join(duty.applies_to)}. Add one."
        for duty in duties_without_case(pack, cases)
    ]
    return wrong + untested


def _rows(pack: Pack, cases: Sequence[Case]) -> Iterator[list[str]]:
    for name in dict.fromkeys(duty.id for duty in pack.duty):
        cells = [
            f"{_sure(pack, name, f'domestic-{kind}')} / {_sure(pack, name, f'foreign-{kind}')}"
            for kind in KINDS
        ]
        tried = sum(case.duty == name for case in cases)
        yield [name, *cells, str(tried)]


def _sure(pack: Pack, name: str, target: str) -> str:
    """How sure the newest text of a duty is; “–” where it binds others only."""
    spoken = [duty for duty in pack.duty if target in duty.targets]
    binding = [duty for duty in spoken if duty.id == name]
    if not binding:
        return "–" if spoken else "?"
    newest = max(binding, key=lambda duty: duty.until or date.max)
    return f"no, {newest.confidence}" if newest.due is None else newest.confidence
