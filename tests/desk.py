"""People at their desks: users with roles, and items that fell out as the rules have it."""

from django.contrib.auth.models import Group, User
from django.utils import timezone

from compliance.management.commands.setup_roles import setup_roles
from compliance.models import Portfolio
from filings.models import Filing
from filings.services import approve_filing
from portals import intents, leases
from portals.base import Exchange
from portals.models import Attempt, Intent
from portals.protocol import Move
from portals.registry import card_of
from tests.factories import FilingFactory, MembershipFactory, UserFactory

ANSWER = b"<script>alert('from the portal')</script> 504 Gateway Time-out"


def staff(name: str, *roles: str, portfolio: Portfolio | None = None) -> User:
    """Somebody with these roles, in this portfolio."""
    setup_roles()
    user = UserFactory(username=name, first_name=name.capitalize())
    user.groups.set(Group.objects.filter(name__in=roles))
    if portfolio is not None:
        MembershipFactory(user=user, portfolio=portfolio)
    return user


def fallen(
    filing: Filing | None = None, *, by: User | None = None, cause: str = "in_doubt"
) -> Intent:
    """A filing that was approved and sent, got no answer to trust, and waits for a person."""
    filing = approve_filing(filing or FilingFactory(), by=by or UserFactory())
    intent = Intent.objects.get(kind="filing.submit", subject_id=filing.pk)
    lane = leases.take(intent.portal.lane.pk, "desk")
    assert lane is not None
    waiting = intents.next_work(intent.portal_id, 1000, now=timezone.now())
    card = card_of(intent.portal.slug)
    (work,) = intents.arm(lane, [item for item in waiting if item.id == intent.pk], card)
    exchange = Exchange(
        method="POST",
        url=f"{card.base_url}/filings",
        sent_at=timezone.now(),
        took_ms=10_000,
        request_headers={"Idempotency-Key": work.payload.key},
        request_body=work.payload.body,
        status=504,
        answer_headers={"Content-Type": "text/html"},
        answer_body=ANSWER,
    )
    move = Move(Intent.State.FALLOUT, cause, "The portal answered 504 after 10 s.")
    result = intents.Result(
        work, move, Attempt.Purpose.SEND, Attempt.Outcome.IN_DOUBT, "504 after sending",
        move.detail, "NETWORK_TIMEOUT", (exchange,),
    )  # fmt: skip
    intents.settle(lane, [result])
    leases.give_back(lane)
    intent.refresh_from_db()
    return intent
