"""When Delaware's franchise tax is paid: in instalments, and what being late adds. Pure.

8 Del. C. §§ 502(c), 504. The tax of a year is due with the report on March 1 of the next.
"""

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from compliance.due import FIRST_YEAR, LAST_YEAR
from compliance.errors import Malformed
from compliance.penalties import months_begun

LATE_PENALTY = Decimal(200)
MONTHLY_INTEREST = Decimal("0.015")
INSTALMENTS_FROM = Decimal(5_000)
# Of the tax of the year before, by month and percentage; the rest comes with the report.
AHEAD = ((6, 40), (9, 20), (12, 20))
CENT = Decimal("0.01")

LATE_CITE = "8 Del. C. §§ 502(c), 504(c)"
INSTALMENT_CITE = "8 Del. C. § 504(a), (e)"
READING = (
    "Interest runs on tax and penalty, because § 502(c) has the penalty “treated as tax”: our "
    "reading, not confirmed by the Division."
)


@dataclass(frozen=True, slots=True)
class Late:
    """What filing after March 1 adds, by our reading and by the one that costs less."""

    due_on: date
    filed_on: date
    months: int  # begun ones: a part is a whole one
    penalty: Decimal
    interest: Decimal
    interest_on_tax_alone: Decimal

    @property
    def amount(self) -> Decimal:
        """Penalty and interest."""
        return self.penalty + self.interest


@dataclass(frozen=True, slots=True)
class Instalment:
    """A part of a year's tax, and when it is due."""

    due_on: date
    amount: Decimal
    words: str


def lateness(tax: Decimal, filed_on: date, tax_year: int | None = None) -> Late:
    """What is added on that day; without a year, the tax is that of the year before."""
    due_on = due_date(filed_on.year - 1 if tax_year is None else tax_year)
    months = months_begun(due_on, filed_on)
    penalty = LATE_PENALTY if months else Decimal(0)
    return Late(
        due_on=due_on,
        filed_on=filed_on,
        months=months,
        penalty=penalty,
        interest=_interest(tax + penalty, months),
        interest_on_tax_alone=_interest(tax, months),
    )


def due_date(tax_year: int) -> date:
    """March 1 of the next year; it does not move off a weekend."""
    if not FIRST_YEAR <= tax_year < LAST_YEAR:
        raise Malformed(f"{tax_year} is no tax year. Write one with four digits, such as 2026.")
    return date(tax_year + 1, 3, 1)


def owes_instalments(estimate: Decimal) -> bool:
    """Whether a year's estimated tax is paid in parts: from $5,000 on, that sum included."""
    return estimate >= INSTALMENTS_FROM


def instalments(
    tax_year: int, *, prior_tax: Decimal, tax: Decimal | None = None
) -> tuple[Instalment, ...]:
    """The parts of a year's tax, by the tax of the year before; none where it is paid at once.

    Without this year's tax it is taken to be the same again. Paid too much, nothing is left.
    """
    estimate = prior_tax if tax is None else tax
    if not owes_instalments(estimate):
        return ()
    ahead = [
        Instalment(
            date(tax_year, month, 1),
            _cents(prior_tax * percent / 100),
            f"{percent}% of the {tax_year - 1} tax",
        )
        for month, percent in AHEAD
    ]
    rest = max(Decimal(0), estimate - sum(part.amount for part in ahead))
    return (*ahead, Instalment(due_date(tax_year), rest, "the balance, with the report"))


def _interest(amount: Decimal, months: int) -> Decimal:
    return _cents(amount * MONTHLY_INTEREST * months)


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_UP)
