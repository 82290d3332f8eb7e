"""A grant submission's moves through the API."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from grants.models import GrantSubmission
from tests.config.world import client_of, member
from tests.grants.drafts import complete_draft

pytestmark = pytest.mark.django_db

MOVES = ("grants.prepare_grant", "grants.approve_grant", "grants.withdraw_grant")


@pytest.fixture
def draft(settings: Settings, tmp_path: Path) -> GrantSubmission:
    """A draft that nothing stands in the way of."""
    settings.MEDIA_ROOT = tmp_path
    return complete_draft()


@pytest.fixture
def client(draft: GrantSubmission) -> APIClient:
    """Somebody else than its preparer, who may do everything."""
    return client_of(member(draft.portfolio, *MOVES), "read", *MOVES)


def post(client: APIClient, draft: GrantSubmission, move: str, **body: Any) -> Any:
    return client.post(f"/api/v1/grant-submissions/{draft.pk}/{move}/", body, format="json")


def test_a_complete_draft_is_approved_by_another_person(
    draft: GrantSubmission, client: APIClient
) -> None:
    checked = post(client, draft, "check")
    approved = post(client, draft, "approve")

    assert checked.json() == {"problems": []}
    assert approved.json()["status"] == "pending"
    newest = GrantSubmission.history.filter(id=draft.pk).latest("history_id")
    assert newest.history_user.username == approved.json()["approved_by"]


def test_an_incomplete_draft_is_refused_with_its_flags(
    draft: GrantSubmission, client: APIClient
) -> None:
    GrantSubmission.objects.filter(pk=draft.pk).update(answers={})

    flags = post(client, draft, "check").json()["problems"]
    answer = post(client, draft, "approve")

    assert "MISSING_REQUIRED_FIELD" in {flag["flag"] for flag in flags}
    assert (answer.status_code, answer.json()["code"]) == (409, "incomplete")


def test_a_draft_is_withdrawn_with_a_reason(draft: GrantSubmission, client: APIClient) -> None:
    answer = post(client, draft, "withdraw", reason="The funder has closed.")

    assert answer.json()["status"] == "withdrawn"


def test_an_attachment_is_shown_by_its_digest_and_not_by_its_place(
    draft: GrantSubmission, client: APIClient
) -> None:
    shown = client.get(f"/api/v1/grant-submissions/{draft.pk}/").json()["attachments"]

    assert [sorted(row) for row in shown] == [["content_type", "id", "name", "sha256", "size"]]
