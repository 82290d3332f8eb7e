"""Delaware's franchise tax by both methods, step by step, and the lesser of the two. Pure.

8 Del. C. §§ 501 to 504. Read literally, § 503(a)(2) charges only for what exceeds the first
million; the Division of Corporations charges for the first million too, in its own published
example, and its steps are the ones taken here. Part years (§ 503(d), (e)) and half rates
(§ 503(f)) are left to a person: the statute does not say how days are counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_HALF_UP, Context, Decimal
from functools import reduce

from compliance.errors import Malformed
from compliance.franchise_tax_payment import LATE_CITE, READING, Late, lateness
from compliance.wording import counted, day, money

LEAST_BY_SHARES, LEAST_BY_CAPITAL = Decimal(175), Decimal(400)
MOST = Decimal(200_000)
LARGE_FILER_TAX = Decimal(250_000)
REPORT_FEE, EXEMPT_REPORT_FEE = Decimal(50), Decimal(25)
MUCH_MORE = Decimal(1_000)  # from here on, the dearer method is worth a warning
MILLION = Decimal(1_000_000)
MOST_SHARES = 2**63 - 1
MOST_DOLLARS = Decimal(10) ** 16
PAR_DECIMALS = 12

BY_SHARES, BY_CAPITAL = "Authorized Shares Method", "Assumed Par Value Capital Method"
SHARES_CITE = "8 Del. C. § 503(a)(1)"
CAPITAL_CITE = "8 Del. C. § 503(a)(2), by the Division's published steps"
BOUNDS_CITE = "8 Del. C. § 503(c)"
FEE_CITE = "8 Del. C. §§ 391, 502 (amount from secondary sources)"
CAVEAT = (
    "For a full year. Part years (8 Del. C. § 503(d)), changes of the shares within the year "
    "(§ 503(e)) and the half rate (§ 503(f)) are not computed; ask the Division."
)
# Wide enough that no product or quotient of the amounts allowed here is rounded unseen.
EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class Shares:
    """One class of stock as the charter authorizes it; without a par, it is no-par stock."""

    authorized: int
    par: Decimal | None = None

    def __post_init__(self) -> None:
        if not 0 < self.authorized <= MOST_SHARES:
            raise Malformed(
                f"A class of {self.authorized} shares cannot be taxed. Write how many the "
                "charter authorizes, at least 1."
            )
        if self.par is not None and not _is_par(self.par):
            raise Malformed(
                f"{self.par} is no par value. Write the dollars of one share, such as 0.0001; "
                "leave it out for stock without par value."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What the tax is computed from. Issued shares and gross assets may be unknown."""

    classes: tuple[Shares, ...] = ()
    issued: int | None = None
    gross_assets: Decimal | None = None  # Form 1120 Schedule L, of the fiscal year in § 503(i)
    is_nonstock: bool = False
    is_exempt: bool = False
    is_large_corporate_filer: bool = False

    def __post_init__(self) -> None:
        if not (self.classes or self.is_nonstock or self.is_exempt):
            raise Malformed("No shares are given. Say how many the charter authorizes.")
        if self.classes and self.is_nonstock:
            raise Malformed("A nonstock corporation has no shares. Leave out one of the two.")
        if self.issued is not None and not 0 <= self.issued <= self.authorized:
            raise Malformed(
                f"{self.issued:,} shares cannot be issued where {self.authorized:,} are "
                "authorized. Correct one of the two."
            )
        if self.gross_assets is not None and not _is_amount(self.gross_assets):
            raise Malformed(
                f"{self.gross_assets} cannot be the total gross assets. Write dollars, 0 or more."
            )

    @property
    def authorized(self) -> int:
        """All shares of all classes."""
        return sum(shares.authorized for shares in self.classes)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a computation: what was done, what came out, by which law."""

    words: str
    result: str
    cite: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method's tax, or the reason why it gives none."""

    title: str
    tax: Decimal | None
    steps: tuple[Step, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worksheet:
    """Both methods side by side, and what is to be paid."""

    by_shares: Method
    by_capital: Method
    tax: Decimal
    report_fee: Decimal
    steps: tuple[Step, ...]  # from the methods to the total
    warnings: tuple[str, ...]
    late: Late | None

    @property
    def total(self) -> Decimal:
        """Tax, report fee and what lateness adds."""
        return self.tax + self.report_fee + (self.late.amount if self.late else 0)


def worksheet(
    stock: Stock, *, filed_on: date | None = None, tax_year: int | None = None
) -> Worksheet:
    """The franchise tax of a full year, with every step that leads to it."""
    by_shares, by_capital = authorized_shares_method(stock), assumed_par_value_method(stock)
    tax, steps = _payable(stock, by_shares, by_capital)
    fee = EXEMPT_REPORT_FEE if stock.is_exempt else REPORT_FEE
    late = lateness(tax, filed_on, tax_year) if filed_on else None
    return Worksheet(
        by_shares=by_shares,
        by_capital=by_capital,
        tax=tax,
        report_fee=fee,
        steps=(*steps, Step("Annual report fee", money(fee), FEE_CITE), *_late_steps(late)),
        warnings=tuple(_warnings(stock, by_shares, by_capital)),
        late=late,
    )


def meets_large_filer_tests(*, is_listed: bool, revenues: Decimal, assets: Decimal) -> bool:
    """§ 503(c): listed nationally; one of consolidated revenues and assets from $750M, both $250M.

    The fourth test, a tax that would be $200,000, is the worksheet's.
    """
    low, high = sorted((revenues, assets))
    return is_listed and high >= 750 * MILLION and low >= 250 * MILLION


# --- The two methods --------------------------------------------------------------------------


def authorized_shares_method(stock: Stock) -> Method:
    """$175 to 5,000 shares or for no stock, $250 to 10,000, $85 per further 10,000 or part."""
    shares = stock.authorized
    base = Decimal(175 if shares <= 5_000 else 250)
    further = max(0, -(-(shares - 10_000) // 10_000))
    owed = base + 85 * further
    reach = "at most 5,000" if shares <= 5_000 else "more than 5,000: for the first 10,000"
    words = f"{shares:,} authorized shares, {reach}" if shares else "A corporation without stock"
    steps = [Step(words, money(base), SHARES_CITE)]
    if further:
        words = f"{further:,} at $85, for each further 10,000 shares or part"
        steps.append(Step(words, money(owed - base), SHARES_CITE))
    steps.append(_bounded(owed, LEAST_BY_SHARES))
    return Method(BY_SHARES, min(owed, MOST), tuple(steps))


def assumed_par_value_method(stock: Stock) -> Method:
    """$400 for each million of assumed par value capital or part, as the Division computes it."""
    if reason := _why_not(stock):
        return Method(BY_CAPITAL, None, reason=reason)
    assets, issued = stock.gross_assets or Decimal(0), stock.issued or 0
    # Half-up: the Division's example has 2.061856, where a cut would give 2.061855.
    assumed = EXACT.divide(assets, Decimal(issued)).quantize(
        Decimal("0.000001"), ROUND_HALF_UP, context=EXACT
    )
    values = [_value(shares, assumed) for shares in stock.classes]
    capital = reduce(EXACT.add, (value for value, _ in values))
    millions = max(1, int(EXACT.divide(capital, MILLION).to_integral_value(ROUND_CEILING)))
    owed = Decimal(400 * millions)
    rounded = f", rounded up to {counted(millions, 'million')}" if capital > MILLION else ""
    steps = (
        Step(
            f"Assumed par: {money(assets)} gross assets ÷ {issued:,} issued shares, to 6 decimals",
            f"${assumed:,f}",
            f"{CAPITAL_CITE}; gross assets § 503(i)",
        ),
        *(step for _, step in values),
        Step(f"Assumed par value capital{rounded}", money(capital), CAPITAL_CITE),
        Step(f"{millions:,} at $400, for each million or part", money(owed), CAPITAL_CITE),
        _bounded(owed, LEAST_BY_CAPITAL),
    )
    return Method(BY_CAPITAL, min(owed, MOST), steps)


def _why_not(stock: Stock) -> str:
    """Why the second method gives no tax, or an empty string."""
    if not stock.classes:
        return "There is no stock, so there is no par value to assume."
    if any(shares.par is None for shares in stock.classes):
        return (
            "A class has no par value, and for such stock the Division names the Authorized "
            "Shares Method as always the lesser (8 Del. C. § 503(a)(2))."
        )
    known = {"issued shares": stock.issued, "total gross assets": stock.gross_assets}
    missing = [name for name, value in known.items() if value is None]
    if missing:
        return (
            f"The {' and the '.join(missing)} are not given, and without them the tax is that by "
            "authorized shares (8 Del. C. § 503(b))."
        )
    return "" if stock.issued else "No shares are issued, so no par value can be assumed."


def _value(shares: Shares, assumed: Decimal) -> tuple[Decimal, Step]:
    """A class at the higher of its two pars."""
    stated = (shares.par or Decimal(0)).normalize(EXACT)  # a database pads it with zeros
    value = EXACT.multiply(Decimal(shares.authorized), max(assumed, stated))
    higher, lower = ("stated", "assumed") if stated > assumed else ("assumed", "stated")
    words = (
        f"{shares.authorized:,} shares at the {higher} par ${max(assumed, stated):,f} "
        f"(the {lower} is ${min(assumed, stated):,f})"
    )
    return value, Step(words, money(value), CAPITAL_CITE)


def _bounded(owed: Decimal, least: Decimal) -> Step:
    words = f"At least {money(least)}, at most {money(MOST)}"
    return Step(words, money(min(owed, MOST)), BOUNDS_CITE)


# --- What is to be paid -----------------------------------------------------------------------


def _payable(stock: Stock, by_shares: Method, by_capital: Method) -> tuple[Decimal, list[Step]]:
    if stock.is_exempt:
        words = "An exempt corporation owes no tax; it still reports"
        return Decimal(0), [Step(words, money(Decimal(0)), "8 Del. C. § 501(b)")]
    lesser = min(method.tax for method in (by_shares, by_capital) if method.tax is not None)
    only = " (the other gives none)" if by_capital.tax is None else ""
    steps = [Step(f"The lesser of the two methods{only}", money(lesser), "8 Del. C. § 503(a)")]
    if not stock.is_large_corporate_filer:
        return lesser, steps
    cite = "8 Del. C. § 503(c)(1)-(4)"
    if lesser < MOST:
        words = f"A large corporate filer, but the tax is below {money(MOST)}: unchanged"
        return lesser, [*steps, Step(words, money(lesser), cite)]
    words = f"A large corporate filer whose tax would be {money(MOST)}"
    return LARGE_FILER_TAX, [*steps, Step(words, money(LARGE_FILER_TAX), cite)]


def _warnings(stock: Stock, by_shares: Method, by_capital: Method) -> Iterator[str]:
    """The trap: unasked, the Division charges by authorized shares."""
    dear, cheap = by_shares.tax or Decimal(0), by_capital.tax
    if stock.is_exempt or dear - (LEAST_BY_CAPITAL if cheap is None else cheap) < MUCH_MORE:
        return
    if cheap is not None:
        yield (
            f"Use the lower: {money(cheap)} instead of {money(dear)}. The Division's notice asks "
            "for the tax by authorized shares; report issued shares and gross assets to pay by "
            "assumed par value capital."
        )
    elif all(shares.par is not None for shares in stock.classes):
        yield (
            f"{money(dear)} is the tax by authorized shares alone. By assumed par value capital "
            f"it may be as little as {money(LEAST_BY_CAPITAL)}: enter the issued shares and the "
            "total gross assets before paying."
        )


def _late_steps(late: Late | None) -> Iterator[Step]:
    if late is None or not late.months:
        return
    yield Step(f"Filed after {day(late.due_on)}: penalty", money(late.penalty), LATE_CITE)
    months = counted(late.months, "month or part", "months or parts")
    yield Step(f"Interest, {months} at 1.5%. {READING}", money(late.interest), LATE_CITE)
    words = "The same interest on the tax alone, should the Division read it so"
    yield Step(words, f"({money(late.interest_on_tax_alone)})", LATE_CITE)


def _is_par(par: Decimal) -> bool:
    exponent = par.as_tuple().exponent
    return _is_amount(par) and par > 0 and isinstance(exponent, int) and exponent >= -PAR_DECIMALS


def _is_amount(amount: Decimal) -> bool:
    return amount.is_finite() and 0 <= amount < MOST_DOLLARS
