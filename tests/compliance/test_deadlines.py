"""What the law asks of one registration: properties of all packs, and the two pure commands."""

import json
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.deadlines import Facts, case_failure, deadlines_for, duties_without_case
from compliance.rules import KINDS, OWN_PACKS, Case, Pack, read_cases, read_pack

DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))
FOLDERS = sorted(path.parent for path in OWN_PACKS.glob("*/pack.toml"))
PACKS = st.sampled_from([read_pack(folder) for folder in FOLDERS])
FACTS = st.builds(
    Facts,
    kind=st.sampled_from(KINDS),
    formed_on=DAYS,
    is_foreign=st.booleans(),
    registered_on=DAYS,
    ended_on=st.none() | DAYS,
    fiscal_year_end=st.tuples(st.integers(1, 12), st.integers(1, 31)),
    traits=st.sets(st.sampled_from(["de-franchise-tax-5000", "ca-total-income-250000"])).map(
        frozenset
    ),
)


def pack(code: str) -> Pack:
    return read_pack(OWN_PACKS / code)


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def preview(**options: str) -> list[dict[str, Any]]:
    given = {
        "jurisdiction": "US-DE", "entity_type": "llc", "formed": "2019-03-14",
        "from": "2026-01-01", "through": "2027-12-31", **options,
    }  # fmt: skip
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    flags = ["--foreign"] if "registered" in options else []
    found: list[dict[str, Any]] = json.loads(
        run("preview_deadlines", *arguments, *flags, "--json")
    )
    return found


@settings(deadline=None)
@given(PACKS, FACTS, DAYS, DAYS)
def test_deadlines_are_total_ordered_and_named_once(
    law: Pack, facts: Facts, one: date, other: date
) -> None:
    since, through = sorted((one, other))

    found = deadlines_for(law, facts, through, since)

    assert all(since <= owed.due_on <= through for owed in found)
    assert all(owed.opens_on is None or owed.opens_on <= owed.due_on for owed in found)
    assert all(owed.opens_on is None or owed.opens_on >= facts.base for owed in found)
    assert all(owed.due_on >= facts.base and owed.citation for owed in found)
    assert all(earlier.due_on <= later.due_on for earlier, later in pairwise(found))
    assert len({(owed.duty, owed.period) for owed in found}) == len(found)


@settings(deadline=None)
@given(PACKS, FACTS, DAYS, DAYS, DAYS)
def test_asking_in_parts_gives_the_same_deadlines(
    law: Pack, facts: Facts, one: date, other: date, third: date
) -> None:
    since, middle, through = sorted((one, other, third))

    whole = deadlines_for(law, facts, through, since)

    later = deadlines_for(law, facts, through, middle + timedelta(days=1))
    assert whole == deadlines_for(law, facts, middle, since) + later


def test_nothing_is_owed_before_it_exists_or_after_it_ended() -> None:
    facts = Facts(kind="llc", formed_on=date(2024, 5, 5), ended_on=date(2026, 6, 1))

    found = deadlines_for(pack("us-de"), facts, date(2030, 1, 1))

    assert [owed.due_on for owed in found] == [date(2025, 6, 1), date(2026, 6, 1)]


def test_a_conditional_duty_binds_only_whom_it_names() -> None:
    plain = Facts(kind="corporation", formed_on=date(2019, 1, 1))
    large = Facts(
        kind="corporation",
        formed_on=date(2019, 1, 1),
        traits=frozenset({"de-franchise-tax-5000"}),
    )
    year = (date(2026, 12, 31), date(2026, 1, 1))

    assert [owed.duty for owed in deadlines_for(pack("us-de"), plain, *year)] == [
        "franchise-tax-report"
    ]
    assert len(deadlines_for(pack("us-de"), large, *year)) == 4


def test_a_corporations_fee_says_what_it_leaves_out() -> None:
    facts = Facts(kind="corporation", formed_on=date(2019, 1, 1))

    (owed,) = deadlines_for(pack("us-de"), facts, date(2027, 12, 31), date(2027, 1, 1))

    assert (owed.fee, owed.formula) == (Decimal("50.00"), "de_franchise_tax")
    assert (owed.portal, owed.form, owed.currency) == ("us-de", "annual-report", "USD")
    assert owed.penalty.startswith("$200")


def test_where_one_law_follows_another_the_earlier_date_of_a_period_counts(
    tmp_path: Path,
) -> None:
    text = (OWN_PACKS / "us-ny" / "pack.toml").read_text(encoding="utf-8")
    head, old, *_ = text.replace("US-NY", "US-ZZ").split("[[duty]]")
    first = old.replace("fee = [", "until = 2026-04-30\nfee = [")
    second = old.replace("fee = [", "from = 2026-05-01\nfee = [")
    second = second.replace("anniversary_month_end", "fixed:10-01")
    folder = tmp_path / "us-zz"
    folder.mkdir()
    (folder / "pack.toml").write_text("[[duty]]".join([head, first, second]), encoding="utf-8")
    facts = Facts(kind="corporation", formed_on=date(2020, 4, 17))

    found = deadlines_for(read_pack(folder), facts, date(2029, 12, 31), date(2024, 1, 1))

    assert [(owed.period, owed.due_on.isoformat()) for owed in found] == [
        ("2024", "2024-04-30"),
        ("2026", "2026-04-30"),
        ("2028", "2028-10-01"),
    ]
    assert deadlines_for(read_pack(folder), facts, date(2026, 12, 31), date(2026, 5, 1)) == []


# --- Cases that do not hold ---------------------------------------------------------------------


def changed(case: Case, **values: object) -> Case:
    return case.model_copy(update=values)


def test_a_case_that_departs_from_the_pack_says_how() -> None:
    law, case = pack("us-de"), read_cases(OWN_PACKS / "us-de")[0]
    wrong_fee = [one.model_copy(update={"fee": Decimal("51.00")}) for one in case.expect]

    assert case_failure(law, changed(case, expect=())).startswith("the pack gives 2026-03-01")
    assert "fee is 50.00, not 51.00" in case_failure(law, changed(case, expect=wrong_fee))
    assert case_failure(law, changed(case, duty="party")) == (
        "no duty “party” binds a domestic-corporation"
    )


def test_a_duty_whose_case_is_taken_away_is_missed() -> None:
    cases = [case for case in read_cases(OWN_PACKS / "us-ny") if case.kind != "lp"]

    missed = duties_without_case(pack("us-ny"), cases)

    assert [duty.applies_to for duty in missed] == [("lp",)]


# --- Commands -----------------------------------------------------------------------------------


def test_a_preview_tells_the_deadlines_as_json() -> None:
    assert preview() == [
        {
            "duty": "annual-tax", "period": year, "opens_on": None, "due_on": f"{year}-06-01",
            "fee": fee, "citation": "6 Del. C. §§ 18-1107, 18-1108; HB 400, 85 Del. Laws c. 273",
            "confidence": "high",
        }
        for year, fee in (("2026", "300.00"), ("2027", "400.00"))
    ]  # fmt: skip


def test_a_preview_of_a_foreign_entity_counts_from_its_registration() -> None:
    found = preview(jurisdiction="us-ny", registered="2024-02-29")

    assert [one["due_on"] for one in found if one["duty"] == "biennial-statement"] == [
        "2026-02-28"
    ]


def test_a_preview_for_people_is_a_table() -> None:
    told = run(
        "preview_deadlines", "--jurisdiction=US-DE", "--entity-type=lp", "--formed=2019-03-14",
        "--from=2026-01-01", "--through=2026-12-31",
    )  # fmt: skip

    assert "2026-0" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"jurisdiction": "US-QQ"}, "no pack for “US-QQ”"),
        ({"formed": "2026-02-30"}, "“2026-02-30” is not a date"),
        ({"fiscal_year_end": "02-30"}, "is not a day of the year"),
        ({"through": "2025-01-01"}, "is before --from"),
        ({"entity_type": "club"}, "is no kind of entity"),
    ],
)
def test_a_preview_refuses_with_a_sentence(options: dict[str, str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        preview(**options)


def test_a_preview_of_a_foreign_entity_asks_for_its_registration() -> None:
    with pytest.raises(CommandError, match="Add --registered"):
        run(
            "preview_deadlines", "--jurisdiction=US-DE", "--entity-type=llc", "--foreign",
            "--formed=2019-03-14", "--from=2026-01-01", "--through=2026-12-31",
        )  # fmt: skip


def test_check_packs_shows_what_is_covered() -> None:
    told = run("check_packs")

    assert all(code in told for code in ("US-CA", "US-DE", "US-NY"))
    assert "cases are as they should be" in told


def test_check_packs_fails_on_any_pack_that_is_wrong_and_reads_the_others(tmp_path: Path) -> None:
    for code in ("us-aa", "us-zz"):
        (tmp_path / code).mkdir()
    text = (OWN_PACKS / "us-de" / "pack.toml").read_text(encoding="utf-8")
    (tmp_path / "us-zz" / "pack.toml").write_text(text.replace("US-DE", "US-ZZ"), "utf-8")
    (tmp_path / "us-zz" / "cases.toml").write_text(
        '[[case]]\nname = "Wrong"\nduty = "annual-tax"\nkind = "llc"\nformed = 2020-01-01\n'
        "from = 2026-01-01\nthrough = 2026-12-31\nexpect = [{ due = 2026-06-02 }]\n",
        encoding="utf-8",
    )
    errors = StringIO()

    with (
        override_settings(PACKS_DIR=str(tmp_path)),
        pytest.raises(CommandError, match="8 problems in "),
    ):
        call_command("check_packs", stdout=StringIO(), stderr=errors)

    told = errors.getvalue()
    assert "us-aa/pack.toml: cannot be read" in told
    assert "Wrong: the pack gives 2026-06-01" in told
    assert "no case tests the duty “franchise-tax-report”" in told
