"""The preview over the API is the command's, and refuses in words."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from tests.config.world import client_of
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/preview-deadlines/"
ASKED = {
    "jurisdiction": "US-CO",
    "entity_type": "llc",
    "formed": "2019-03-14",
    "from": "2026-01-01",
    "through": "2027-12-31",
}


@pytest.fixture
def client() -> APIClient:
    return client_of(UserFactory(), "read")


def ask(client: APIClient, **changed: Any) -> Any:
    return client.post(ADDRESS, {**ASKED, **changed}, format="json")


def test_the_answer_is_the_list_that_the_command_gives(client: APIClient) -> None:
    out = StringIO()
    options = [f"--{name.replace('_', '-')}={value}" for name, value in ASKED.items()]
    call_command("preview_deadlines", *options, "--json", stdout=out)

    answer = ask(client)

    assert answer.status_code == 200
    assert answer.json() == json.loads(out.getvalue())
    assert [(row["due_on"], row["opens_on"], row["fee"]) for row in answer.json()] == [
        ("2026-05-31", "2026-01-01", "25.00"),
        ("2027-05-31", "2027-01-01", "25.00"),
    ]


def test_the_question_may_stand_in_the_address(client: APIClient) -> None:
    answer = client.post(
        f"{ADDRESS}?jurisdiction=us-ny&entity_type=llc&formed=2010-01-01&foreign=true"
        "&registered=2024-02-29&from=2026-01-01&through=2026-12-31&fiscal_year_end=06-30"
    )

    assert answer.status_code == 200
    due = {row["duty"]: row["due_on"] for row in answer.json()}
    assert due["biennial-statement"] == "2026-02-28"


def test_a_trait_brings_the_duties_that_ask_for_it(client: APIClient) -> None:
    delaware = {"jurisdiction": "US-DE", "entity_type": "corporation"}

    plain = ask(client, **delaware).json()
    large = ask(client, **delaware, trait=["de-franchise-tax-5000"]).json()

    assert {row["duty"] for row in plain} == {"franchise-tax-report"}
    assert {row["duty"] for row in large} == {"franchise-tax-report", "franchise-tax-instalment"}


def test_an_event_brings_the_duty_that_counts_from_it(client: APIClient) -> None:
    texas = {"jurisdiction": "US-TX", "entity_type": "nonprofit"}
    out = StringIO()
    options = [f"--{name.replace('_', '-')}={value}" for name, value in (ASKED | texas).items()]
    event = "registry_notice=2026-03-01"
    call_command("preview_deadlines", *options, f"--event={event}", "--json", stdout=out)

    answer = ask(client, **texas, event=[event]).json()

    assert answer == json.loads(out.getvalue())
    assert [(row["duty"], row["due_on"]) for row in answer] == [("periodic-report", "2026-03-31")]


@pytest.mark.parametrize(
    ("changed", "status", "told"),
    [
        ({"trait": ["de-franchise-tax-5000"]}, 400, "decides no duty of Colorado"),
        ({"event": ["formation=2026-01-01"]}, 400, "is no event. Write it as NAME=YYYY-MM-DD"),
        ({"event": ["last_filing=2026-02-30"]}, 400, "is not a date"),
        ({"jurisdiction": "US-QQ"}, 404, "no pack for “US-QQ”"),
        ({"through": "2025-01-01"}, 400, "through 2025-01-01 is before from 2026-01-01"),
        ({"foreign": True}, 400, "Add registered."),
        ({"fiscal_year_end": "02-30"}, 400, "fiscal_year_end: “02-30” is not a day of the year"),
        ({"formed": "2026-02-30"}, 400, "/formed"),
        ({"entity_type": "club"}, 400, "/entity_type"),
        ({"from": ""}, 400, "/from"),
    ],
)
def test_a_question_that_cannot_be_answered_is_a_problem(
    client: APIClient, changed: dict[str, Any], status: int, told: str
) -> None:
    answer = ask(client, **changed)

    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert told in answer.content.decode()


def test_a_body_that_is_no_object_is_a_problem(client: APIClient) -> None:
    answer = client.post(ADDRESS, [1], format="json")

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_token_without_the_scope_to_read_is_refused() -> None:
    assert ask(client_of(UserFactory(), "filings.prepare_filing")).status_code == 403
    assert ask(APIClient()).status_code == 401
