"""What being late costs, to the cent: each part of the law alone, then together."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compliance.penalties import (
    Cost,
    Owing,
    cost_by_day,
    cost_of_one_more_day,
    cost_on,
    months_begun,
    penalty_on,
)
from compliance.rules import Late, Step

DUE = date(2026, 3, 1)
DELAWARE = Late(flat=Decimal("200.00"), percent_per_month=Decimal("1.5"), interest_on_penalty=True)


def after(late: Late, days: int, base: str = "100.00") -> Decimal:
    return penalty_on(late, due=DUE, on=DUE + timedelta(days=days), base=Decimal(base))


def late(**terms: Any) -> Late:
    return Late.model_validate(terms)


def test_delaware_adds_interest_for_each_month_begun_on_tax_and_penalty() -> None:
    # Tax of $400, filed on May 10: three months or portions at 1.5% of $600, beside the $200.
    assert penalty_on(DELAWARE, due=DUE, on=date(2026, 5, 10), base=Decimal(400)) == Decimal(227)


def test_interest_runs_on_the_fee_alone_where_the_law_says_no_more() -> None:
    alone = DELAWARE.model_copy(update={"interest_on_penalty": False})

    assert penalty_on(alone, due=DUE, on=date(2026, 5, 10), base=Decimal(400)) == Decimal(218)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        # What has been added after 0, 1, 31, 32 and 61 days; the month of March has 31.
        ({}, (0, 0, 0, 0, 0)),
        ({"flat": "400.00"}, (0, 400, 400, 400, 400)),
        ({"percent": "10"}, (0, 10, 10, 10, 10)),
        ({"per_day": "25.00"}, (0, 25, 775, 800, 1525)),
        ({"per_month": "9.00"}, (0, 9, 9, 18, 18)),
        ({"percent_per_month": "1.5"}, (0, "1.50", "1.50", 3, 3)),
        ({"flat": "25.00", "grace_days": 30}, (0, 0, 25, 25, 25)),
        ({"per_day": "1.00", "grace_days": 30}, (0, 0, 1, 2, 31)),
        ({"per_day": "25.00", "cap": "500.00"}, (0, 25, 500, 500, 500)),
        ({"flat": "30.00", "percent": "50", "cap": "50.00"}, (0, 50, 50, 50, 50)),
        (
            {"flat": "30.00", "steps": [{"after_days": 31, "amount": "10.00"}]},
            (0, 30, 30, 40, 40),
        ),
    ],
)
def test_each_part_of_the_law_is_added(
    terms: dict[str, Any], expected: tuple[int | str, ...]
) -> None:
    law = late(**terms)

    assert [after(law, days) for days in (0, 1, 31, 32, 61)] == [Decimal(n) for n in expected]


def test_maryland_and_north_dakota_rise_by_steps() -> None:
    maryland = late(
        flat="30.00",
        steps=[{"after_days": 15, "amount": "10.00"}, {"after_days": 30, "amount": "10.00"}],
    )
    north_dakota = late(flat="20.00", steps=[{"after_days": 90, "amount": "40.00"}])

    assert [after(maryland, days) for days in (15, 16, 30, 31)] == [30, 40, 40, 50]
    assert [after(north_dakota, days) for days in (90, 91)] == [20, 60]


@pytest.mark.parametrize(
    ("since", "on", "months"),
    [
        (date(2026, 3, 1), date(2026, 2, 1), 0),
        (date(2026, 3, 1), date(2026, 3, 1), 0),
        (date(2026, 3, 1), date(2026, 3, 2), 1),
        (date(2026, 3, 1), date(2026, 4, 1), 1),
        (date(2026, 3, 1), date(2026, 4, 2), 2),
        (date(2026, 1, 31), date(2026, 2, 1), 1),
        (date(2026, 1, 31), date(2026, 2, 28), 1),
        (date(2026, 1, 31), date(2026, 3, 1), 2),
        (date(2026, 12, 15), date(2027, 1, 10), 1),
        (date(2024, 2, 29), date(2025, 3, 1), 13),
    ],
)
def test_a_part_of_a_month_is_a_whole_one(since: date, on: date, months: int) -> None:
    assert months_begun(since, on) == months


def test_half_a_cent_is_rounded_up_once_at_the_end() -> None:
    law = late(percent_per_month="1.5")

    assert after(law, 1, base="0.33") == Decimal("0.00")
    assert after(law, 1, base="9.00") == Decimal("0.14")
    assert after(law, 32, base="9.00") == Decimal("0.27")


def test_what_needs_a_notice_is_never_in_the_certain_sum() -> None:
    law = late(flat="250.00", grace_days=60, on_notice=True)
    owing = Owing(law, DUE, Decimal(25), needs_review=True)

    assert cost_on(owing, DUE + timedelta(days=60)) == Cost()
    assert cost_on(owing, DUE + timedelta(days=61)) == Cost(on_notice=Decimal(250))


def test_an_uncertain_law_is_told_apart() -> None:
    owing = Owing(late(flat="125.00"), DUE, Decimal(125), needs_review=True)

    assert cost_on(owing, date(2026, 3, 2)) == Cost(to_review=Decimal(125))


def test_one_more_day_costs_what_it_adds() -> None:
    owing = Owing(DELAWARE, DUE, Decimal(400))

    assert cost_of_one_more_day(owing, date(2026, 2, 28)).certain == 0
    assert cost_of_one_more_day(owing, DUE).certain == 209  # the penalty and a month begun
    assert cost_of_one_more_day(owing, date(2026, 3, 2)).certain == 0
    assert cost_of_one_more_day(owing, date(2026, 4, 1)).certain == 9


def test_many_are_added_up_for_each_day() -> None:
    certain = Owing(late(flat="400.00"), DUE, Decimal(150))
    daily = Owing(late(per_day="1.00"), date(2026, 3, 2), Decimal(0))
    notice = Owing(late(flat="250.00", on_notice=True), DUE, Decimal(25))

    days = cost_by_day({certain: 2, daily: 1, notice: 3}, DUE, date(2026, 3, 4))

    assert [(on.day, int(cost.certain), int(cost.on_notice)) for on, cost in days] == [
        (1, 0, 0),
        (2, 800, 750),
        (3, 801, 750),
        (4, 802, 750),
    ]


MONEY = st.decimals(0, 1000, places=2)
LATES = st.builds(
    Late,
    flat=st.none() | MONEY,
    percent=st.none() | st.decimals(0, 100, places=1),
    per_day=st.none() | MONEY,
    per_month=st.none() | MONEY,
    percent_per_month=st.none() | st.decimals(0, 10, places=1),
    interest_on_penalty=st.booleans(),
    steps=st.lists(st.builds(Step, after_days=st.integers(1, 120), amount=MONEY)).map(tuple),
    cap=st.none() | MONEY,
    on_notice=st.booleans(),
    grace_days=st.integers(0, 90),
)
DATES = st.dates(date(2000, 1, 1), date(2100, 1, 1))


@given(LATES, MONEY, DATES, st.integers(-400, 800))
def test_waiting_never_makes_it_cheaper(law: Late, base: Decimal, due: date, days: int) -> None:
    on = due + timedelta(days=days)

    cost = penalty_on(law, due=due, on=on, base=base)

    assert cost <= penalty_on(law, due=due, on=on + timedelta(days=1), base=base)
    assert days > law.grace_days or cost == 0
    assert law.cap is None or cost <= law.cap


@given(
    st.dictionaries(st.builds(Owing, LATES, DATES, MONEY, st.booleans()), st.integers(1, 9)),
    DATES,
    st.integers(0, 200),
)
def test_the_sum_of_each_day_is_that_of_its_parts(
    owings: dict[Owing, int], first: date, days: int
) -> None:
    near = {
        replace(o, due=first + timedelta(days=o.due.toordinal() % 300 - 150)): n
        for o, n in owings.items()
    }

    found = cost_by_day(near, first, first + timedelta(days=days))

    assert [day for day, _ in found] == [first + timedelta(days=n) for n in range(days + 1)]
    for day, cost in found:
        assert cost == sum((cost_on(o, day).times(n) for o, n in near.items()), Cost())
