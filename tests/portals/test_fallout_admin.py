"""The review queue: worst first, everything on one page, and two people for a resend."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from compliance.models import Portfolio
from filings.models import Filing
from portals.fallout import claim_item, request_replay
from portals.models import Intent, Resolution
from tests.desk import fallen, staff
from tests.factories import (
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    PortfolioFactory,
    RegistrationFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


@pytest.fixture
def olga(portfolio: Portfolio) -> User:
    return staff("olga", "Compliance officer", portfolio=portfolio)


@pytest.fixture
def ann(portfolio: Portfolio) -> User:
    return staff("ann", "Approver", portfolio=portfolio)


def item_in(portfolio: Portfolio, **values: Any) -> Intent:
    entity = EntityFactory(portfolio=portfolio, name=values.pop("name", "Harbor, Inc."))
    deadline = DeadlineFactory(registration=RegistrationFactory(entity=entity))
    return fallen(FilingFactory(deadline=deadline), **values)


def page_of(intent: Intent) -> str:
    return reverse("admin:portals_fallout_item", args=[intent.pk])


def test_an_empty_queue_says_so(client: Client, olga: User) -> None:
    client.force_login(olga)

    page = client.get(reverse("admin:portals_fallout"))

    assert "Nothing waits for a person." in page.content.decode()


def test_the_queue_is_grouped_by_cause_with_the_costliest_first(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    item_in(portfolio, name="First, Inc.")
    costly = item_in(portfolio, name="Costly, Inc.", cause="changed")
    Intent.objects.filter(pk=costly.pk).update(cost=2500)
    client.force_login(olga)

    page = client.get(reverse("admin:portals_fallout"))

    groups = page.context["groups"]
    assert [group.cause for group in groups] == ["changed", "in_doubt"]
    assert groups[0].rows[0].per_day == "$600"
    assert "2 items wait for a person. Begin with Annual report 2026: Costly, Inc." in (
        page.content.decode()
    )


def test_a_cause_can_be_shown_alone(client: Client, olga: User, portfolio: Portfolio) -> None:
    item_in(portfolio)
    item_in(portfolio, cause="changed")
    client.force_login(olga)

    page = client.get(reverse("admin:portals_fallout"), {"cause": "changed"})

    assert [group.cause for group in page.context["groups"]] == ["changed"]


def test_the_queue_takes_as_many_queries_for_many_items_as_for_few(
    client: Client, olga: User, portfolio: Portfolio, django_assert_max_num_queries: Any
) -> None:
    for _ in range(8):
        item_in(portfolio)
    client.force_login(olga)

    with django_assert_max_num_queries(14):
        client.get(reverse("admin:portals_fallout"))


def test_anothers_items_are_not_found(client: Client, olga: User) -> None:
    hidden = item_in(PortfolioFactory(), name="Hidden, Inc.")
    client.force_login(olga)

    queue = client.get(reverse("admin:portals_fallout")).content.decode()
    look = client.get(page_of(hidden))
    act = client.post(page_of(hidden), {"verb": "claim"})

    assert "Hidden" not in queue
    assert (look.status_code, act.status_code) == (404, 404)


def test_who_may_not_see_intents_does_not_see_the_queue(
    client: Client, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    client.force_login(staff("new", portfolio=portfolio))

    assert client.get(reverse("admin:portals_fallout")).status_code == 403
    assert client.get(page_of(item)).status_code == 404


def test_the_page_tells_the_story_and_shows_the_evidence_escaped(
    client: Client, olga: User, portfolio: Portfolio, ann: User
) -> None:
    item = item_in(portfolio, by=ann)
    client.force_login(olga)

    page = client.get(page_of(item))

    text = page.content.decode()
    told = [line.words for line in page.context["story"]]
    assert told[:2] == ["ann approved it", "Sent"]
    assert told[-1] == "It was put before a person"
    assert "7b 22 66 6f 72 6d 22" in text  # {"form" in hexadecimal
    assert "Idempotency-Key" in text
    assert "status 504 after 10000 ms" in text
    assert "by the rule “504 after sending”, NETWORK_TIMEOUT" in text
    assert "&lt;script&gt;alert(&#x27;from the portal&#x27;)" in text
    assert "<script>alert" not in text


def test_verbs_are_greyed_until_the_item_is_claimed(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    client.force_login(olga)
    before = client.get(page_of(item)).context["choices"]

    client.post(page_of(item), {"verb": "claim"})
    after = client.get(page_of(item)).context["choices"]

    assert all("Claim the item first" in choice.refusal for choice in before)
    assert [choice.refusal for choice in after] == ["", "", ""]


def test_a_verb_that_would_file_twice_stays_greyed(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio, cause="filed_elsewhere")
    claim_item(item, by=olga)
    client.force_login(olga)

    refusals = {
        choice.verb: choice.refusal for choice in client.get(page_of(item)).context["choices"]
    }

    assert "file twice" in refusals["replay"]
    assert refusals["adopt"] == refusals["withdraw"] == ""


def test_looking_changes_nothing_and_so_does_a_verb_by_who_may_only_look(
    client: Client, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    client.force_login(staff("audrey", "Auditor", portfolio=portfolio))

    looked = client.get(page_of(item), {"verb": "claim"})
    acted = client.post(page_of(item), {"verb": "claim"})

    item.refresh_from_db()
    assert (looked.status_code, acted.status_code) == (200, 403)
    assert item.claimed_by is None


def test_a_post_without_the_csrf_token_is_refused(olga: User, portfolio: Portfolio) -> None:
    item = item_in(portfolio)
    client = Client(enforce_csrf_checks=True)
    client.force_login(olga)

    assert client.post(page_of(item), {"verb": "claim"}).status_code == 403


def test_adopting_meets_the_deadline_and_offers_the_next_item(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    item, other = item_in(portfolio), item_in(portfolio)
    client.force_login(olga)
    client.post(page_of(item), {"verb": "claim"})

    page = client.post(
        page_of(item),
        {"verb": "adopt", "number": "DE-77", "adopt_reason": "Read it on the portal."},
        follow=True,
    )

    filing = Filing.objects.get(pk=item.subject_id)
    assert (filing.status, filing.confirmation_number) == ("accepted", "DE-77")
    assert filing.deadline.status == "met"
    text = page.content.decode()
    assert "Adopted as accepted with number DE-77. Nothing was sent." in text
    assert page.context["next"] == page_of(other)


def test_a_refused_act_says_why_and_keeps_what_was_typed(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    claim_item(item, by=olga)
    client.force_login(olga)

    page = client.post(
        page_of(item), {"verb": "adopt", "number": " ", "adopt_reason": "I rang <them>."}
    )

    text = page.content.decode()
    assert "Enter the confirmation number that the portal gave." in text
    assert "I rang &lt;them&gt;.</textarea>" in text


def test_withdrawing_ends_the_filing_and_leaves_the_deadline_owed(
    client: Client, olga: User, ann: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    claim_item(item, by=olga)
    client.force_login(olga)

    client.post(page_of(item), {"verb": "withdraw", "withdraw_reason": "Sold the company."})
    client.force_login(ann)
    client.post(page_of(item), {"verb": "approve"})

    filing = Filing.objects.get(pk=item.subject_id)
    assert (filing.status, filing.deadline.status) == ("withdrawn", "owed")


def test_a_resend_takes_a_second_person(
    client: Client, olga: User, ann: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    claim_item(item, by=olga)
    client.force_login(olga)
    client.post(page_of(item), {"verb": "replay", "replay_reason": "They have nothing."})
    own = client.post(page_of(item), {"verb": "approve"})

    client.force_login(ann)
    shown = client.get(page_of(item)).content.decode()
    client.post(page_of(item), {"verb": "approve"})

    item.refresh_from_db()
    assert own.status_code == 403
    assert "olga asks: send again" in shown
    assert "They have nothing." in shown
    assert item.state == Intent.State.READY
    assert Resolution.objects.get().approved_by == ann


def test_nobody_approves_their_own_resend_even_with_both_roles(
    client: Client, portfolio: Portfolio
) -> None:
    both = staff("bo", "Compliance officer", "Approver", portfolio=portfolio)
    item = item_in(portfolio)
    claim_item(item, by=both)
    request_replay(item, by=both, reason="They have nothing.")
    client.force_login(both)

    page = client.get(page_of(item)).content.decode()
    client.post(page_of(item), {"verb": "approve"})

    item.refresh_from_db()
    assert "You asked for it, so somebody else must decide." in page
    assert item.state == Intent.State.FALLOUT


def test_a_refused_resend_stays_in_the_queue(
    client: Client, olga: User, ann: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    claim_item(item, by=olga)
    request_replay(item, by=olga, reason="They have nothing.")
    client.force_login(ann)

    client.post(page_of(item), {"verb": "refuse", "refuse_reason": "Ring them again."})

    item.refresh_from_db()
    assert item.state == Intent.State.FALLOUT
    assert not Resolution.objects.filter(closed_at__isnull=True).exists()


def test_giving_an_item_back_lets_another_take_it(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    item = item_in(portfolio)
    client.force_login(olga)
    client.post(page_of(item), {"verb": "claim"})
    client.post(page_of(item), {"verb": "release"})

    client.force_login(staff("ola", "Compliance officer", portfolio=portfolio))
    client.post(page_of(item), {"verb": "claim"})

    item.refresh_from_db()
    assert str(item.claimed_by) == "ola"
