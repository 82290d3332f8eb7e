"""Says what an amendment does to the law, and what it would do to the registrations on file."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from compliance.amendments import (
    Change,
    Impact,
    Versions,
    compare_packs,
    impact_of,
    paired,
    read_packs,
)
from compliance.calendars import parse_day
from compliance.due import add_months
from compliance.errors import DomainError
from compliance.wording import counted, money

MONTHS_AHEAD = 18


class Command(BaseCommand):
    help = "Compare two versions of packs, and weigh the change against the registrations on file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("old", metavar="OLD", help="a pack's folder, or a folder of packs")
        parser.add_argument("new", metavar="NEW", help="the same, amended")
        parser.add_argument("--through", metavar="DATE", help="default: 18 months from today")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        today = timezone.localdate()
        try:
            text = options["through"]
            through = parse_day(text) if text else add_months(today, MONTHS_AHEAD)
            pairs = paired(read_packs(Path(options["old"])), read_packs(Path(options["new"])))
        except DomainError as error:
            raise CommandError(str(error)) from error
        found = []
        for code, versions in pairs.items():
            changes = compare_packs(*versions)
            if changes:
                impact = impact_of(*versions, since=today, through=through)
                found.append(account(code, versions, changes, impact))
                if not options["json"]:
                    self.stdout.write("\n".join(lines(code, changes, impact)))
        if options["json"]:
            self.stdout.write(json.dumps({"through": through.isoformat(), "packs": found}))
        elif not found:
            self.stdout.write("Both say the same.")


def account(
    code: str, versions: Versions, changes: list[Change], impact: Impact
) -> dict[str, Any]:
    """One jurisdiction for a program."""
    before, after = versions
    return {
        "jurisdiction": code,
        "old_sha256": before.sha256 if before else None,
        "new_sha256": after.sha256 if after else None,
        "changes": [asdict(change) for change in changes],
        "impact": {**asdict(impact), "more": str(impact.more)},
    }


def lines(code: str, changes: list[Change], impact: Impact) -> Iterator[str]:
    """One jurisdiction for a person."""
    yield f"{code}: {sentence(impact)}"
    for change in changes:
        name = f"  {change.what} {change.duty} ({', '.join(change.applies_to)})"
        if change.field:
            name += f" {change.field}: {change.before or 'nothing'} → {change.after or 'nothing'}"
        yield name


def sentence(impact: Impact) -> str:
    """What an amendment would do, in one sentence."""
    told = (
        f"moves {counted(impact.moved, 'due date')}, "
        f"changes {counted(impact.fees_changed, 'fee')}, "
        f"brings {counted(impact.come, 'deadline')} and ends {impact.gone:,}, "
        f"{difference(impact)}"
    )
    return f"{told}, for {counted(impact.registrations, 'registration')}."


def difference(impact: Impact) -> str:
    """How much more or less is to be paid."""
    side = "less" if impact.more < 0 else "more"
    return f"{money(abs(impact.more), impact.currency)} {side}"
