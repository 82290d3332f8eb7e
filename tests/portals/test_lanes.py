"""Lanes against the simulator on a real socket; its own count is the oracle."""

import asyncio
import time
from datetime import timedelta
from itertools import pairwise
from threading import Thread
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.utils import timezone
from pytest_django import Settings

from compliance import ledger
from compliance.errors import NotAllowed
from compliance.models import Deadline, LedgerEntry
from filings import services
from filings.models import Filing
from portals import intents, leases
from portals.models import Attempt, Intent, Lane, LimitBlock, Portal
from portals.protocol import Hold, Move
from portals.registry import card_of
from portals.runner import Runner
from portals.simulator.running import Running
from tests.factories import FilingFactory, UserFactory
from tests.lanes import Run

pytestmark = pytest.mark.django_db(transaction=True)

ALL = ["US-DE", "US-CA", "US-NY"]


def approved(jurisdiction: str = "US-DE", **registration: str) -> Filing:
    """A filing on its way to the portal of a jurisdiction."""
    filing = FilingFactory(
        deadline__registration__jurisdiction=jurisdiction,
        **{f"deadline__registration__{name}": value for name, value in registration.items()},
    )
    return services.approve_filing(filing, by=UserFactory())


def intent_of(filing: Filing) -> Intent:
    """The intent that carries a filing."""
    found: Intent = Intent.objects.get(kind="filing.submit", subject_id=filing.pk)
    return found


def accepted(simulator: Running, filing: Filing) -> list[str]:
    """The numbers of what the portal holds for a filing's entity."""
    number = filing.deadline.registration.file_number
    return [
        held["confirmation_number"]
        for held in simulator.oracle(filing.portal)["acceptances"]
        if held["entity_number"] == number
    ]


@pytest.mark.parametrize("jurisdiction", ALL)
def test_an_approved_filing_is_accepted_once(
    jurisdiction: str, simulator: Running, run: Run
) -> None:
    filing = approved(jurisdiction)

    run()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED
    assert accepted(simulator, filing) == [filing.confirmation_number]
    assert simulator.oracle(filing.portal)["violations"] == {"limits": 0, "concurrency": 0}


def test_what_was_accepted_is_what_was_approved(simulator: Running, run: Run) -> None:
    filing = approved("US-CA")

    run()

    [held] = simulator.oracle("us-ca")["acceptances"]
    assert held["payload_sha256"] == filing.payload_sha256
    assert held["key"] == intent_of(filing).idempotency_key


def test_an_accepted_filing_meets_its_deadline(simulator: Running, run: Run) -> None:
    filing = approved("US-CA")

    run()

    filing.deadline.refresh_from_db()
    assert filing.deadline.status == Deadline.Status.MET


def test_every_move_is_on_the_ledger_once(simulator: Running, run: Run) -> None:
    filing = approved("US-CA")

    run()

    of_filing = LedgerEntry.objects.filter(subject=f"filing:{filing.pk}").order_by("seq")
    of_intent = LedgerEntry.objects.filter(subject=f"intent:{intent_of(filing).pk}")
    assert list(of_filing.values_list("type", flat=True)) == [
        "filing.pending", "filing.sending", "filing.accepted",
    ]  # fmt: skip
    assert list(of_intent.order_by("seq").values_list("type", flat=True)) == [
        "intent.ready", "intent.armed", "intent.accepted",
    ]  # fmt: skip
    assert ledger.verify().broken is None


def test_the_lanes_are_named_in_the_history_of_what_they_moved(
    simulator: Running, run: Run
) -> None:
    filing = approved("US-CA")

    run()

    newest = filing.history.latest()
    assert newest.status == Filing.Status.ACCEPTED
    assert newest.history_user.username == intents.LANES


@pytest.mark.parametrize("jurisdiction", ALL)
@pytest.mark.parametrize("fault", ["drop_after", "5xx_after", "truncated", "login_page"])
def test_a_lost_answer_is_found_and_never_filed_twice(
    jurisdiction: str, fault: str, simulator: Running, run: Run
) -> None:
    filing = approved(jurisdiction)
    simulator.script(filing.portal, fault)

    run()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED
    assert accepted(simulator, filing) == [filing.confirmation_number]
    assert simulator.oracle(filing.portal)["duplicates"] == 0


@pytest.mark.parametrize("jurisdiction", ALL)
@pytest.mark.parametrize("fault", ["drop_before", "5xx_before"])
def test_what_never_arrived_is_sent_again(
    jurisdiction: str, fault: str, simulator: Running, run: Run, settings: Settings
) -> None:
    filing = approved(jurisdiction)
    simulator.script(filing.portal, fault)

    run(60, 40)

    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED
    assert accepted(simulator, filing) == [filing.confirmation_number]


def test_a_refusal_ends_the_filing_with_its_reasons(simulator: Running, run: Run) -> None:
    filing = approved("US-CA", file_number="REJ-1")

    run()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.REJECTED
    assert filing.reasons
    assert filing.deadline.status == Deadline.Status.OWED


def test_what_somebody_filed_by_hand_is_not_sent(simulator: Running, run: Run) -> None:
    filing = approved("US-NY", file_number="HAND-1")

    run()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.FALLOUT
    assert intent_of(filing).cause == "filed_elsewhere"
    assert simulator.oracle("us-ny")["acceptances"] == []


def test_a_received_filing_is_asked_about_until_it_is_decided(
    simulator: Running, run: Run
) -> None:
    filing = approved("US-CA")
    simulator.script("us-ca", "202_later")

    run()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED
    assert "filing.submitted" in LedgerEntry.objects.values_list("type", flat=True)


def test_a_duplicate_answer_is_looked_up_and_not_believed(simulator: Running, run: Run) -> None:
    """The portal answers 409 though it never saw it: neither accepted nor sent again."""
    filing = approved("US-CA")
    simulator.script("us-ca", "duplicate")

    run(60, 40)

    filing.refresh_from_db()
    assert filing.status == Filing.Status.FALLOUT
    assert intent_of(filing).cause == "duplicate_not_found"
    assert accepted(simulator, filing) == []


def test_the_kill_switch_stops_a_lane_that_is_at_work(simulator: Running) -> None:
    for _ in range(20):
        approved("US-DE")

    async def switch_off_midway() -> None:
        running = asyncio.create_task(Runner().run(time.monotonic() + 8, patience=5))
        await asyncio.to_thread(_wait_for_requests, simulator, "us-de", 8)
        await asyncio.to_thread(_switch_off, "us-de")
        await running

    asyncio.run(switch_off_midway())

    held = len(simulator.oracle("us-de")["acceptances"])
    assert 0 < held < 20
    assert Intent.objects.filter(state="accepted").count() == held
    assert set(Intent.objects.values_list("state", flat=True)) == {"accepted", "ready"}


def test_a_database_that_fails_once_does_not_make_us_forget_an_answer(
    simulator: Running, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks in the transaction that settles; the same lane settles again."""
    filing = approved("US-CA")
    settle, failures = intents.settle, iter([True])

    def failing_once(*args: Any) -> None:
        if args[1] and args[1][0].outcome == "accepted" and next(failures, False):
            raise OperationalError("server closed the connection unexpectedly")
        settle(*args)

    monkeypatch.setattr(intents, "settle", failing_once)

    run()

    filing.refresh_from_db()
    assert not list(failures), "the database did not fail"
    assert filing.status == Filing.Status.ACCEPTED
    assert [row.outcome for row in Attempt.objects.filter(purpose="send")] == ["accepted"]


def test_leases_that_cannot_be_renewed_once_are_renewed_again(
    simulator: Running, run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LANE_LEASE_SECONDS = 24.0  # renewed every six seconds; a request may take ten
    for _ in range(30):
        approved("US-DE")
    renew, calls = leases.renew, []

    def failing_first(lanes: list[Lane]) -> set[int]:
        calls.append(1)
        if len(calls) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return renew(lanes)

    monkeypatch.setattr(leases, "renew", failing_first)

    run(60, 30)

    assert len(calls) >= 2
    assert set(Filing.objects.values_list("status", flat=True)) == {"accepted"}


def test_a_hold_counts_although_a_person_moved_the_intent_that_met_it(
    simulator: Running,
) -> None:
    intent = intent_of(approved("US-CA"))
    lane = _owned(intent)
    [work] = intents.next_work(intent.portal_id, 1, now=timezone.now())
    later = timezone.now() + timedelta(hours=1)
    told_to_wait = Move("ready", hold=Hold(later, "429"))
    services.withdraw_filing(Filing.objects.get(), by=UserFactory(), reason="Filed on paper")

    intents.settle(lane, [intents.Result(work, told_to_wait, "look_up", "unavailable")])

    lane.refresh_from_db()
    assert lane.paused_until == later


def test_withdrawing_and_arming_at_once_do_not_wait_for_each_other(simulator: Running) -> None:
    """Both lock the intent first, then the filing; the other order deadlocked on PostgreSQL."""
    filings = [approved("US-CA") for _ in range(12)]
    lane = _owned(intent_of(filings[0]))
    user = UserFactory()
    failures: list[BaseException] = []

    def withdraw() -> None:
        for filing in filings:
            try:
                services.withdraw_filing(filing, by=user, reason="Filed on paper")
            except NotAllowed:
                pass  # the lane was faster
            except BaseException as error:
                failures.append(error)
        connections.close_all()

    def arm() -> None:
        for _ in filings:
            works = intents.next_work(lane.portal_id, 3, now=timezone.now())
            try:
                intents.arm(lane, works, card_of("us-ca"))
            except BaseException as error:
                failures.append(error)
        connections.close_all()

    threads = [Thread(target=withdraw), Thread(target=arm)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    states = set(Intent.objects.values_list("state", flat=True))
    assert failures == []
    assert states <= {"armed", "withdrawn"}


def test_what_a_restored_backup_forgot_is_found_under_its_key(
    simulator: Running, run: Run
) -> None:
    """Received but not yet listed: only our own key, which a restore does not change, finds it."""
    filing = approved("US-DE")
    simulator.script("us-de", {"fault": "202_later", "looks": 500})
    run(6, 1)
    assert intent_of(filing).state == Intent.State.RECEIPTED
    Attempt.objects.all().delete()
    Intent.objects.update(state="ready", sends=0, first_sent_at=None, not_before=timezone.now())
    Filing.objects.update(status="pending")

    run(6, 1)

    arrivals = simulator.oracle("us-de")["arrivals"]
    sent = [arrival for arrival in arrivals if arrival["path"] == "/us-de/submit"]
    assert intent_of(filing).state == Intent.State.RECEIPTED
    assert len(sent) == 1


def test_a_portal_whose_card_is_gone_does_not_stop_the_others(
    simulator: Running, run: Run
) -> None:
    filing, lost = approved("US-CA"), approved("US-DE")
    Portal.objects.filter(slug="us-de").update(slug="us-zz")

    run(20, 3)

    filing.refresh_from_db()
    lost.refresh_from_db()
    assert (filing.status, lost.status) == ("accepted", "pending")
    lane = Lane.objects.get(portal__slug="us-zz")
    assert "There is no portal" in lane.pause_cause
    assert lane.owner == ""


def test_a_lane_told_to_wait_sends_nothing_until_then(simulator: Running, run: Run) -> None:
    filings = [approved("US-CA") for _ in range(3)]
    simulator.script("us-ca", {"fault": "429", "seconds": 2})

    run()

    arrivals = simulator.oracle("us-ca")["arrivals"]
    posts = [arrival["at"] for arrival in arrivals if arrival["method"] == "POST"]
    assert {row.status for row in Filing.objects.all()} == {"accepted"}
    assert Attempt.objects.filter(category="RATE_LIMITED").exists()
    assert len(posts) >= len(filings) + 1
    assert any(later - earlier >= 1.9 for earlier, later in pairwise(posts))


def test_a_captcha_stops_the_lane_until_a_person_resumes_it(simulator: Running, run: Run) -> None:
    filing = approved("US-CA")
    simulator.script("us-ca", "captcha")

    run(10, 5)

    filing.refresh_from_db()
    lane = Lane.objects.get(portal__slug="us-ca")
    assert lane.needs_person
    assert filing.status == Filing.Status.PENDING
    leases.hold(lane, None)
    run()
    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED


def test_a_disabled_portal_gets_nothing(simulator: Running, run: Run) -> None:
    filing = approved("US-CA")
    intent_of(filing).portal.__class__.objects.filter(slug="us-ca").update(is_enabled=False)

    run(5, 2)

    filing.refresh_from_db()
    assert filing.status == Filing.Status.PENDING
    assert simulator.oracle("us-ca")["requests"] == 0


def test_wrong_credentials_stop_the_lane_and_send_nothing(simulator: Running, run: Run) -> None:
    filing = approved("US-NY")
    intent_of(filing).portal.credential_set.update(username="")

    run(5, 2)

    filing.refresh_from_db()
    lane = Lane.objects.get(portal__slug="us-ny")
    assert lane.needs_person
    assert "Correct the credential" in lane.pause_cause
    assert filing.status == Filing.Status.PENDING


def test_an_ended_session_is_opened_again(simulator: Running, run: Run) -> None:
    filing = approved("US-NY")
    simulator.script("us-ny", "session_expiry")

    run()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED
    assert len(accepted(simulator, filing)) == 1


def test_many_filings_keep_every_limit(simulator: Running, run: Run) -> None:
    for jurisdiction in ALL:
        for _ in range(12):
            approved(jurisdiction)

    run(90, 40)

    assert set(Filing.objects.values_list("status", flat=True)) == {"accepted"}
    for slug in ("us-de", "us-ca", "us-ny"):
        oracle = simulator.oracle(slug)
        assert oracle["violations"] == {"limits": 0, "concurrency": 0}
        assert len(oracle["acceptances"]) == 12
        assert oracle["duplicates"] == 0


def test_what_an_owner_left_armed_is_in_doubt_for_the_next(simulator: Running, run: Run) -> None:
    filing = approved("US-CA")
    intent = intent_of(filing)
    lane = _owned(intent)
    [work] = intents.next_work(intent.portal_id, 1, now=timezone.now())
    intents.arm(lane, [work], card_of("us-ca"))

    leases.give_back(_owned(intent))

    intent.refresh_from_db()
    filing.refresh_from_db()
    assert intent.state == Intent.State.IN_DOUBT
    assert filing.status == Filing.Status.IN_DOUBT
    assert Attempt.objects.get(intent=intent).outcome == Attempt.Outcome.IN_DOUBT
    run()
    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED
    assert len(accepted(simulator, filing)) == 1


def test_an_owner_that_was_replaced_writes_nothing(simulator: Running) -> None:
    intent = intent_of(approved("US-CA"))
    first = _owned(intent)
    works = intents.next_work(intent.portal_id, 1, now=timezone.now())
    _owned(intent)

    with pytest.raises(intents.LostLane):
        intents.arm(first, works, card_of("us-ca"))

    intent.refresh_from_db()
    assert intent.state == Intent.State.READY


def test_a_lane_has_one_owner_at_a_time(simulator: Running) -> None:
    lane = Lane.objects.get(portal_id=intent_of(approved("US-CA")).portal_id)

    owners = [leases.take(lane.pk, leases.owner_name()) for _ in range(3)]

    assert [owner is not None for owner in owners] == [True, False, False]


def test_an_orderly_stop_leaves_nothing_in_doubt(simulator: Running) -> None:
    for _ in range(20):
        approved("US-DE")

    async def stop_midway() -> None:
        runner = Runner()
        running = asyncio.create_task(runner.run(time.monotonic() + 30, patience=20))
        await asyncio.to_thread(_wait_for_requests, simulator, "us-de", 8)
        runner.stop()
        await running

    asyncio.run(stop_midway())

    states = set(Intent.objects.values_list("state", flat=True))
    assert Intent.objects.filter(state="accepted").exists()
    assert states <= {"accepted", "ready"}
    assert Lane.objects.get(portal__slug="us-de").owner == ""
    assert not Attempt.objects.filter(outcome="open").exists()


def test_asking_twice_for_the_same_intent_gives_the_first(simulator: Running) -> None:
    filing = approved("US-CA")
    intent = intent_of(filing)
    payload = intents.payload_of(intent)
    spec = intents.Spec(
        kind="filing.submit", subject_id=filing.pk, portfolio_id=filing.portfolio_id,
        portal="us-ca", key=payload.key, body=payload.body,
    )  # fmt: skip

    [again] = intents.open_intents([spec], portal=intent.portal, actor="somebody")

    assert again.pk == intent.pk
    assert Intent.objects.count() == 1


def test_a_long_window_survives_a_restart(
    simulator: Running, run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four requests in a day are all; the second run starts with what the first one used."""
    card = card_of("us-ca")
    tight = card.model_copy(
        update={"limits": (card.limits[0], card.limits[0].model_copy(
            update={"requests": 4, "seconds": 86_400.0})), "lookup": True}
    )  # fmt: skip
    monkeypatch.setattr("portals.runner.card_of", lambda slug: tight)
    first, second = approved("US-CA"), approved("US-CA")
    run(6, 3)
    third = approved("US-CA")

    run(4, 2)

    for filing in (first, second, third):
        filing.refresh_from_db()
    assert [first.status, second.status, third.status] == ["accepted", "accepted", "pending"]
    assert simulator.oracle("us-ca")["requests"] == 4
    assert sum(LimitBlock.objects.values_list("requests", flat=True)) == 4


def test_urgent_goes_before_bulk(simulator: Running, run: Run) -> None:
    bulk = [approved("US-DE") for _ in range(6)]
    urgent = FilingFactory(deadline__due_on=timezone.localdate() + timedelta(days=1))
    services.approve_filing(urgent, by=UserFactory())

    run()

    order = [held["entity_number"] for held in simulator.oracle("us-de")["acceptances"]]
    assert order[0] == urgent.deadline.registration.file_number
    assert len(order) == len(bulk) + 1


def test_a_held_lane_probes_before_it_sends_again(simulator: Running, run: Run) -> None:
    approved("US-DE")
    lane = Lane.objects.get(portal__slug="us-de")
    leases.hold(lane, Hold(timezone.now(), "The portal blocks us until its reset time."))

    run()

    first = simulator.oracle("us-de")["arrivals"][0]
    assert (first["method"], first["path"]) == ("HEAD", "/us-de/health")
    assert set(Filing.objects.values_list("status", flat=True)) == {"accepted"}


def _wait_for_requests(simulator: Running, slug: str, least: int) -> None:
    while simulator.oracle(slug, brief=True)["requests"] < least:
        time.sleep(0.05)


def _switch_off(slug: str) -> None:
    Portal.objects.filter(slug=slug).update(is_enabled=False)
    connections.close_all()


def _owned(intent: Intent) -> Lane:
    """Become the lane's owner though somebody else may be: their lease has run out."""
    Lane.objects.filter(portal_id=intent.portal_id).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )
    lane = leases.take(Lane.objects.get(portal_id=intent.portal_id).pk, leases.owner_name())
    assert lane is not None
    return lane
