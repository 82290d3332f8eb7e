"""Working days."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.calendars import is_calendar, is_working_day, next_working_day, parse_day
from compliance.errors import Malformed


@pytest.mark.parametrize(
    ("day", "calendar", "expected"),
    [
        (date(2026, 4, 15), "US", date(2026, 4, 15)),  # a Wednesday
        (date(2028, 4, 15), "US", date(2028, 4, 17)),  # a Saturday
        (date(2027, 2, 15), "US", date(2027, 2, 16)),  # Presidents' Day
        (date(2026, 7, 3), "US", date(2026, 7, 6)),  # July 4 observed, then a weekend
        (date(2026, 4, 16), "US-DC", date(2026, 4, 17)),  # Emancipation Day, there alone
        (date(2026, 4, 16), "US", date(2026, 4, 16)),
    ],
)
def test_a_day_without_business_moves_to_the_next_with(
    day: date, calendar: str, expected: date
) -> None:
    assert next_working_day(day, calendar) == expected


@settings(deadline=None)
@given(st.dates(date(1900, 1, 1), date(2100, 12, 31)))
def test_the_next_working_day_is_the_first_one_and_soon(day: date) -> None:
    found = next_working_day(day, "US")

    assert is_working_day(found, "US")
    assert timedelta(0) <= found - day <= timedelta(days=7)
    between = (day + timedelta(days=n) for n in range((found - day).days))
    assert not any(is_working_day(other, "US") for other in between)


@pytest.mark.parametrize(
    ("code", "known"),
    [("US", True), ("US-DC", True), ("GB", True), ("US-ZZ", False), ("ZZ", False), ("", False)],
)
def test_only_calendars_with_holidays_are_known(code: str, known: bool) -> None:
    assert is_calendar(code) is known


@pytest.mark.parametrize("text", ["2026-02-30", "1 March", "", "2026-13-01"])
def test_a_date_that_does_not_exist_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(Malformed, match="Write one that exists as YYYY-MM-DD"):
        parse_day(text)


def test_a_date_is_read() -> None:
    assert parse_day("2024-02-29") == date(2024, 2, 29)
