"""Deadlines in the database: created once, never moved, settled on the record."""

import json
from datetime import date
from io import StringIO
from itertools import count
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import override_settings
from pytest_django import DjangoAssertNumQueries

from compliance import ledger, rules, sync
from compliance.errors import NotAllowed
from compliance.models import Deadline, Entity, LedgerEntry, Portfolio, Registration
from compliance.services import meet_deadlines, waive_deadline
from compliance.sync import sync_deadlines

pytestmark = pytest.mark.django_db
TODAY = date(2026, 11, 18)
THROUGH = date(2028, 5, 18)
NUMBERS = count(1_000_000)


@pytest.fixture
def clerk() -> User:
    return User.objects.create_user("clerk")


def register(
    jurisdiction: str = "US-DE",
    *,
    kind: str = "llc",
    foreign: bool = False,
    formed: date = date(2019, 3, 14),
    registered: date | None = None,
) -> Registration:
    portfolio, _ = Portfolio.objects.get_or_create(slug="acme", defaults={"name": "Acme"})
    entity = Entity.objects.create(
        portfolio=portfolio, name="Acme", kind=kind, formed_on=formed, home_jurisdiction="US-DE"
    )
    return Registration.objects.create(
        entity=entity,
        jurisdiction=jurisdiction,
        is_foreign=foreign,
        file_number=str(next(NUMBERS)),
        registered_on=registered or formed,
    )


def entries(type: str) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(type=type).order_by("seq"))


def test_missing_deadlines_are_created_with_history_and_ledger(clerk: User) -> None:
    registration = register()

    counts = sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    made = list(Deadline.objects.order_by("due_on"))
    assert [(row.duty, row.period, row.fee) for row in made] == [
        ("annual-tax", "2026", 300),
        ("annual-tax", "2027", 400),
    ]
    assert (counts.registrations, counts.created, counts.kept) == (1, 2, 0)
    assert [row.history.get().history_user for row in made] == [clerk, clerk]
    told = json.loads(bytes(entries("deadline.owed")[1].body))
    assert told["subject"] == f"deadline:{made[1].pk}"
    assert told["actor"] == "clerk"
    assert told["portfolio"] == registration.entity.portfolio_id
    assert (told["data"]["due_on"], told["data"]["fee"]) == ("2027-06-01", "400.00")
    assert told["data"]["pack_sha256"] == made[1].pack_sha256
    assert ledger.verify().broken is None


def test_a_second_synchronisation_creates_nothing(clerk: User) -> None:
    register("US-CA", kind="corporation")
    first = sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    second = sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    assert first.created > 0
    assert (second.created, second.unchanged, second.differing) == (0, 1, 0)
    assert Deadline.objects.count() == len(entries("deadline.owed")) == first.created


def test_a_later_horizon_adds_only_what_is_new(clerk: User) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    counts = sync_deadlines(through=date(2028, 6, 1), by=clerk, today=TODAY)

    assert (counts.created, counts.kept) == (1, 2)


def test_an_existing_due_date_is_never_moved(clerk: User) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)
    Deadline.objects.filter(period="2027").update(due_on=date(2027, 7, 1))
    later = date(2028, 5, 20)  # a day that was not asked about before, so that all is compared

    counts = sync_deadlines(through=later, by=clerk, today=TODAY)
    again = sync_deadlines(through=later, by=clerk, today=TODAY)

    assert (counts.created, counts.kept, counts.differing) == (0, 2, 1)
    assert again.differing == 1  # told until a person has decided
    assert Deadline.objects.get(period="2027").due_on == date(2027, 7, 1)


@pytest.mark.parametrize(
    ("change", "made"),
    [
        ({"formed_on": date(2018, 1, 2)}, 0),
        ({"fiscal_year_end_month": 6, "fiscal_year_end_day": 30}, 0),
        ({"kind": "corporation"}, 3),  # due each March 1, from a year ago on
    ],
)
def test_changed_facts_are_worked_out_anew(
    clerk: User, change: dict[str, object], made: int
) -> None:
    registration = register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)
    Entity.objects.filter(pk=registration.entity_id).update(**change)

    counts = sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    assert (counts.unchanged, counts.created) == (0, made)


def test_an_amended_pack_is_worked_out_anew(clerk: User, tmp_path: Path) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)
    own = rules.OWN_PACKS / "us-de" / "pack.toml"
    amended = tmp_path / "us-de"
    amended.mkdir()
    (amended / "pack.toml").write_text(f"{own.read_text()}\n# amended\n", encoding="utf-8")
    packs = {"US-DE": rules.read_pack(amended)}

    asked = sync._to_reckon(list(Registration.objects.all()), packs, THROUGH, sync.SyncCounts())

    assert len(asked) == 1


def test_nothing_older_than_a_year_or_than_the_registration_is_owed(clerk: User) -> None:
    register("US-NY", formed=date(2000, 1, 1), registered=date(2026, 10, 1))
    register("US-DE", kind="corporation")

    sync_deadlines(through=TODAY, by=clerk, today=TODAY)

    assert [row.due_on for row in Deadline.objects.all()] == [date(2026, 3, 1)]


def test_a_foreign_registration_counts_from_its_own_date(clerk: User) -> None:
    register("US-CA", kind="corporation", foreign=True, registered=date(2026, 9, 9))

    sync_deadlines(through=date(2027, 12, 31), by=clerk, today=TODAY)

    statements = Deadline.objects.filter(duty="statement-of-information")
    assert [(row.period, row.opens_on, row.due_on) for row in statements] == [
        ("2026-12-08", date(2026, 9, 9), date(2026, 12, 8)),
        ("2027", date(2027, 4, 1), date(2027, 9, 30)),
    ]


def test_registrations_are_taken_in_chunks_and_all_of_them(
    clerk: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "CHUNK", 2)
    for _ in range(5):
        register()
    seen: list[int] = []

    counts = sync_deadlines(through=THROUGH, by=clerk, today=TODAY, on_progress=seen.append)

    assert seen == [2, 4, 5]
    assert (counts.registrations, counts.created) == (5, 10)
    assert Deadline.objects.values("registration").distinct().count() == 5


def test_only_the_chosen_registrations_are_synchronised(clerk: User) -> None:
    chosen, _ = register(), register()

    sync_deadlines(
        Registration.objects.filter(pk=chosen.pk), through=THROUGH, by=clerk, today=TODAY
    )

    assert set(Deadline.objects.values_list("registration", flat=True)) == {chosen.pk}


def test_a_jurisdiction_without_a_pack_is_counted_and_stops_nothing(clerk: User) -> None:
    register("GB")
    register("US-DE")

    counts = sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    assert counts.without_pack == {"GB": 1}
    assert counts.created == 2


def test_deadlines_are_met_on_the_record_and_only_once(clerk: User) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)
    owed = list(Deadline.objects.all())

    moved = meet_deadlines(owed[:1], on=date(2026, 5, 30), by=clerk, reason="Filing accepted")
    again = meet_deadlines(owed, on=date(2026, 6, 9), by=clerk, reason="Filing accepted")

    assert [row.pk for row in moved] == [owed[0].pk]
    assert [row.pk for row in again] == [owed[1].pk]
    met = Deadline.objects.get(pk=owed[0].pk)
    assert (met.status, met.settled_on) == ("met", date(2026, 5, 30))
    assert met.history.count() == 2
    assert met.history.first().history_change_reason == "Filing accepted"
    assert [entry.subject for entry in entries("deadline.met")] == [
        f"deadline:{row.pk}" for row in owed
    ]


def test_a_deadline_is_waived_with_a_reason(clerk: User) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)
    owed = Deadline.objects.earliest("due_on")
    reason = "Merged away before the tax fell due. " * 5

    waived = waive_deadline(owed, on=TODAY, by=clerk, reason=reason)

    assert (waived.status, waived.settled_on) == ("waived", TODAY)
    told = json.loads(bytes(entries("deadline.waived")[0].body))
    assert told["data"]["reason"] == reason


def test_a_settled_deadline_is_not_waived(clerk: User) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)
    owed = Deadline.objects.earliest("due_on")
    meet_deadlines([owed], on=TODAY, by=clerk, reason="Paid")

    with pytest.raises(NotAllowed, match="is already met, and that is final"):
        waive_deadline(owed, on=TODAY, by=clerk, reason="Not needed")

    assert Deadline.objects.get(pk=owed.pk).status == "met"
    assert entries("deadline.waived") == []


def test_a_deadline_is_not_waived_without_a_reason(clerk: User) -> None:
    register()
    sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    with pytest.raises(NotAllowed, match="without a reason"):
        waive_deadline(Deadline.objects.earliest("due_on"), on=TODAY, by=clerk, reason=" ")


def test_synchronising_asks_the_database_the_same_few_questions_for_many(
    clerk: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(40):
        register()

    with django_assert_max_num_queries(25):  # for 80 deadlines, their history and ledger
        sync_deadlines(through=THROUGH, by=clerk, today=TODAY)


# --- The command --------------------------------------------------------------------------------


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("sync_deadlines", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_ends_with_one_line_of_json(clerk: User) -> None:
    register()
    register("GB")

    out, err = run("--through=2028-05-18", "--by=clerk", "--json")

    told = json.loads(out.splitlines()[-1])
    assert told["through"] == "2028-05-18"
    assert told["registrations"] == 2
    assert told["created"] == Deadline.objects.count() > 0
    assert told["without_pack"] == {"GB": 1}
    assert err == "GB has no pack; registrations left out: 1.\n"
    assert {entry.actor for entry in entries("deadline.owed")} == {"clerk"}


def test_the_command_looks_eighteen_months_ahead_as_a_service() -> None:
    register()

    out, _ = run()

    assert out.startswith(f"Deadlines created: {Deadline.objects.count()}; there already: 0;")
    assert {entry.actor for entry in entries("deadline.owed")} == {"sync_deadlines"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--through=2027-02-29"], "“2027-02-29” is not a date"),
        (["--by=nobody"], "no active user “nobody”"),
    ],
)
def test_the_command_refuses_with_a_sentence(arguments: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        run(*arguments)


def test_a_broken_pack_stops_the_command_before_anything_is_created(tmp_path: Path) -> None:
    register()
    (tmp_path / "us-zz").mkdir()

    with (
        override_settings(PACKS_DIR=str(tmp_path)),
        pytest.raises(CommandError, match=r"us-zz/pack\.toml: cannot be read"),
    ):
        run()

    assert Deadline.objects.count() == 0
