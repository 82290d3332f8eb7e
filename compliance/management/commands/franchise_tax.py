"""Computes Delaware's franchise tax from a corporation's shares by both methods."""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from compliance.calendars import parse_day
from compliance.errors import DomainError, Malformed
from compliance.franchise_tax import CAVEAT, Shares, Step, Stock, Worksheet, worksheet
from compliance.wording import money
from compliance.worksheets import summary


class Command(BaseCommand):
    help = "Compute Delaware's franchise tax by both methods, and say which is the lesser."

    def add_arguments(self, parser: CommandParser) -> None:
        # So that “-5:0.01” is a value, which we refuse in words, and not an unknown option.
        parser._negative_number_matcher = re.compile(r"-[\d.]")
        parser.add_argument(
            "--authorized",
            action="append",
            default=[],
            metavar="SHARES[:PAR]",
            help="a class of stock and the par value of one share; no PAR is no-par stock; "
            "repeat for each class",
        )
        parser.add_argument("--issued", metavar="N", help="issued shares of all classes")
        parser.add_argument("--gross-assets", metavar="USD", help="Form 1120 Schedule L")
        parser.add_argument("--nonstock", action="store_true", help="it has no stock")
        parser.add_argument("--exempt", action="store_true", help="exempt under § 501(b)")
        parser.add_argument(
            "--large-corporate-filer", action="store_true", help="it meets § 503(c)(1)-(3)"
        )
        parser.add_argument("--filed", metavar="DATE", help="the day of filing, for lateness")
        parser.add_argument("--tax-year", metavar="YEAR", help="default: the one before --filed")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            sheet = computed(options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(summary(sheet)))
            return
        show(sheet, Console(file=cast(IO[str], self.stdout)))


def computed(options: dict[str, Any]) -> Worksheet:
    """The worksheet that the options ask for."""
    issued, assets, filed = options["issued"], options["gross_assets"], options["filed"]
    year = options["tax_year"]
    stock = Stock(
        classes=tuple(_shares(text) for text in options["authorized"]),
        issued=None if issued is None else _count("--issued", issued),
        gross_assets=None if assets is None else _dollars("--gross-assets", assets),
        is_nonstock=options["nonstock"],
        is_exempt=options["exempt"],
        is_large_corporate_filer=options["large_corporate_filer"],
    )
    return worksheet(
        stock,
        filed_on=parse_day(filed) if filed else None,
        tax_year=None if year is None else _count("--tax-year", year),
    )


def show(sheet: Worksheet, console: Console) -> None:
    """Both methods and what is to be paid, line by line."""
    for method in (sheet.by_shares, sheet.by_capital):
        console.print(_table(method.title, method.steps))
        if method.reason:
            console.print(method.reason, markup=False)
    console.print(_table("To be paid", sheet.steps))
    console.print(f"Total: {money(sheet.total)}", style="bold", markup=False)
    for line in (*sheet.warnings, CAVEAT):
        console.print(line, markup=False)


def _table(title: str, steps: tuple[Step, ...]) -> Table:
    table = Table("step", "result", "law", title=title, title_justify="left")
    for step in steps:
        table.add_row(step.words, step.result, step.cite)
    return table


def _shares(text: str) -> Shares:
    number, colon, par = text.partition(":")
    return Shares(_count("--authorized", number), _dollars("PAR", par) if colon else None)


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,30}", text, re.ASCII):
        raise Malformed(f"{option}: “{text}” is not a whole number. Write digits alone: 10000000.")
    return int(text)


def _dollars(option: str, text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Malformed(
            f"{option}: “{text}” is not a number. Write dollars without signs: 0.0001."
        ) from None
