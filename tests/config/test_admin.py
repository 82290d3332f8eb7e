"""Every model is found, filtered and searched; nobody sees or changes what is not theirs."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import Failure, Schedule, Success

from compliance.models import ApiToken, Entity, Event, Membership
from portals.models import Credential, LimitBlock
from tests.desk import fallen, staff
from tests.factories import (
    AttachmentFactory,
    BatchFactory,
    CredentialFactory,
    EntityFactory,
    FilingFactory,
    MembershipFactory,
    NoticeCopyFactory,
    PortfolioFactory,
    RegistrationEventFactory,
    RegistrationFactory,
    ShareClassFactory,
    StatusCheckFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

# What no page lists: a secret, what repeats other rows, bytes that show with their intent, and
# copies that show with their notice.
UNLISTED = {
    "compliance.noticecopy",
    "compliance.reckoning",
    "portals.installationkey",
    "portals.intentpayload",
}
OURS = ("compliance", "portals", "filings", "grants")


@pytest.fixture
def one_of_everything() -> None:
    """A row in every list."""
    intent = fallen()
    FilingFactory()
    BatchFactory()
    StatusCheckFactory()
    ShareClassFactory()
    RegistrationEventFactory()
    CredentialFactory(portal=intent.portal)
    AttachmentFactory()
    MembershipFactory()
    LimitBlock.objects.create(lane=intent.portal.lane, seconds=3600, requests=1)
    Event.objects.create(type="filing.accepted", subject="filing:1")
    NoticeCopyFactory()
    ApiToken.objects.create(UserFactory(), name="nightly", scopes=["read"])
    Group.objects.get_or_create(name="Auditor")
    Schedule.objects.create(name="sweep", func="portals.tasks.wake_lanes")
    now = timezone.now()
    for model, is_good in ((Success, True), (Failure, False)):
        model.objects.create(
            id=f"task-{is_good}", name="wake", func="portals.tasks.wake_lanes", started=now,
            stopped=now, success=is_good,
        )  # fmt: skip


def pages() -> list[tuple[str, Any]]:
    """Every registered model and its page, by name."""
    return sorted((model._meta.label_lower, page) for model, page in admin.site._registry.items())


def snapshot() -> dict[str, list[Any]]:
    """Every row of every table, but for sessions, which remember messages."""
    return {
        model._meta.label: list(model._base_manager.order_by("pk").values_list())
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label != "sessions" and model._meta.managed
    }


def urls_of_actions(page: Any) -> Iterator[str]:
    """The addresses behind the buttons of a page, for each of its rows."""
    for name in page._extract_action_names(page.actions_list):
        yield reverse(f"admin:{page.get_unfold_action(name).action_name}")
    for name in page._extract_action_names([*page.actions_detail, *page.actions_row]):
        for pk in page.model._base_manager.values_list("pk", flat=True):
            yield reverse(f"admin:{page.get_unfold_action(name).action_name}", args=[pk])


def test_every_model_of_ours_has_a_page() -> None:
    listed = {name for name, _ in pages()}

    ours = {
        model._meta.label_lower
        for app in OURS
        for model in apps.get_app_config(app).get_models()
        if not model.__name__.startswith("Historical")
    }
    assert ours - listed == UNLISTED


def test_every_page_of_ours_can_be_searched_and_filtered() -> None:
    for name, page in pages():
        if name.split(".")[0] in OURS and name != "compliance.ledgerhead":
            assert page.search_fields, name
            assert page.list_filter or name == "compliance.portfolio", name


def test_every_page_opens(admin_client: Client, one_of_everything: None) -> None:
    for name, page in pages():
        app, model = name.split(".")
        answer = admin_client.get(reverse(f"admin:{app}_{model}_changelist"), {"q": "a"})
        assert answer.status_code == 200, name
        if page.has_add_permission(answer.wsgi_request):
            assert admin_client.get(reverse(f"admin:{app}_{model}_add")).status_code == 200, name
        row = page.get_queryset(answer.wsgi_request).first()
        if row is not None:
            for part in ("change", "history"):
                url = reverse(f"admin:{app}_{model}_{part}", args=[row.pk])
                assert admin_client.get(url).status_code == 200, url


def test_opening_an_action_changes_nothing(admin_client: Client, one_of_everything: None) -> None:
    admin_client.get(reverse("admin:index"))
    before = snapshot()
    urls = [url for _, page in pages() for url in urls_of_actions(page)]

    for url in urls:
        assert admin_client.get(url).status_code in (200, 302), url

    assert len(urls) >= 10
    assert snapshot() == before


def test_what_carries_history_cannot_be_deleted(
    admin_client: Client, one_of_everything: None
) -> None:
    request = admin_client.get(reverse("admin:index")).wsgi_request

    removable = {name for name, page in pages() if page.has_delete_permission(request)}

    assert removable == {
        "auth.group",
        "compliance.apitoken",
        "compliance.membership",
        "portals.credential",
    }


def test_the_record_cannot_be_written_even_by_a_superuser(
    admin_client: Client, one_of_everything: None
) -> None:
    request = admin_client.get(reverse("admin:index")).wsgi_request

    written = {
        name
        for name, page in pages()
        if page.has_add_permission(request) or page.has_change_permission(request)
    }

    assert not written & {
        "compliance.ledgerentry", "compliance.ledgerhead", "compliance.event",
        "compliance.deadline", "compliance.notice", "portals.intent", "portals.attempt",
        "portals.resolution", "portals.lane", "filings.batch", "filings.statuscheck",
        "django_q.schedule", "django_q.success", "django_q.failure", "django_q.ormq",
    }  # fmt: skip


def test_nobody_sees_another_portfolios_rows(client: Client) -> None:
    mine, other = PortfolioFactory(name="Mine"), PortfolioFactory(name="Another")
    entity = EntityFactory(portfolio=other, name="Hidden Harbor, Inc.")
    client.force_login(staff("ann", "Auditor", portfolio=mine))

    lists = client.get(reverse("admin:compliance_entity_changelist"))
    change = client.get(reverse("admin:compliance_entity_change", args=[entity.pk]))
    history = client.get(reverse("admin:compliance_entity_history", args=[entity.pk]))

    assert "Hidden Harbor" not in lists.content.decode()
    assert "Another" not in lists.content.decode()
    assert change.status_code == 302
    assert history.status_code == 404


def test_an_older_version_of_anothers_row_stays_hidden(client: Client) -> None:
    entity = EntityFactory(portfolio=PortfolioFactory())
    version = entity.history.first()
    client.force_login(staff("ann", "Auditor", portfolio=PortfolioFactory()))

    url = reverse("admin:compliance_entity_simple_history", args=[entity.pk, version.pk])

    assert client.get(url).status_code == 404


def test_an_older_version_cannot_be_saved_over_the_row(admin_client: Client) -> None:
    entity = EntityFactory(name="New name, Inc.")
    version = entity.history.first()

    url = reverse("admin:compliance_entity_simple_history", args=[entity.pk, version.pk])
    answer = admin_client.post(url, {"name": "Old name, Inc."})

    entity.refresh_from_db()
    assert answer.status_code == 405
    assert entity.name == "New name, Inc."


def test_nobody_can_point_at_another_portfolios_rows(client: Client) -> None:
    mine = PortfolioFactory()
    hidden = EntityFactory(portfolio=PortfolioFactory())
    client.force_login(staff("pia", "Preparer", portfolio=mine))

    form = {
        "entity": hidden.pk, "name": "Eve", "title": "Director", "address": "", "since": "",
        "until": "",
    }  # fmt: skip
    answer = client.post(reverse("admin:compliance_officer_add"), form)

    assert answer.status_code == 200
    assert not hidden.officers.filter(name="Eve").exists()


def entity_form(entity: Entity, **values: Any) -> dict[str, Any]:
    """The entity's page as a browser would send it, with every row beneath left alone."""
    empty = {
        f"{prefix}-{name}": 0
        for prefix in ("registrations", "officers", "addresses", "share_classes")
        for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS", "MAX_NUM_FORMS")
    }
    return empty | {
        "portfolio": entity.portfolio_id, "name": entity.name, "kind": entity.kind,
        "home_jurisdiction": entity.home_jurisdiction, "formed_on": "2019-03-14",
        "fiscal_year_end_month": 12, "fiscal_year_end_day": 31, "external_id": "",
        "gross_assets": "", **values,
    }  # fmt: skip


def test_a_tax_id_is_entered_but_never_read_back(client: Client) -> None:
    portfolio = PortfolioFactory()
    entity = EntityFactory(portfolio=portfolio, officer=None, address=None)
    client.force_login(staff("pia", "Preparer", portfolio=portfolio))
    url = reverse("admin:compliance_entity_change", args=[entity.pk])

    client.post(url, entity_form(entity, new_tax_id="12-3456789"))
    client.post(url, entity_form(entity, name="Renamed, Inc."))
    page = client.get(url).content.decode()

    entity.refresh_from_db()
    assert (entity.name, entity.tax_id) == ("Renamed, Inc.", "12-3456789")
    assert "••-•••••89" in page
    assert "3456789" not in page.replace("as 12-3456789. Leave", "")


def test_a_secret_is_entered_but_never_read_back(client: Client) -> None:
    credential = CredentialFactory(secret="the-old-secret")
    client.force_login(staff("omar", "Operator"))
    url = reverse("admin:portals_credential_change", args=[credential.pk])
    form = {"portal": credential.portal_id, "portfolio": "", "username": "u", "expires_on": ""}

    client.post(url, {**form, "new_secret": "the-new-secret"})
    client.post(url, {**form, "username": "v", "new_secret": ""})
    page = client.get(url).content.decode()

    kept = Credential.objects.get()
    assert (kept.username, kept.secret) == ("v", "the-new-secret")
    assert "the-new-secret" not in page
    assert "the-old-secret" not in page


def test_only_superusers_make_superusers(client: Client) -> None:
    every = Group.objects.create(name="Every permission")
    every.permissions.set(apps.get_model("auth.Permission").objects.all())
    eve = UserFactory(username="eve")
    eve.groups.add(every)
    client.force_login(eve)

    page = client.post(reverse("admin:auth_user_change", args=[eve.pk]), {"is_superuser": "on"})
    schedules = client.get(reverse("admin:django_q_schedule_changelist"))

    assert page.status_code == 403
    assert schedules.status_code == 403
    assert not User.objects.get(pk=eve.pk).is_superuser


def test_a_token_is_shown_once_and_belongs_to_who_made_it(client: Client) -> None:
    ivy = staff("ivy", "Integrator")
    ApiToken.objects.create(UserFactory(), name="somebody else's", scopes=[])
    client.force_login(ivy)

    made = client.post(
        reverse("admin:compliance_apitoken_add"),
        {"name": "nightly", "scopes": json.dumps(["read"])},
        follow=True,
    )
    again = client.get(reverse("admin:compliance_apitoken_changelist"))

    token = ApiToken.objects.get(name="nightly")
    assert (token.user, token.scopes) == (ivy, ["read"])
    assert f"{token.token_key}" in made.content.decode()
    assert "it is not shown again" not in again.content.decode()
    assert "somebody else" not in again.content.decode()


def test_roles_are_the_same_however_often_they_are_set_up() -> None:
    call_command("setup_roles")
    group = Group.objects.get(name="Auditor")
    group.permissions.clear()
    call_command("setup_roles")

    def holds(role: str) -> set[str]:
        found = Group.objects.get(name=role).permissions.values_list("codename", flat=True)
        return set(found)

    assert Group.objects.count() == 6
    assert all(name.startswith("view_") for name in holds("Auditor"))
    assert {"prepare_filing", "add_entity"} <= holds("Preparer")
    assert not {"approve_filing", "work_fallout"} & holds("Preparer")
    assert {"approve_filing", "approve_grant", "approve_resend"} <= holds("Approver")
    assert "prepare_filing" not in holds("Approver")
    assert {"work_fallout", "withdraw_filing"} <= holds("Compliance officer")
    assert {"change_portal", "change_credential"} <= holds("Operator")


def test_taking_somebody_out_of_a_portfolio_is_kept_in_the_history(admin_client: Client) -> None:
    membership = MembershipFactory()
    url = reverse("admin:compliance_membership_delete", args=[membership.pk])

    admin_client.post(url, {"post": "yes"})

    assert not Membership.objects.exists()
    assert Membership.history.filter(history_type="-").count() == 1


def test_standing_is_shown_with_its_age_and_as_stale_when_old(admin_client: Client) -> None:
    old = timezone.now() - timedelta(hours=100)
    row = RegistrationFactory(
        standing="active", standing_words="GOOD STANDING", standing_read_at=old,
        standing_source="https://registry.example/7",
    )  # fmt: skip

    page = admin_client.get(reverse("admin:compliance_registration_change", args=[row.pk]))

    text = page.content.decode()
    assert "◌" in text
    assert "Active, stale" in text
    assert "“GOOD STANDING”, read 4 days ago" in text
    assert "https://registry.example/7" in text
