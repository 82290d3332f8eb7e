"""What holds for the law of every jurisdiction and kind of entity, whatever is asked of it."""

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compliance.deadlines import Owed
from compliance.preview import SHOWN, Question, is_unspoken, preview_deadlines, shown
from compliance.rules import KINDS, OWN_PACKS, read_pack

CODES = sorted(path.parent.name.upper() for path in OWN_PACKS.glob("*/pack.toml"))
SIDES = tuple(product(KINDS, (False, True)))
FIRST, LAST = date(1900, 1, 1), date(2100, 12, 31)
# Month ends, leap days and the turn of the year are where dates go wrong: half of all are such.
EDGES = st.builds(
    lambda year, edge: date.fromisoformat(f"{year}-{edge}"),
    st.integers(1900, 2100),
    st.sampled_from(["01-01", "02-28", "03-01", "04-30", "09-30", "10-01", "12-31"]),
) | st.sampled_from([date(year, 2, 29) for year in range(1904, 2100, 4)])
DAYS = st.dates(FIRST, LAST) | EDGES
YEAR_ENDS = st.sampled_from(["12-31", "06-30", "02-28", "02-29", "09-30", "01-31"])
QUICK = settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def traits_of(code: str) -> frozenset[str]:
    duties = read_pack(OWN_PACKS / code.lower()).duty
    return frozenset(duty.only_if for duty in duties if duty.only_if)


def questions(code: str, began: date, year_end: str, since: date, through: date) -> list[Question]:
    return [
        Question(
            jurisdiction=code,
            kind=kind,
            formed_on=began,
            is_foreign=is_foreign,
            registered_on=began if is_foreign else None,
            fiscal_year_end=year_end,
            since=since,
            through=through,
            traits=traits_of(code),
        )
        for kind, is_foreign in SIDES
    ]


def in_order(found: list[Owed]) -> bool:
    keys = [(owed.due_on, owed.duty, owed.period) for owed in found]
    return keys == sorted(keys) and len(set(keys)) == len(keys)


def test_the_sweep_goes_over_the_whole_country() -> None:
    assert len(CODES) == 52
    assert {"US", "US-DC", "US-CO"} <= set(CODES)
    assert len(SIDES) == 8


@pytest.mark.parametrize("code", CODES)
@QUICK
@given(began=DAYS, year_end=YEAR_ENDS, one=DAYS, other=DAYS)
def test_any_question_has_one_answer_in_order_and_inside_the_days_asked(
    code: str, began: date, year_end: str, one: date, other: date
) -> None:
    since, through = sorted((one, other))

    for question in questions(code, began, year_end, since, through):
        found = preview_deadlines(question)

        assert in_order(found)
        assert all(max(since, began) <= owed.due_on <= through for owed in found)
        assert all(not owed.opens_on or began <= owed.opens_on <= owed.due_on for owed in found)
        assert max(Counter((o.duty, o.period) for o in found).values(), default=1) == 1
        assert preview_deadlines(question) == found


@pytest.mark.parametrize("code", CODES)
@QUICK
@given(began=DAYS, year_end=YEAR_ENDS, days=st.tuples(DAYS, DAYS, DAYS))
def test_two_windows_give_what_one_over_both_gives(
    code: str, began: date, year_end: str, days: tuple[date, date, date]
) -> None:
    since, middle, through = sorted(days)

    for question in questions(code, began, year_end, since, through):
        early = replace(question, through=middle)
        late = replace(question, since=min(middle + timedelta(days=1), through))

        parts = [*preview_deadlines(early), *preview_deadlines(late)]

        assert {(o.duty, o.period): o for o in parts} == {
            (o.duty, o.period): o for o in preview_deadlines(question)
        }


@pytest.mark.parametrize("code", CODES)
def test_every_deadline_is_shown_with_exactly_the_promised_keys(code: str) -> None:
    asked = questions(code, date(2019, 3, 14), "12-31", date(2019, 1, 1), date(2032, 12, 31))

    rows = [shown(owed) for question in asked for owed in preview_deadlines(question)]

    assert all(tuple(row) == SHOWN for row in rows)
    assert all(row["citation"] and row["confidence"] in {"high", "medium", "low"} for row in rows)
    assert all(row["fee"] is None or Decimal(row["fee"]) >= 0 for row in rows)


def test_most_states_ask_something_of_a_corporation_and_say_so_of_an_llc() -> None:
    window = (date(2026, 1, 1), date(2031, 12, 31))
    asked = {code: questions(code, date(2019, 3, 14), "12-31", *window) for code in CODES}
    states = [code for code in CODES if code != "US"]

    silent = [
        c for c in states for q in asked[c] if q.kind in ("corporation", "llc") and is_unspoken(q)
    ]
    owing = [c for c in states if any(preview_deadlines(q) for q in asked[c])]

    assert silent == []
    assert len(owing) >= 50


@pytest.mark.parametrize(
    ("code", "kind", "formed", "expected"),
    [
        # What older tables have wrong: each change shows its last old date and its first new one.
        ("US-DE", "llc", "2019-03-14", {"2026-06-01": "300.00", "2027-06-01": "400.00"}),
        ("US-GA", "llc", "2019-03-14", {"2025-04-01": "50.00", "2026-04-01": "60.00"}),
        ("US-CO", "llc", "2019-03-14", {"2024-05-31": "10.00", "2025-05-31": "25.00"}),
        ("US-MO", "corporation", "2019-03-14", {"2026-03-31": "20.00", "2027-03-31": "15.00"}),
        ("US-MT", "llc", "2019-03-14", {"2023-04-15": "20.00", "2026-04-15": "0.00"}),
        ("US-UT", "llc", "2019-03-14", {"2026-03-14": "18.00", "2027-03-31": "18.00"}),
        ("US-RI", "llc", "2019-03-14", {"2021-11-01": "50.00", "2022-05-01": "50.00"}),
        ("US-KS", "nonprofit", "2018-03-14", {"2023-06-15": "40.00", "2024-06-15": "80.00"}),
    ],
)
def test_a_change_of_the_law_is_dated(
    code: str, kind: str, formed: str, expected: dict[str, str]
) -> None:
    question = Question(
        jurisdiction=code,
        kind=kind,
        formed_on=date.fromisoformat(formed),
        since=date(2020, 1, 1),
        through=date(2027, 12, 31),
    )

    found = {str(owed.due_on): str(owed.fee) for owed in preview_deadlines(question)}

    assert expected.items() <= found.items()


@pytest.mark.parametrize(("kind", "since"), [("corporation", 2025), ("llc", 2025), ("lp", 2025)])
def test_pennsylvania_asks_for_no_annual_report_before_its_law_began(
    kind: str, since: int
) -> None:
    question = Question(
        jurisdiction="US-PA",
        kind=kind,
        formed_on=date(2015, 5, 5),
        since=date(2016, 1, 1),
        through=date(2027, 12, 31),
    )

    assert [owed.due_on.year for owed in preview_deadlines(question)] == [since, 2026, 2027]
