"""Grant applications in the admin: opened, filled, given files, and approved by another."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from compliance.models import Entity, Portfolio
from grants.models import Attachment, GrantSubmission
from grants.services import open_submission
from tests.desk import staff
from tests.factories import EntityFactory, OpportunityFactory, PortfolioFactory
from tests.grants.drafts import complete_draft

pytestmark = pytest.mark.django_db
POST = {"_form_submitted": "True"}


@pytest.fixture(autouse=True)
def _own_files(settings: Settings, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


@pytest.fixture
def pia(portfolio: Portfolio) -> User:
    return staff("pia", "Preparer", portfolio=portfolio)


@pytest.fixture
def draft(portfolio: Portfolio, pia: User) -> GrantSubmission:
    entity = EntityFactory(portfolio=portfolio, kind=Entity.Kind.NONPROFIT)
    return open_submission(OpportunityFactory(), entity, by=pia)


def url_of(name: str, row: Any) -> str:
    return reverse(f"admin:grants_{row._meta.model_name}_{name}", args=[row.pk])


def test_an_application_is_opened_for_an_entity_of_ones_own(
    client: Client, pia: User, portfolio: Portfolio
) -> None:
    opportunity = OpportunityFactory()
    mine, hidden = EntityFactory(portfolio=portfolio), EntityFactory()
    client.force_login(pia)
    url = url_of("open_submission", opportunity)

    refused = client.post(url, {**POST, "entity": hidden.pk})
    opened = client.post(url, {**POST, "entity": mine.pk})

    submission = GrantSubmission.objects.get()
    assert "HX-Redirect" not in refused
    assert opened["HX-Redirect"] == url_of("change", submission)
    assert submission.entity == mine


def test_checking_says_what_is_missing(client: Client, pia: User, draft: GrantSubmission) -> None:
    client.force_login(pia)

    answer = client.get(url_of("check_draft", draft))

    told = [str(message) for message in get_messages(answer.wsgi_request)]
    assert any("Project title" in sentence for sentence in told)


def test_an_edit_goes_through_the_service(
    client: Client, pia: User, draft: GrantSubmission
) -> None:
    client.force_login(pia)
    inline = {f"attachments-{name}_FORMS": 0 for name in ("TOTAL", "INITIAL")}

    client.post(url_of("change", draft), {**inline, "answers": json.dumps({"summary": "Books."})})

    draft.refresh_from_db()
    assert draft.answers == {"summary": "Books."}


def test_a_file_is_added_and_taken_away_while_it_is_a_draft(
    client: Client, pia: User, draft: GrantSubmission
) -> None:
    client.force_login(pia)
    upload = SimpleUploadedFile("budget.pdf", b"%PDF-1.4 made up", "application/pdf")

    client.post(
        reverse("admin:grants_attachment_add"),
        {"submission": draft.pk, "name": "budget.pdf", "file": upload},
    )
    kept = Attachment.objects.get()
    client.post(url_of("delete", kept), {"post": "yes"})

    assert (kept.name, kept.size) == ("budget.pdf", 16)
    assert not Attachment.objects.exists()


def test_another_person_approves(client: Client, pia: User, portfolio: Portfolio) -> None:
    draft = complete_draft(entity=EntityFactory(portfolio=portfolio), prepared_by=pia)
    client.force_login(pia)
    own = client.post(url_of("approve", draft), POST)

    client.force_login(staff("ann", "Approver", portfolio=portfolio))
    dialog = client.get(url_of("approve", draft)).content.decode()
    client.post(url_of("approve", draft), POST)

    draft.refresh_from_db()
    assert own.status_code == 403
    assert "budget.xlsx" in dialog
    assert draft.status == "pending"


def test_a_compliance_officer_withdraws_with_a_reason(
    client: Client, pia: User, draft: GrantSubmission, portfolio: Portfolio
) -> None:
    form = {**POST, "reason": "The programme was cancelled."}
    client.force_login(pia)
    refused = client.post(url_of("withdraw", draft), form)

    client.force_login(staff("olga", "Compliance officer", portfolio=portfolio))
    client.post(url_of("withdraw", draft), form)

    draft.refresh_from_db()
    assert refused.status_code == 403
    assert draft.status == "withdrawn"
