"""Computes what Texas, California, Florida or Nevada charge where it depends on facts."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from compliance import state_amounts
from compliance.calendars import parse_day
from compliance.errors import DomainError, Malformed
from compliance.rules import KINDS
from compliance.state_amounts import Amount
from compliance.wording import money

Options = dict[str, Any]


class Command(BaseCommand):
    help = "Compute what Texas, California, Florida or Nevada charge, each with its law."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("jurisdiction", metavar="JURISDICTION", help=", ".join(STATES))
        parser.add_argument("--entity-type", required=True, choices=KINDS)
        parser.add_argument("--foreign", action="store_true", help="formed in another state")
        parser.add_argument("--revenue", metavar="USD", help="Texas: annualized total revenue")
        parser.add_argument("--income", metavar="USD", help="California: an LLC's income there")
        parser.add_argument("--stock-value", metavar="USD", help="Nevada: of authorized stock")
        parser.add_argument("--filed", metavar="DATE", help="default: today")
        parser.add_argument("--late", action="store_true", help="Nevada: after the due date")
        parser.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            amounts = list(amounts_of(options))
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            told = [{**asdict(one), "amount": str(one.amount)} for one in amounts]
            self.stdout.write(json.dumps(told))
            return
        for one in amounts:
            unsure = "" if one.confidence == "high" else ", needs review"
            self.stdout.write(f"{one.words}: {money(one.amount)} ({one.cite}{unsure})")


def amounts_of(options: Options) -> Iterable[Amount]:
    """What the state asks of such an entity, amount by amount."""
    code = options["jurisdiction"].upper()
    if code not in STATES:
        raise Malformed(f"Nothing is computed for “{code}”. Write one of {', '.join(STATES)}.")
    return STATES[code](options)


def _texas(options: Options) -> Iterable[Amount]:
    year = _filed(options).year
    revenue = _dollars("--revenue", options["revenue"])
    report = state_amounts.texas_report(year, kind=options["entity_type"], revenue=revenue)
    # The tax itself goes by the margin, which we do not know; no amount is told for it.
    owes = "tax is due, by its margin" if report.owes_tax else "no tax is due"
    words = f"Files {', '.join(report.forms)}; {owes}. {report.threshold.words}"
    yield replace(report.threshold, words=words)


def _california(options: Options) -> Iterable[Amount]:
    kind = options["entity_type"]
    if kind != "lp":
        yield state_amounts.california_statement_fee(kind, is_foreign=options["foreign"])
    if kind != "nonprofit":
        yield state_amounts.california_minimum_tax(kind)
    if kind == "llc" and options["income"] is not None:
        yield state_amounts.california_llc_fee(_dollars("--income", options["income"]))


def _florida(options: Options) -> Iterable[Amount]:
    return state_amounts.florida_report(options["entity_type"], filed_on=_filed(options))


def _nevada(options: Options) -> Iterable[Amount]:
    value = options["stock_value"]
    return state_amounts.nevada_renewal(
        options["entity_type"],
        stock_value=None if value is None else _dollars("--stock-value", value),
        is_late=options["late"],
    )


STATES: dict[str, Callable[[Options], Iterable[Amount]]] = {
    "US-TX": _texas,
    "US-CA": _california,
    "US-FL": _florida,
    "US-NV": _nevada,
}


def _filed(options: Options) -> Any:
    return parse_day(options["filed"]) if options["filed"] else timezone.localdate()


def _dollars(option: str, text: str | None) -> Decimal:
    if text is None:
        raise Malformed(f"This depends on {option}. Add it, in dollars.")
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise Malformed(f"{option}: “{text}” is no amount. Write dollars without signs: 250000.")
    return amount
