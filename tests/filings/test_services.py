from datetime import date, timedelta
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connections, transaction
from django.utils import timezone

from compliance.errors import NotAllowed
from compliance.models import Deadline, Event, LedgerEntry
from filings import services
from filings.models import Batch, Filing, StatusCheck
from portals.models import Intent, IntentPayload
from portals.protocol import MOST_TRIES
from portals.simulator.running import Running
from tests.factories import (
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    RegistrationFactory,
    ShareClassFactory,
    UserFactory,
)
from tests.lanes import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def dana() -> User:
    user: User = UserFactory(username="dana")
    return user


@pytest.fixture
def omar() -> User:
    user: User = UserFactory(username="omar")
    return user


def test_a_draft_is_filled_with_what_we_know(dana: User) -> None:
    filing = services.open_filing(DeadlineFactory(), by=dana)

    assert filing.status == Filing.Status.DRAFT
    assert filing.answers["officers"] == [
        {"name": "Dana Reyes", "title": "President", "address": ""}
    ]
    assert filing.answers["principal_address"].startswith("12 Harbor Street")
    assert services.check_filing(filing) == []


def test_opening_twice_gives_the_first(dana: User, omar: User) -> None:
    deadline = DeadlineFactory()

    first = services.open_filing(deadline, by=dana)

    assert services.open_filing(deadline, by=omar).pk == first.pk


def test_approval_freezes_the_bytes_and_queues_them_in_one_step(dana: User, omar: User) -> None:
    filing = services.approve_filing(FilingFactory(prepared_by=dana), by=omar)

    intent = Intent.objects.get(kind="filing.submit", subject_id=filing.pk)
    payload = IntentPayload.objects.get(intent=intent)
    assert filing.status == Filing.Status.PENDING
    assert intent.payload_sha256 == filing.payload_sha256
    assert b'"fee_cents":5000' in bytes(payload.wire_bytes)
    assert LedgerEntry.objects.filter(type="filing.pending", actor="omar").count() == 1
    assert Event.objects.filter(type="filing.pending").count() == 1


def test_who_prepared_cannot_approve(dana: User) -> None:
    filing = FilingFactory(prepared_by=dana)

    with pytest.raises(NotAllowed, match="somebody else must approve") as refused:
        services.approve_filing(filing, by=dana)

    assert refused.value.code == "four_eyes"
    assert not Intent.objects.exists()


def test_the_database_refuses_an_approver_who_prepared(dana: User) -> None:
    filing = FilingFactory(prepared_by=dana)

    with pytest.raises(IntegrityError, match="a_filing_is_approved_by_another_person"):
        Filing.objects.filter(pk=filing.pk).update(approved_by=dana)


def test_the_database_refuses_to_send_what_nobody_approved(dana: User) -> None:
    filing = FilingFactory(prepared_by=dana)

    with pytest.raises(IntegrityError, match="nothing_is_sent_without_approval"):
        Filing.objects.filter(pk=filing.pk).update(status="sending")


def test_whoever_edits_a_draft_has_prepared_it(dana: User, omar: User) -> None:
    filing = FilingFactory(prepared_by=dana)

    edited = services.edit_filing(filing, answers=filing.answers, by=omar)

    with pytest.raises(NotAllowed, match="somebody else"):
        services.approve_filing(edited, by=omar)
    assert services.approve_filing(edited, by=dana).status == Filing.Status.PENDING


def test_an_approved_filing_cannot_be_edited(dana: User, omar: User) -> None:
    filing = services.approve_filing(FilingFactory(prepared_by=dana), by=omar)

    with pytest.raises(NotAllowed, match="Only a draft can be edited"):
        services.edit_filing(filing, answers={}, by=dana)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"officers": []}, "officers is missing. Add a current officer on the entity's page."),
        ({"principal_address": ""}, "principal_address is missing."),
        ({"principal_address": "12 Harbor\nStreet"}, "control character or a line break"),
        ({"principal_address": "12  Harbor Street"}, "spaces at an end or two in a row"),
        ({"principal_address": " 12 Harbor Street"}, "spaces at an end or two in a row"),
        ({"principal_address": "Cafe\u0301 Street"}, "accents in a form that portals mangle"),
        ({"principal_address": "x" * 401}, "at most 400 characters"),
        ({"hobby": "sailing"}, "hobby is not a field of this form. Remove it."),
    ],
)
def test_a_payload_the_portal_cannot_take_is_refused_in_a_sentence(
    answers: dict[str, Any], sentence: str, omar: User
) -> None:
    filing = FilingFactory()
    filing.answers = {**filing.answers, **answers}
    filing.save()

    problems = services.check_filing(filing)

    assert len(problems) == 1
    assert sentence in problems[0]
    with pytest.raises(NotAllowed) as refused:
        services.approve_filing(filing, by=omar)
    assert refused.value.problems == tuple(problems)
    filing.refresh_from_db()
    assert filing.status == Filing.Status.DRAFT


def test_new_yorks_field_length_is_kept(omar: User) -> None:
    filing = FilingFactory(deadline__registration__jurisdiction="US-NY")
    filing.answers = {**filing.answers, "note": "x" * 4097}

    [problem] = services.check_filing(filing)

    assert "note has 4,097 characters" in problem
    assert "takes 4,096. Shorten it." in problem


def test_a_window_that_is_not_open_yet_is_waited_for() -> None:
    tomorrow = timezone.localdate() + timedelta(days=1)
    filing = FilingFactory(deadline__opens_on=tomorrow)

    [problem] = services.check_filing(filing)

    assert "Approve it then." in problem


def test_a_form_the_portal_does_not_take_is_named() -> None:
    filing = FilingFactory(form="annual-tax", portal="us-ca")

    [problem] = services.check_filing(filing)

    assert "takes no form “annual-tax”. It takes: statement-of-information." in problem


def franchise_tax_deadline() -> Deadline:
    """A Delaware corporation's report, whose tax the law computes from its shares."""
    deadline: Deadline = DeadlineFactory(duty="franchise-tax-report", due_on=date(2027, 3, 1))
    return deadline


def test_delawares_tax_is_computed_from_the_shares(dana: User) -> None:
    deadline = franchise_tax_deadline()
    ShareClassFactory(entity=deadline.registration.entity, authorized=10_005)

    filing = services.open_filing(deadline, by=dana)

    assert filing.fee == 385  # 335 and the report's 50


def test_a_tax_that_cannot_be_computed_is_not_filed(dana: User, omar: User) -> None:
    deadline = franchise_tax_deadline()

    with pytest.raises(NotAllowed, match="no share classes on file"):
        services.open_filing(deadline, by=dana)
    due = services.file_due([deadline], name="Season", prepared_by=dana, approved_by=omar)

    assert [row for row, _ in due.refused] == [deadline]
    assert not Filing.objects.exists()


def test_a_fee_that_has_changed_since_is_not_approved(dana: User) -> None:
    deadline = franchise_tax_deadline()
    shares = ShareClassFactory(entity=deadline.registration.entity, authorized=5_000)
    filing = services.open_filing(deadline, by=dana)
    shares.authorized = 100_000
    shares.save()

    [problem] = services.check_filing(filing)

    assert "was $225.00 when it was prepared and is $1,065.00 now" in problem


def test_one_bad_filing_approves_none(dana: User, omar: User) -> None:
    good = FilingFactory(prepared_by=dana)
    bad = FilingFactory(prepared_by=dana, answers={})

    with pytest.raises(NotAllowed):
        services.approve_filings([good, bad], by=omar)

    assert set(Filing.objects.values_list("status", flat=True)) == {"draft"}
    assert not Intent.objects.exists()
    assert not LedgerEntry.objects.filter(type="filing.pending").exists()


def test_a_pending_filing_can_be_withdrawn_and_is_not_sent(dana: User, omar: User) -> None:
    filing = services.approve_filing(FilingFactory(prepared_by=dana), by=omar)

    withdrawn = services.withdraw_filing(filing, by=omar, reason="Filed on paper")

    assert withdrawn.status == Filing.Status.WITHDRAWN
    assert Intent.objects.get().state == Intent.State.WITHDRAWN
    again = services.open_filing(filing.deadline, by=dana)
    assert again.revision == 2


def test_a_withdrawal_needs_a_reason(dana: User) -> None:
    with pytest.raises(NotAllowed, match="Say in a sentence why"):
        services.withdraw_filing(FilingFactory(), by=dana, reason=" ")


def test_what_may_be_at_the_portal_cannot_be_withdrawn(dana: User, omar: User) -> None:
    filing = services.approve_filing(FilingFactory(prepared_by=dana), by=omar)
    Intent.objects.update(sends=1)

    with pytest.raises(NotAllowed, match="the portal may have it"):
        services.withdraw_filing(filing, by=omar, reason="Changed our mind")


def test_a_revision_has_a_key_of_its_own(dana: User, omar: User) -> None:
    filing = services.approve_filing(FilingFactory(prepared_by=dana), by=omar)
    services.withdraw_filing(filing, by=omar, reason="Wrong officer")

    services.approve_filing(services.open_filing(filing.deadline, by=dana), by=omar)

    assert len(set(Intent.objects.values_list("idempotency_key", flat=True))) == 2


def test_final_is_final_in_the_database(dana: User) -> None:
    filing = services.withdraw_filing(FilingFactory(), by=dana, reason="Not needed")

    with pytest.raises(Exception, match="final is final"), transaction.atomic():
        Filing.objects.filter(pk=filing.pk).update(status="draft")


def test_history_names_who_did_what(dana: User, omar: User) -> None:
    filing = services.open_filing(DeadlineFactory(), by=dana)
    services.approve_filing(filing, by=omar)

    rows = filing.history.order_by("history_id").values_list("status", "history_user__username")
    assert list(rows) == [("draft", "dana"), ("pending", "omar")]


def test_what_is_due_is_filed_as_a_batch(dana: User, omar: User) -> None:
    good, by_hand, bad = DeadlineFactory(), DeadlineFactory(portal=""), DeadlineFactory()
    bad.registration.entity.officers.all().delete()

    due = services.file_due(
        [good, by_hand, bad], name="Season", prepared_by=dana, approved_by=omar
    )

    assert [filing.deadline_id for filing in due.filings] == [good.pk]
    assert [filing.deadline_id for filing, _ in due.blocked] == [bad.pk]
    assert due.by_hand == [by_hand]
    assert Batch.objects.get().filings.get().deadline_id == good.pk
    assert due.fees == 50


def test_a_registration_has_one_look_under_way(dana: User) -> None:
    registration = RegistrationFactory()

    first = services.request_check(registration, by=dana)

    assert services.request_check(registration, by=dana).pk == first.pk
    assert Intent.objects.count() == 1


def test_the_database_refuses_a_second_look_under_way(dana: User) -> None:
    check = services.request_check(RegistrationFactory(), by=dana)

    with pytest.raises(IntegrityError, match=r"one_live_check|registration_id"):
        StatusCheck.objects.create(
            registration=check.registration, portal="us-de", requested_by=dana
        )


@pytest.mark.django_db(transaction=True)
def test_two_who_open_at_once_get_the_same_filing(dana: User, omar: User) -> None:
    """Both look before either has written: the lock on the deadline makes one wait."""
    deadline = DeadlineFactory()
    opened: list[int] = []

    def work(user: User) -> None:
        opened.append(services.open_filing(deadline, by=user).pk)
        connections.close_all()

    threads = [Thread(target=work, args=[user]) for user in (dana, omar) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(opened) == 6
    assert len(set(opened)) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("number", "standing", "words"),
    [
        ("7001", "active", "Good Standing"),
        ("DEL-1", "delinquent", "Delinquent"),
        ("ODD-1", "pending_review", "Exempt – see remarks"),
        ("GONE-1", "not_listed", ""),
    ],
)
def test_a_standing_is_read_with_its_evidence(
    number: str, standing: str, words: str, simulator: Running, run: Run, dana: User
) -> None:
    registration = RegistrationFactory(file_number=number)
    services.request_check(registration, by=dana)

    run()

    registration.refresh_from_db()
    assert registration.standing == standing
    assert registration.standing_words == words
    assert registration.standing_source.endswith(f"/us-de/entities/{number}/status")
    assert len(registration.standing_sha256) == 64
    assert registration.standing_read_at is not None
    assert LedgerEntry.objects.filter(type="registration.standing").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_fault_leaves_the_standing_unknown(simulator: Running, run: Run, dana: User) -> None:
    registration = RegistrationFactory(jurisdiction="US-CA")
    check = services.request_check(registration, by=dana)
    Intent.objects.update(tries=MOST_TRIES)
    simulator.script("us-ca", {"fault": "5xx_before", "route": "status"})

    run(10, 5)

    registration.refresh_from_db()
    check.refresh_from_db()
    assert registration.standing == "unknown"
    assert (check.standing, check.error_category) == ("unknown", "TRANSIENT_NETWORK")
    assert check.ended_at is not None


@pytest.mark.django_db(transaction=True)
def test_the_same_standing_read_again_is_no_change(
    simulator: Running, run: Run, dana: User
) -> None:
    registration = RegistrationFactory()
    for _ in range(2):
        services.request_check(registration, by=dana)
        run()

    assert StatusCheck.objects.filter(standing="active").count() == 2
    assert Event.objects.filter(type="registration.standing").count() == 1


def test_stale_evidence_says_so() -> None:
    registration = RegistrationFactory(
        entity=EntityFactory(), standing="active", standing_fresh_hours=24,
        standing_read_at=timezone.now() - timedelta(hours=25),
    )  # fmt: skip

    assert registration.standing_is_stale
