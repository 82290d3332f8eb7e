"""Prepare and approve what is due."""

import json
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q, QuerySet
from django.utils import timezone
from rich.console import Console
from rich.progress import track
from rich.table import Table

from compliance.errors import DomainError
from compliance.history import find_user
from compliance.models import Deadline
from compliance.rules import pack_of
from filings.services import Due, file_due


class Command(BaseCommand):
    help = "Opens a filing for each deadline that is due and open, and approves the complete ones."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--within-days", type=int, required=True, help="Due from now on.")
        parser.add_argument("--jurisdiction", default="", help="Only this one, such as US-DE.")
        parser.add_argument("--prepared-by", default="", help="The user who prepares.")
        parser.add_argument("--approved-by", default="", help="Another user, who approves.")
        parser.add_argument("--name", default="", help="The batch's name.")
        parser.add_argument("--dry-run", action="store_true", help="Only list what is due.")
        parser.add_argument("--json", action="store_true", help="End with one line of JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["jurisdiction"]:
                pack_of(options["jurisdiction"])
            deadlines = open_deadlines(options["within_days"], options["jurisdiction"])
            if options["dry_run"]:
                self._list(deadlines, as_json=options["json"])
                return
            due = self._file(deadlines, options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        self._report(due, options)

    def _file(self, deadlines: QuerySet[Deadline], options: dict[str, Any]) -> Due:
        if not options["prepared_by"]:
            raise CommandError("Say who prepares: --prepared-by USER. Or look first: --dry-run.")
        prepared_by = find_user(options["prepared_by"])
        approved_by = find_user(options["approved_by"]) if options["approved_by"] else None
        if approved_by is not None and not approved_by.has_perm("filings.approve_filing"):
            raise CommandError(f"{approved_by} may not approve filings. Name somebody who may.")
        deadlines = deadlines.visible_to(prepared_by)  # type: ignore[attr-defined]
        name = options["name"] or f"Due within {options['within_days']} days"
        shown = track(
            deadlines, "Preparing", total=deadlines.count(), console=Console(stderr=True),
            disable=options["json"],
        )  # fmt: skip
        return file_due(shown, name=name, prepared_by=prepared_by, approved_by=approved_by)

    def _list(self, deadlines: QuerySet[Deadline], *, as_json: bool) -> None:
        table = Table("Due", "Jurisdiction", "Entity", "What", "Fee", "Portal")
        for row in deadlines:
            fee = "unknown" if row.fee is None else f"${row.fee}"
            place = row.registration
            table.add_row(
                str(row.due_on), place.jurisdiction, place.name, row.title, fee,
                row.portal or "by hand",
            )  # fmt: skip
        if as_json:
            self.stdout.write(json.dumps({"due": deadlines.count()}))
        else:
            Console(file=self.stdout).print(table)  # type: ignore[arg-type]

    def _report(self, due: Due, options: dict[str, Any]) -> None:
        for filing, problems in due.blocked:
            self.stderr.write(f"{filing}: {' '.join(problems)}")
        for deadline, sentence in due.refused:
            self.stderr.write(f"{deadline}: {sentence}")
        word = "approved" if options["approved_by"] else "prepared"
        if options["json"]:
            told = {
                word: len(due.filings), "blocked": len(due.blocked), "refused": len(due.refused),
                "by_hand": len(due.by_hand), "fees": str(due.fees),
            }  # fmt: skip
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(
                f"{len(due.filings)} {word} (${due.fees} in fees), {len(due.blocked)} incomplete, "
                f"{len(due.by_hand)} to be filed by hand."
            )
        if due.blocked or due.refused:
            wrong = len(due.blocked) + len(due.refused)
            raise CommandError(f"{wrong} filings lack something; see above.")


def open_deadlines(
    within_days: int, jurisdiction: str = "", *, today: date | None = None
) -> QuerySet[Deadline]:
    """What is due in the coming days, or overdue, and may be filed today."""
    today = today or timezone.localdate()
    found = Deadline.objects.due_within(within_days, today=today).filter(
        Q(opens_on__isnull=True) | Q(opens_on__lte=today)
    )
    if jurisdiction:
        found = found.filter(registration__jurisdiction=jurisdiction)
    return found.select_related("registration__entity__portfolio").order_by("due_on", "id")
