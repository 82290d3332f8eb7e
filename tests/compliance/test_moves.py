"""Assigning and managing, in the admin and over the API: who may, whom, and how far it reaches."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from compliance.models import Deadline, LedgerEntry, Portfolio
from tests.config.world import client_of, member
from tests.desk import staff
from tests.factories import DeadlineFactory, PortfolioFactory, RegistrationFactory, UserFactory

pytestmark = pytest.mark.django_db
POST = {"_form_submitted": "True"}
LIST = "admin:compliance_deadline_changelist"


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


@pytest.fixture
def olga(portfolio: Portfolio) -> User:
    return staff("olga", "Compliance officer", portfolio=portfolio)


@pytest.fixture
def ben(portfolio: Portfolio) -> User:
    return staff("ben", "Preparer", portfolio=portfolio)


def deadline_in(portfolio: Portfolio, **values: Any) -> Deadline:
    return DeadlineFactory(registration__entity__portfolio=portfolio, **values)


def url_of(row: Any, name: str) -> str:
    return reverse(f"admin:compliance_{row._meta.model_name}_{name}", args=[row.pk])


def told(answer: Any) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def chosen(rows: list[Deadline], **values: Any) -> dict[str, Any]:
    ids = [row.pk for row in rows]
    return {"action": "assign_selected", ACTION_CHECKBOX_NAME: ids, **values}


# --- Assigning one ------------------------------------------------------------------------------


def test_the_dialog_offers_only_people_who_may_see_the_portfolio(
    client: Client, olga: User, ben: User, portfolio: Portfolio
) -> None:
    deadline = deadline_in(portfolio)
    staff("eve", "Preparer", portfolio=PortfolioFactory())
    UserFactory(username="gone", is_active=False)
    client.force_login(olga)

    page = client.get(url_of(deadline, "assign")).content.decode()

    assert all(name in page for name in ("Olga (olga)", "Ben (ben)"))
    assert not any(name in page for name in ("Eve (eve)", "gone"))


def test_a_deadline_is_assigned_in_a_dialog(
    client: Client, olga: User, ben: User, portfolio: Portfolio
) -> None:
    deadline = deadline_in(portfolio)
    client.force_login(olga)

    answer = client.post(url_of(deadline, "assign"), {**POST, "owner": ben.pk, "backup": olga.pk})

    deadline.refresh_from_db()
    assert answer.headers["HX-Redirect"] == url_of(deadline, "change")
    assert (deadline.owner, deadline.backup) == (ben, olga)
    assert told(answer) == ["Assigned 1 deadline. Owner: Ben (ben). Backup: Olga (olga)."]
    assert LedgerEntry.objects.get(type="deadline.assigned").actor == "olga"


@pytest.mark.parametrize("name", ["eve", "ben"])
def test_the_dialog_refuses_a_stranger_and_the_same_person_twice(
    client: Client, olga: User, ben: User, portfolio: Portfolio, name: str
) -> None:
    deadline = deadline_in(portfolio)
    staff("eve", "Preparer", portfolio=PortfolioFactory())
    owner = User.objects.get(username=name)
    client.force_login(olga)

    answer = client.post(url_of(deadline, "assign"), {**POST, "owner": owner.pk, "backup": ben.pk})

    deadline.refresh_from_db()
    assert answer.status_code == 200
    assert (deadline.owner, deadline.backup) == (None, None)


def test_who_may_not_assign_is_refused_and_another_portfolios_deadline_is_not_there(
    client: Client, olga: User, ben: User, portfolio: Portfolio
) -> None:
    mine, hidden = deadline_in(portfolio), deadline_in(PortfolioFactory())

    client.force_login(ben)
    refused = client.post(url_of(mine, "assign"), {**POST, "owner": ben.pk, "backup": ""})
    client.force_login(olga)
    missing = client.post(url_of(hidden, "assign"), {**POST, "owner": ben.pk, "backup": ""})

    assert (refused.status_code, missing.status_code) == (403, 404)
    assert not Deadline.objects.exclude(owner=None).exists()


# --- Assigning many -----------------------------------------------------------------------------


def test_many_are_shown_before_they_are_assigned(
    client: Client, olga: User, ben: User, portfolio: Portfolio
) -> None:
    rows = [deadline_in(portfolio) for _ in range(3)]
    met = deadline_in(portfolio, status="met", settled_on=timezone.localdate())
    client.force_login(olga)

    page = client.post(reverse(LIST), chosen([*rows, met])).content.decode()

    assert "Assign 3 deadlines" in page
    assert "because settled or not due: 1." in page
    assert not Deadline.objects.exclude(owner=None).exists()

    people = {"owner": ben.pk, "backup": "", "confirmed": "yes"}
    answer = client.post(reverse(LIST), chosen([*rows, met], **people))

    assert told(answer) == ["Assigned 3 deadlines. Owner: Ben (ben). Backup: nobody."]
    assert set(Deadline.objects.filter(owner=ben)) == set(rows)


def test_many_of_two_portfolios_go_only_to_who_sees_both(
    client: Client, admin_user: User, portfolio: Portfolio
) -> None:
    other = PortfolioFactory()
    both = staff("both", "Preparer", portfolio=portfolio)
    both.portfolios.add(other)
    one = staff("one", "Preparer", portfolio=other)
    rows = [deadline_in(portfolio), deadline_in(other)]
    client.force_login(admin_user)

    people = {"backup": "", "confirmed": "yes"}
    refused = client.post(reverse(LIST), chosen(rows, owner=one.pk, **people))
    done = client.post(reverse(LIST), chosen(rows, owner=both.pk, **people))

    assert "Select a valid choice" in refused.content.decode()
    assert told(done) == ["Assigned 2 deadlines. Owner: Both (both). Backup: nobody."]


def test_opening_the_bulk_page_by_a_link_does_nothing(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    row = deadline_in(portfolio)
    client.force_login(olga)

    people = {"owner": olga.pk, "backup": "", "confirmed": "yes"}
    client.get(reverse(LIST), chosen([row], **people))

    row.refresh_from_db()
    assert row.owner is None


def test_who_may_not_assign_cannot_assign_many(
    client: Client, ben: User, portfolio: Portfolio
) -> None:
    row = deadline_in(portfolio)
    client.force_login(ben)

    client.post(reverse(LIST), chosen([row], owner=ben.pk, backup="", confirmed="yes"))

    row.refresh_from_db()
    assert row.owner is None


# --- Finding ------------------------------------------------------------------------------------


def listed(client: Client, **asked: str) -> set[Any]:
    return set(client.get(reverse(LIST), asked).context["cl"].queryset)


def test_the_list_is_narrowed_to_mine_and_to_a_stage(
    client: Client, olga: User, ben: User, portfolio: Portfolio
) -> None:
    today = timezone.localdate()
    late = deadline_in(portfolio, owner=olga, due_on=today - timedelta(days=1))
    soon = deadline_in(portfolio, owner=ben, backup=olga, due_on=today)
    nobodys = deadline_in(portfolio, due_on=today + timedelta(days=200))
    client.force_login(olga)

    assert listed(client, who="me") == {late, soon}
    assert listed(client, who="nobody") == {nobodys}
    assert listed(client, stage="overdue") == {late}
    assert listed(client, stage="open") == {nobodys}
    assert listed(client, stage="no-such") == set()


# --- Managing -----------------------------------------------------------------------------------


def test_the_dialog_says_how_many_deadlines_go_or_come_back(
    client: Client, olga: User, portfolio: Portfolio
) -> None:
    registration = RegistrationFactory(entity__portfolio=portfolio)
    for period in ("2026", "2027"):
        DeadlineFactory(registration=registration, period=period)
    DeadlineFactory(registration=registration, period="2025", status="not_due")
    client.force_login(olga)

    page = client.get(url_of(registration, "manage")).content.decode()
    answer = client.post(
        url_of(registration, "manage"), {**POST, "management": "dormant", "reason": "Asleep"}
    )

    registration.refresh_from_db()
    assert "2 deadlines to come would no longer be due." in page
    assert "1 deadline would be owed again." in page
    assert registration.management == "dormant"
    assert told(answer) == ["Now dormant; 2 deadlines moved with it."]
    assert Deadline.objects.filter(status="not_due").count() == 3


def test_who_may_not_manage_is_refused_and_another_portfolios_is_not_there(
    client: Client, olga: User, ben: User, portfolio: Portfolio
) -> None:
    mine = RegistrationFactory(entity__portfolio=portfolio)
    hidden = RegistrationFactory()
    form = {**POST, "management": "exempt", "reason": "Because"}

    client.force_login(ben)
    refused = client.post(url_of(mine, "manage"), form)
    client.force_login(olga)
    missing = client.post(url_of(hidden, "manage"), form)

    assert (refused.status_code, missing.status_code) == (403, 404)
    for row in (mine, hidden):
        row.refresh_from_db()
        assert row.management == "managed"


# --- Over the API -------------------------------------------------------------------------------

ASSIGN, MANAGE = "compliance.assign_deadline", "compliance.manage_registration"


def test_the_api_assigns_people_of_the_portfolio(portfolio: Portfolio, ben: User) -> None:
    deadline = deadline_in(portfolio)
    UserFactory(username="eve")
    client = client_of(member(portfolio, ASSIGN), ASSIGN, "read")
    url = f"/api/v1/deadlines/{deadline.pk}/assign/"

    done = client.post(url, {"owner": "ben", "backup": None}, format="json")
    stranger = client.post(url, {"owner": "eve", "backup": None}, format="json")
    nobody = client.post(url, {"owner": "no-such", "backup": None}, format="json")

    assert (done.json()["owner"], done.json()["backup"]) == ("ben", None)
    assert stranger.status_code == nobody.status_code == 404
    assert stranger.json()["detail"].replace("eve", "no-such") == nobody.json()["detail"]


def test_the_api_assigns_nothing_that_is_settled(portfolio: Portfolio, ben: User) -> None:
    deadline = deadline_in(portfolio, status="met", settled_on=timezone.localdate())
    client = client_of(member(portfolio, ASSIGN), ASSIGN)

    answer = client.post(
        f"/api/v1/deadlines/{deadline.pk}/assign/", {"owner": "ben", "backup": None}, format="json"
    )

    assert (answer.status_code, answer.json()["code"]) == (409, "not_allowed")


def test_the_api_begins_and_stops_looking_after_a_registration(portfolio: Portfolio) -> None:
    deadline = deadline_in(portfolio)
    client = client_of(member(portfolio, MANAGE), MANAGE)
    url = f"/api/v1/registrations/{deadline.registration_id}/set_management/"

    stopped = client.post(url, {"management": "let_lapse", "reason": "Sold"}, format="json")
    deadline.refresh_from_db()
    unknown = client.post(url, {"management": "asleep", "reason": "Tired"}, format="json")

    assert stopped.json()["management"] == "let_lapse"
    assert deadline.status == "not_due"
    assert unknown.status_code == 400


def test_the_api_lists_the_callers_own_and_a_stage(portfolio: Portfolio) -> None:
    user = member(portfolio)
    mine = deadline_in(portfolio, backup=user)
    late = deadline_in(portfolio, due_on=timezone.localdate() - timedelta(days=3))
    client = client_of(user, "read")

    def found(**asked: str) -> list[int]:
        return [row["id"] for row in client.get("/api/v1/deadlines/", asked).json()["results"]]

    assert found(mine="true") == [mine.pk]
    assert found(mine="false") == [late.pk]
    assert found(stage="overdue") == [late.pk]
