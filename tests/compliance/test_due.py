"""The due-rule grammar: what each rule means, what is refused, and what holds for all."""

from contextlib import suppress
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.due import (
    PARITIES,
    STARTS,
    Anchors,
    RuleError,
    Schedule,
    add_months,
    parse_due,
    parse_first,
    parse_month_day,
    parse_opens,
)

DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))
ATOMS = [
    "fixed:03-01", "fixed:12-31", "window:01-01..04-15", "window:11-01..02-15",
    "anniversary_date", "anniversary_month_first", "anniversary_month_end",
    "anniversary_month_end+2M", "anniversary_month_end-1M", "anniversary_quarter_end",
    "fye:+3M@15", "fye:+9M@end", "fye:+12M@31", "taxyear:4M@15", "taxyear:1M@1",
]  # fmt: skip
RULES = [
    *ATOMS,
    "fixed:06-01|fixed:09-01|fixed:12-01",
    "min(event:auditor_report+30d,fye:+9M@end)",
    "min(event:auditor_report+30d,window:06-01..09-30)",
    "event:formation+120d",
    "event:last_filing+5Y",
]
FIRSTS = [
    *STARTS,
    "with_formation;then:first_anniversary",
    "with_registration",
    "event:formation+90d;then:second_anniversary",
    "event:formation+3M@15;then:second_tax_year",
]


def schedule(due: str, first: str = "none", every: int = 1, parity: str = "n/a") -> Schedule:
    parsed = parse_due(due)
    assert parsed is not None
    return Schedule(parsed, parse_first(first), every, parity)


def anchors(
    base: date, year_end: tuple[int, int] = (12, 31), **events: tuple[date, ...]
) -> Anchors:
    return Anchors(base, year_end, events)


@st.composite
def anchored(draw: st.DrawFn) -> Anchors:
    return Anchors(
        draw(DAYS),
        (draw(st.integers(1, 12)), draw(st.integers(1, 31))),
        {
            "auditor_report": tuple(draw(st.lists(DAYS, max_size=3))),
            "last_filing": tuple(draw(st.lists(DAYS, max_size=2))),
        },
    )


SCHEDULES = st.builds(
    schedule,
    st.sampled_from(RULES),
    st.sampled_from(FIRSTS),
    st.sampled_from([1, 2, 4, 5]),
    st.sampled_from(PARITIES),
)


@pytest.mark.parametrize(
    ("rule", "first", "every", "parity", "base", "expected"),
    [
        # The comment names a state whose law reads so.
        ("fixed:03-01", "next_calendar_year", 1, "n/a", "2024-12-31",  # DE
         ["2025-03-01", "2026-03-01"]),
        ("anniversary_month_end+2M", "first_anniversary", 1, "n/a", "2019-03-14",  # CO
         ["2020-05-31", "2021-05-31"]),
        ("anniversary_month_end+2M", "first_anniversary", 1, "n/a", "2024-12-14",  # CO
         ["2026-02-28", "2027-02-28"]),
        ("anniversary_month_end-1M", "first_anniversary", 1, "n/a", "2025-01-15",  # IL
         ["2025-12-31", "2026-12-31"]),
        ("anniversary_month_first", "first_anniversary", 1, "n/a", "2025-01-15",  # WY
         ["2026-01-01", "2027-01-01"]),
        ("anniversary_quarter_end", "next_calendar_year", 1, "n/a", "2025-02-10",  # HI
         ["2026-03-31", "2027-03-31"]),
        ("anniversary_quarter_end", "next_calendar_year", 1, "n/a", "2025-12-10",  # WI
         ["2026-12-31", "2027-12-31"]),
        ("anniversary_date", "first_anniversary", 1, "n/a", "2024-02-29",  # OR
         ["2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"]),
        ("anniversary_month_end", "second_anniversary", 2, "formation_year", "2023-08-31",  # IN
         ["2025-08-31", "2027-08-31"]),
        ("anniversary_month_end", "with_formation;then:first_anniversary", 1, "n/a",  # NV
         "2025-05-05", ["2025-05-05", "2026-05-31"]),
        ("fixed:01-02", "event:formation+6M;then:first_year_of_parity", 2, "formation_year",  # AK
         "2024-08-31", ["2025-02-28", "2026-01-02", "2028-01-02"]),
        ("window:01-01..04-01", "first_year_of_parity", 2, "even", "2024-01-05",  # IA
         ["2026-04-01", "2028-04-01"]),
        ("window:01-01..04-01", "first_year_of_parity", 2, "odd", "2024-01-05",  # NE
         ["2025-04-01", "2027-04-01"]),
        ("fixed:04-01", "next_calendar_year", 2, "formation_year+1", "2024-05-05",  # DC
         ["2025-04-01", "2027-04-01"]),
        ("fixed:12-31", "first_year_of_parity", 5, "mod5=0", "2025-06-01",  # NH
         ["2030-12-31", "2035-12-31"]),
        ("fye:+4M@15", "with_formation;then:first_fiscal_year_end", 1, "n/a", "2025-05-05",  # SC
         ["2025-05-05", "2026-04-15"]),
        ("fye:+4M@15", "event:formation+30d;then:first_year_of_parity", 2,  # NM
         "formation_year", "2024-05-05", ["2024-06-04", "2026-04-15", "2028-04-15"]),
        ("fye:+3M@end", "first_fiscal_year_end", 1, "n/a", "2024-12-31",  # VT
         ["2025-03-31", "2026-03-31"]),
        ("taxyear:4M@15", "first_tax_year", 1, "n/a", "2026-04-15",
         ["2026-04-15", "2027-04-15"]),
        ("taxyear:4M@15", "second_tax_year", 1, "n/a", "2026-01-01",  # CA
         ["2027-04-15", "2028-04-15"]),
        ("event:last_filing+5Y", "event:formation+5Y", 5, "n/a", "2020-02-29",  # OH
         ["2025-02-28"]),
        ("event:registry_notice+30d", "event:registry_notice+30d", 4, "n/a", "2020-02-29",  # TX
         []),
        ("fixed:02-01", "none", 4, "n/a", "2021-03-01", ["2022-02-01", "2026-02-01"]),
    ],
)  # fmt: skip
def test_each_rule_begins_and_repeats_as_the_law_has_it(
    rule: str, first: str, every: int, parity: str, base: str, expected: list[str]
) -> None:
    began = anchors(date.fromisoformat(base))

    spans = schedule(rule, first, every, parity).spans(
        began, since=date.min, through=date(2100, 12, 31)
    )

    assert [span.due.isoformat() for span in spans][: len(expected)] == expected
    assert expected or not spans


def test_a_fiscal_year_that_ends_in_june_counts_from_june() -> None:
    began = anchors(date(2025, 7, 1), (6, 30))

    closed = schedule("fye:+3M@15", "first_tax_year")
    running = schedule("taxyear:4M@15", "first_tax_year")

    through = date(2026, 12, 31)
    assert [s.due for s in closed.spans(began, since=began.base, through=through)] == [
        date(2026, 9, 15)
    ]
    assert [s.due for s in running.spans(began, since=began.base, through=through)] == [
        date(2025, 10, 15),
        date(2026, 10, 15),
    ]


def test_an_event_hastens_what_comes_by_itself_and_never_delays_it() -> None:
    rule = schedule("min(event:auditor_report+30d,fye:+9M@end)", "first_fiscal_year_end")
    reports = (date(2025, 3, 1), date(2026, 12, 15))
    began = anchors(date(2024, 5, 5), auditor_report=reports)

    spans = rule.spans(began, since=began.base, through=date(2027, 12, 31))

    assert [(span.due, span.year) for span in spans] == [
        (date(2025, 3, 31), 2025),
        (date(2026, 9, 30), 2026),
        (date(2027, 9, 30), 2027),
    ]


def test_a_known_event_takes_the_place_of_the_first_rule() -> None:
    rule = schedule("event:last_filing+365d", "with_registration")
    began = anchors(date(2024, 5, 5), last_filing=(date(2025, 5, 1),))

    spans = rule.spans(began, since=date.min, through=date.max)

    assert [span.due for span in spans] == [date(2026, 5, 1)]


def test_a_window_over_new_year_opens_in_the_year_before() -> None:
    spans = schedule("window:11-01..02-15").spans(
        anchors(date(2020, 1, 1)), since=date(2026, 1, 1), through=date(2026, 12, 31)
    )

    assert [(span.opens, span.due) for span in spans] == [(date(2025, 11, 1), date(2026, 2, 15))]


@pytest.mark.parametrize(
    ("rule", "due", "opens"),
    [
        ("month_start", date(2026, 4, 30), date(2026, 4, 1)),
        ("month_start-5M", date(2026, 2, 28), date(2025, 9, 1)),
        ("due-60d", date(2026, 3, 1), date(2025, 12, 31)),
        ("due-3M", date(2026, 5, 31), date(2026, 2, 28)),
        ("month_start-90d", date(2026, 4, 30), date(2026, 1, 1)),
    ],
)
def test_an_opening_counts_back_from_the_due_date(rule: str, due: date, opens: date) -> None:
    assert parse_opens(rule).before(due) == opens


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("fixed:02-30", "02-30 does not exist in every year"),
        ("fixed:02-29", "02-29 does not exist in every year"),
        ("fixed:13-01", "13-01 does not exist"),
        ("window:01-01..04-31", "04-31 does not exist"),
        ("fixed:3-1", "is not a due rule"),
        ("", "is not a due rule"),
        ("whenever", "is not a due rule"),
        ("anniversary_date+1M", "only anniversary_month_end can be shifted"),
        ("anniversary_month_end+13M", "by up to 12 months"),
        ("fye:+13M@15", "the months 1 to 12"),
        ("fye:+0M@15", "the months 1 to 12"),
        ("taxyear:4M@32", "no month has a day 32"),
        ("taxyear:4M@0", "no month has a day 0"),
        ("event:birthday+3d", "there is no event “birthday”"),
        ("event:formation+3", "is not an event rule"),
        ("event:formation+30d@15", "goes with months or years only"),
        ("event:formation+101Y", "too long"),
        ("fixed:03-01|fixed:03-01", "the same day twice"),
        ("min(fixed:03-01)", "min() takes two rules"),
        ("min(event:pop_end+1d,event:period_end+1d)", "min() takes two rules"),
    ],
)
def test_a_rule_outside_the_grammar_is_refused_with_a_sentence(rule: str, told: str) -> None:
    with pytest.raises(RuleError, match="“") as caught:
        parse_due(rule)

    assert told in str(caught.value)


@pytest.mark.parametrize("first", ["soon", "event:formation+9x", "with_formation;then:soon", ""])
def test_an_unknown_beginning_is_refused(first: str) -> None:
    with pytest.raises(RuleError):
        parse_first(first)


@pytest.mark.parametrize("opens", ["", "due+3d", "month_end", "due-5Y"])
def test_an_unknown_opening_is_refused(opens: str) -> None:
    with pytest.raises(RuleError, match="is not an opening rule"):
        parse_opens(opens)


def test_a_fiscal_year_end_is_a_day_of_the_year() -> None:
    assert parse_month_day("02-29") == (2, 29)
    for wrong in ("02-30", "13-01", "6-30", "June 30", ""):
        with pytest.raises(RuleError, match="is not a day of the year"):
            parse_month_day(wrong)


@settings(deadline=None)
@given(st.text() | st.text(alphabet="fixedwndowventarymuk:0123456789-+.|(),@MYd"))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    for parse in (parse_due, parse_first, parse_opens, parse_month_day):
        with suppress(RuleError):  # any other fault fails the test
            parse(text)


@settings(deadline=None)
@given(SCHEDULES, anchored(), DAYS, DAYS)
def test_every_schedule_is_total_ordered_and_inside_what_was_asked(
    rule: Schedule, began: Anchors, one: date, other: date
) -> None:
    since, through = sorted((one, other))

    spans = rule.spans(began, since=since, through=through)

    assert all(max(since, began.base) <= span.due <= through for span in spans)
    assert all(span.opens is None or span.opens <= span.due for span in spans)
    assert all(earlier.due <= later.due for earlier, later in pairwise(spans))


@settings(deadline=None)
@given(SCHEDULES, anchored(), DAYS, DAYS, DAYS)
def test_a_stretch_of_time_gives_what_its_parts_give(
    rule: Schedule, began: Anchors, one: date, other: date, third: date
) -> None:
    since, middle, through = sorted((one, other, third))

    whole = rule.spans(began, since=since, through=through)

    parts = [
        *rule.spans(began, since=since, through=middle),
        *rule.spans(began, since=middle, through=through),
    ]
    assert set(whole) == set(parts)


@settings(deadline=None)
@given(st.sampled_from(ATOMS), st.sampled_from(STARTS), anchored())
def test_what_is_due_every_year_has_each_later_year_once(
    rule: str, first: str, began: Anchors
) -> None:
    start = began.base.year + 4
    through = date(start + 9, 12, 31)

    spans = schedule(rule, first).spans(began, since=date(start, 1, 1), through=through)

    assert [span.year for span in spans] == list(range(start, start + 10))


@settings(deadline=None)
@given(
    st.sampled_from(ATOMS),
    st.sampled_from(STARTS),
    st.sampled_from([2, 4, 5]),
    st.sampled_from(["n/a", "formation_year", "formation_year+1"]),
    anchored(),
)
def test_what_is_due_every_few_years_leaves_the_others_out(
    rule: str, first: str, every: int, parity: str, began: Anchors
) -> None:
    through = add_months(began.base, 12 * 40)

    spans = schedule(rule, first, every, parity).spans(began, since=began.base, through=through)

    years = [span.year for span in spans if span.year]
    assert len(years) >= 6
    assert {later - earlier for earlier, later in pairwise(years)} == {every}


@settings(deadline=None)
@given(DAYS, st.integers(-600, 600))
def test_months_are_added_and_taken_away_alike(day: date, months: int) -> None:
    later = add_months(day, months)

    assert (later.year - day.year) * 12 + later.month - day.month == months
    assert later.day <= day.day


@pytest.mark.parametrize("extreme", [date.min, date.max, date(1599, 1, 1), date(2199, 1, 1)])
@pytest.mark.parametrize("rule", RULES)
def test_dates_beyond_our_years_give_an_answer_and_no_fault(rule: str, extreme: date) -> None:
    began = anchors(extreme, auditor_report=(extreme,), last_filing=(extreme,))

    spans = schedule(rule, "event:formation+90d").spans(began, since=date.min, through=date.max)

    assert all(span.due >= extreme for span in spans)
