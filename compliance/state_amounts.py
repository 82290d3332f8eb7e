"""What Texas, California, Florida and Nevada charge where it depends on facts. Pure.

Each amount says which law it comes from and how sure we are of it: high was read in the law or on
an official page, medium or low is general knowledge until somebody reads it again. Delaware's
franchise tax has a module of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Literal

from compliance.errors import Malformed, NotAllowed, NotFound
from compliance.franchise_tax import Shares

Confidence = Literal["high", "medium", "low"]
FRIDAY = 4


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount, what it is for, by which law, and how sure we are."""

    words: str
    amount: Decimal
    cite: str
    confidence: Confidence


def total(amounts: Iterable[Amount]) -> Decimal:
    """What they come to together."""
    return sum((amount.amount for amount in amounts), Decimal(0))


# --- Texas ------------------------------------------------------------------------------------

# No tax is due at or below it, by the first of the two report years that it holds for.
TEXAS_THRESHOLDS: dict[int, tuple[Decimal, Confidence]] = {
    2026: (Decimal(2_650_000), "high"),
    2024: (Decimal(2_470_000), "high"),
    2022: (Decimal(1_230_000), "medium"),
    2020: (Decimal(1_180_000), "medium"),
}
PUBLIC_INFORMATION = "Public Information Report (05-102)"
OWNERSHIP_INFORMATION = "Ownership Information Report (05-167)"
NO_TAX_DUE = "No Tax Due Report (05-163)"
TAX_REPORT = "Franchise Tax Report (05-158, or 05-169 for EZ)"


@dataclass(frozen=True, slots=True)
class TexasReport:
    """What an entity files with the Comptroller for one report year."""

    threshold: Amount
    owes_tax: bool
    forms: tuple[str, ...]


def texas_threshold(report_year: int) -> Amount:
    """The no-tax-due threshold for reports due in that year."""
    first = report_year - report_year % 2
    if first not in TEXAS_THRESHOLDS:
        raise NotFound(
            f"We know no Texas threshold for {report_year}, only for {min(TEXAS_THRESHOLDS)} to "
            f"{max(TEXAS_THRESHOLDS) + 1}. Look it up at the Comptroller."
        )
    amount, confidence = TEXAS_THRESHOLDS[first]
    words = f"No-tax-due threshold for reports of {first} and {first + 1}"
    return Amount(words, amount, "Tex. Tax Code §§ 171.002(d), 171.006", confidence)


def texas_report(report_year: int, *, kind: str, revenue: Decimal) -> TexasReport:
    """Which reports are due for an annualized total revenue; one of exactly the threshold is free.

    Any kind but a corporation, LLC or limited partnership, such as a trust, tells of its owners.
    """
    if kind == "nonprofit":
        raise NotAllowed(
            "An exempt nonprofit owes Texas no franchise tax report; the Secretary of State asks "
            "for Form 802. For one that is not exempt, ask for a corporation."
        )
    threshold = texas_threshold(report_year)
    owes_tax = revenue > threshold.amount
    is_public = kind in ("corporation", "llc", "lp")
    about = PUBLIC_INFORMATION if is_public else OWNERSHIP_INFORMATION
    if owes_tax:
        return TexasReport(threshold, owes_tax, (TAX_REPORT, about))
    # From 2024 reports on, the report that said “no tax due” is no longer filed.
    return TexasReport(
        threshold, owes_tax, (about,) if report_year >= 2024 else (NO_TAX_DUE, about)
    )


def texas_late(*, days_late: int, tax: Decimal) -> tuple[Amount, ...]:
    """What a late report costs: $50 even where no tax is due, and a part of the tax."""
    if days_late <= 0:
        return ()
    flat = Amount("Late report", Decimal(50), "Tex. Tax Code § 171.362", "high")
    if not tax:
        return (flat,)
    percent = 5 if days_late <= 30 else 10
    share = _cents(tax * percent / 100)
    cite = "Tex. Tax Code § 171.362"
    return (flat, Amount(f"{percent}% of the tax, without interest", share, cite, "medium"))


# --- California -------------------------------------------------------------------------------

CALIFORNIA_STATEMENTS = {
    "domestic-corporation": Amount(
        "Statement of Information", Decimal(25), "Cal. Corp. Code § 1502", "high"
    ),
    "foreign-corporation": Amount(
        "Statement of Information", Decimal(25), "Cal. Corp. Code § 2117", "high"
    ),
    "llc": Amount("Statement of Information", Decimal(20), "Cal. Corp. Code § 17702.09", "high"),
    "domestic-nonprofit": Amount(
        "Statement of Information", Decimal(20), "Cal. Corp. Code §§ 6210, 8210, 9660", "medium"
    ),
    "foreign-nonprofit": Amount(
        "Statement of Information", Decimal(25), "Cal. Corp. Code § 2117", "low"
    ),
}
CALIFORNIA_PENALTIES = {
    "corporation": Amount(
        "Penalty", Decimal(250), "Cal. Corp. Code § 2204; Rev. & Tax. Code § 19141", "medium"
    ),
    "llc": Amount("Penalty", Decimal(250), "Cal. Corp. Code § 17713.07", "high"),
    "nonprofit": Amount("Penalty", Decimal(50), "Cal. Rev. & Tax. Code § 19141", "medium"),
}
CALIFORNIA_MINIMUM_TAXES = {
    "corporation": Amount(
        "Minimum franchise tax", Decimal(800), "Cal. Rev. & Tax. Code § 23153", "medium"
    ),
    "llc": Amount("Annual LLC tax", Decimal(800), "Cal. Rev. & Tax. Code § 17941", "high"),
    "lp": Amount("Annual LP tax", Decimal(800), "Cal. Rev. & Tax. Code § 17935", "low"),
}
# Fee by total California income from that sum on, the highest first.
CALIFORNIA_LLC_FEES = ((5_000_000, 11_790), (1_000_000, 6_000), (500_000, 2_500), (250_000, 900))
CURE = timedelta(days=60)


def california_statement_fee(kind: str, *, is_foreign: bool = False) -> Amount:
    """The fee of a Statement of Information; limited partnerships file none."""
    target = f"{'foreign' if is_foreign else 'domestic'}-{kind}"
    return _known("California Statement of Information", CALIFORNIA_STATEMENTS, target, kind)


def california_penalty(
    kind: str, *, noticed_on: date | None, filed_on: date
) -> tuple[Amount, ...]:
    """The penalty, only where 60 days after the Secretary of State's notice nothing was filed."""
    if noticed_on is None or filed_on <= noticed_on + CURE:
        return ()
    return (_known("California penalty", CALIFORNIA_PENALTIES, kind),)


def california_minimum_tax(kind: str) -> Amount:
    """What the Franchise Tax Board asks at the least for a year."""
    return _known("California minimum tax", CALIFORNIA_MINIMUM_TAXES, kind)


def california_llc_fee(income: Decimal) -> Amount:
    """The fee on an LLC's total income from California, besides its annual tax."""
    fee = next((fee for start, fee in CALIFORNIA_LLC_FEES if income >= start), 0)
    return Amount("LLC fee", Decimal(fee), "Cal. Rev. & Tax. Code § 17942", "high")


# --- Florida ----------------------------------------------------------------------------------

FLORIDA_REPORTS = {
    "corporation": Amount(
        "Annual report", Decimal(150), "Fla. Stat. §§ 607.0122, 607.193, 607.1622", "high"
    ),
    "llc": Amount(
        "Annual report", Decimal("138.75"), "Fla. Stat. §§ 605.0212, 605.0213, 607.193", "high"
    ),
    "nonprofit": Amount(
        "Annual report", Decimal("61.25"), "Fla. Stat. §§ 617.0122, 617.1622", "high"
    ),
    "lp": Amount("Annual report", Decimal(500), "Fla. Stat. §§ 607.193, 620.1210", "medium"),
}


def florida_report(kind: str, *, filed_on: date) -> tuple[Amount, ...]:
    """The fee of the year's report, and after May 1 the late charge, which spares nonprofits."""
    fee = _known("Florida annual report", FLORIDA_REPORTS, kind)
    if kind == "nonprofit" or filed_on <= date(filed_on.year, 5, 1):
        return (fee,)
    return (fee, Amount("Filed after May 1", Decimal(400), "Fla. Stat. § 607.193", "high"))


def florida_dissolution(year: int) -> tuple[date, date]:
    """The last day to file (by 5:00 pm Eastern) and the day of dissolution, § 605.0714(1), (2)."""
    first = date(year, 9, 1)
    friday = first + timedelta(days=(FRIDAY - first.weekday()) % 7)
    return friday + timedelta(weeks=2), friday + timedelta(weeks=3)


# --- Nevada -----------------------------------------------------------------------------------

NEVADA_LISTS = {
    "llc": Amount("Annual list", Decimal(150), "NRS 86.263 (foreign: 86.5461)", "high"),
    "lp": Amount("Annual list", Decimal(150), "NRS 87A.290", "high"),
    "nonprofit": Amount("Annual list", Decimal(50), "NRS 82.523", "medium"),
}
# Fee by the value of the authorized stock, up to and including that sum.
NEVADA_STOCK_FEES = ((75_000, 150), (200_000, 175), (500_000, 275), (1_000_000, 375))
NEVADA_MOST = 11_125


def nevada_renewal(
    kind: str, *, stock_value: Decimal | None = None, is_late: bool = False
) -> tuple[Amount, ...]:
    """The year's list and state business licence; nonprofits claim exemption from the licence."""
    due = [_nevada_list(kind, stock_value)]
    if kind != "nonprofit":
        licence = Decimal(500 if kind == "corporation" else 200)
        due.append(Amount("State business licence", licence, "NRS 76.100, 76.130", "high"))
    if not is_late:
        return tuple(due)
    if kind == "nonprofit":
        return (*due, Amount("Late list", Decimal(50), "NRS 82.523", "medium"))
    return (
        *due,
        Amount("Late list", Decimal(75), "NRS 78.170, 86.272, 87A.300", "high"),
        Amount("Late licence", Decimal(100), "NRS 76.130", "high"),
    )


def nevada_stock_value(classes: Iterable[Shares]) -> Decimal:
    """What authorized stock counts for: its par, or $1 a share without one, NRS 78.760(3)."""
    return sum(
        (shares.authorized * (Decimal(1) if shares.par is None else shares.par))
        for shares in classes
    ) or Decimal(0)


def _nevada_list(kind: str, stock_value: Decimal | None) -> Amount:
    if kind != "corporation":
        return _known("Nevada annual list", NEVADA_LISTS, kind)
    if stock_value is None or stock_value < 0:
        raise Malformed(
            "Nevada's list fee of a corporation goes by the value of its authorized stock. "
            "Say how many dollars that is."
        )
    cite = "NRS 78.150 (foreign: 80.110)"
    for most, fee in NEVADA_STOCK_FEES:
        if stock_value <= most:
            sure: Confidence = "high" if most == NEVADA_STOCK_FEES[0][0] else "medium"
            return Amount("Annual list", Decimal(fee), cite, sure)
    further = ((stock_value - 1_000_000) / 500_000).to_integral_value(ROUND_CEILING)
    fee = min(375 + 275 * int(further), NEVADA_MOST)
    return Amount("Annual list", Decimal(fee), cite, "medium")


def _known(what: str, table: dict[str, Amount], *names: str) -> Amount:
    for name in names:
        if name in table:
            return table[name]
    raise NotFound(f"We know no {what} of a {names[0]}. Known are: {', '.join(table)}.")


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
