"""The franchise tax worksheet over the API and as a page: what it shows, and to whom."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from compliance.models import Entity, Portfolio
from tests.config.world import client_of, member
from tests.desk import staff
from tests.factories import EntityFactory, PortfolioFactory, ShareClassFactory


@pytest.fixture
def ours(db: None) -> Portfolio:
    portfolio: Portfolio = PortfolioFactory()
    return portfolio


@pytest.fixture
def api(ours: Portfolio) -> APIClient:
    """A member whose token may read."""
    return client_of(member(ours), "read")


@pytest.fixture
def start_up(ours: Portfolio) -> Entity:
    """A Delaware corporation that the trap waits for."""
    entity: Entity = EntityFactory(portfolio=ours, gross_assets=Decimal(100_000))
    ShareClassFactory(
        entity=entity, authorized=10_000_000, issued=6_000_000, par_value=Decimal("0.0001")
    )
    return entity


# --- The API ------------------------------------------------------------------------------------


def ask(api: APIClient, **body: Any) -> Any:
    return api.post("/api/v1/franchise-tax/", body, format="json")


def test_the_api_computes_what_it_is_given(api: APIClient) -> None:
    answer = ask(
        api,
        share_classes=[{"authorized": 1_000_000, "par_value": "1"},
                       {"authorized": 250_000, "par_value": "5"}],
        issued=485_000, gross_assets="1000000", filed_on="2027-05-10",
    )  # fmt: skip

    told = answer.json()
    assert answer.status_code == 200
    assert (told["authorized_shares_method"], told["assumed_par_value_method"]) == (10790, 1600)
    assert told["methods"][1]["steps"][0]["result"] == "$2.061856"
    assert told["late"]["interest"] == 81
    assert told["total"] == 1600 + 50 + 200 + 81
    assert told["warnings"][0].startswith("Use the lower: $1,600 instead of $10,790.")


def test_the_api_refuses_what_cannot_be_computed(api: APIClient) -> None:
    assert ask(api).status_code == 400
    assert ask(api).json()["code"] == "malformed"
    negative = ask(api, share_classes=[{"authorized": -1}])
    assert negative.status_code == 400
    assert negative.json()["problems"][0]["pointer"] == "#/share_classes/0/authorized"
    assert ask(api, share_classes=[{"authorized": 5}], issued=6).status_code == 400


def test_the_api_computes_for_an_entity_on_file(api: APIClient, start_up: Entity) -> None:
    told = api.get(f"/api/v1/entities/{start_up.pk}/franchise-tax/").json()

    assert (told["authorized_shares_method"], told["tax"], told["total"]) == (85165, 400, 450)
    assert told["late"] is None


@pytest.mark.parametrize(
    "facts", [{"kind": "llc"}, {"home_jurisdiction": "US-NV"}, {"kind": "nonprofit"}, {}]
)
def test_the_api_says_why_an_entity_has_no_worksheet(
    facts: dict[str, str], api: APIClient, ours: Portfolio
) -> None:
    entity = EntityFactory(portfolio=ours, **facts)

    answer = api.get(f"/api/v1/entities/{entity.pk}/franchise-tax/")

    reason = "is not a Delaware corporation" if facts else "has no share classes on file"
    assert answer.status_code == 409
    assert reason in answer.json()["detail"]


def test_shares_that_nobody_entered_as_issued_are_unknown(
    api: APIClient, start_up: Entity
) -> None:
    start_up.share_classes.update(issued=0)

    told = api.get(f"/api/v1/entities/{start_up.pk}/franchise-tax/").json()

    assert told["assumed_par_value_method"] is None
    assert "The issued shares are not given" in told["assumed_par_value_reason"]


# --- The page -----------------------------------------------------------------------------------


def page_of(entity: Entity) -> str:
    return reverse("admin:compliance_entity_franchise_tax", args=[entity.pk])


def test_the_page_shows_both_methods_with_the_law(
    client: Client, ours: Portfolio, start_up: Entity
) -> None:
    client.force_login(staff("ana", "Auditor", portfolio=ours))

    answer = client.get(page_of(start_up))

    text = answer.content.decode()
    assert page_of(start_up) == f"/admin/compliance/entity/{start_up.pk}/franchise-tax/"
    assert "Use the lower: $400 instead of $85,165." in text
    for shown in (
        "999 at $85, for each further 10,000 shares or part", "8 Del. C. § 503(a)(1)",
        "$0.016667", "(the stated is $0.0001)", "8 Del. C. § 503(c)", "To be paid: $450",
    ):  # fmt: skip
        assert shown in text
    assert "instalments" not in text


def test_the_page_tells_of_instalments_where_the_tax_is_large(
    admin_client: Client, start_up: Entity
) -> None:
    start_up.share_classes.update(par_value=None)

    text = admin_client.get(page_of(start_up)).content.decode()

    assert "Gives no tax: A class has no par value" in text
    assert "it is paid in instalments" in text
    assert "$34,066" in text


def test_the_page_of_another_portfolio_does_not_exist(
    client: Client, ours: Portfolio, start_up: Entity
) -> None:
    client.force_login(staff("eve", "Auditor", portfolio=PortfolioFactory()))

    assert client.get(page_of(start_up)).status_code == 404


def test_the_page_is_for_whoever_may_see_entities_and_only_to_read(
    client: Client, ours: Portfolio, start_up: Entity
) -> None:
    client.force_login(staff("nobody", portfolio=ours))
    assert client.get(page_of(start_up)).status_code == 403

    client.force_login(staff("ana", "Auditor", portfolio=ours))
    assert client.post(page_of(start_up)).status_code == 405


def test_the_entity_page_leads_to_the_worksheet_of_delaware_corporations(
    admin_client: Client, ours: Portfolio, start_up: Entity
) -> None:
    company = EntityFactory(portfolio=ours, kind="llc")

    def leads(entity: Entity) -> bool:
        url = reverse("admin:compliance_entity_change", args=[entity.pk])
        return page_of(entity) in admin_client.get(url).content.decode()

    assert leads(start_up)
    assert not leads(company)


def test_an_entity_without_a_worksheet_is_shown_with_the_reason(
    admin_client: Client, ours: Portfolio
) -> None:
    entity = EntityFactory(portfolio=ours)

    answer = admin_client.get(page_of(entity), follow=True)

    change = reverse("admin:compliance_entity_change", args=[entity.pk])
    assert answer.redirect_chain == [(change, 302)]
    assert "has no share classes on file" in answer.content.decode()
