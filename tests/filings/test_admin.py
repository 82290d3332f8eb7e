"""Filings in the admin: drafts are edited, others approve, and what is sent is seen before."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from compliance.models import Portfolio
from filings.models import Filing, StatusCheck
from filings.services import approve_filing
from tests.desk import staff
from tests.factories import (
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    PortfolioFactory,
    RegistrationFactory,
)

pytestmark = pytest.mark.django_db
POST = {"_form_submitted": "True"}


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


@pytest.fixture
def pia(portfolio: Portfolio) -> User:
    return staff("pia", "Preparer", portfolio=portfolio)


@pytest.fixture
def ann(portfolio: Portfolio) -> User:
    return staff("ann", "Approver", portfolio=portfolio)


def draft_in(portfolio: Portfolio, *, fee: int = 50, **values: Any) -> Filing:
    registration = RegistrationFactory(entity=EntityFactory(portfolio=portfolio))
    deadline = DeadlineFactory(registration=registration, fee=Decimal(fee))
    return FilingFactory(deadline=deadline, **values)


def url_of(name: str, row: Any) -> str:
    return reverse(f"admin:filings_filing_{name}", args=[row.pk])


def told(answer: Any) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def test_checking_says_what_is_missing(client: Client, pia: User, portfolio: Portfolio) -> None:
    draft = draft_in(portfolio, answers={"officers": []})
    client.force_login(pia)

    answer = client.get(url_of("check_draft", draft))

    assert told(answer) == [
        "principal_address is missing. Add the principal office on the entity's page.",
        "officers is missing. Add a current officer on the entity's page.",
    ]


def test_the_dialog_shows_the_fee_and_what_will_be_sent(
    client: Client, ann: User, portfolio: Portfolio
) -> None:
    draft = draft_in(portfolio, fee=1250)
    client.force_login(ann)

    text = client.get(url_of("approve", draft)).content.decode()

    assert "$1,250" in text
    assert "Delaware Division of Corporations" in text
    assert "simulated" in text
    assert "&quot;fee_cents&quot;: 125000" in text


def test_approving_queues_the_filing(client: Client, ann: User, portfolio: Portfolio) -> None:
    draft = draft_in(portfolio)
    client.force_login(ann)

    answer = client.post(url_of("approve", draft), POST)

    draft.refresh_from_db()
    assert answer["HX-Redirect"] == url_of("change", draft)
    assert (draft.status, draft.approved_by) == ("pending", ann)


def test_a_preparer_cannot_approve(client: Client, pia: User, portfolio: Portfolio) -> None:
    draft = draft_in(portfolio)
    client.force_login(pia)

    answer = client.post(url_of("approve", draft), POST)

    draft.refresh_from_db()
    assert answer.status_code == 403
    assert draft.status == "draft"


def test_nobody_approves_what_they_prepared(client: Client, portfolio: Portfolio) -> None:
    both = staff("bo", "Preparer", "Approver", portfolio=portfolio)
    draft = draft_in(portfolio, prepared_by=both)
    client.force_login(both)

    answer = client.post(url_of("approve", draft), POST)

    draft.refresh_from_db()
    assert "somebody else must approve it" in told(answer)[0]
    assert draft.status == "draft"


def test_anothers_filing_is_not_found(client: Client, ann: User) -> None:
    draft = draft_in(PortfolioFactory())
    client.force_login(ann)

    assert client.get(url_of("approve", draft)).status_code == 404
    assert client.post(url_of("approve", draft), POST).status_code == 404
    assert client.get(url_of("check_draft", draft)).status_code == 404


def test_withdrawing_takes_a_reason(client: Client, portfolio: Portfolio) -> None:
    draft = draft_in(portfolio)
    client.force_login(staff("olga", "Compliance officer", portfolio=portfolio))
    url = url_of("withdraw", draft)

    without = client.post(url, {**POST, "reason": " "})
    draft.refresh_from_db()
    status = draft.status
    client.post(url, {**POST, "reason": "Sold the company."})

    draft.refresh_from_db()
    assert "This field is required." in without.content.decode()
    assert (status, draft.status) == ("draft", "withdrawn")


def test_an_edit_makes_the_editor_the_preparer(
    client: Client, pia: User, portfolio: Portfolio
) -> None:
    draft = draft_in(portfolio)
    answers = {**draft.answers, "registered_agent": "New Agents LLC"}
    client.force_login(pia)

    client.post(url_of("change", draft), {"answers": json.dumps(answers)})

    draft.refresh_from_db()
    assert (draft.answers, draft.prepared_by) == (answers, pia)
    assert draft.history.first().history_user == pia


def test_what_was_approved_cannot_be_edited(
    client: Client, pia: User, ann: User, portfolio: Portfolio
) -> None:
    filing = approve_filing(draft_in(portfolio), by=ann)
    client.force_login(pia)

    answer = client.post(url_of("change", filing), {"answers": "{}", "status": "accepted"})

    filing.refresh_from_db()
    assert answer.status_code == 403
    assert (filing.status, bool(filing.answers)) == ("pending", True)


def test_answers_that_are_no_fields_are_refused_with_a_sentence(
    client: Client, pia: User, portfolio: Portfolio
) -> None:
    draft = draft_in(portfolio)
    client.force_login(pia)

    answer = client.post(url_of("change", draft), {"answers": "[1, 2]"})

    assert "Write the fields as" in answer.content.decode()


def test_approving_many_says_how_far_it_reaches_and_asks_for_the_number(
    client: Client, ann: User, portfolio: Portfolio
) -> None:
    drafts = [draft_in(portfolio, fee=fee) for fee in (1000, 250)]
    own = draft_in(portfolio, prepared_by=ann)
    client.force_login(ann)
    url = reverse("admin:filings_filing_changelist")
    chosen = {
        "action": "approve_selected",
        "_selected_action": [row.pk for row in (*drafts, own)],
    }

    page = client.post(url, chosen)
    digest = page.context["chosen"].digest
    wrong = client.post(url, {**chosen, "digest": digest, "typed": "3"})
    still = set(Filing.objects.values_list("status", flat=True))
    right = client.post(url, {**chosen, "digest": digest, "typed": "2"})

    text = page.content.decode()
    assert "Approve 2 filings, $1,250 in fees" in text
    assert "You prepared it, so somebody else must approve it." in text
    assert "Type the number of filings: 2." in wrong.content.decode()
    assert still == {"draft"}
    assert told(right) == ["Approved 2 filings, $1,250 in fees. They wait for their portals."]
    assert {row.status for row in Filing.objects.exclude(pk=own.pk)} == {"pending"}


def test_an_approval_of_many_holds_only_for_what_was_shown(
    client: Client, ann: User, pia: User, portfolio: Portfolio
) -> None:
    draft = draft_in(portfolio)
    client.force_login(ann)
    url = reverse("admin:filings_filing_changelist")
    chosen = {"action": "approve_selected", "_selected_action": [draft.pk]}
    digest = client.post(url, chosen).context["chosen"].digest

    Filing.objects.filter(pk=draft.pk).update(
        answers={**draft.answers, "registered_agent": "Another agent"}
    )
    answer = client.post(url, {**chosen, "digest": digest, "typed": "1"})

    draft.refresh_from_db()
    assert "Something changed since you looked." in answer.content.decode()
    assert draft.status == "draft"


def test_a_filing_is_opened_from_its_deadline(
    client: Client, pia: User, portfolio: Portfolio
) -> None:
    registration = RegistrationFactory(entity=EntityFactory(portfolio=portfolio))
    deadline = DeadlineFactory(registration=registration)
    client.force_login(pia)

    url = reverse("admin:compliance_deadline_open_filing", args=[deadline.pk])
    answer = client.post(url, POST)

    filing = Filing.objects.get()
    assert (filing.deadline, filing.prepared_by) == (deadline, pia)
    assert answer["HX-Redirect"] == url_of("change", filing)


def test_the_registry_is_asked_from_the_registration(
    client: Client, pia: User, portfolio: Portfolio
) -> None:
    registration = RegistrationFactory(entity=EntityFactory(portfolio=portfolio))
    client.force_login(pia)
    url = reverse("admin:compliance_registration_ask_registry", args=[registration.pk])

    looked = client.get(url)
    before = StatusCheck.objects.count()
    client.post(url, POST)

    assert looked.status_code == 200
    assert (before, StatusCheck.objects.get().registration) == (0, registration)


def test_a_deadline_is_waived_with_a_reason(client: Client, portfolio: Portfolio) -> None:
    registration = RegistrationFactory(entity=EntityFactory(portfolio=portfolio))
    deadline = DeadlineFactory(registration=registration)
    client.force_login(staff("olga", "Compliance officer", portfolio=portfolio))

    url = reverse("admin:compliance_deadline_waive", args=[deadline.pk])
    client.post(url, {**POST, "reason": "The state waived it for everybody."})

    deadline.refresh_from_db()
    assert deadline.status == "waived"
