"""Denied, unless the user and the token's scopes both allow it."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from compliance.models import ApiToken, LedgerEntry
from tests.config.world import client_of, filing_in, member
from tests.factories import PortfolioFactory, UserFactory

pytestmark = pytest.mark.django_db

APPROVE = "filings.approve_filing"


def test_a_stranger_is_asked_for_a_token() -> None:
    answer = APIClient().get("/api/v1/entities/")

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Token"


def test_a_token_without_the_scope_read_reads_nothing() -> None:
    user = member(PortfolioFactory(), APPROVE)

    assert client_of(user, APPROVE).get("/api/v1/entities/").status_code == 403
    assert client_of(user, "read").get("/api/v1/entities/").status_code == 200


def test_a_move_takes_both_the_users_permission_and_the_tokens_scope() -> None:
    portfolio = PortfolioFactory()
    filing = filing_in(portfolio)
    may, may_not = member(portfolio, APPROVE), member(portfolio)
    path = f"/api/v1/filings/{filing.pk}/approve/"

    assert client_of(may_not, "read", APPROVE).post(path).status_code == 403
    assert client_of(may, "read").post(path).status_code == 403
    filing.refresh_from_db()
    assert filing.status == "draft"

    assert client_of(may, APPROVE).post(path).status_code == 200


def test_a_superusers_token_is_held_to_its_scopes() -> None:
    user = UserFactory(is_superuser=True)
    filing = filing_in(PortfolioFactory())

    answer = client_of(user, "read").post(f"/api/v1/filings/{filing.pk}/approve/")

    assert answer.status_code == 403


def test_a_session_has_the_scopes_of_its_user() -> None:
    portfolio = PortfolioFactory()
    client = APIClient()
    client.force_login(member(portfolio, APPROVE))

    assert client.get("/api/v1/filings/").status_code == 200
    path = f"/api/v1/filings/{filing_in(portfolio).pk}"
    assert client.post(f"{path}/approve/").status_code == 200
    assert client.post(f"{path}/withdraw/", {"reason": "no"}, format="json").status_code == 403


def test_a_session_moves_nothing_without_its_csrf_token() -> None:
    portfolio = PortfolioFactory()
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(member(portfolio, APPROVE))

    answer = client.post(f"/api/v1/filings/{filing_in(portfolio).pk}/approve/")

    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]


def test_an_expired_token_is_refused() -> None:
    client = client_of(member(PortfolioFactory()), "read")
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))

    assert client.get("/api/v1/entities/").status_code == 401


def test_the_token_of_somebody_who_left_is_refused() -> None:
    user = member(PortfolioFactory())
    client = client_of(user, "read")
    user.is_active = False
    user.save()

    assert client.get("/api/v1/entities/").status_code == 401


@pytest.mark.parametrize(
    "header", ["Token", "Token a b", "Token \xff\xfe", "Token gst_\x00", "Token " + "a" * 5000]
)
def test_what_cannot_be_a_token_is_refused_and_breaks_nothing(header: str) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)

    answer = client.get("/api/v1/entities/")

    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"


# --- create_token -------------------------------------------------------------------------------


def test_a_new_token_is_printed_once_kept_as_a_digest_and_put_on_the_ledger() -> None:
    user = member(PortfolioFactory(), APPROVE)
    out = io.StringIO()
    scopes = ["--scope", "read", "--scope", APPROVE]
    call_command(
        "create_token", user.username, "--name", "ERP", *scopes, "--days", "5", stdout=out
    )

    token = out.getvalue().strip()
    row = ApiToken.objects.get()
    assert token.startswith("gst_")
    assert token not in {str(value) for value in vars(row).values()}
    assert (row.name, row.scopes) == ("ERP", [APPROVE, "read"])
    assert timedelta(days=4) < row.expiry - timezone.now() <= timedelta(days=5)
    assert token[4:] not in bytes(LedgerEntry.objects.get(type="token.created").body).decode()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    assert client.get("/api/v1/entities/").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--scope", "filings.fly"], "There is no scope"),
        (["--scope", "raed"], "There is no scope"),
        (["--scope", APPROVE], "does not hold the permission"),
        (["--scope", "read", "--days", "0"], "at least one day"),
    ],
)
def test_a_token_that_would_be_of_no_use_is_not_made(arguments: list[str], told: str) -> None:
    user = member(PortfolioFactory())

    with pytest.raises(CommandError, match=told):
        call_command("create_token", user.username, "--name", "ERP", *arguments)

    assert not ApiToken.objects.exists()


def test_a_token_for_nobody_is_not_made() -> None:
    with pytest.raises(CommandError, match="no active user"):
        call_command("create_token", "nobody", "--name", "ERP", "--scope", "read")
