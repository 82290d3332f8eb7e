"""Shows what the law would ask of an entity that need not exist."""

import json
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from compliance.calendars import parse_day
from compliance.deadlines import Facts, Owed, deadlines_for
from compliance.due import RuleError, parse_month_day
from compliance.errors import DomainError, Malformed
from compliance.rules import KINDS, pack_of

SHOWN = ("duty", "period", "opens_on", "due_on", "fee", "citation", "confidence")


class Command(BaseCommand):
    help = "Show the deadlines of an entity in one jurisdiction, from its facts alone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--jurisdiction", required=True, metavar="CODE", help="such as US-DE")
        parser.add_argument("--entity-type", required=True, choices=KINDS)
        parser.add_argument("--formed", required=True, metavar="DATE")
        parser.add_argument("--foreign", action="store_true", help="formed elsewhere")
        parser.add_argument("--registered", metavar="DATE", help="when it qualified here")
        parser.add_argument("--fiscal-year-end", default="12-31", metavar="MM-DD")
        parser.add_argument("--trait", action="append", default=[], help="an only_if that holds")
        parser.add_argument("--from", required=True, dest="since", metavar="DATE")
        parser.add_argument("--through", required=True, metavar="DATE")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = preview(options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps([shown(owed) for owed in found]))
            return
        table = Table(*SHOWN)
        for owed in found:
            table.add_row(*(value or "" for value in shown(owed).values()))
        Console(file=cast(IO[str], self.stdout)).print(table)


def preview(options: dict[str, Any]) -> list[Owed]:
    """The deadlines that the options ask for."""
    since, through = parse_day(options["since"]), parse_day(options["through"])
    if through < since:
        raise Malformed(f"--through {through} is before --from {since}. Exchange them.")
    if options["foreign"] and not options["registered"]:
        raise Malformed("A foreign entity's dates count from its registration. Add --registered.")
    registered = parse_day(options["registered"]) if options["registered"] else None
    facts = Facts(
        kind=options["entity_type"],
        formed_on=parse_day(options["formed"]),
        is_foreign=options["foreign"],
        registered_on=registered,
        fiscal_year_end=_year_end(options["fiscal_year_end"]),
        traits=frozenset(options["trait"]),
    )
    return deadlines_for(pack_of(options["jurisdiction"].upper()), facts, through, since)


def shown(owed: Owed) -> dict[str, str | None]:
    """A deadline as the answer shows it: text, or nothing."""
    values = {name: getattr(owed, name) for name in SHOWN}
    return {name: None if value is None else str(value) for name, value in values.items()}


def _year_end(text: str) -> tuple[int, int]:
    try:
        return parse_month_day(text)
    except RuleError as error:
        raise Malformed(f"--fiscal-year-end: {error}.") from error
