"""Delaware's franchise tax: the Division's examples, ours, and what must hold for any stock."""

import json
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from compliance.errors import Malformed
from compliance.franchise_tax import (
    EXEMPT_REPORT_FEE,
    REPORT_FEE,
    Shares,
    Stock,
    assumed_par_value_method,
    authorized_shares_method,
    meets_large_filer_tests,
    worksheet,
)
from compliance.franchise_tax_payment import instalments, lateness
from compliance.penalties import months_begun
from compliance.rules import pack_of

BY_SHARES = [
    (1, 175), (1_500, 175), (5_000, 175), (5_001, 250), (10_000, 250), (10_001, 335),
    (10_005, 335), (20_000, 335), (20_001, 420), (100_000, 1_015), (1_000_000, 8_665),
    (1_000_001, 8_750), (1_250_000, 10_790), (10_000_000, 85_165), (23_500_000, 199_915),
    (23_500_001, 200_000), (23_510_000, 200_000), (23_510_001, 200_000),
    (100_000_000, 200_000),
]  # fmt: skip
# Classes, issued shares, gross assets; assumed par, capital; tax by capital, by shares.
BY_CAPITAL: dict[str, tuple[list[tuple[int, str]], int, int, str, str, int, int]] = {
    "the Division's own": (
        [(1_000_000, "1"), (250_000, "5")], 485_000, 1_000_000, "$2.061856", "$3,311,856", 1_600,
        10_790,
    ),
    "a start-up": (
        [(10_000_000, "0.0001")], 6_000_000, 100_000, "$0.016667", "$166,670", 400, 85_165,
    ),
    "a funded start-up": (
        [(10_000_000, "0.00001")], 8_000_000, 2_500_000, "$0.312500", "$3,125,000", 1_600, 85_165,
    ),
    "stated par above the assumed": (
        [(1_000_000, "10")], 100_000, 500_000, "$5.000000", "$10,000,000", 4_000, 8_665,
    ),
    "a million to the dollar": (
        [(1_000_000, "0.01")], 1_000_000, 1_000_000, "$1.000000", "$1,000,000", 400, 8_665,
    ),
    "a dollar above a million": (
        [(1_000_001, "0.01")], 1_000_000, 1_000_000, "$1.000000", "$1,000,001", 800, 8_750,
    ),
    "three classes": (
        [(20_000_000, "0.0001"), (5_000_000, "0.0001"), (1_000, "100")], 12_000_000, 30_000_000,
        "$2.500000", "$62,600,000", 25_200, 200_000,
    ),
    "above the most there is": (
        [(1_000_000_000, "0.001")], 500_000_000, 400_000_000, "$0.800000", "$800,000,000",
        200_000, 200_000,
    ),
}  # fmt: skip
START_UP = Stock(
    classes=(Shares(10_000_000, Decimal("0.0001")),),
    issued=6_000_000,
    gross_assets=Decimal(100_000),
)
GIANT = Stock(
    classes=(Shares(1_000_000_000, Decimal("0.001")),),
    issued=500_000_000,
    gross_assets=Decimal(400_000_000),
)

COUNTS = st.integers(1, 2**63 - 1) | st.integers(1, 100_000_000)
PARS = st.decimals("0.000000000001", "1000000", places=12)
ASSETS = st.decimals("0", "999999999999999.99", places=2)
CLASSES = st.lists(st.builds(Shares, COUNTS, PARS), min_size=1, max_size=4).map(tuple)


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    """Par value stock of which something is issued."""
    classes = draw(CLASSES)
    most = sum(shares.authorized for shares in classes)
    return Stock(classes=classes, issued=draw(st.integers(1, most)), gross_assets=draw(ASSETS))


def changed(stock: Stock, **changes: Any) -> Stock:
    kept = {"classes": stock.classes, "issued": stock.issued, "gross_assets": stock.gross_assets}
    return Stock(**{**kept, **changes})


def tax_of(stock: Stock) -> Decimal:
    return worksheet(stock).tax


# --- The methods --------------------------------------------------------------------------------


@pytest.mark.parametrize(("shares", "tax"), BY_SHARES)
def test_authorized_shares_are_taxed_by_ten_thousands(shares: int, tax: int) -> None:
    assert authorized_shares_method(Stock(classes=(Shares(shares),))).tax == tax


def test_the_shares_of_all_classes_count_together() -> None:
    stock = Stock(classes=(Shares(5_000), Shares(5_005, Decimal(1))))

    assert authorized_shares_method(stock).tax == 335


@pytest.mark.parametrize("name", BY_CAPITAL)
def test_capital_is_taxed_as_the_division_does(name: str) -> None:
    classes, issued, assets, par, capital, tax, by_shares = BY_CAPITAL[name]
    sheet = worksheet(
        Stock(
            classes=tuple(Shares(count, Decimal(stated)) for count, stated in classes),
            issued=issued,
            gross_assets=Decimal(assets),
        )
    )

    results = [step.result for step in sheet.by_capital.steps]
    assert (results[0], results[-3]) == (par, capital)
    assert sheet.by_capital.tax == tax
    assert sheet.by_shares.tax == by_shares
    assert sheet.tax == min(tax, by_shares)
    assert sheet.total == sheet.tax + 50


@pytest.mark.parametrize(
    ("stock", "reason"),
    [
        (Stock(classes=(Shares(1_500, Decimal(1)), Shares(10))), "A class has no par value"),
        (Stock(classes=(Shares(10, Decimal(1)),), issued=5), "The total gross assets are not"),
        (
            Stock(classes=(Shares(10, Decimal(1)),), gross_assets=Decimal(5)),
            "The issued shares are not",
        ),
        (
            Stock(classes=(Shares(10, Decimal(1)),)),
            "The issued shares and the total gross assets are not",
        ),
        (
            Stock(classes=(Shares(10, Decimal(1)),), issued=0, gross_assets=Decimal(5)),
            "No shares are issued",
        ),
        (Stock(is_nonstock=True), "There is no stock"),
    ],
)
def test_where_capital_cannot_be_computed_the_other_method_stands(
    stock: Stock, reason: str
) -> None:
    sheet = worksheet(stock)

    assert sheet.by_capital.tax is None
    assert sheet.by_capital.reason.startswith(reason)
    assert sheet.tax == sheet.by_shares.tax == 175


def test_every_step_cites_the_law() -> None:
    sheet = worksheet(START_UP, filed_on=date(2027, 5, 10))

    steps = (*sheet.by_shares.steps, *sheet.by_capital.steps, *sheet.steps)
    assert len(steps) == 13
    assert all(step.cite.startswith("8 Del. C. §") and step.result for step in steps)


@given(stocks())
def test_the_lesser_of_the_two_is_owed_and_keeps_its_bounds(stock: Stock) -> None:
    sheet = worksheet(stock)

    by_shares, by_capital = sheet.by_shares.tax, sheet.by_capital.tax
    assert by_shares is not None
    assert by_capital is not None
    assert sheet.tax == min(by_shares, by_capital)
    assert 175 <= by_shares <= 200_000
    assert 400 <= by_capital <= 200_000


@given(stocks(), st.integers(1, 2**40), ASSETS)
def test_more_stock_or_more_assets_never_cost_less(
    stock: Stock, more: int, richer: Decimal
) -> None:
    assets = stock.gross_assets or Decimal(0)

    with_more = changed(stock, classes=(*stock.classes, Shares(more, Decimal("0.01"))))
    with_assets = changed(stock, gross_assets=max(assets, richer))
    assert tax_of(with_more) >= tax_of(stock)
    assert tax_of(with_assets) >= tax_of(stock)


@given(stocks())
def test_capital_is_computed_without_rounding_unseen(stock: Stock) -> None:
    """Against whole numbers: an assumed par of six decimals is a number of millionths."""
    assets = int((stock.gross_assets or Decimal(0)) * 100)
    issued = stock.issued or 0
    assumed = (assets * 10**4 * 2 + issued) // (2 * issued) * 10**6  # in 10**-12 dollars
    capital = sum(
        shares.authorized * max(assumed, int((shares.par or Decimal(0)).scaleb(12)))
        for shares in stock.classes
    )

    expected = min(max(1, -(-capital // 10**18)) * 400, 200_000)
    assert assumed_par_value_method(stock).tax == expected


# --- Who pays what ------------------------------------------------------------------------------


def test_an_exempt_corporation_reports_and_owes_no_tax() -> None:
    sheet = worksheet(Stock(is_exempt=True))

    assert sheet.tax == 0
    assert sheet.report_fee == sheet.total == 25
    assert sheet.steps[0].cite == "8 Del. C. § 501(b)"


def test_a_large_corporate_filer_pays_more_only_where_the_tax_would_be_the_most() -> None:
    assert tax_of(GIANT) == 200_000
    assert tax_of(changed(GIANT, is_large_corporate_filer=True)) == 250_000
    assert tax_of(changed(START_UP, is_large_corporate_filer=True)) == 400


@pytest.mark.parametrize(
    ("is_listed", "revenues", "assets", "met"),
    [
        (True, 750, 250, True),
        (True, 250, 750, True),
        (True, 749, 749, False),
        (True, 750, 249, False),
        (False, 900, 900, False),
    ],
)
def test_a_large_corporate_filer_meets_all_tests(
    is_listed: bool, revenues: int, assets: int, met: bool
) -> None:
    million = Decimal(1_000_000)

    found = meets_large_filer_tests(
        is_listed=is_listed, revenues=revenues * million, assets=assets * million
    )
    assert found is met


def test_the_dearer_method_is_warned_of() -> None:
    (warning,) = worksheet(START_UP).warnings
    (unknown,) = worksheet(changed(START_UP, issued=None)).warnings

    assert warning.startswith("Use the lower: $400 instead of $85,165.")
    assert "may be as little as $400: enter the issued shares" in unknown


@pytest.mark.parametrize(
    "stock",
    [
        Stock(classes=(Shares(10_000_000),)),  # without par there is no other method
        Stock(classes=(Shares(5_000, Decimal(1)),)),
        Stock(classes=START_UP.classes, is_exempt=True),
        GIANT,
    ],
)
def test_nothing_is_warned_of_where_there_is_no_trap(stock: Stock) -> None:
    assert worksheet(stock).warnings == ()


def test_the_pack_of_delaware_tells_the_same_report_fees() -> None:
    fees = {
        target: duty.fee_on(date(2027, 3, 1))
        for duty in pack_of("US-DE").duty
        for target in duty.targets
        if duty.form == "annual-report"
    }

    assert fees["domestic-corporation"] == REPORT_FEE
    assert fees["domestic-nonprofit"] == EXEMPT_REPORT_FEE


# --- When it is paid ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paid_on", "months"),
    [
        (date(2026, 12, 24), 0), (date(2027, 2, 28), 0), (date(2027, 3, 1), 0),
        (date(2027, 3, 2), 1), (date(2027, 4, 1), 1), (date(2027, 4, 2), 2),
        (date(2027, 5, 10), 3), (date(2028, 3, 1), 12), (date(2028, 3, 2), 13),
    ],
)  # fmt: skip
def test_a_month_begun_is_a_whole_one(paid_on: date, months: int) -> None:
    assert months_begun(date(2027, 3, 1), paid_on) == months


def test_lateness_adds_a_penalty_and_interest_on_both() -> None:
    sheet = worksheet(START_UP, filed_on=date(2027, 5, 10))

    assert sheet.late is not None
    assert sheet.late.penalty == 200
    assert sheet.late.interest == 27
    assert sheet.late.interest_on_tax_alone == 18
    assert sheet.total == 677


def test_on_the_last_day_nothing_is_added() -> None:
    sheet = worksheet(START_UP, filed_on=date(2027, 3, 1))

    assert sheet.total == 450
    assert len(sheet.steps) == 2


def test_the_tax_of_an_earlier_year_is_late_since_then() -> None:
    assert lateness(Decimal(400), date(2027, 1, 15), 2025).months == 11
    assert lateness(Decimal(400), date(2027, 1, 15)).months == 0


@pytest.mark.parametrize("year", [-1, 0, 10_000])
def test_a_year_that_is_none_is_refused(year: int) -> None:
    with pytest.raises(Malformed, match="is no tax year"):
        lateness(Decimal(400), date(2027, 1, 15), year)


def test_a_large_tax_is_paid_in_instalments() -> None:
    parts = instalments(2026, prior_tax=Decimal(85_165))

    assert [(part.due_on, int(part.amount)) for part in parts] == [
        (date(2026, 6, 1), 34_066),
        (date(2026, 9, 1), 17_033),
        (date(2026, 12, 1), 17_033),
        (date(2027, 3, 1), 17_033),
    ]


def test_instalments_begin_at_five_thousand_dollars() -> None:
    assert instalments(2026, prior_tax=Decimal("4999.99")) == ()
    assert len(instalments(2026, prior_tax=Decimal(5_000))) == 4
    assert instalments(2026, prior_tax=Decimal(85_165), tax=Decimal(400)) == ()


def test_the_balance_is_what_the_instalments_left() -> None:
    grew = instalments(2026, prior_tax=Decimal(5_000), tax=Decimal(10_000))
    shrank = instalments(2026, prior_tax=Decimal(100_000), tax=Decimal(5_000))

    assert [part.amount for part in grew] == [2_000, 1_000, 1_000, 6_000]
    assert shrank[-1].amount == 0


# --- The command --------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("franchise_tax", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_tells_the_amounts_as_json() -> None:
    told = run(
        "--authorized=10000000:0.0001", "--issued=6000000", "--gross-assets=100000", "--json"
    )

    assert json.loads(told) == {
        "authorized_shares_method": 85165,
        "assumed_par_value_method": 400,
        "assumed_par_value_reason": "",
        "tax": 400,
        "report_fee": 50,
        "total": 450,
    }


def test_the_command_says_why_a_method_gives_nothing() -> None:
    told = json.loads(run("--authorized=5000", "--authorized=5000:1", "--json"))

    assert told["assumed_par_value_method"] is None
    assert "no par value" in told["assumed_par_value_reason"]
    assert (told["authorized_shares_method"], told["total"]) == (250, 300)


def test_the_command_tells_lateness_and_its_reading() -> None:
    told = json.loads(run("--authorized=5001", "--filed=2027-03-02", "--json"))

    assert told["late"]["interest"] == 6.75
    assert told["late"]["interest_on_tax_alone"] == 3.75
    assert told["late"]["reading"].startswith("Interest runs on tax and penalty")
    assert told["total"] == 250 + 50 + 200 + 6.75


def test_the_command_takes_the_special_cases() -> None:
    giant = ["--authorized=1000000000:0.001", "--issued=500000000", "--gross-assets=400000000"]

    assert json.loads(run("--exempt", "--json"))["total"] == 25
    assert json.loads(run("--nonstock", "--json"))["tax"] == 175
    assert json.loads(run(*giant, "--large-corporate-filer", "--json"))["tax"] == 250000
    assert json.loads(
        run("--authorized=5000", "--filed=2027-01-15", "--tax-year=2025", "--json")
    )["late"]["months"] == 11  # fmt: skip


def test_the_command_shows_both_methods_and_the_warning() -> None:
    told = " ".join(
        run("--authorized=10000000:0.0001", "--issued=6000000", "--gross-assets=100000").split()
    )

    assert "Authorized Shares Method" in told
    assert "Assumed Par Value Capital Method" in told
    assert "Total: $450" in told
    assert "Use the lower: $400 instead of $85,165." in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "No shares are given"),
        (["--authorized", "0"], "A class of 0 shares"),
        (["--authorized", "-5"], "A class of -5 shares"),
        (["--authorized", "-5:0.01"], "A class of -5 shares"),
        (["--authorized", "many"], "“many” is not a whole number"),
        (["--authorized", "1,000"], "“1,000” is not a whole number"),
        (["--authorized", "9" * 25], "A class of 9"),
        (["--authorized", "5:one"], "“one” is not a number"),
        (["--authorized", "5:"], "“” is not a number"),
        (["--authorized", "5:-1"], "-1 is no par value"),
        (["--authorized", "5:0"], "0 is no par value"),
        (["--authorized", "5:nan"], "NaN is no par value"),
        (["--authorized", "5:inf"], "Infinity is no par value"),
        (["--authorized", "5:1e-40"], "1E-40 is no par value"),
        (["--authorized", "5:1", "--issued", "6"], "6 shares cannot be issued where 5"),
        (["--authorized", "5:1", "--issued", "-1"], "-1 shares cannot be issued"),
        (["--authorized", "5:1", "--gross-assets", "-1"], "-1 cannot be the total gross assets"),
        (["--authorized", "5:1", "--gross-assets", "nan"], "NaN cannot be"),
        (["--authorized", "5", "--nonstock"], "A nonstock corporation has no shares"),
        (["--authorized", "5", "--filed", "soon"], "“soon” is not a date"),
        (["--authorized", "5", "--filed", "9999-12-31"], "9998 is no tax year"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_a_sentence(
    arguments: list[str], sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence.replace("(", r"\(")) as refused:
        run(*arguments)

    assert refused.value.returncode == 1
    assert "\n" not in str(refused.value)
