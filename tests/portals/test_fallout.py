from datetime import timedelta

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.utils import timezone

from compliance.errors import NotAllowed
from compliance.models import Deadline, LedgerEntry
from filings import services
from filings.models import Filing
from portals import fallout
from portals.intents import move_by_hand, payload_of
from portals.models import Intent, Resolution
from portals.protocol import Move, State
from portals.simulator.running import Running
from tests.factories import FilingFactory, UserFactory
from tests.lanes import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def ruth() -> User:
    user: User = UserFactory(username="ruth")
    return user


@pytest.fixture
def omar() -> User:
    user: User = UserFactory(username="omar")
    return user


@pytest.fixture
def item() -> Intent:
    """Something that may have arrived and that only a person can settle."""
    return fallen("in_doubt", sends=1)


def fallen(cause: str, *, sends: int, jurisdiction: str = "US-DE") -> Intent:
    """An approved filing that ended in fallout."""
    draft = FilingFactory(deadline__registration__jurisdiction=jurisdiction)
    filing = services.approve_filing(draft, by=UserFactory())
    intent = Intent.objects.get(subject_id=filing.pk, kind="filing.submit")
    Intent.objects.filter(pk=intent.pk).update(sends=sends)
    return move_by_hand(intent, Move(State.FALLOUT, cause, "It may have arrived."), actor="lanes")


def test_an_item_is_claimed_by_one_person(item: Intent, ruth: User, omar: User) -> None:
    fallout.claim_item(item, by=ruth)

    with pytest.raises(NotAllowed, match="ruth has it since"):
        fallout.claim_item(item, by=omar)


def test_a_forgotten_claim_runs_out(item: Intent, ruth: User, omar: User) -> None:
    fallout.claim_item(item, by=ruth)
    long_ago = timezone.now() - fallout.CLAIM_LASTS - timedelta(minutes=1)
    Intent.objects.update(claimed_at=long_ago)

    assert fallout.claim_item(item, by=omar).claimed_by == omar


def test_nothing_is_resolved_without_a_claim(item: Intent, ruth: User) -> None:
    with pytest.raises(NotAllowed, match="Claim the item first"):
        fallout.adopt_item(item, by=ruth, number="A-1", reason="Seen in the register")


def test_adopting_accepts_the_filing_with_its_number(item: Intent, ruth: User) -> None:
    fallout.claim_item(item, by=ruth)

    fallout.adopt_item(item, by=ruth, number="A-17", reason="Extract of the register, 4 March")

    filing = Filing.objects.get(pk=item.subject_id)
    assert (filing.status, filing.confirmation_number) == ("accepted", "A-17")
    assert filing.deadline.status == Deadline.Status.MET
    assert LedgerEntry.objects.filter(type="fallout.adopt", actor="ruth").count() == 1


@pytest.mark.parametrize(("number", "reason"), [("", "Seen it"), ("A-1", "  ")])
def test_adopting_needs_a_number_and_a_reason(
    number: str, reason: str, item: Intent, ruth: User
) -> None:
    fallout.claim_item(item, by=ruth)

    with pytest.raises(NotAllowed):
        fallout.adopt_item(item, by=ruth, number=number, reason=reason)

    item.refresh_from_db()
    assert item.state == State.FALLOUT


def test_what_may_have_arrived_is_given_up_only_by_two(
    item: Intent, ruth: User, omar: User
) -> None:
    """One person alone could withdraw it, open it anew, and so file it a second time."""
    fallout.claim_item(item, by=ruth)
    asked = fallout.request_withdrawal(item, by=ruth, reason="The registry has no trace of it")
    item.refresh_from_db()
    assert item.state == State.FALLOUT

    fallout.approve_resolution(asked, by=omar)

    item.refresh_from_db()
    assert item.state == State.WITHDRAWN


def test_a_replayed_item_still_says_that_it_may_have_arrived(
    item: Intent, ruth: User, omar: User
) -> None:
    fallout.claim_item(item, by=ruth)
    fallout.approve_resolution(fallout.request_replay(item, by=ruth, reason="Not there"), by=omar)

    filing = Filing.objects.get(pk=item.subject_id)
    with pytest.raises(NotAllowed, match="the portal may have it"):
        services.withdraw_filing(filing, by=ruth, reason="Never mind")


def test_withdrawing_leaves_the_deadline_owed(ruth: User) -> None:
    item = fallen("unavailable", sends=0)
    fallout.claim_item(item, by=ruth)

    fallout.request_withdrawal(item, by=ruth, reason="They take paper only")

    filing = Filing.objects.get(pk=item.subject_id)
    assert filing.status == "withdrawn"
    assert filing.deadline.status == Deadline.Status.OWED


def test_what_may_have_arrived_is_sent_again_only_by_two(
    item: Intent, ruth: User, omar: User
) -> None:
    fallout.claim_item(item, by=ruth)
    asked = fallout.request_replay(item, by=ruth, reason="The clerk says it never came")
    item.refresh_from_db()
    assert item.state == State.FALLOUT

    with pytest.raises(NotAllowed, match="somebody else must approve"):
        fallout.approve_resolution(asked, by=ruth)
    fallout.approve_resolution(asked, by=omar)

    item.refresh_from_db()
    assert item.state == State.READY
    assert Filing.objects.get(pk=item.subject_id).status == "pending"


def test_the_database_refuses_a_resend_that_one_person_approved(item: Intent, ruth: User) -> None:
    fallout.claim_item(item, by=ruth)
    asked = fallout.request_replay(item, by=ruth, reason="Not there")

    with pytest.raises(IntegrityError, match="a_resend_is_approved_by_another_person"):
        Resolution.objects.filter(pk=asked.pk).update(approved_by=ruth)


def test_a_request_is_approved_once(item: Intent, ruth: User, omar: User) -> None:
    fallout.claim_item(item, by=ruth)
    asked = fallout.request_replay(item, by=ruth, reason="Not there")
    fallout.approve_resolution(asked, by=omar)

    with pytest.raises(NotAllowed, match="closed already"):
        fallout.approve_resolution(asked, by=omar)


def test_a_refused_request_leaves_the_item_in_the_queue(
    item: Intent, ruth: User, omar: User
) -> None:
    fallout.claim_item(item, by=ruth)
    asked = fallout.request_replay(item, by=ruth, reason="Not there")

    fallout.refuse_resolution(asked, by=omar, reason="Wait for the fee statement")

    item.refresh_from_db()
    assert item.state == State.FALLOUT
    assert fallout.request_replay(item, by=ruth, reason="Statement shows nothing").pk


def test_what_cannot_have_arrived_goes_again_at_once(ruth: User) -> None:
    item = fallen("unavailable", sends=0)
    fallout.claim_item(item, by=ruth)

    fallout.request_replay(item, by=ruth, reason="The portal is up again")

    item.refresh_from_db()
    assert item.state == State.READY


@pytest.mark.parametrize("cause", ["filed_elsewhere", "content_differs", "arrived_without_number"])
def test_what_the_portal_has_is_never_sent_again(cause: str, ruth: User) -> None:
    item = fallen(cause, sends=0)
    fallout.claim_item(item, by=ruth)

    with pytest.raises(NotAllowed, match="would file twice"):
        fallout.request_replay(item, by=ruth, reason="Try it")

    offered = {offer.verb: offer.is_allowed for offer in fallout.offers(item)}
    assert offered == {"adopt": True, "replay": False, "withdraw": True}


def test_the_queue_offers_nothing_for_what_is_not_in_it() -> None:
    filing = services.approve_filing(FilingFactory(), by=UserFactory())
    intent = Intent.objects.get(subject_id=filing.pk)

    assert not any(offer.is_allowed for offer in fallout.offers(intent))


@pytest.mark.django_db(transaction=True)
def test_a_replay_looks_first_whether_it_arrived_after_all(
    simulator: Running, run: Run, ruth: User, omar: User
) -> None:
    """The portal got it when nobody was looking: the approved resend finds it, sends nothing."""
    item = fallen("in_doubt", sends=1, jurisdiction="US-CA")
    payload = payload_of(item)
    headers = {"X-Idempotency-Key": payload.key, "Content-Type": "application/json; charset=utf-8"}
    httpx.post(f"{simulator.base_url}/us-ca/submit", content=payload.body, headers=headers)
    fallout.claim_item(item, by=ruth)
    asked = fallout.request_replay(item, by=ruth, reason="No trace of it")
    fallout.approve_resolution(asked, by=omar)

    run()

    filing = Filing.objects.get(pk=item.subject_id)
    [held] = simulator.oracle("us-ca")["acceptances"]
    assert filing.status == "accepted"
    assert filing.confirmation_number == held["confirmation_number"]
