"""Tells what the deadlines of the next weeks will cost if nobody files."""

import json
from datetime import date, timedelta
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.table import Table

from compliance.errors import DomainError
from compliance.exposure import Costly, Exposure, Law, cost_per_day, exposure_of, owed_before
from compliance.penalties import Cost
from compliance.wording import counted, day, money

WEEK = 7
LONGEST = 3660
HEADINGS = ("Certain", "Law to be reviewed", "Only after a notice")


class Command(BaseCommand):
    help = "Tell what lateness will have cost by each week if nothing is filed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--portfolio", metavar="P", default="", help="default: all of them")
        parser.add_argument("--days", type=int, default=90, metavar="N", help="default: 90")
        parser.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["days"] <= LONGEST:
            raise CommandError(f"--days takes 1 to {LONGEST}. Write for example --days 90.")
        today = timezone.localdate()
        last = today + timedelta(days=options["days"])
        try:
            owed = owed_before(last, portfolio=options["portfolio"])
            found = exposure_of(owed.iterator(chunk_size=2000), today, last)
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(summary(found, today, last)))
            return
        show(found, today, Console(file=cast(IO[str], self.stdout)))


def summary(found: Exposure, today: date, last: date) -> dict[str, Any]:
    """The forecast for programs; amounts are text, so that no cent is lost."""
    law = Law()
    return {
        "from": today.isoformat(),
        "through": last.isoformat(),
        "deadlines": found.deadlines,
        "at_least": found.at_least,
        "without_law": found.without_law,
        "by_week": {
            code: [{"on": on.isoformat(), **_amounts(cost)} for on, cost in _weekly(days)]
            for code, days in sorted(found.by_day.items())
        },
        "costliest": [
            {
                "deadline": costly.deadline.pk,
                "entity": costly.deadline.registration.name,
                "jurisdiction": costly.deadline.registration.jurisdiction,
                "title": costly.deadline.title,
                "period": costly.deadline.period,
                "due_on": costly.deadline.due_on.isoformat(),
                "currency": costly.deadline.currency,
                **_amounts(costly.cost),
                "next_day": _amounts(_next_day(costly, today, law)),
            }
            for costly in found.costliest
        ],
    }


def show(found: Exposure, today: date, console: Console) -> None:
    """The weeks, the costliest deadlines, and what the figures leave open."""
    for code, days in sorted(found.by_day.items()):
        table = Table("If nothing is filed by", *HEADINGS, title=f"Penalties in {code}")
        for on, cost in _weekly(days):
            table.add_row(day(on), *_words(cost, code))
        console.print(table)
    if found.costliest:
        console.print(_table_of_costliest(found.costliest, today))
    for sentence in _open_questions(found):
        console.print(sentence, markup=False)


def _table_of_costliest(costliest: list[Costly], today: date) -> Table:
    law = Law()
    table = Table("Deadline", "Due", *HEADINGS, "One more day", title="The costliest")
    for costly in costliest:
        row = costly.deadline
        table.add_row(
            f"{row.registration}: {row.title} {row.period}",
            row.due_on.isoformat(),
            *_words(costly.cost, row.currency),
            money(_next_day(costly, today, law).at_most, row.currency),
        )
    return table


def _open_questions(found: Exposure) -> list[str]:
    told = [f"{counted(found.deadlines, 'owed deadline')} seen."]
    if found.at_least:
        told.append(
            f"At least: for {counted(found.at_least, 'deadline')} a percentage runs on an amount "
            "that is not wholly known."
        )
    if found.without_law:
        told.append(
            f"Left out: {counted(found.without_law, 'deadline')} of which no pack has the duty "
            "any more. Run check_packs."
        )
    return told


def _weekly(days: list[tuple[date, Cost]]) -> list[tuple[date, Cost]]:
    """Today, the end of each week from today, and the last day."""
    return [*days[:-1:WEEK], days[-1]]


def _next_day(costly: Costly, today: date, law: Law) -> Cost:
    """What the next day costs, or for what is not yet due its first day of lateness."""
    return cost_per_day(costly.deadline, max(today, costly.deadline.due_on), law)


def _amounts(cost: Cost) -> dict[str, str]:
    return {
        "certain": f"{cost.certain:.2f}",
        "to_review": f"{cost.to_review:.2f}",
        "on_notice": f"{cost.on_notice:.2f}",
    }


def _words(cost: Cost, code: str) -> list[str]:
    return [money(amount, code) for amount in (cost.certain, cost.to_review, cost.on_notice)]
