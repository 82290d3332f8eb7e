"""The page that shows what amended law would do, before anybody applies it."""

import hashlib

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from compliance.models import Deadline, LedgerEntry, Portfolio
from compliance.sync import sync_deadlines
from tests.compliance.test_deadline_services import THROUGH, TODAY
from tests.desk import staff
from tests.factories import EntityFactory, PortfolioFactory, RegistrationFactory, UserFactory

pytestmark = pytest.mark.django_db
OLDER = hashlib.sha256(b"the pack before").hexdigest()


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


@pytest.fixture
def ann(portfolio: Portfolio) -> User:
    return staff("ann", "Approver", portfolio=portfolio)


def owed_by_older_law(portfolio: Portfolio) -> list[Deadline]:
    """Deadlines of a Delaware LLC whose next fee was another before the amendment."""
    entity = EntityFactory(portfolio=portfolio, kind="llc")
    registration = RegistrationFactory(entity=entity, jurisdiction="US-DE")
    sync_deadlines(through=THROUGH, by=UserFactory(), today=TODAY)
    rows = Deadline.objects.filter(registration=registration)
    rows.update(pack_sha256=OLDER)
    rows.filter(period="2027").update(fee=300)
    return list(rows)


def page(client: Client, **query: str) -> str:
    return client.get(reverse("admin:filings_amendments"), query).content.decode()


def test_the_effect_of_an_amendment_is_shown_and_nothing_is_changed(
    client: Client, ann: User, portfolio: Portfolio
) -> None:
    rows = owed_by_older_law(portfolio)
    entries = LedgerEntry.objects.count()
    client.force_login(ann)

    shown = page(client, jurisdiction="us-de")

    assert f"Would bring {len(rows)} deadlines of US-DE up to its pack" in shown
    assert "1 fee changed, $100 more" in shown
    assert "Fee: $300 → $400" in shown
    assert set(Deadline.objects.values_list("pack_sha256", flat=True)) == {OLDER}
    assert LedgerEntry.objects.count() == entries


def test_only_what_one_may_see_is_counted(client: Client, ann: User, portfolio: Portfolio) -> None:
    owed_by_older_law(PortfolioFactory())
    client.force_login(ann)

    assert "Everything owed follows the law as installed" in page(client)
    assert "Would bring" not in page(client, jurisdiction="US-DE")


def test_amended_jurisdictions_are_listed(client: Client, ann: User, portfolio: Portfolio) -> None:
    owed_by_older_law(portfolio)
    client.force_login(ann)

    assert 'href="?jurisdiction=US-DE"' in page(client)


def test_the_page_acts_on_no_method_and_for_nobody_without_a_role(
    client: Client, ann: User
) -> None:
    url = reverse("admin:filings_amendments")
    client.force_login(ann)
    assert client.post(url).status_code == 405

    client.force_login(staff("guest"))
    assert client.get(url).status_code == 403
