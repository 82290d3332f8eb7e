"""Dates, ages, money and states as people say them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from compliance import wording
from compliance.models import Deadline, Registration
from filings.models import Filing
from portals.models import Intent

TODAY = date(2027, 3, 1)
NOW = datetime(2027, 3, 1, 10, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (0, "Mon 1 Mar 2027 · today"),
        (1, "Tue 2 Mar 2027 · tomorrow"),
        (-1, "Sun 28 Feb 2027 · yesterday"),
        (12, "Sat 13 Mar 2027 · in 12 days"),
        (-2, "Sat 27 Feb 2027 · 2 days ago"),
    ],
)
def test_a_date_comes_with_its_distance(days: int, words: str) -> None:
    assert wording.day_and_distance(TODAY + timedelta(days=days), today=TODAY) == words


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=47), "47 h ago"),
        (timedelta(hours=48), "2 days ago"),
    ],
)
def test_evidence_has_an_age(age: timedelta, words: str) -> None:
    assert wording.age(NOW - age, now=NOW) == words


@pytest.mark.parametrize(
    ("amount", "currency", "words"),
    [
        ("61840.00", "USD", "$61,840"),
        ("50.25", "USD", "$50.25"),
        ("34.00", "GBP", "£34"),
        ("1000", "CHF", "1,000 CHF"),
    ],
)
def test_money_has_its_currency(amount: str, currency: str, words: str) -> None:
    assert wording.money(Decimal(amount), currency) == words


def test_one_is_not_many() -> None:
    assert wording.counted(1, "filing") == "1 filing"
    assert wording.counted(1214, "filing") == "1,214 filings"
    assert wording.counted(2, "item waits", "items wait") == "2 items wait"


def test_every_state_has_a_shape_of_its_own() -> None:
    models = (Registration.Standing, Deadline.Status, Filing.Status, Intent.State)
    codes = {code for choices in models for code in choices.values}

    assert codes <= set(wording.SHAPES)


def test_what_we_do_not_know_is_neither_good_nor_bad() -> None:
    assert wording.SHAPES["unknown"] == ("○", "quiet")
    assert wording.SHAPES["stale"] == ("◌", "quiet")


def test_the_words_of_a_state_are_escaped() -> None:
    assert "<b>" not in wording.state("active", "<b>Active</b>")
