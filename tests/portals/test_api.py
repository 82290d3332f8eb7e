"""The review queue through the API."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from compliance.models import Portfolio
from filings.models import Filing
from portals.models import Intent, Resolution
from tests.config.world import client_of, fallout_item, member
from tests.factories import PortfolioFactory

pytestmark = pytest.mark.django_db

WORK, RESEND = "portals.work_fallout", "portals.approve_resend"


@pytest.fixture
def portfolio() -> Portfolio:
    made: Portfolio = PortfolioFactory()
    return made


@pytest.fixture
def worker(portfolio: Portfolio) -> APIClient:
    return client_of(member(portfolio, WORK, RESEND), "read", WORK, RESEND)


def post(client: APIClient, path: str, **body: Any) -> Any:
    return client.post(f"/api/v1/{path}/", body, format="json")


def test_an_item_tells_why_it_waits_and_what_may_be_done(
    portfolio: Portfolio, worker: APIClient
) -> None:
    item = fallout_item(portfolio, cause="filed_elsewhere")

    answer = worker.get(f"/api/v1/fallout/{item.pk}/").json()

    assert answer["cause_in_words"] == "Somebody already filed it"
    assert {offer["verb"]: offer["is_allowed"] for offer in answer["offers"]} == {
        "adopt": True, "replay": False, "withdraw": True,
    }  # fmt: skip


def test_an_item_is_worked_on_by_one_person(portfolio: Portfolio, worker: APIClient) -> None:
    item = fallout_item(portfolio)
    other = client_of(member(portfolio, WORK), WORK)

    claimed = post(worker, f"fallout/{item.pk}/claim")
    refused = post(other, f"fallout/{item.pk}/claim")
    post(worker, f"fallout/{item.pk}/release")
    then = post(other, f"fallout/{item.pk}/claim")

    assert claimed.json()["claimed_by"]
    assert refused.status_code == 409
    assert then.status_code == 200
    assert then.json()["claimed_by"] != claimed.json()["claimed_by"]


def test_an_adopted_item_leaves_the_queue_and_its_filing_is_accepted(
    portfolio: Portfolio, worker: APIClient
) -> None:
    item = fallout_item(portfolio)
    post(worker, f"fallout/{item.pk}/claim")

    answer = post(worker, f"fallout/{item.pk}/adopt", number="DE-1", reason="Seen on the site.")

    assert answer.json()["state"] == "accepted"
    assert Filing.objects.get(pk=item.subject_id).confirmation_number == "DE-1"
    assert worker.get("/api/v1/fallout/").json()["count"] == 0
    assert worker.get(f"/api/v1/intents/{item.pk}/").json()["number"] == "DE-1"
    assert post(worker, f"fallout/{item.pk}/claim").status_code == 404


def test_an_item_is_withdrawn(portfolio: Portfolio, worker: APIClient) -> None:
    item = fallout_item(portfolio)
    post(worker, f"fallout/{item.pk}/claim")

    second = client_of(member(portfolio, RESEND), RESEND)

    asked = post(worker, f"fallout/{item.pk}/withdraw", reason="No trace of it.").json()
    post(second, f"resolutions/{asked['id']}/approve")

    item.refresh_from_db()
    assert asked["was_carried_out"] is False  # it may have arrived: one person is not enough
    assert item.state == "withdrawn"


def test_a_resend_takes_a_second_person(portfolio: Portfolio, worker: APIClient) -> None:
    item = fallout_item(portfolio)
    second = client_of(member(portfolio, RESEND), RESEND)
    post(worker, f"fallout/{item.pk}/claim")
    asked = post(worker, f"fallout/{item.pk}/request_replay", reason="Not there.").json()

    alone = post(worker, f"resolutions/{asked['id']}/approve")
    together = post(second, f"resolutions/{asked['id']}/approve")

    assert (alone.status_code, alone.json()["code"]) == (409, "four_eyes")
    assert together.json()["was_carried_out"] is True
    assert Intent.objects.get(pk=item.pk).state == "ready"
    people = {row.history_user.username for row in Resolution.history.all()}
    assert people == {asked["requested_by"], together.json()["approved_by"]}


def test_a_refused_resend_leaves_the_item_in_the_queue(
    portfolio: Portfolio, worker: APIClient
) -> None:
    item = fallout_item(portfolio)
    post(worker, f"fallout/{item.pk}/claim")
    asked = post(worker, f"fallout/{item.pk}/request_replay", reason="Not there.").json()

    answer = post(worker, f"resolutions/{asked['id']}/refuse", reason="It is there.")

    assert answer.json()["was_carried_out"] is False
    assert worker.get("/api/v1/fallout/").json()["count"] == 1
    assert worker.get("/api/v1/resolutions/", {"is_open": "true"}).json()["count"] == 0
