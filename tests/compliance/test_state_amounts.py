"""What Texas, California, Florida and Nevada charge, at the edges where it changes."""

import json
from datetime import date
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from compliance.errors import Malformed, NotAllowed, NotFound
from compliance.formulas import nevada_list_fee
from compliance.franchise_tax import Shares
from compliance.rules import pack_of
from compliance.state_amounts import (
    CALIFORNIA_MINIMUM_TAXES,
    CALIFORNIA_PENALTIES,
    CALIFORNIA_STATEMENTS,
    FLORIDA_REPORTS,
    NEVADA_LISTS,
    NO_TAX_DUE,
    OWNERSHIP_INFORMATION,
    PUBLIC_INFORMATION,
    TAX_REPORT,
    Amount,
    california_llc_fee,
    california_minimum_tax,
    california_penalty,
    california_statement_fee,
    florida_dissolution,
    florida_report,
    nevada_renewal,
    nevada_stock_value,
    texas_late,
    texas_report,
    texas_threshold,
    total,
)
from tests.factories import EntityFactory, ShareClassFactory

VALUES = st.decimals("0", "1000000000", places=2)


def told(amounts: tuple[Amount, ...]) -> list[str]:
    """The amounts as they are written."""
    return [str(amount.amount) for amount in amounts]


def test_every_amount_cites_its_law() -> None:
    tables = (
        CALIFORNIA_MINIMUM_TAXES, CALIFORNIA_PENALTIES, CALIFORNIA_STATEMENTS, FLORIDA_REPORTS,
        NEVADA_LISTS,
    )  # fmt: skip

    amounts = [amount for table in tables for amount in table.values()]
    assert len(amounts) >= 18
    assert all(amount.cite.startswith(("Cal. ", "Fla. Stat. §", "NRS ")) for amount in amounts)


@pytest.mark.parametrize("kind", ["corporation", "llc", "nonprofit"])
@pytest.mark.parametrize("is_foreign", [False, True])
def test_the_pack_of_california_tells_the_same_fee(kind: str, is_foreign: bool) -> None:
    target = f"{'foreign' if is_foreign else 'domestic'}-{kind}"

    (duty,) = (
        duty
        for duty in pack_of("US-CA").duty
        if duty.id == "statement-of-information" and target in duty.targets
    )
    found = california_statement_fee(kind, is_foreign=is_foreign)
    assert duty.fee_on(date(2027, 1, 1)) == found.amount
    assert duty.confidence == found.confidence


# --- Texas --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("year", "threshold", "confidence"),
    [
        (2027, 2_650_000, "high"), (2026, 2_650_000, "high"), (2025, 2_470_000, "high"),
        (2024, 2_470_000, "high"), (2023, 1_230_000, "medium"), (2022, 1_230_000, "medium"),
        (2021, 1_180_000, "medium"), (2020, 1_180_000, "medium"),
    ],
)  # fmt: skip
def test_the_texas_threshold_holds_for_two_report_years(
    year: int, threshold: int, confidence: str
) -> None:
    found = texas_threshold(year)

    assert found.amount == threshold
    assert found.confidence == confidence


@pytest.mark.parametrize("year", [2019, 2028])
def test_a_texas_threshold_that_we_do_not_know_is_not_guessed(year: int) -> None:
    with pytest.raises(NotFound, match=f"no Texas threshold for {year}"):
        texas_threshold(year)


@pytest.mark.parametrize(
    ("year", "kind", "revenue", "forms"),
    [
        (2026, "llc", "2650000", (PUBLIC_INFORMATION,)),
        (2026, "llc", "2650000.01", (TAX_REPORT, PUBLIC_INFORMATION)),
        (2024, "corporation", "0", (PUBLIC_INFORMATION,)),
        (2026, "lp", "0", (PUBLIC_INFORMATION,)),
        (2026, "trust", "0", (OWNERSHIP_INFORMATION,)),
        (2026, "trust", "3000000", (TAX_REPORT, OWNERSHIP_INFORMATION)),
        (2023, "llc", "0", (NO_TAX_DUE, PUBLIC_INFORMATION)),
    ],
)
def test_texas_asks_for_these_reports(
    year: int, kind: str, revenue: str, forms: tuple[str, ...]
) -> None:
    report = texas_report(year, kind=kind, revenue=Decimal(revenue))

    assert report.forms == forms
    assert report.owes_tax is (TAX_REPORT in forms)


def test_a_nonprofit_owes_texas_no_franchise_tax_report() -> None:
    with pytest.raises(NotAllowed, match="Form 802"):
        texas_report(2026, kind="nonprofit", revenue=Decimal(0))


@pytest.mark.parametrize(
    ("days", "tax", "amounts"),
    [
        (0, 1000, []),
        (1, 0, ["50"]),
        (1, 1000, ["50", "50.00"]),
        (30, 1000, ["50", "50.00"]),
        (31, 1000, ["50", "100.00"]),
    ],
)
def test_a_late_texas_report_costs_even_where_no_tax_is_due(
    days: int, tax: int, amounts: list[str]
) -> None:
    late = texas_late(days_late=days, tax=Decimal(tax))

    assert told(late) == amounts
    assert [amount.confidence for amount in late] == ["high", "medium"][: len(late)]


# --- California ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "is_foreign", "fee", "confidence"),
    [
        ("corporation", False, 25, "high"),
        ("corporation", True, 25, "high"),
        ("llc", False, 20, "high"),
        ("llc", True, 20, "high"),
        ("nonprofit", False, 20, "medium"),
        ("nonprofit", True, 25, "low"),
    ],
)
def test_a_california_statement_has_a_fee_by_kind(
    kind: str, is_foreign: bool, fee: int, confidence: str
) -> None:
    found = california_statement_fee(kind, is_foreign=is_foreign)

    assert found.amount == fee
    assert found.confidence == confidence


def test_a_limited_partnership_files_no_california_statement() -> None:
    with pytest.raises(NotFound, match="Statement of Information of a domestic-lp"):
        california_statement_fee("lp")


def test_california_fines_only_sixty_days_after_its_notice() -> None:
    notice = date(2026, 3, 1)

    assert california_penalty("llc", noticed_on=None, filed_on=date(2028, 1, 1)) == ()
    assert california_penalty("llc", noticed_on=notice, filed_on=date(2026, 4, 30)) == ()
    assert told(california_penalty("llc", noticed_on=notice, filed_on=date(2026, 5, 1))) == ["250"]
    late = california_penalty("nonprofit", noticed_on=notice, filed_on=date(2026, 5, 1))
    assert (told(late), late[0].confidence) == (["50"], "medium")


def test_the_california_minimum_tax_is_eight_hundred_dollars() -> None:
    for kind in ("corporation", "llc", "lp"):
        assert california_minimum_tax(kind).amount == 800
    assert california_minimum_tax("lp").confidence == "low"


@pytest.mark.parametrize(
    ("income", "fee"),
    [
        ("0", 0), ("249999.99", 0), ("250000", 900), ("499999.99", 900), ("500000", 2_500),
        ("999999.99", 2_500), ("1000000", 6_000), ("4999999.99", 6_000), ("5000000", 11_790),
        ("80000000", 11_790),
    ],
)  # fmt: skip
def test_the_california_llc_fee_goes_by_income(income: str, fee: int) -> None:
    assert california_llc_fee(Decimal(income)).amount == fee


# --- Florida ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "on_time", "late"),
    [
        ("corporation", "150", "550"),
        ("llc", "138.75", "538.75"),
        ("nonprofit", "61.25", "61.25"),
        ("lp", "500", "900"),
    ],
)
def test_florida_charges_for_lateness_but_not_nonprofits(
    kind: str, on_time: str, late: str
) -> None:
    assert total(florida_report(kind, filed_on=date(2027, 5, 1))) == Decimal(on_time)
    assert total(florida_report(kind, filed_on=date(2027, 5, 2))) == Decimal(late)


@pytest.mark.parametrize(
    ("year", "last", "dissolved"),
    [
        (2026, 18, 25),
        (2027, 17, 24),
        (2023, 15, 22),  # September began on a Friday
        (2024, 20, 27),
    ],
)
def test_florida_dissolves_on_the_fourth_friday_of_september(
    year: int, last: int, dissolved: int
) -> None:
    assert florida_dissolution(year) == (date(year, 9, last), date(year, 9, dissolved))


# --- Nevada -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "on_time", "late"),
    [("llc", 350, 525), ("lp", 350, 525), ("corporation", 650, 825), ("nonprofit", 50, 100)],
)
def test_nevada_charges_for_list_and_licence_by_kind(kind: str, on_time: int, late: int) -> None:
    value = Decimal(75_000) if kind == "corporation" else None

    assert total(nevada_renewal(kind, stock_value=value)) == on_time
    assert total(nevada_renewal(kind, stock_value=value, is_late=True)) == late


@pytest.mark.parametrize(
    ("value", "fee", "confidence"),
    [
        ("0", 150, "high"), ("75000", 150, "high"), ("75000.01", 175, "medium"),
        ("200000", 175, "medium"), ("500000", 275, "medium"), ("1000000", 375, "medium"),
        ("1000000.01", 650, "medium"), ("1500000", 650, "medium"), ("1500001", 925, "medium"),
        ("900000000", 11_125, "medium"),
    ],
)  # fmt: skip
def test_nevadas_list_of_a_corporation_goes_by_its_stock(
    value: str, fee: int, confidence: str
) -> None:
    listed = nevada_renewal("corporation", stock_value=Decimal(value))[0]

    assert listed.amount == fee
    assert listed.confidence == confidence


@given(VALUES, VALUES)
def test_more_stock_never_makes_nevadas_list_cheaper(one: Decimal, other: Decimal) -> None:
    low, high = sorted((one, other))

    cheap, dear = (nevada_renewal("corporation", stock_value=v)[0].amount for v in (low, high))
    assert 150 <= cheap <= dear <= 11_125


def test_nevadas_list_of_a_corporation_is_not_guessed() -> None:
    with pytest.raises(Malformed, match="value of its authorized stock"):
        nevada_renewal("corporation")


def test_stock_without_par_counts_a_dollar_a_share_in_nevada() -> None:
    assert nevada_stock_value([Shares(50_000), Shares(1_000, Decimal("0.01"))]) == 50_010
    assert nevada_stock_value([]) == 0


def test_a_kind_that_we_do_not_know_is_refused() -> None:
    with pytest.raises(NotFound, match="Nevada annual list of a trust"):
        nevada_renewal("trust")
    with pytest.raises(NotFound, match="Florida annual report of a trust"):
        florida_report("trust", filed_on=date(2027, 1, 1))


# --- By command, and on the road ---------------------------------------------------------------


def asked(*arguments: str) -> list[dict[str, str]]:
    out = StringIO()
    call_command("state_amounts", *arguments, "--json", stdout=out)
    told: list[dict[str, str]] = json.loads(out.getvalue())
    return told


@pytest.mark.parametrize(
    ("arguments", "amounts"),
    [
        (["us-ca", "--entity-type", "llc", "--income", "600000"], ["20", "800", "2500"]),
        (["US-FL", "--entity-type", "llc", "--filed", "2027-05-02"], ["138.75", "400"]),
        (["US-NV", "--entity-type", "corporation", "--stock-value", "75000"], ["150", "500"]),
        (
            ["US-TX", "--entity-type", "llc", "--revenue", "1", "--filed", "2026-05-15"],
            ["2650000"],
        ),
    ],
)
def test_the_command_computes_each_state(arguments: list[str], amounts: list[str]) -> None:
    told = asked(*arguments)

    assert [one["amount"] for one in told] == amounts
    assert all(one["cite"] and one["confidence"] for one in told)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["US-ZZ", "--entity-type", "llc"], "Nothing is computed"),
        (["US-TX", "--entity-type", "llc"], "depends on --revenue"),
        (["US-TX", "--entity-type", "llc", "--revenue", "NaN"], "is no amount"),
        (["US-NV", "--entity-type", "corporation"], "authorized stock"),
    ],
)
def test_the_command_refuses_in_a_sentence(arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("state_amounts", *arguments)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("authorized", "par", "fee"), [(75_000, 1, "150"), (75_001, 1, None), (10_000_000, None, None)]
)
def test_a_nevada_list_costs_by_the_stock_on_file(
    authorized: int, par: int | None, fee: str | None
) -> None:
    entity = EntityFactory(home_jurisdiction="US-NV")
    ShareClassFactory(entity=entity, authorized=authorized, issued=0, par_value=par)

    if fee is not None:
        assert nevada_list_fee(entity) == Decimal(fee)
        return
    with pytest.raises(NotAllowed, match="needs review"):
        nevada_list_fee(entity)


@pytest.mark.django_db
def test_a_nevada_list_of_unknown_stock_is_not_priced() -> None:
    with pytest.raises(NotAllowed, match="Enter that of"):
        nevada_list_fee(EntityFactory(home_jurisdiction="US-NV"))
