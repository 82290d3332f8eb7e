"""What a portfolio's deadlines cost by day, and what the lanes and the forecast make of it."""

import json
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from compliance.errors import NotFound
from compliance.exposure import (
    Law,
    cents_per_hour,
    cost_per_day,
    exposure_by_day,
    exposure_of,
    owed_before,
)
from compliance.models import Deadline
from compliance.penalties import Cost
from filings.services import approve_filing
from portals.models import Intent
from tests.factories import (
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    PortfolioFactory,
    RegistrationFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db
DUE = date(2026, 3, 1)

PACK = """
jurisdiction = "US-ZZ"
title = "Zedland"
agency = "Registry of Zedland"
verified_on = 2026-02-11
"""
DUTY = """
[[duty]]
id = "{id}"
title = "A duty"
applies_to = ["{kind}"]
frequency = "annual"
due = "fixed:03-01"
cite = "Registers Act s. 12"
source = "Registers Act, official code"
confidence = "medium"
{more}
[duty.late]
{late}
"""


def duty(id: str, late: str, *, kind: str = "corporation", more: str = "") -> str:
    return DUTY.format(id=id, late=late, kind=kind, more=more)


@pytest.fixture(autouse=True)
def _zedland(tmp_path: Path) -> Iterator[None]:
    """A made-up jurisdiction, so that no change of the law fails these tests."""
    interest = 'flat = "200.00"\npercent_per_month = "1.5"\ninterest_on_penalty = true'
    text = PACK + "".join(
        [
            duty("tax", interest),
            duty("franchise", interest, more='formula = "de_franchise_tax"'),
            duty("report", 'flat = "24.00"', more="until = 2026-12-31"),
            duty("report", 'flat = "48.00"', more="from = 2027-01-01"),
            duty("report", 'flat = "7.00"', kind="llc"),
            duty("notice", 'flat = "250.00"\ngrace_days = 60\non_notice = true'),
            duty("daily", 'per_day = "1.00"'),
        ]
    )
    folder = tmp_path / "us-zz"
    folder.mkdir()
    (folder / "pack.toml").write_text(text)
    with override_settings(PACKS_DIR=str(tmp_path)):
        yield


def owe(duty: str, **values: Any) -> Deadline:
    registration = values.pop("registration", None) or RegistrationFactory(jurisdiction="US-ZZ")
    return DeadlineFactory(
        registration=registration, duty=duty, portal="", form="", **{"due_on": DUE, **values}
    )


def read(**scope: str) -> Iterator[Deadline]:
    return owed_before(date(2030, 1, 1), **scope).iterator(chunk_size=100)


# --- Amounts ------------------------------------------------------------------------------------


def test_a_portfolio_adds_up_by_day() -> None:
    owe("tax", fee=Decimal(400))
    owe("report")
    owe("report", due_on=date(2026, 3, 2))

    days = exposure_by_day(read(), DUE, date(2026, 3, 3))

    assert {code: [cost.certain for _, cost in found] for code, found in days.items()} == {
        "USD": [0, Decimal(233), Decimal(257)]
    }


def test_uncertain_amounts_stand_apart() -> None:
    owe("report")
    owe("report", confidence="low")
    owe("notice")

    (_, cost), *_ = exposure_by_day(read(), date(2026, 6, 1), date(2026, 6, 1))["USD"]

    assert cost == Cost(Decimal(24), Decimal(24), Decimal(250))


def test_two_currencies_are_never_added_up() -> None:
    owe("report")
    owe("report", currency="CAD")

    days = exposure_by_day(read(), date(2026, 3, 2), date(2026, 3, 2))

    assert {code: found[0][1].certain for code, found in days.items()} == {"USD": 24, "CAD": 24}


def test_the_text_in_force_for_the_kind_and_the_day_counts() -> None:
    llc = RegistrationFactory(jurisdiction="US-ZZ", entity__kind="llc")
    law = Law()
    rows = [owe("report"), owe("report", due_on=date(2027, 3, 1)), owe("report", registration=llc)]

    costs = [cost_per_day(row, row.due_on, law).certain for row in rows]

    assert costs == [24, 48, 7]


def test_what_is_settled_or_paused_costs_nothing() -> None:
    owe("report", status="met", settled_on=DUE)
    paused = owe("report", status="not_due")

    assert list(read()) == []
    assert exposure_of([paused], DUE, date(2026, 6, 1)).deadlines == 0
    assert cost_per_day(paused, DUE) == Cost()


def test_one_more_day_costs_the_penalty_then_a_month_at_a_time() -> None:
    deadline = owe("tax", fee=Decimal(400))

    days = (date(2026, 2, 28), DUE, date(2026, 3, 2), date(2026, 4, 1))
    assert [cost_per_day(deadline, day).certain for day in days] == [0, 209, 0, 9]


def test_an_amount_that_is_not_wholly_known_is_told() -> None:
    owe("tax", fee=None)
    owe("franchise", fee=Decimal(50))
    owe("tax", fee=Decimal(400))
    owe("report", fee=None)

    found = exposure_of(read(), DUE, date(2026, 3, 2))

    assert (found.deadlines, found.at_least) == (4, 2)
    assert found.by_day["USD"][-1][1].certain == 203 + Decimal("203.75") + 209 + 24


def test_a_duty_that_no_pack_has_any_more_is_counted_and_stops_nothing() -> None:
    owe("repealed")
    owe("report", registration=RegistrationFactory(jurisdiction="GB"))
    owe("report")

    found = exposure_of(read(), DUE, date(2026, 3, 2))

    assert (found.deadlines, found.without_law) == (3, 2)
    assert found.by_day["USD"][-1][1].certain == 24


def test_the_ten_costliest_are_kept_in_order() -> None:
    for days in range(12):
        owe("daily", due_on=DUE + timedelta(days=days))
    dear = owe("tax", fee=Decimal(400))

    found = exposure_of(read(), DUE, DUE + timedelta(days=30))

    assert len(found.costliest) == 10
    assert found.costliest[0].deadline == dear
    amounts = [costly.cost.certain for costly in found.costliest[1:]]
    assert amounts == [30 - days for days in range(9)]


def test_a_portfolio_is_read_with_one_query_and_no_tax_id(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    mine = PortfolioFactory(slug="mine")
    entity = EntityFactory(portfolio=mine)
    for _ in range(5):
        owe("report", registration=RegistrationFactory(jurisdiction="US-ZZ", entity=entity))
    owe("report")

    deadlines = owed_before(date(2030, 1, 1), portfolio="mine")
    with django_assert_num_queries(1):
        found = exposure_of(deadlines.iterator(chunk_size=100), DUE, date(2026, 3, 2))

    assert found.deadlines == 5
    assert "tax_id" not in str(deadlines.query)


def test_an_unknown_portfolio_is_refused() -> None:
    with pytest.raises(NotFound, match="no portfolio “nowhere”"):
        owed_before(DUE, portfolio="nowhere")


# --- Lanes --------------------------------------------------------------------------------------


def test_an_hour_of_delay_is_a_part_of_the_first_day() -> None:
    law = Law()

    assert cents_per_hour(owe("report"), law) == 100
    assert cents_per_hour(owe("report", confidence="low"), law) == 100
    assert cents_per_hour(owe("notice"), law) == 0
    assert cents_per_hour(owe("repealed"), law) == 0


def test_a_pack_that_cannot_be_read_stops_no_filing(tmp_path: Path) -> None:
    (tmp_path / "us-zz" / "pack.toml").write_text("broken")

    assert cents_per_hour(owe("report"), Law()) == 0


def test_an_approved_filing_carries_what_its_delay_costs() -> None:
    llc = RegistrationFactory(entity__kind="llc")
    filing = FilingFactory(
        deadline__registration=llc, deadline__duty="annual-tax", deadline__form="annual-tax"
    )

    approve_filing(filing, by=UserFactory())

    expected = cents_per_hour(filing.deadline, Law())
    assert expected > 0
    assert Intent.objects.get(subject_id=filing.pk).cost == expected


# --- The admin ----------------------------------------------------------------------------------


def test_the_list_of_deadlines_shows_stage_and_cost(admin_client: Client) -> None:
    owe("daily", due_on=timezone.localdate() + timedelta(days=3))
    owe("notice", due_on=timezone.localdate() - timedelta(days=60))
    url = reverse("admin:compliance_deadline_changelist")

    page = admin_client.get(url).content.decode()

    assert "Due soon" in page
    assert "$1<" in page
    assert "Overdue" in page
    assert "$250, only after a notice" in page


def test_a_broken_pack_leaves_the_list_of_deadlines_readable(
    admin_client: Client, tmp_path: Path
) -> None:
    owe("daily")
    (tmp_path / "us-zz" / "pack.toml").write_text("broken")

    page = admin_client.get(reverse("admin:compliance_deadline_changelist"))

    assert page.status_code == 200
    assert "not known" in page.content.decode()


# --- The command --------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("penalty_forecast", *arguments, stdout=out)
    return out.getvalue()


def test_the_forecast_tells_weeks_and_the_costliest_as_json() -> None:
    today = timezone.localdate()
    late = owe("daily", due_on=today - timedelta(days=3))
    soon = owe("report", due_on=today + timedelta(days=8))
    owe("notice", due_on=today - timedelta(days=90))

    told = json.loads(run("--days=10", "--json"))

    weeks = told["by_week"]["USD"]
    assert [week["on"] for week in weeks] == [
        (today + timedelta(days=days)).isoformat() for days in (0, 7, 10)
    ]
    assert weeks[0] == {
        "on": today.isoformat(), "certain": "3.00", "to_review": "0.00", "on_notice": "250.00",
    }  # fmt: skip
    assert weeks[1]["certain"] == "10.00"
    by_deadline = {row["deadline"]: row for row in told["costliest"]}
    assert by_deadline[late.pk]["certain"] == "13.00"
    assert by_deadline[late.pk]["next_day"]["certain"] == "1.00"
    assert by_deadline[soon.pk]["certain"] == by_deadline[soon.pk]["next_day"]["certain"]
    assert told["deadlines"] == 3


def test_the_forecast_is_a_table_for_people() -> None:
    owe("tax", fee=None, due_on=timezone.localdate() - timedelta(days=1))
    owe("repealed", due_on=timezone.localdate())

    told = run("--days=7")

    assert "Penalties in USD" in told
    assert "$203" in told
    assert "2 owed deadlines seen." in told
    assert "At least: for 1 deadline" in told
    assert "Left out: 1 deadline" in told


def test_nothing_owed_is_said_in_a_sentence() -> None:
    assert run() == "0 owed deadlines seen.\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--days=0"], "--days takes 1 to 3660"), (["--portfolio=nowhere"], "no portfolio")],
)
def test_the_forecast_refuses_with_a_sentence(arguments: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        run(*arguments)
