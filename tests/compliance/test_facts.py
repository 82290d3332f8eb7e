"""Traits and events of a registration: told on the record, and the law follows them."""

import json
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from compliance import facts, ledger
from compliance.deadlines import Facts, deadlines_for
from compliance.due import EVENTS
from compliance.errors import DomainError, Malformed, NotAllowed
from compliance.models import (
    Deadline,
    LedgerEntry,
    Portfolio,
    Registration,
    RegistrationEvent,
)
from compliance.rules import pack_of
from compliance.services import facts_of
from compliance.sync import sync_deadlines
from tests.config.world import client_of, member
from tests.desk import staff
from tests.factories import (
    EntityFactory,
    RegistrationEventFactory,
    RegistrationFactory,
    ShareClassFactory,
    UserFactory,
)

TODAY = date(2026, 11, 18)
THROUGH = date(2028, 1, 1)
INSTALMENT = "franchise-tax-instalment"
TRAIT = "de-franchise-tax-5000"
POST = {"_form_submitted": "True"}
TELL = "compliance.change_registration"


@pytest.fixture
def clerk(db: None) -> User:
    return UserFactory(username="clerk")


@pytest.fixture
def delaware(db: None) -> Registration:
    return RegistrationFactory()


@pytest.fixture
def texas(db: None) -> Registration:
    entity = EntityFactory(kind="nonprofit", home_jurisdiction="US-TX")
    return RegistrationFactory(entity=entity, jurisdiction="US-TX")


def sync(by: User) -> Any:
    return sync_deadlines(through=THROUGH, by=by, today=TODAY)


def due(duty: str) -> list[str]:
    rows = Deadline.objects.filter(duty=duty).order_by("due_on")
    return [row.due_on.isoformat() for row in rows]


def told(type: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(bytes(LedgerEntry.objects.get(type=type).body))
    return body


def test_the_events_that_can_be_told_are_those_of_the_due_rules() -> None:
    assert set(RegistrationEvent.Name.values) == set(EVENTS) - {"formation"}


def test_a_trait_brings_its_duty_with_the_next_synchronisation(
    delaware: Registration, clerk: User
) -> None:
    before = sync(clerk)

    row = facts.set_traits(delaware, traits=[TRAIT], by=clerk)
    after = sync(clerk)

    assert row.traits == [TRAIT]
    assert due(INSTALMENT) == [
        "2025-12-01", "2026-06-01", "2026-09-01", "2026-12-01", "2027-06-01", "2027-09-01",
        "2027-12-01",
    ]  # fmt: skip
    assert (after.created, after.kept, after.differing) == (7, before.created, 0)


def test_a_trait_goes_on_the_ledger_and_into_the_history(
    delaware: Registration, clerk: User
) -> None:
    facts.set_traits(delaware, traits=[TRAIT], by=clerk)
    facts.set_traits(delaware, traits=[TRAIT, TRAIT], by=clerk)  # nothing new, so no entry

    entry = told("registration.traits")
    assert entry["subject"] == f"registration:{delaware.pk}"
    assert (entry["actor"], entry["portfolio"]) == ("clerk", delaware.entity.portfolio_id)
    assert entry["data"] == {"came_from": [], "to": [TRAIT]}
    newest = delaware.history.first()
    assert (newest.traits, newest.history_user) == ([TRAIT], clerk)
    assert ledger.verify().broken is None


def test_a_duty_that_no_longer_binds_is_counted_and_left_for_a_person(
    delaware: Registration, clerk: User
) -> None:
    facts.set_traits(delaware, traits=[TRAIT], by=clerk)
    sync(clerk)
    Deadline.objects.filter(duty=INSTALMENT, due_on=date(2026, 6, 1)).update(
        status="met", settled_on=date(2026, 5, 29)
    )

    facts.set_traits(delaware, traits=[], by=clerk)
    counts = sync(clerk)

    assert len(due(INSTALMENT)) == 7
    assert (counts.created, counts.differing) == (0, 6)


@pytest.mark.parametrize(
    ("trait", "where"), [("de-franchise-tax-5000", "texas"), ("nonsense", "delaware")]
)
def test_a_trait_that_decides_nothing_there_is_refused_with_those_that_do(
    trait: str, where: str, request: pytest.FixtureRequest, clerk: User
) -> None:
    registration = request.getfixturevalue(where)

    with pytest.raises(Malformed, match=trait) as refusal:
        facts.set_traits(registration, traits=[trait], by=clerk)

    known = "estimated at \\$5,000 or more" if where == "delaware" else "No trait is asked there"
    assert refusal.match(known)
    assert not LedgerEntry.objects.filter(type="registration.traits").exists()


def test_only_traits_of_the_kind_of_entity_are_asked(db: None) -> None:
    llc = RegistrationFactory(entity__kind="llc")
    corporation = RegistrationFactory()

    assert list(facts.known_traits(llc)) == []
    assert list(facts.known_traits(corporation)) == [TRAIT]


def test_a_notice_starts_the_duty_that_counts_from_it(texas: Registration, clerk: User) -> None:
    sync(clerk)
    assert due("periodic-report") == []

    facts.record_event(
        texas, name="registry_notice", happened_on=date(2026, 10, 2), by=clerk, today=TODAY
    )
    sync(clerk)

    assert due("periodic-report") == ["2026-11-01"]
    entry = told("registration.event")
    assert (entry["data"]["name"], entry["data"]["on"]) == ("registry_notice", "2026-10-02")


def test_an_event_told_twice_is_one_event(texas: Registration, clerk: User) -> None:
    day = date(2026, 10, 2)
    first = facts.record_event(texas, name="registry_notice", happened_on=day, by=clerk)
    second = facts.record_event(texas, name="registry_notice", happened_on=day, by=clerk)

    assert first == second
    assert LedgerEntry.objects.filter(type="registration.event").count() == 1


def test_an_event_that_is_taken_back_counts_no_more_and_stays_on_file(
    texas: Registration, clerk: User
) -> None:
    day = date(2026, 10, 2)
    event = facts.record_event(texas, name="registry_notice", happened_on=day, by=clerk)
    sync(clerk)

    facts.retract_event(event, by=clerk, reason="It was for another company.")
    counts = sync(clerk)

    texas.refresh_from_db()
    assert facts_of(texas).events == {}
    assert (due("periodic-report"), counts.differing) == (["2026-11-01"], 1)
    assert told("registration.event_retracted")["data"]["reason"] == "It was for another company."
    with pytest.raises(NotAllowed, match="taken back already"):
        facts.retract_event(event, by=clerk, reason="again")
    again = facts.record_event(texas, name="registry_notice", happened_on=day, by=clerk)
    assert again != event


@pytest.mark.parametrize(
    ("name", "day", "why"),
    [
        ("formation", date(2020, 1, 1), "no event that a duty counts from"),
        ("registry_notice", date(2019, 3, 13), "before the entity was formed"),
        ("registry_notice", TODAY + timedelta(days=1), "yet to come"),
    ],
)
def test_an_event_that_cannot_be_is_refused(
    name: str, day: date, why: str, texas: Registration, clerk: User
) -> None:
    with pytest.raises(DomainError, match=why):
        facts.record_event(texas, name=name, happened_on=day, by=clerk, today=TODAY)

    assert not RegistrationEvent.objects.exists()


def test_the_end_of_an_award_may_be_told_beforehand(texas: Registration, clerk: User) -> None:
    event = facts.record_event(
        texas, name="pop_end", happened_on=date(2027, 6, 30), by=clerk, today=TODAY
    )

    assert facts_of(texas).events == {"pop_end": (event.happened_on,)}


def test_a_reason_is_asked_for_before_an_event_is_taken_back(clerk: User) -> None:
    event = RegistrationEventFactory()

    with pytest.raises(NotAllowed, match="Say in a sentence why"):
        facts.retract_event(event, by=clerk, reason="  ")


def test_more_registrations_take_no_more_queries_for_their_events(
    clerk: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    RegistrationEventFactory.create_batch(3)
    sync(clerk)
    with CaptureQueriesContext(connection) as few:
        sync(clerk)
    RegistrationEventFactory.create_batch(20)
    sync(clerk)

    with django_assert_num_queries(len(few)):
        sync(clerk)


# --- The hint -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "traits", "hint"),
    [
        (560_000, [], ""),  # $250 and 55 times $85: $4,925
        (560_001, [], "comes to $5,010"),
        (10_000_000, [TRAIT], ""),
        (10_000_000, [], "comes to $85,165"),
        (1_500, [TRAIT], "below $5,000"),
    ],
)
def test_instalments_are_suggested_from_the_tax_and_never_set(
    shares: int, traits: list[str], hint: str, delaware: Registration
) -> None:
    ShareClassFactory(entity=delaware.entity, authorized=shares)
    delaware.traits = traits

    hints = facts.hints_of(delaware)

    assert hint in " ".join(hints)
    assert bool(hint) == bool(hints)
    delaware.refresh_from_db()
    assert delaware.traits == []


def test_without_shares_on_file_nothing_is_suggested(delaware: Registration) -> None:
    assert facts.hints_of(delaware) == []
    assert facts.hints_of(RegistrationFactory(entity__kind="llc")) == []


# --- Properties ---------------------------------------------------------------------------------

DAYS = st.dates(date(2015, 1, 1), date(2030, 12, 31))


@given(notices=st.lists(DAYS, max_size=6, unique=True))
def test_each_notice_starts_one_duty_thirty_days_later(notices: list[date]) -> None:
    described = Facts(
        kind="nonprofit", formed_on=date(2010, 1, 1), events={"registry_notice": tuple(notices)}
    )

    owed = deadlines_for(pack_of("US-TX"), described, date(2040, 1, 1))

    days = [one.due_on for one in owed if one.duty == "periodic-report"]
    assert days == sorted(notice + timedelta(days=30) for notice in notices)


@given(
    kind=st.sampled_from(["corporation", "llc", "nonprofit"]),
    traits=st.sets(st.sampled_from(sorted(pack_of("US").traits))),
    more=st.sets(st.sampled_from(sorted(pack_of("US").traits))),
    ends=st.lists(DAYS, max_size=3),
)
def test_another_trait_takes_no_duty_away(
    kind: str, traits: set[str], more: set[str], ends: list[date]
) -> None:
    def owed(held: set[str]) -> set[tuple[str, str, date]]:
        described = Facts(
            kind=kind,
            formed_on=date(2012, 2, 29),
            traits=frozenset(held),
            events={"pop_end": tuple(ends), "period_end": tuple(ends)},
        )
        found = deadlines_for(pack_of("US"), described, date(2035, 1, 1))
        return {(one.duty, one.period, one.due_on) for one in found}

    assert owed(traits) <= owed(traits | more)


# --- Edges --------------------------------------------------------------------------------------


def change_page(registration: Registration) -> str:
    return reverse("admin:compliance_registration_change", args=[registration.pk])


def posted(registration: Registration, **more: Any) -> dict[str, Any]:
    return {
        "entity": registration.entity_id,
        "jurisdiction": registration.jurisdiction,
        "file_number": registration.file_number,
        "registered_on": registration.registered_on.isoformat(),
        "registered_agent": registration.registered_agent,
        "events-TOTAL_FORMS": "0",
        "events-INITIAL_FORMS": "0",
        **more,
    }


def test_a_preparer_ticks_traits_and_adds_events_on_the_page(
    client: Client, delaware: Registration
) -> None:
    client.force_login(staff("pat", "Preparer", portfolio=delaware.entity.portfolio))
    page = client.get(change_page(delaware)).content.decode()

    answer = client.post(
        change_page(delaware),
        posted(
            delaware,
            traits_held=[TRAIT],
            **{
                "events-TOTAL_FORMS": "1",
                "events-0-registration": str(delaware.pk),
                "events-0-name": "last_filing",
                "events-0-happened_on": "2026-02-27",
            },
        ),
    )

    assert "Its franchise tax of the current year is estimated at $5,000 or more" in page
    assert answer.status_code == 302
    delaware.refresh_from_db()
    assert delaware.traits == [TRAIT]
    assert facts_of(delaware).events == {"last_filing": (date(2026, 2, 27),)}
    assert told("registration.traits")["actor"] == told("registration.event")["actor"] == "pat"


def test_an_event_that_is_refused_on_the_page_changes_nothing(
    client: Client, delaware: Registration
) -> None:
    client.force_login(staff("pat", "Preparer", portfolio=delaware.entity.portfolio))

    answer = client.post(
        change_page(delaware),
        posted(
            delaware,
            traits_held=[TRAIT],
            **{
                "events-TOTAL_FORMS": "1",
                "events-0-registration": str(delaware.pk),
                "events-0-name": "last_filing",
                "events-0-happened_on": "1999-01-01",
            },
        ),
        follow=True,
    )

    assert "before the entity was formed" in answer.content.decode()
    delaware.refresh_from_db()
    assert (delaware.traits, RegistrationEvent.objects.count()) == ([], 0)


def test_an_auditor_reads_the_traits_and_can_tick_none(
    client: Client, delaware: Registration
) -> None:
    ShareClassFactory(entity=delaware.entity, authorized=10_000_000)
    client.force_login(staff("ada", "Auditor", portfolio=delaware.entity.portfolio))

    page = client.get(change_page(delaware)).content.decode()

    assert "None of its traits" in page
    assert "comes to $85,165" in page
    assert 'name="traits_held"' not in page
    assert client.post(change_page(delaware), posted(delaware)).status_code == 403


def test_an_event_is_taken_back_on_its_own_page(db: None, client: Client) -> None:
    event = RegistrationEventFactory()
    client.force_login(staff("pat", "Preparer", portfolio=event.registration.entity.portfolio))

    client.post(
        reverse("admin:compliance_registrationevent_retract", args=[event.pk]),
        {**POST, "reason": "Another company's."},
    )

    event.refresh_from_db()
    assert event.retracted_at is not None


def test_the_api_tells_the_facts_and_takes_them(delaware: Registration) -> None:
    portfolio: Portfolio = delaware.entity.portfolio
    client = client_of(member(portfolio, TELL), "read", TELL)
    address = f"/api/v1/registrations/{delaware.pk}"
    ShareClassFactory(entity=delaware.entity, authorized=10_000_000)

    before = client.get(f"{address}/facts").json()
    client.post(f"{address}/set_traits", {"traits": [TRAIT]}, format="json")
    event = client.post(
        f"{address}/record_event",
        {"name": "last_filing", "happened_on": "2026-02-27"},
        format="json",
    ).json()
    after = client.get(address).json()
    taken = client.post(
        f"{address}/retract_event", {"event": event["id"], "reason": "A slip."}, format="json"
    )

    assert before["traits"] == [
        {"trait": TRAIT, "words": pack_of("US-DE").traits[TRAIT], "holds": False}
    ]
    assert "$85,165" in before["hints"][0]
    assert after["traits"] == [TRAIT]
    assert [(row["name"], row["happened_on"]) for row in after["events"]] == [
        ("last_filing", "2026-02-27")
    ]
    assert taken.json()["retracted_at"]


def test_the_api_refuses_what_it_does_not_know_and_anothers_event(delaware: Registration) -> None:
    client = client_of(member(delaware.entity.portfolio, TELL), "read", TELL)
    address = f"/api/v1/registrations/{delaware.pk}"
    anothers = RegistrationEventFactory()

    unknown = client.post(f"{address}/set_traits", {"traits": ["rich"]}, format="json")
    missing = client.post(
        f"{address}/retract_event", {"event": anothers.pk, "reason": "mine?"}, format="json"
    )

    assert (unknown.status_code, missing.status_code) == (400, 404)
    anothers.refresh_from_db()
    assert anothers.retracted_at is None
