"""Every decision about an intent, by itself: no clock, no database, no network."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from portals import protocol
from portals.base import Receipt, Standing
from portals.cards import Card, Limit
from portals.errors import Blocked, Changed, InDoubt, Rejected, Unavailable
from portals.http import NotSent
from portals.intents import MOVES
from portals.protocol import Known, Move, State, Step

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENT = Known(
    state=State.ARMED, is_read=False, is_urgent=False, tries=1, sends=1, doubts=0, absences=0,
    payload_sha256="ours", first_sent_at=NOW, last_sent_at=NOW,
)  # fmt: skip
DOUBT = replace(SENT, state=State.IN_DOUBT, tries=0)


def card(doubt_class: str = "C", **values: Any) -> Card:
    return Card(
        slug="zz", title="Zedland", jurisdiction="ZZ", adapter="reference",
        base_url="https://zz.example/api", timezone="UTC", verified_on=date(2026, 1, 1),
        limits=(Limit(requests=1, seconds=1),), doubt_class=doubt_class, timeout_seconds=10,
        **{"lookup_lag_seconds": 60, "processing_seconds": 0, **values},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Receipt("A-1", final=True, rule=""), State.ACCEPTED),
        (Receipt("R-1", final=False, rule=""), State.RECEIPTED),
        (Rejected("no", reasons=("name: wrong",)), State.REJECTED),
        (InDoubt("lost"), State.IN_DOUBT),
        (Unavailable("down"), State.READY),
        (Unavailable("busy", retry_after=5.0), State.READY),
        (Blocked("blocked", retry_after=60.0), State.READY),
        (Changed("strange"), State.READY),
        (NotSent("late"), State.READY),
    ],
)
def test_what_an_answer_makes_of_an_intent(outcome: Any, state: str) -> None:
    move = protocol.after_send(outcome, SENT, card(), NOW)

    assert move.to == state
    assert state in MOVES[State.ARMED]


@pytest.mark.parametrize("outcome", [Unavailable("down"), NotSent("late"), Blocked("no")])
def test_what_did_not_arrive_does_not_count_as_sent(outcome: Any) -> None:
    move = protocol.after_send(outcome, SENT, card(), NOW)

    assert move.values["sends"] == 0
    assert move.values["first_sent_at"] is None


def test_a_lane_that_is_told_to_wait_does_not_use_up_tries() -> None:
    move = protocol.after_send(Unavailable("busy", retry_after=90.0), SENT, card(), NOW)

    assert move.hold is not None
    assert move.hold.until == NOW + timedelta(seconds=90)
    assert move.values["tries"] == 0


def test_a_captcha_holds_the_lane_until_a_person_comes() -> None:
    move = protocol.after_send(Blocked("CAPTCHA", needs_person=True), SENT, card(), NOW)

    assert move.hold is not None
    assert move.hold.until is None


def test_a_portal_that_cannot_be_reached_becomes_fallout_at_last() -> None:
    tired = replace(SENT, tries=protocol.MOST_TRIES)

    assert protocol.after_send(Unavailable("down"), tired, card(), NOW).to == State.FALLOUT


def test_a_strange_page_is_looked_at_again_and_then_shown_to_a_person() -> None:
    tired = replace(SENT, tries=protocol.MOST_UNREADABLE)

    assert protocol.after_send(Changed("odd"), SENT, card(), NOW).to == State.READY
    assert protocol.after_send(Changed("odd"), tired, card(), NOW).to == State.FALLOUT


def test_backoff_grows_and_urgent_waits_less() -> None:
    waits = [
        protocol.after_send(Unavailable("down"), replace(SENT, tries=n), card(), NOW)
        for n in (1, 3, 5)
    ]
    urgent = replace(SENT, tries=20, is_urgent=True)
    soon = protocol.after_send(Unavailable("down"), urgent, card(), NOW)

    seconds = [(move.values["not_before"] - NOW).total_seconds() for move in waits]
    assert seconds == sorted(seconds)
    assert seconds[-1] == 32
    assert soon.values["not_before"] == NOW + timedelta(seconds=30)


@pytest.mark.parametrize(
    ("doubt_class", "known", "step"),
    [
        ("A", replace(DOUBT, resend_by=NOW + timedelta(hours=1)), Step.RESEND),
        ("A", replace(DOUBT, resend_by=NOW), Step.LOOK_UP),
        ("B", DOUBT, Step.LOOK_UP),
        ("C", DOUBT, Step.LOOK_UP),
        ("D", replace(DOUBT, resend_by=NOW + timedelta(hours=1)), Step.RESEND),
        ("D", replace(DOUBT, resend_by=NOW), Step.ASK_A_PERSON),
        ("D", replace(DOUBT, sends=2, resend_by=NOW + timedelta(hours=1)), Step.ASK_A_PERSON),
        ("E", DOUBT, Step.ASK_A_PERSON),
    ],
)
def test_each_class_leaves_doubt_in_its_own_way(doubt_class: str, known: Known, step: str) -> None:
    assert protocol.way_out(known, card(doubt_class), NOW) == step


@pytest.mark.parametrize("doubt_class", ["A", "B", "C"])
def test_without_a_look_up_a_person_is_asked(doubt_class: str) -> None:
    assert protocol.way_out(DOUBT, card(doubt_class, lookup=False), NOW) == Step.ASK_A_PERSON


def test_a_duplicate_at_a_portal_without_look_up_proves_arrival() -> None:
    move = protocol.after_send(InDoubt("dup", "409 duplicate"), SENT, card("D"), NOW)

    assert (move.to, move.cause) == (State.FALLOUT, "arrived_without_number")


@pytest.mark.parametrize("doubt_class", ["B", "C", "D"])
def test_a_refused_repeat_says_nothing_about_the_first(doubt_class: str) -> None:
    again = replace(SENT, sends=2)

    move = protocol.after_send(Rejected("exists already"), again, card(doubt_class), NOW)

    assert (move.to, move.cause) == (State.FALLOUT, "refused_after_doubt")


def test_a_key_that_is_kept_makes_a_refused_repeat_the_answer() -> None:
    again = replace(SENT, sends=2)

    assert protocol.after_send(Rejected("no"), again, card("A"), NOW).to == State.REJECTED


def test_a_portal_that_leaves_us_in_doubt_again_and_again_is_shown_to_a_person() -> None:
    often = replace(SENT, doubts=protocol.MOST_DOUBTS)

    assert protocol.after_send(InDoubt("500"), SENT, card(), NOW).values["doubts"] == 1
    assert protocol.after_send(InDoubt("500"), often, card(), NOW).to == State.FALLOUT


@pytest.mark.parametrize("doubt_class", ["A", "B", "C"])
def test_a_duplicate_is_looked_up_and_never_repeated(doubt_class: str) -> None:
    doubt = protocol.after_send(InDoubt("dup", "409 duplicate"), SENT, card(doubt_class), NOW)
    known = replace(DOUBT, cause=doubt.cause, resend_by=NOW + timedelta(hours=1))

    assert protocol.way_out(known, card(doubt_class), NOW) == Step.LOOK_UP
    assert look(None, known, 200, doubt_class).cause == "duplicate_not_found"


def test_a_repeat_waits_longer_each_time() -> None:
    first, third = (
        protocol.resend(replace(DOUBT, sends=sends), NOW).values["not_before"] for sends in (1, 3)
    )

    assert NOW < first < third


def test_a_receipt_that_nobody_can_ask_about_is_for_a_person() -> None:
    receipt = Receipt("R-1", final=False, rule="")

    move = protocol.after_send(receipt, SENT, card("E", lookup=False), NOW)

    assert (move.to, move.number) == (State.FALLOUT, "R-1")


def test_what_missed_its_moment_is_tried_again_later() -> None:
    move = protocol.after_send(NotSent("late", "fence"), SENT, card(), NOW)

    assert move.values["tries"] == 1
    assert move.values["not_before"] > NOW


@pytest.mark.parametrize(
    ("error", "until"),
    [
        (Blocked("no", retry_after=3600.0), NOW + timedelta(hours=1)),
        (Blocked("CAPTCHA", needs_person=True), None),
        (Unavailable("down"), NOW + timedelta(seconds=protocol.PROBE_AGAIN_SECONDS)),
    ],
)
def test_a_probe_keeps_away_for_as_long_as_it_is_told(error: Any, until: datetime | None) -> None:
    assert protocol.still_held(error, "blocked", NOW).until == until


def look(found: Any, known: Known = DOUBT, seconds: float = 0.0, doubt_class: str = "C") -> Move:
    """What a look-up makes of a doubt, so many seconds after it was sent."""
    now = NOW + timedelta(seconds=seconds)
    return protocol.after_look_up(found, known, card(doubt_class), now, settle=15)


def test_found_is_always_believed() -> None:
    assert look(Receipt("A-1", final=True, rule="")).to == State.ACCEPTED


def test_found_with_other_content_is_for_a_person() -> None:
    other = Receipt("A-1", final=True, rule="", payload_sha256="theirs")

    move = look(other)

    assert (move.to, move.cause) == (State.FALLOUT, "content_differs")


def test_absent_does_not_count_while_it_may_still_be_on_its_way() -> None:
    move = look(None, seconds=84)  # time-out 10, settle 15, lag 60

    assert move.to == State.IN_DOUBT
    assert move.values == {"not_before": NOW + timedelta(seconds=85)}


def test_absent_does_not_count_while_the_portal_may_still_be_working_on_it() -> None:
    slow = card("C", processing_seconds=300)

    move = protocol.after_look_up(None, DOUBT, slow, NOW + timedelta(seconds=300), settle=15)

    assert move.to == State.IN_DOUBT
    assert move.values == {"not_before": NOW + timedelta(seconds=10 + 15 + 300 + 60)}


def test_a_lagging_register_must_say_absent_twice() -> None:
    once = look(None, seconds=86)
    twice = look(None, replace(DOUBT, absences=1), seconds=150)

    assert (once.to, once.values["absences"]) == (State.IN_DOUBT, 1)
    assert once.values["not_before"] > NOW + timedelta(seconds=86 + 60)
    assert twice.to == State.READY
    assert twice.values["sends"] == 0


def test_absent_at_a_portal_that_forgot_the_key_is_for_a_person() -> None:
    assert look(None, seconds=200, doubt_class="A").to == State.FALLOUT


@pytest.mark.parametrize("fault", [Unavailable("down"), InDoubt("?"), Changed("odd")])
def test_a_fault_of_a_look_up_settles_nothing(fault: Any) -> None:
    move = look(fault, seconds=500)

    assert move.to == State.IN_DOUBT
    assert move.values["tries"] == 1


def test_a_doubt_that_nobody_settles_is_for_a_person() -> None:
    assert look(InDoubt("?"), replace(DOUBT, tries=protocol.MOST_LOOKS)).to == State.FALLOUT


def test_a_received_one_is_waited_for_much_longer_than_a_doubt() -> None:
    received = replace(DOUBT, state=State.RECEIPTED, tries=protocol.MOST_LOOKS + 1)

    move = look(Receipt("R", final=False, rule=""), received)

    assert move.to == State.RECEIPTED
    assert move.values["not_before"] > NOW + timedelta(minutes=30)


READ = Known(
    state=State.ARMED, is_read=True, is_urgent=False, tries=1, sends=0, doubts=0, absences=0,
    payload_sha256="",
)  # fmt: skip


@pytest.mark.parametrize("fault", [Unavailable("down"), InDoubt("lost"), Changed("odd")])
def test_a_read_is_never_in_doubt_and_at_last_given_up(fault: Any) -> None:
    tired = replace(READ, tries=protocol.MOST_TRIES)

    assert protocol.after_read(fault, READ, NOW).to == State.READY
    assert protocol.after_read(fault, tired, NOW).to == State.WITHDRAWN


def test_a_read_standing_ends_the_look() -> None:
    move = protocol.after_read(Standing("active", "Good", "", "", ""), READ, NOW)

    assert move.to == State.ACCEPTED
    assert move.standing is not None


def test_a_repeat_must_arrive_well_before_the_portal_forgets() -> None:
    kept = protocol.repeat_until(card("A", key_retention_hours=24), NOW)

    assert kept == NOW + timedelta(hours=24) - protocol.SAFETY
    assert protocol.repeat_until(card("C"), NOW) is None
