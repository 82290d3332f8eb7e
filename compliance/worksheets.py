"""The franchise tax worksheet of an entity, as a page and as JSON tell it."""

from decimal import Decimal
from typing import Any

from compliance.errors import NotAllowed
from compliance.franchise_tax import CAVEAT, Method, Shares, Step, Stock, Worksheet, worksheet
from compliance.franchise_tax_payment import INSTALMENT_CITE, READING, Late, instalments
from compliance.models import Entity
from compliance.wording import day, money

HOME = "US-DE"


def owes_franchise_tax(entity: Entity) -> bool:
    """Whether its tax is computed from its shares: a corporation at home in Delaware."""
    return entity.kind == Entity.Kind.CORPORATION and entity.home_jurisdiction == HOME


def worksheet_of(entity: Entity) -> Worksheet:
    """The worksheet from what is on file for an entity."""
    if not owes_franchise_tax(entity):
        raise NotAllowed(
            f"{entity} is not a Delaware corporation, and only those owe franchise tax by their "
            "shares. Its deadlines show what it owes."
        )
    return worksheet(stock_of(entity))


def stock_of(entity: Entity) -> Stock:
    """An entity's shares and assets; issued shares of 0 are ones that nobody has entered."""
    classes = list(entity.share_classes.all())
    if not classes:
        raise NotAllowed(
            f"{entity} has no share classes on file. Enter what its charter authorizes."
        )
    return Stock(
        classes=tuple(Shares(row.authorized, row.par_value) for row in classes),
        issued=sum(row.issued for row in classes) or None,
        gross_assets=entity.gross_assets,
    )


def shown(sheet: Worksheet, *, year: int) -> dict[str, Any]:
    """A worksheet for a page, with the instalments of the year after the one it is for."""
    return {
        "methods": [sheet.by_shares, sheet.by_capital],
        "steps": sheet.steps,
        "warnings": sheet.warnings,
        "total": money(sheet.total),
        "caveat": CAVEAT,
        "year": year,
        "instalments": [
            Step(f"{day(part.due_on)}: {part.words}", money(part.amount), INSTALMENT_CITE)
            for part in instalments(year, prior_tax=sheet.tax)
        ],
    }


# --- As JSON ----------------------------------------------------------------------------------


def summary(sheet: Worksheet) -> dict[str, Any]:
    """The amounts alone."""
    told: dict[str, Any] = {
        "authorized_shares_method": number(sheet.by_shares.tax),
        "assumed_par_value_method": number(sheet.by_capital.tax),
        "assumed_par_value_reason": sheet.by_capital.reason,
        "tax": number(sheet.tax),
        "report_fee": number(sheet.report_fee),
        "total": number(sheet.total),
    }
    return told | ({"late": _late(sheet.late)} if sheet.late else {})


def account(sheet: Worksheet) -> dict[str, Any]:
    """The amounts and every step to them."""
    return {
        **summary(sheet),
        "late": _late(sheet.late) if sheet.late else None,
        "warnings": list(sheet.warnings),
        "caveat": CAVEAT,
        "methods": [_method(sheet.by_shares), _method(sheet.by_capital)],
        "steps": _steps(sheet.steps),
    }


def number(amount: Decimal | None) -> int | float | None:
    """An amount as a JSON number: whole dollars without a point."""
    if amount is None:
        return None
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _late(late: Late) -> dict[str, Any]:
    return {
        "due_on": late.due_on.isoformat(),
        "filed_on": late.filed_on.isoformat(),
        "months": late.months,
        "penalty": number(late.penalty),
        "interest": number(late.interest),
        "interest_on_tax_alone": number(late.interest_on_tax_alone),
        "reading": READING,
    }


def _method(method: Method) -> dict[str, Any]:
    return {
        "title": method.title,
        "tax": number(method.tax),
        "reason": method.reason,
        "steps": _steps(method.steps),
    }


def _steps(steps: tuple[Step, ...]) -> list[dict[str, str]]:
    return [{"words": step.words, "result": step.result, "cite": step.cite} for step in steps]
