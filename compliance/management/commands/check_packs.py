"""Reads every pack, works every case, and shows what is covered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from compliance.deadlines import case_failure, duties_without_case
from compliance.errors import DomainError, Malformed
from compliance.rules import KINDS, Case, Pack, pack_folders, read_cases, read_pack


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
        Console(file=cast(IO[str], self.stdout)).print(report.table)
        for problem in report.problems:
            self.stderr.write(problem)
        if report.problems or not report.cases:
            raise CommandError(
                f"{len(report.problems)} problems in {len(folders)} packs, {report.cases} cases."
            )
        self.stdout.write(f"{len(folders)} packs and {report.cases} cases are as they should be.")


def check(folders: dict[str, Path]) -> Report:
    """Read the packs one by one, so that one that is broken hides none of the others."""
    title = "Duties that bind each kind, at home / as a foreign entity"
    columns = ("pack", "verified", "cases", "unsure", *KINDS)
    report = Report(Table(*columns, title=title))
    for code, folder in folders.items():
        try:
            pack, cases = read_pack(folder), read_cases(folder)
        except Malformed as error:
            report.problems.append(str(error))
            continue
        report.cases += len(cases)
        report.problems += _problems(pack, cases, folder)
        report.table.add_row(code, *_row(pack, cases))
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


def _row(pack: Pack, cases: Sequence[Case]) -> list[str]:
    unsure = sum(duty.confidence != "high" for duty in pack.duty)
    counts = [pack.verified_on.isoformat(), str(len(cases)), f"{unsure} of {len(pack.duty)}"]
    return counts + [
        f"{_covered(pack, f'domestic-{kind}')} / {_covered(pack, f'foreign-{kind}')}"
        for kind in KINDS
    ]


def _covered(pack: Pack, target: str) -> str:
    """How many duties bind it: 0 where the law asks nothing, “?” where we do not know."""
    duties = [duty for duty in pack.duty if target in duty.targets]
    return str(sum(duty.due is not None for duty in duties)) if duties else "?"
