"""Working days, for the few duties whose law moves a due date off a day without business."""

from datetime import date, timedelta
from functools import lru_cache

import holidays

from compliance.errors import Malformed

SATURDAY = 5


def parse_day(text: str) -> date:
    """A date as people type it, or a sentence that says how to."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Malformed(
            f"“{text}” is not a date. Write one that exists as YYYY-MM-DD, for example 2026-03-01."
        ) from None


def is_calendar(code: str) -> bool:
    """Whether we know the public holidays of this place, written like US or US-DC."""
    country, _, subdivision = code.partition("-")
    known: dict[str, list[str]] = holidays.list_supported_countries(include_aliases=False)
    return country in known and (not subdivision or subdivision in known[country])


def is_working_day(day: date, calendar: str) -> bool:
    """Neither a weekend nor a public holiday of the calendar."""
    return day.weekday() < SATURDAY and day not in _public_holidays(calendar, day.year)


def next_working_day(day: date, calendar: str) -> date:
    """The day itself if it is a working day, else the first one after it."""
    while not is_working_day(day, calendar):
        day += timedelta(days=1)
    return day


@lru_cache(maxsize=4096)
def working_days_before(day: date, count: int, calendar: str) -> date:
    """The day from which so many working days are left before the given one."""
    while count > 0:
        day -= timedelta(days=1)
        count -= is_working_day(day, calendar)
    return day


@lru_cache(maxsize=4096)
def _public_holidays(calendar: str, year: int) -> frozenset[date]:
    country, _, subdivision = calendar.partition("-")
    found = holidays.country_holidays(country, subdiv=subdivision or None, years=year)
    return frozenset(found)
