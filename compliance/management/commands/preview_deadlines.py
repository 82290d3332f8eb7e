"""Shows what the law would ask of an entity that need not exist."""

import json
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from compliance.calendars import parse_day
from compliance.errors import DomainError
from compliance.preview import SHOWN, Question, is_unspoken, preview_deadlines, shown
from compliance.rules import KINDS

KINDS_WRITTEN = ", ".join(KINDS)


class Command(BaseCommand):
    help = "Show the deadlines of an entity in one jurisdiction, from its facts alone."
    requires_system_checks = []  # it touches no database and no page; a question is answered fast

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--jurisdiction", required=True, metavar="CODE", help="such as US-DE")
        parser.add_argument("--entity-type", required=True, metavar="KIND", help=KINDS_WRITTEN)
        parser.add_argument("--formed", required=True, metavar="DATE")
        parser.add_argument("--foreign", action="store_true", help="formed elsewhere")
        parser.add_argument("--registered", metavar="DATE", help="when it qualified here")
        parser.add_argument("--fiscal-year-end", default="12-31", metavar="MM-DD")
        parser.add_argument("--trait", action="append", default=[], help="an only_if that holds")
        parser.add_argument(
            "--event", action="append", default=[], metavar="NAME=DATE", help="what happened"
        )
        parser.add_argument("--from", required=True, dest="since", metavar="DATE")
        parser.add_argument("--through", required=True, metavar="DATE")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            asked = question(options)
            found = preview_deadlines(asked, mark="--")
        except DomainError as error:
            raise CommandError(str(error)) from error
        if is_unspoken(asked):
            self.stderr.write(
                f"The pack of {asked.jurisdiction} says nothing of such an entity: an empty list "
                "means “not known”, not “nothing is owed”."
            )
        if options["json"]:
            self.stdout.write(json.dumps([shown(owed) for owed in found]))
            return
        table = Table(*SHOWN)
        for owed in found:
            table.add_row(*(value or "" for value in shown(owed).values()))
        Console(file=cast(IO[str], self.stdout)).print(table)


def question(options: dict[str, Any]) -> Question:
    """What the options ask."""
    registered = options["registered"]
    return Question(
        jurisdiction=options["jurisdiction"],
        kind=options["entity_type"],
        formed_on=parse_day(options["formed"]),
        is_foreign=options["foreign"],
        registered_on=parse_day(registered) if registered else None,
        fiscal_year_end=options["fiscal_year_end"],
        traits=frozenset(options["trait"]),
        events=tuple(options["event"]),
        since=parse_day(options["since"]),
        through=parse_day(options["through"]),
    )
