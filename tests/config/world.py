"""People, their tokens, and one row of everything in a portfolio, for tests of the API."""

from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from compliance import ledger
from compliance.events import emit
from compliance.models import ApiToken, LedgerEntry, Portfolio
from filings import services
from filings.models import Filing
from portals.intents import move_by_hand
from portals.models import Intent, Resolution
from portals.protocol import Move
from tests.factories import (
    BatchFactory,
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    GrantSubmissionFactory,
    MembershipFactory,
    RegistrationFactory,
    ShareClassFactory,
    StatusCheckFactory,
    UserFactory,
)


def member(portfolio: Portfolio, *permissions: str) -> User:
    """A new user of a portfolio who holds these permissions."""
    user = UserFactory()
    MembershipFactory(portfolio=portfolio, user=user)
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return user


def client_of(user: User, *scopes: str) -> APIClient:
    """A client with a token of this user."""
    _, token = ApiToken.objects.create(user, name="test", scopes=list(scopes))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client


def fallout_item(portfolio: Portfolio, *, cause: str = "in_doubt") -> Intent:
    """A filing's intent that waits for a person."""
    filing = filing_in(portfolio)
    services.approve_filing(filing, by=UserFactory())
    intent = Intent.objects.get(kind="filing.submit", subject_id=filing.pk)
    move = Move(Intent.State.FALLOUT, cause, "the portal did not answer")
    return move_by_hand(intent, move, actor="lanes")


def filing_in(portfolio: Portfolio) -> Filing:
    """A complete draft."""
    filing: Filing = FilingFactory(deadline__registration__entity__portfolio=portfolio)
    return filing


def one_of_everything(portfolio: Portfolio) -> dict[str, int | str]:
    """The id of one row for each kind of route."""
    entity = EntityFactory(portfolio=portfolio, tax_id="98-7654321")
    ShareClassFactory(entity=entity)
    registration = RegistrationFactory(entity=entity)
    item = fallout_item(portfolio)
    asked = Resolution.objects.create(
        intent=item, verb="replay", reason="not there", requested_by=UserFactory()
    )
    with ledger.recording():
        ledger.record(type="test", subject="test:1", actor="test", portfolio_id=portfolio.pk)
    event = emit("test", subject="test:1", portfolio_id=portfolio.pk)
    submission = GrantSubmissionFactory(entity=entity)
    return {
        "portfolios": portfolio.slug,
        "entities": entity.pk,
        "franchise-tax": entity.pk,
        "preview-deadlines": entity.pk,
        "registrations": registration.pk,
        "deadlines": DeadlineFactory(registration=registration).pk,
        "filings": filing_in(portfolio).pk,
        "batches": BatchFactory(portfolio=portfolio).pk,
        "status-checks": StatusCheckFactory(registration=registration).pk,
        "intents": item.pk,
        "fallout": item.pk,
        "resolutions": asked.pk,
        "ledger": LedgerEntry.objects.filter(portfolio=portfolio).latest("seq").pk,
        "events": event.pk,
        "portals": item.portal.slug,
        "funders": submission.opportunity.funder.slug,
        "opportunities": submission.opportunity.pk,
        "grant-submissions": submission.pk,
    }
