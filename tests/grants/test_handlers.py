"""What the lanes' outcomes do to a grant submission."""

from pathlib import Path

import pytest
from pytest_django import Settings

from compliance import ledger
from compliance.errors import NotAllowed
from compliance.models import Event, LedgerEntry
from grants import services
from grants.handlers import GrantSubmit
from grants.models import GrantSubmission
from portals import intents
from portals.fallout import adopt_item, claim_item, request_withdrawal
from portals.handlers import Moved, handler_of
from portals.models import Intent
from portals.protocol import Move
from portals.road import AFTER, MOVES
from tests.factories import UserFactory
from tests.grants.drafts import complete_draft

pytestmark = pytest.mark.django_db

Status = GrantSubmission.Status
State = Intent.State


@pytest.fixture(autouse=True)
def _files_of_this_test(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def pending() -> GrantSubmission:
    """A submission that waits for its lane."""
    return services.approve_submission(complete_draft(), by=UserFactory())


def tell(submission: GrantSubmission, *moves: Move, actor: str = "lanes") -> GrantSubmission:
    """What a lane does when it settles: one transaction for each move."""
    for move in moves:
        with ledger.recording():
            GrantSubmit().moved([Moved(1, submission.pk, "", move, actor)])
    submission.refresh_from_db()
    return submission


def test_the_settings_name_the_handler() -> None:
    assert isinstance(handler_of("grant.submit"), GrantSubmit)


def test_every_state_of_an_intent_is_a_status_of_its_submission() -> None:
    assert set(AFTER) == set(State)


def test_every_move_of_an_intent_is_one_that_its_submission_can_make() -> None:
    reads_alone = {(State.ARMED, State.WITHDRAWN)}

    wanted = {
        (came_from, to)
        for came_from, targets in intents.MOVES.items()
        for to in targets
        if came_from != to
    } - reads_alone
    refused = {
        (came_from, to) for came_from, to in wanted if AFTER[to] not in MOVES[AFTER[came_from]]
    }
    assert refused == set()


def test_a_receipt_is_not_yet_an_acceptance(pending: GrantSubmission) -> None:
    row = tell(pending, Move(State.ARMED), Move(State.RECEIPTED, number="0a1b"))

    assert (row.status, row.tracking_number) == (Status.SUBMITTED, "")


def test_an_acceptance_brings_the_tracking_number(pending: GrantSubmission) -> None:
    row = tell(
        pending,
        Move(State.ARMED),
        Move(State.RECEIPTED, number="0a1b"),
        Move(State.ACCEPTED, number="BF-1"),
    )

    assert (row.status, row.tracking_number) == (Status.ACCEPTED, "BF-1")
    assert row.settled_at is not None
    assert Event.objects.get(type="grant.accepted").data["number"] == "BF-1"


def test_a_refusal_brings_its_reasons(pending: GrantSubmission) -> None:
    refusal = Move(State.REJECTED, "rejected", "Refused.", reasons=("summary: too vague",))
    row = tell(pending, Move(State.ARMED), refusal)

    assert (row.status, row.reasons) == (Status.REJECTED, ["summary: too vague"])


def test_fallout_says_what_it_waits_for(pending: GrantSubmission) -> None:
    row = tell(pending, Move(State.FALLOUT, "changed", "The funder asks for something new."))

    assert (row.status, row.cause) == (Status.FALLOUT, "The funder asks for something new.")


def test_many_submissions_move_together_and_each_is_on_the_ledger_once() -> None:
    rows = [services.approve_submission(complete_draft(), by=UserFactory()) for _ in range(3)]
    moves = [Move(State.ARMED), Move(State.ARMED), Move(State.FALLOUT, "changed", "New page.")]

    with ledger.recording():
        told = zip(rows, moves, strict=True)
        GrantSubmit().moved([Moved(1, row.pk, "ready", move, "lanes") for row, move in told])

    last = [
        LedgerEntry.objects.filter(subject=f"grant:{row.pk}").latest("seq").type for row in rows
    ]
    assert last == ["grant.sending", "grant.sending", "grant.fallout"]
    assert LedgerEntry.objects.filter(type="grant.sending").count() == 2


def test_final_is_final(pending: GrantSubmission) -> None:
    row = tell(pending, Move(State.ARMED), Move(State.ACCEPTED, number="BF-1"))

    with pytest.raises(NotAllowed, match="cannot go from accepted to pending"):
        tell(row, Move(State.READY))


def test_a_person_adopts_what_the_funder_has(pending: GrantSubmission) -> None:
    intent = Intent.objects.get(subject_id=pending.pk)
    intents.move_by_hand(intent, Move(State.FALLOUT, "no_verdict", "No word."), actor="lanes")
    by = UserFactory()
    claim_item(intent, by=by)

    adopt_item(intent, by=by, number="BF-7", reason="Their programme officer wrote.")

    pending.refresh_from_db()
    assert (pending.status, pending.tracking_number, pending.cause) == (
        Status.ACCEPTED,
        "BF-7",
        "",
    )


def test_what_a_person_withdraws_can_be_applied_for_again(pending: GrantSubmission) -> None:
    intent = Intent.objects.get(subject_id=pending.pk)
    intents.move_by_hand(intent, Move(State.FALLOUT, "changed", "New page."), actor="lanes")
    by = UserFactory()
    claim_item(intent, by=by)
    request_withdrawal(intent, by=by, reason="They take paper only.")

    again = services.open_submission(pending.opportunity, pending.entity, by=by)

    assert (again.status, again.revision) == (Status.DRAFT, 2)


def test_the_review_queue_shows_a_title_and_a_link(pending: GrantSubmission) -> None:
    [shown] = GrantSubmit().shown([pending.pk, 0]).values()

    assert shown.title == f"{pending.entity.name} to {pending.opportunity}"
    assert shown.url == f"/admin/grants/grantsubmission/{pending.pk}/change/"
