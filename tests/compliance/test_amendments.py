"""Amendments: what they change, what they would do, and what applying them does and leaves."""

import json
from collections.abc import Collection, Iterator
from datetime import date
from decimal import Decimal
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any, TypedDict

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models import F
from django.test import override_settings

from compliance import amendments, ledger
from compliance.amendments import (
    apply_amendment,
    compare_packs,
    impact_of,
    paired,
    preview_amendment,
    read_packs,
)
from compliance.errors import Malformed, NotAllowed, NotFound
from compliance.models import Deadline, LedgerEntry, Registration
from compliance.rules import OWN_PACKS, Pack
from compliance.services import meet_deadlines
from compliance.sync import sync_deadlines
from filings.models import Filing
from tests.factories import FilingFactory, RegistrationFactory, UserFactory

TODAY = date(2026, 11, 18)
THROUGH = date(2028, 5, 18)
DUTY = {
    "id": "annual-report", "title": "Annual report", "applies_to": ["corporation"],
    "frequency": "annual", "due": "fixed:03-01", "first": "next_calendar_year",
    "cite": "Zedland Code § 12", "source": "Zedland Code", "confidence": "medium",
}  # fmt: skip
STAMPS = count(1)


class People(TypedDict):
    """Who applies an amendment, and who approves it."""

    by: User
    approved_by: User


def duty(**changed: Any) -> dict[str, Any]:
    return {**DUTY, "fee": [{"amount": "50.00", "cite": "§ 13"}], **changed}


def law(*duties: dict[str, Any]) -> Pack:
    return Pack.model_validate(
        {
            "jurisdiction": "US-ZZ", "title": "Zedland", "agency": "Registry",
            "verified_on": date(2026, 11, 1), "duty": duties,
        }
    )  # fmt: skip


def text_of(**changed: str) -> str:
    """A pack file with one duty; its fee, date and penalty as told."""
    told = {"due": "fixed:03-01", "fee": "50.00", "penalty": "$10", "id": "annual-report"}
    told |= changed
    return (
        'jurisdiction = "US-ZZ"\ntitle = "Zedland"\nagency = "Registry"\n'
        f'verified_on = 2026-11-01\n[[duty]]\nid = "{told["id"]}"\ntitle = "Annual report"\n'
        f'applies_to = ["corporation"]\nfrequency = "annual"\ndue = "{told["due"]}"\n'
        'first = "next_calendar_year"\nportal = "us-de"\nform = "annual-report"\n'
        'cite = "Zedland Code § 12"\nsource = "Zedland Code"\nconfidence = "medium"\n'
        f'fee = [{{ amount = "{told["fee"]}", cite = "§ 13" }}]\n'
        f'[duty.late]\npenalty = "{told["penalty"]}"\n'
    )


def write(root: Path, **changed: str) -> Path:
    folder = root / "us-zz"
    folder.mkdir(parents=True, exist_ok=True)
    # A comment of its own, so that no two versions are taken for the same file.
    text = f"# version {next(STAMPS)}\n{text_of(**changed)}"
    (folder / "pack.toml").write_text(text, encoding="utf-8")
    return folder


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def told(type: str) -> list[dict[str, Any]]:
    entries = LedgerEntry.objects.filter(type=type).order_by("seq")
    return [json.loads(bytes(entry.body)) for entry in entries]


# --- Comparing ----------------------------------------------------------------------------------


def test_equal_packs_differ_in_nothing() -> None:
    assert compare_packs(law(duty()), law(duty())) == []


def test_each_changed_field_is_told_with_both_values() -> None:
    after = duty(
        due="fixed:04-15", confidence="low", cite="Zedland Code § 12a",
        fee=[{"from": date(2027, 1, 1), "amount": "80.00", "cite": "§ 14"},
             {"amount": "50.00", "cite": "§ 13"}],
        first="first_anniversary", opens="due-60d", late={"flat": "25.00"},
    )  # fmt: skip

    changes = compare_packs(law(duty()), law(after))

    assert {change.what for change in changes} == {"changed"}
    assert {change.field: (change.before, change.after) for change in changes} == {
        "due": ("fixed:03-01", "fixed:04-15"),
        "first": (
            "begins in the calendar year after formation or registration",
            "begins with the first anniversary",
        ),
        "opens": ("", "from 60 days before it is due"),
        "fee": ("50.00 (§ 13)", "80.00 from 2027-01-01 (§ 14); 50.00 (§ 13)"),
        "late.flat": ("", "25.00"),
        "cite": ("Zedland Code § 12", "Zedland Code § 12a"),
        "confidence": ("medium", "low"),
    }


def test_duties_that_share_an_id_are_told_apart_by_kind_and_time() -> None:
    corporations, companies = duty(), duty(applies_to=["llc"])
    ended = duty(until=date(2027, 12, 31))
    begun = duty(**{"from": date(2028, 1, 1), "due": "fixed:05-01"})

    changes = compare_packs(law(companies, corporations), law(begun, ended, companies))

    assert [(one.what, one.applies_to, one.field, one.after) for one in changes] == [
        ("changed", ("corporation",), "until", "2027-12-31"),
        ("added", ("corporation",), "", ""),
    ]


def test_a_duty_that_goes_and_a_pack_that_comes_are_told_whole() -> None:
    gone = compare_packs(law(duty(), duty(id="tax")), law(duty()))
    come = compare_packs(None, law(duty()))

    assert [(one.what, one.duty) for one in gone] == [("removed", "tax")]
    assert [(one.what, one.duty) for one in come] == [("added", "annual-report")]


def test_every_pack_of_ours_equals_itself() -> None:
    ours = read_packs(OWN_PACKS)

    assert len(ours) >= 52
    assert all(compare_packs(pack, pack) == [] for pack in ours.values())


def test_a_single_pack_is_compared_with_its_like_alone() -> None:
    ours, one = read_packs(OWN_PACKS), read_packs(OWN_PACKS / "us-de")

    assert list(paired(ours, one)) == ["US-DE"]
    assert list(paired(ours, ours)) == sorted(ours)
    with pytest.raises(Malformed, match="different jurisdictions"):
        paired(one, read_packs(OWN_PACKS / "us-ny"))


# --- Weighing -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_impact_counts_dates_and_fees_of_the_registrations_there() -> None:
    for _ in range(3):
        RegistrationFactory(jurisdiction="US-ZZ")
    RegistrationFactory(jurisdiction="US-DE")
    RegistrationFactory(jurisdiction="US-ZZ", management=Registration.Management.DORMANT)
    before = law(duty(), duty(id="tax", due="fixed:07-01"))
    after = law(
        duty(due="fixed:04-01"),
        duty(id="tax", due="fixed:07-01", fee=[{"amount": "80.00", "cite": "§ 14"}]),
    )

    impact = impact_of(before, after, since=TODAY, through=THROUGH)

    # Each has two reports (2027, 2028) and one tax (2027) in these days.
    assert (impact.registrations, impact.moved, impact.fees_changed) == (3, 6, 3)
    assert (impact.come, impact.gone, impact.more) == (0, 0, Decimal(90))


@pytest.mark.django_db
def test_a_date_that_leaves_the_days_asked_for_is_still_a_move() -> None:
    RegistrationFactory(jurisdiction="US-ZZ")
    through = date(2027, 3, 15)

    impact = impact_of(law(duty()), law(duty(due="fixed:04-01")), since=TODAY, through=through)

    assert (impact.moved, impact.come, impact.gone) == (1, 0, 0)


@pytest.mark.django_db
def test_duties_that_come_and_go_are_counted_with_their_fees() -> None:
    RegistrationFactory(jurisdiction="US-ZZ")
    both, one = law(duty(), duty(id="tax", due="fixed:07-01")), law(duty())

    come = impact_of(one, both, since=TODAY, through=THROUGH)
    gone = impact_of(both, one, since=TODAY, through=THROUGH)
    none = impact_of(both, None, since=TODAY, through=THROUGH)

    assert (come.come, come.gone, come.more) == (1, 0, Decimal(50))
    assert (gone.come, gone.gone, gone.more) == (0, 1, Decimal(-50))
    assert (none.gone, none.more) == (3, Decimal(-150))


# --- The command diff_packs ---------------------------------------------------------------------


@pytest.mark.django_db
def test_diff_packs_tells_the_law_and_the_impact(tmp_path: Path) -> None:
    RegistrationFactory(jurisdiction="US-ZZ")
    write(tmp_path / "old")
    write(tmp_path / "new", fee="75.00")
    folders = (str(tmp_path / "old"), str(tmp_path / "new"))

    people = run("diff_packs", *folders, "--through=2027-12-31")
    program = json.loads(run("diff_packs", *folders, "--through=2027-12-31", "--json"))

    years = program["packs"][0]["impact"]["fees_changed"]
    assert years >= 1
    assert f"US-ZZ: moves 0 due dates, changes {years} fee" in people
    assert f"${25 * years} more" in people
    assert "fee: 50.00 (§ 13) → 75.00 (§ 13)" in people
    assert program["packs"][0]["impact"]["more"] == f"{25 * years}.00"
    assert [one["field"] for one in program["packs"][0]["changes"]] == ["fee"]


@pytest.mark.django_db
def test_diff_packs_says_when_nothing_differs() -> None:
    assert run("diff_packs", str(OWN_PACKS), str(OWN_PACKS)) == "Both say the same.\n"


@pytest.mark.parametrize(
    ("old", "said"), [("nowhere", "is not a folder"), (".", "There is no pack.toml in")]
)
def test_diff_packs_refuses_folders_without_packs(tmp_path: Path, old: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run("diff_packs", str(tmp_path / old), str(OWN_PACKS))


def test_diff_packs_refuses_a_pack_that_cannot_be_read(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "pack.toml").write_text("title = ", encoding="utf-8")

    with pytest.raises(CommandError, match="not a TOML file"):
        run("diff_packs", str(folder), str(OWN_PACKS))


# --- Applying -----------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder of packs of the operator's, with Zedland in it."""
    write(tmp_path)
    with override_settings(PACKS_DIR=str(tmp_path)):
        yield tmp_path


@pytest.fixture
def registration(db: None, root: Path) -> Registration:
    """A registration whose deadlines are those of the pack before the amendment."""
    made: Registration = RegistrationFactory(jurisdiction="US-ZZ")
    sync_deadlines(through=THROUGH, by=UserFactory(username="sync"), today=TODAY)
    return made


@pytest.fixture
def people(db: None) -> People:
    return {"by": UserFactory(username="ann"), "approved_by": UserFactory(username="ben")}


def dates() -> dict[str, tuple[str, str]]:
    rows = Deadline.objects.filter(registration__jurisdiction="US-ZZ")
    return {row.period: (row.due_on.isoformat(), str(row.fee)) for row in rows}


def test_what_is_not_yet_due_takes_the_new_date_and_fee(
    registration: Registration, root: Path, people: People
) -> None:
    write(root, due="fixed:04-15", fee="75.00", penalty="$20")

    done = apply_amendment("US-ZZ", **people, reason="Act 7 of 2026", today=TODAY)

    # 2026 was due on March 1, 2026: what it costs is the law's, its date is history.
    assert dates() == {
        "2026": ("2026-03-01", "75.00"),
        "2027": ("2027-04-15", "75.00"),
        "2028": ("2028-04-15", "75.00"),
    }
    assert (done.deadlines, done.moved, done.held, done.fees_changed) == (3, 2, 1, 3)
    assert done.more == 75
    rows = Deadline.objects.all()
    assert {(row.penalty, row.pack_sha256) for row in rows} == {("$20", done.pack_sha256)}


def test_each_change_has_its_history_and_entry_and_the_pack_has_one(
    registration: Registration, root: Path, people: People
) -> None:
    write(root, due="fixed:04-15")

    done = apply_amendment("US-ZZ", **people, reason="Act 7 of 2026", today=TODAY)

    moved = Deadline.objects.get(period="2027")
    entry = next(e for e in told("deadline.amended") if e["subject"] == f"deadline:{moved.pk}")
    assert len(told("deadline.amended")) == 3
    assert entry["actor"] == "ann"
    assert entry["portfolio"] == registration.entity.portfolio_id
    assert entry["data"]["approved_by"] == "ben"
    assert entry["data"]["before"]["due_on"] == "2027-03-01"
    assert entry["data"]["after"]["due_on"] == "2027-04-15"
    assert set(entry["data"]["after"]) == {"due_on", "target_on", "pack_sha256"}
    latest = moved.history.latest()
    assert (latest.history_user, latest.history_change_reason) == (people["by"], "Act 7 of 2026")
    (applied,) = told("pack.applied")
    assert applied["subject"] == "pack:US-ZZ"
    assert applied["data"]["pack_sha256"] == done.pack_sha256
    assert (applied["data"]["moved"], applied["data"]["held"]) == (2, 1)
    assert ledger.verify().broken is None


def test_a_deadline_that_is_being_filed_keeps_its_date_and_route(
    registration: Registration, root: Path, people: People
) -> None:
    taken = Deadline.objects.get(period="2027").pk
    write(root, due="fixed:04-15", fee="75.00")

    def busy(deadlines: Collection[int]) -> Collection[int]:
        return {taken} & set(deadlines)

    done = apply_amendment("US-ZZ", **people, reason="Act 7", busy=busy, today=TODAY)

    assert dates()["2027"] == ("2027-03-01", "75.00")
    assert dates()["2028"] == ("2028-04-15", "75.00")
    assert (done.moved, done.held) == (1, 2)


def test_our_own_target_moves_with_the_date_and_never_passes_it(
    registration: Registration, root: Path, people: People
) -> None:
    Deadline.objects.update(target_on=F("due_on"))
    write(root, due="fixed:02-01")

    apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    targets = dict(Deadline.objects.values_list("period", "target_on"))
    assert targets == {
        "2026": date(2026, 3, 1),
        "2027": date(2027, 2, 1),
        "2028": date(2028, 2, 1),
    }


def test_our_own_target_is_not_before_it_can_be_filed(
    registration: Registration, root: Path, people: People
) -> None:
    Deadline.objects.filter(period="2027").update(target_on=date(2027, 1, 1))
    write(root, due="window:02-01..02-15")

    apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    row = Deadline.objects.get(period="2027")
    assert (row.opens_on, row.target_on, row.due_on) == (
        date(2027, 2, 1),
        date(2027, 2, 1),
        date(2027, 2, 15),
    )


def test_a_deadline_due_today_does_not_move(
    registration: Registration, root: Path, people: People
) -> None:
    write(root, due="fixed:04-15")

    apply_amendment("US-ZZ", **people, reason="Act 7", today=date(2027, 3, 1))

    assert dates()["2027"][0] == "2027-03-01"
    assert dates()["2028"][0] == "2028-04-15"


def test_what_is_settled_stays_as_it_was(
    registration: Registration, root: Path, people: People
) -> None:
    met = Deadline.objects.filter(period="2027")
    meet_deadlines(met, on=TODAY, by=people["by"], reason="filed")
    write(root, due="fixed:04-15", fee="75.00")

    apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    assert dates()["2027"] == ("2027-03-01", "50.00")


def test_what_the_law_no_longer_knows_waits_for_a_person(
    registration: Registration, root: Path, people: People
) -> None:
    before = dates()
    write(root, id="another-report")

    done = apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    assert (done.deadlines, done.unknown) == (0, 3)
    assert dates() == before
    assert told("pack.applied") == []


def test_applying_twice_changes_nothing_more(
    registration: Registration, root: Path, people: People
) -> None:
    write(root, fee="75.00")
    apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    again = apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    assert again.deadlines == 0
    assert len(told("deadline.amended")) == 3
    assert len(told("pack.applied")) == 1


def test_deadlines_are_taken_in_chunks_and_all_of_them(
    registration: Registration,
    root: Path,
    people: People,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(amendments, "CHUNK", 2)
    write(root, fee="75.00")

    rehearsed = preview_amendment("US-ZZ", today=TODAY)
    done = apply_amendment("US-ZZ", **people, reason="Act 7", today=TODAY)

    assert rehearsed == done
    assert done.deadlines == 3
    assert {fee for _, fee in dates().values()} == {"75.00"}


def test_one_person_alone_does_not_apply_an_amendment(
    registration: Registration, root: Path, people: People
) -> None:
    write(root, fee="75.00")
    ann = people["by"]

    with pytest.raises(NotAllowed, match="Name two people"):
        apply_amendment("US-ZZ", by=ann, approved_by=ann, reason="Act 7", today=TODAY)
    with pytest.raises(NotAllowed, match="without a reason"):
        apply_amendment("US-ZZ", **people, reason=" ", today=TODAY)
    with pytest.raises(NotFound, match="no pack for"):
        apply_amendment("US-QQ", **people, reason="Act 7", today=TODAY)
    assert {fee for _, fee in dates().values()} == {"50.00"}


# --- The command apply_pack ---------------------------------------------------------------------

PEOPLE = ("--by=ann", "--approved-by=ben", "--reason=Act 7")


@pytest.mark.usefixtures("people")
def test_apply_pack_rehearses_and_then_applies(registration: Registration, root: Path) -> None:
    write(root, fee="75.00")

    rehearsed = run("apply_pack", "us-zz", *PEOPLE, "--dry-run")
    untouched = dates()
    applied = run("apply_pack", "us-zz", *PEOPLE)

    amounts = "3 deadlines of US-ZZ up to its pack: 0 due dates moved, 3 fees changed, $75 more."
    assert rehearsed.strip() == f"Would bring {amounts}"
    assert applied.strip() == f"Brought {amounts}"
    assert {fee for _, fee in untouched.values()} == {"50.00"}
    assert {fee for _, fee in dates().values()} == {"75.00"}


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(("status", "due"), [("draft", "2099-03-01"), ("withdrawn", "2099-04-15")])
def test_apply_pack_leaves_the_date_of_a_live_filing_alone(
    registration: Registration, root: Path, status: str, due: str
) -> None:
    deadline = Deadline.objects.get(period="2028")
    Deadline.objects.filter(pk=deadline.pk).update(period="2099", due_on=date(2099, 3, 1))
    deadline.refresh_from_db()
    FilingFactory(deadline=deadline, status=Filing.Status(status))
    write(root, due="fixed:04-15")

    done = json.loads(run("apply_pack", "US-ZZ", *PEOPLE, "--json"))

    assert dates()["2099"][0] == due
    assert done["deadlines"] == 3
    assert done["dry_run"] is False


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("US-QQ", *PEOPLE), "no pack for “US-QQ”"),
        (("US-ZZ", "--by=ann", "--approved-by=ann", "--reason=x", "--dry-run"), "two people"),
        (("US-ZZ", "--by=ann", "--approved-by=zoe", "--reason=x"), "no active user “zoe”"),
    ],
)
def test_apply_pack_refuses_with_a_sentence(
    root: Path, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        run("apply_pack", *arguments)
