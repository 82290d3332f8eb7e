"""The law in words: every rule of the grammar has a sentence, and every page is up to date."""

from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from compliance.due import EVENTS, PARITIES, STARTS, parse_due, parse_first, parse_opens
from compliance.reference import (
    due_words,
    first_words,
    late_words,
    opens_words,
    page,
    parity_words,
)
from compliance.rules import OWN_PACKS, Late, Pack, packs

FORMED = "formation (for a foreign entity, registration here)"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("none", "never"),
        ("fixed:03-01", "on March 1"),
        ("window:01-01..04-15", "from January 1 to April 15"),
        ("anniversary_date", "on the anniversary of formation or registration"),
        ("anniversary_month_first", "on the first day of the anniversary's month"),
        ("anniversary_month_end", "on the last day of the anniversary's month"),
        (
            "anniversary_month_end+2M",
            "on the last day of the second month after the anniversary's",
        ),
        (
            "anniversary_month_end-1M",
            "on the last day of the month before the anniversary's",
        ),
        (
            "anniversary_quarter_end",
            "on the last day of the calendar quarter of the anniversary",
        ),
        ("fye:+4M@15", "on day 15 of the fourth month after the fiscal year's end"),
        ("fye:+9M@end", "on the last day of the ninth month after the fiscal year's end"),
        ("taxyear:4M@15", "on day 15 of the tax year's fourth month"),
        ("event:formation+90d", f"within 90 days of {FORMED}"),
        ("event:formation+0d", f"together with {FORMED}"),
        ("event:last_filing+1Y", "within 1 year of the last filing"),
        ("event:formation+3M@15", f"on day 15 of the month 3 months after {FORMED}"),
        ("fixed:06-01|fixed:09-01|fixed:12-01", "on June 1, on September 1 and on December 1"),
        (
            "min(event:auditor_report+30d,fye:+9M@end)",
            "within 30 days of the auditor's report or on the last day of the ninth month after "
            "the fiscal year's end, whichever comes first",
        ),
    ],
)
def test_a_due_rule_in_words(rule: str, words: str) -> None:
    assert due_words(parse_due(rule)) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("none", ""),
        ("next_calendar_year", "begins in the calendar year after formation or registration"),
        ("with_formation", f"the first is due together with {FORMED}"),
        (
            "event:formation+90d;then:second_anniversary",
            f"the first is due within 90 days of {FORMED}; from then on as said, beginning with "
            "the second anniversary",
        ),
    ],
)
def test_a_first_rule_in_words(rule: str, words: str) -> None:
    assert first_words(parse_first(rule)) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("due-60d", "from 60 days before it is due"),
        ("due-3M", "from 3 months before it is due"),
        ("month_start", "from the first day of the month in which it is due"),
        ("month_start-1M", "from 1 month before the first day of the month in which it is due"),
        ("due", "from its due date"),
    ],
)
def test_an_opening_rule_in_words(rule: str, words: str) -> None:
    assert opens_words(parse_opens(rule)) == words


def test_no_word_of_the_grammar_is_without_words_of_its_own() -> None:
    starts = [first_words(parse_first(start)) for start in STARTS]
    parities = [parity_words(parity) for parity in PARITIES]
    events = [due_words(parse_due(f"event:{event}+1d")) for event in EVENTS]

    for told in (starts, parities, events):
        assert len(set(told)) == len(told)
    assert parity_words("odd") == "in odd years"


@pytest.mark.parametrize(
    ("late", "words"),
    [
        ({}, ""),
        ({"grace_days": 30}, ""),
        ({"flat": "9", "percent_per_month": "1.5"}, "$9; 1.5% of the fee for each month begun"),
        (
            {"flat": "200", "percent_per_month": "1.50", "interest_on_penalty": True},
            "$200; 1.5% of the fee and the penalty for each month begun",
        ),
        ({"percent": "10", "per_day": "25", "cap": "500"},
         "10% of the fee; $25 a day; at most $500 in all"),
        ({"per_month": "9", "grace_days": 60}, "$9 for each month begun; only from 60 days after "
         "the due date on"),
        (
            {"steps": [{"after_days": 15, "amount": "10"}], "on_notice": True},
            "$10 more once it is over 15 days late; only after the agency's notice",
        ),
    ],
)  # fmt: skip
def test_lateness_in_amounts(late: dict[str, Any], words: str) -> None:
    assert late_words(Late.model_validate(late)) == words


def test_amounts_are_in_the_currency_of_the_pack() -> None:
    assert late_words(Late(flat=Decimal("150")), "GBP") == "£150"


# --- Pages --------------------------------------------------------------------------------------


def law(**changed: Any) -> Pack:
    duty = {
        "id": "report", "title": "Report", "applies_to": ["domestic-llc", "lp"],
        "frequency": "biennial", "due": "anniversary_month_end", "parity": "odd",
        "first": "first_year_of_parity", "cite": "Code | § 1", "source": "Read\nthere",
        "confidence": "low", "fee": [{"amount": "25.00", "cite": "§ 2"}], **changed,
    }  # fmt: skip
    return Pack.model_validate(
        {
            "jurisdiction": "US-ZZ", "title": "Zedland", "agency": "Registry",
            "verified_on": date(2026, 11, 18), "duty": [duty],
        }
    )  # fmt: skip


def test_a_page_says_what_when_how_much_and_how_sure() -> None:
    told = page(law(portal="us-zz", form="report", late={"flat": "50", "penalty": "$50 (§ 3)"}))

    assert "# Zedland (US-ZZ)" in told
    assert "last read on: 2026-11-18" in told
    assert "Needs review before anyone relies on it: 1 of 1" in told
    assert "| Who | Domestic LLCs and limited partnerships |" in told
    assert "Every two years (in odd years), on the last day of the anniversary's month." in told
    assert "| Fee | $25 (§ 2). |" in told
    assert "| If late | $50 (§ 3). In amounts: $50. |" in told
    assert "| Where | Registry, through the portal `us-zz` as `report`. |" in told
    assert "| Sure | **needs review** (low) |" in told


def test_the_timeline_has_the_first_deadline_and_the_next_after_the_reading() -> None:
    told = page(law(opens="due-60d"))

    table = told[told.index("| period |") :].splitlines()[2:]
    assert table == [
        "| 2021 | 2021-01-30 | 2021-03-31 | $25 |",
        "| 2027 | 2027-01-30 | 2027-03-31 | $25 |",
        "| 2029 | 2029-01-30 | 2029-03-31 | $25 |",
        "| 2031 | 2031-01-30 | 2031-03-31 | $25 |",
    ]


def test_the_overview_tells_the_fee_of_the_next_deadline() -> None:
    raised = {"from": date(2027, 1, 1), "amount": "40.00", "cite": "§ 4"}

    told = page(law(fee=[raised, {"amount": "25.00", "cite": "§ 2"}]))

    assert "| $40 | **needs review** (low) |" in told
    assert "| Fee | $40 for due dates from 2027-01-01 on (§ 4). $25 (§ 2). |" in told


def test_text_of_the_law_cannot_break_its_table() -> None:
    told = page(law())

    assert "| Law | Code \\| § 1. |" in told
    assert "| Read in | Read there |" in told


def test_a_date_that_only_an_event_brings_has_no_example() -> None:
    once = {"frequency": "once", "parity": "n/a", "first": "none"}

    told = page(law(due="event:registry_notice+30d", **once))

    assert "no date follows from these facts alone" in told


def test_what_the_law_does_not_ask_has_neither_date_nor_fee() -> None:
    nothing = {"frequency": "none", "parity": "n/a", "first": "none", "due": "none", "fee": []}

    told = page(law(**nothing))

    assert "| The law asks nothing |" in told
    assert "Example" not in told
    assert "| Fee |" not in told


def test_every_page_of_ours_is_up_to_date() -> None:
    out = StringIO()

    call_command("render_packs", "--check", stdout=out)

    assert "up to date" in out.getvalue()
    assert all((OWN_PACKS / code.lower() / "README.md").exists() for code in packs())


def test_a_page_out_of_date_fails_the_check_until_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "us-zz"
    folder.mkdir()
    text = (OWN_PACKS / "us-de" / "pack.toml").read_text(encoding="utf-8")
    (folder / "pack.toml").write_text(text.replace("US-DE", "US-ZZ"), encoding="utf-8")
    (folder / "README.md").write_text("# Another page\n", encoding="utf-8")

    with override_settings(PACKS_DIR=str(tmp_path)):
        with pytest.raises(CommandError, match=r"Out of date: us-zz\. Run"):
            call_command("render_packs", "--check")
        assert (folder / "README.md").read_text(encoding="utf-8") == "# Another page\n"
        call_command("render_packs", stdout=StringIO())
        call_command("render_packs", "--check", stdout=StringIO())

    assert "Delaware (US-ZZ)" in (folder / "README.md").read_text(encoding="utf-8")
