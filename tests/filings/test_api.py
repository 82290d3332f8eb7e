"""A filing from deadline to lane through the API, and who is remembered for it."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from compliance.models import LedgerEntry, Portfolio
from filings.models import Filing, StatusCheck
from portals.models import Intent
from tests.config.world import client_of, filing_in, member
from tests.factories import ANSWERS, DeadlineFactory, PortfolioFactory, RegistrationFactory

pytestmark = pytest.mark.django_db

PREPARE, APPROVE = "filings.prepare_filing", "filings.approve_filing"
WITHDRAW, CHECK = "filings.withdraw_filing", "filings.request_check"


@pytest.fixture
def portfolio() -> Portfolio:
    made: Portfolio = PortfolioFactory()
    return made


@pytest.fixture
def preparer(portfolio: Portfolio) -> APIClient:
    return client_of(member(portfolio, PREPARE, WITHDRAW, APPROVE), PREPARE, WITHDRAW, APPROVE)


@pytest.fixture
def approver(portfolio: Portfolio) -> APIClient:
    return client_of(member(portfolio, APPROVE), APPROVE)


def post(client: APIClient, path: str, **body: Any) -> Any:
    return client.post(f"/api/v1/{path}/", body, format="json")


def people_behind(filing_id: int) -> list[str]:
    """Who stands in the history of a filing, the first first."""
    rows = Filing.history.filter(id=filing_id).order_by("history_id")
    return [row.history_user.username if row.history_user else "" for row in rows]


def test_a_filing_goes_from_deadline_to_lane(
    portfolio: Portfolio, preparer: APIClient, approver: APIClient
) -> None:
    deadline = DeadlineFactory(registration__entity__portfolio=portfolio)

    opened = post(preparer, "filings", deadline=deadline.pk)
    path = f"filings/{opened.json()['id']}"
    edited = preparer.patch(
        f"/api/v1/{path}/", {"answers": ANSWERS["annual-report"]}, format="json"
    )
    checked = post(preparer, f"{path}/check")
    approved = post(approver, f"{path}/approve")

    assert [opened.status_code, edited.status_code] == [201, 200]
    assert checked.json() == {"problems": []}
    assert approved.status_code == 200
    assert approved.json()["status"] == "pending"
    assert approved.json()["payload_sha256"]
    intent = Intent.objects.get(subject_id=opened.json()["id"])
    assert (intent.state, intent.payload_sha256) == ("ready", approved.json()["payload_sha256"])


def test_history_and_ledger_name_the_tokens_user(portfolio: Portfolio) -> None:
    first, second = member(portfolio, PREPARE), member(portfolio, APPROVE)
    deadline = DeadlineFactory(registration__entity__portfolio=portfolio)

    opened = post(client_of(first, PREPARE), "filings", deadline=deadline.pk).json()
    post(client_of(second, APPROVE), f"filings/{opened['id']}/approve")

    assert people_behind(opened["id"]) == [first.username, second.username]
    entries = LedgerEntry.objects.filter(subject=f"filing:{opened['id']}").order_by("seq")
    assert [entry.actor for entry in entries] == [first.username, second.username]


def test_opening_twice_gives_the_same_filing(portfolio: Portfolio, preparer: APIClient) -> None:
    deadline = DeadlineFactory(registration__entity__portfolio=portfolio)

    first = post(preparer, "filings", deadline=deadline.pk).json()
    second = post(preparer, "filings", deadline=deadline.pk).json()

    assert first["id"] == second["id"]


def test_no_filing_is_opened_for_another_portfolios_deadline(preparer: APIClient) -> None:
    theirs = DeadlineFactory()

    answer = post(preparer, "filings", deadline=theirs.pk)
    missing = post(preparer, "filings", deadline=10**9)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert missing.status_code == 404
    assert not Filing.objects.exists()


def test_who_prepared_it_does_not_approve_it(portfolio: Portfolio, preparer: APIClient) -> None:
    deadline = DeadlineFactory(registration__entity__portfolio=portfolio)
    opened = post(preparer, "filings", deadline=deadline.pk).json()

    answer = post(preparer, f"filings/{opened['id']}/approve")

    assert (answer.status_code, answer.json()["code"]) == (409, "four_eyes")


def test_an_incomplete_filing_is_refused_with_every_problem(
    portfolio: Portfolio, preparer: APIClient, approver: APIClient
) -> None:
    filing = filing_in(portfolio)
    preparer.patch(f"/api/v1/filings/{filing.pk}/", {"answers": {}}, format="json")

    checked = post(preparer, f"filings/{filing.pk}/check").json()["problems"]
    answer = post(approver, f"filings/{filing.pk}/approve")

    assert len(checked) >= 2
    assert (answer.status_code, answer.json()["code"]) == (409, "incomplete")
    assert [row["detail"] for row in answer.json()["problems"]] == checked


def test_only_a_draft_is_edited(
    portfolio: Portfolio, preparer: APIClient, approver: APIClient
) -> None:
    filing = filing_in(portfolio)
    post(approver, f"filings/{filing.pk}/approve")

    answer = preparer.patch(f"/api/v1/filings/{filing.pk}/", {"answers": {}}, format="json")

    assert (answer.status_code, answer.json()["code"]) == (409, "not_allowed")


def test_a_filing_is_withdrawn_with_a_reason(portfolio: Portfolio, preparer: APIClient) -> None:
    filing = filing_in(portfolio)

    without = post(preparer, f"filings/{filing.pk}/withdraw")
    answer = post(preparer, f"filings/{filing.pk}/withdraw", reason="Filed by hand.")

    assert without.status_code == 400
    assert without.json()["problems"][0]["pointer"] == "#/reason"
    assert answer.json()["status"] == "withdrawn"


def test_a_standing_is_asked_for_once(portfolio: Portfolio) -> None:
    registration = RegistrationFactory(entity__portfolio=portfolio)
    client = client_of(member(portfolio, CHECK), CHECK)

    first = post(client, f"registrations/{registration.pk}/check_standing")
    second = post(client, f"registrations/{registration.pk}/check_standing")

    assert first.status_code == 200
    assert first.json() == second.json()
    assert StatusCheck.objects.get().requested_by.username == first.json()["requested_by"]


def test_a_jurisdiction_without_a_portal_is_said_to_be_unknown(portfolio: Portfolio) -> None:
    registration = RegistrationFactory(entity__portfolio=portfolio, jurisdiction="US-PR")
    client = client_of(member(portfolio, CHECK), CHECK)

    answer = post(client, f"registrations/{registration.pk}/check_standing")

    assert answer.status_code == 404
    assert "US-PR" in answer.json()["detail"]
