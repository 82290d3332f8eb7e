"""Creates the deadlines that the law has brought since the last time."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import Progress

from compliance.calendars import parse_day
from compliance.due import add_months, month_end
from compliance.errors import DomainError
from compliance.history import find_user, service_user
from compliance.models import Registration
from compliance.sync import SyncCounts, sync_deadlines

MONTHS_AHEAD = 18


class Command(BaseCommand):
    help = "Create every missing deadline of every registration. Moves none that exists."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--through", metavar="DATE", help="default: the end of the month in 18 months"
        )
        parser.add_argument("--by", metavar="USER", help="default: the service account")
        parser.add_argument("--json", action="store_true", help="one line of JSON at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        # To the end of a month, so that a run on the next day finds nothing further ahead.
        ahead = month_end(add_months(timezone.localdate(), MONTHS_AHEAD))
        try:
            through = parse_day(options["through"]) if options["through"] else ahead
            by = find_user(options["by"]) if options["by"] else service_user("sync_deadlines")
            with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
                task = bar.add_task("Registrations", total=Registration.objects.count())
                counts = sync_deadlines(
                    through=through,
                    by=by,
                    on_progress=lambda done: bar.update(task, completed=done),
                )
        except DomainError as error:
            raise CommandError(str(error)) from error
        for code, count in sorted(counts.without_pack.items()):
            self.stderr.write(f"{code} has no pack; registrations left out: {count}.")
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(counts), "through": through.isoformat()}))
        else:
            self.stdout.write(sentence(counts))


def sentence(counts: SyncCounts) -> str:
    """What was done, for a person."""
    told = f"Deadlines created: {counts.created}; there already: {counts.kept}; "
    told += f"registrations seen: {counts.registrations}, "
    told += f"of which nothing has changed for {counts.unchanged}."
    if counts.differing:
        told += (
            " With another due date than law and facts now give, or with none, and left as they "
            f"are: {counts.differing}."
        )
    return told
