"""A grant on its whole road: by command or by service, over a real socket, to the funder."""

import base64
import hashlib
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from compliance import ledger
from compliance.models import LedgerEntry
from grants import services
from grants.models import GrantSubmission
from portals.models import Attempt, Intent
from portals.simulator.portal import SECRET
from portals.simulator.running import Running, running
from tests.factories import (
    CredentialFactory,
    EntityFactory,
    GrantSubmissionFactory,
    PortalFactory,
    UserFactory,
)
from tests.grants.drafts import BUDGET, attach, complete_draft
from tests.lanes import Run

pytestmark = pytest.mark.django_db(transaction=True)

Status = GrantSubmission.Status
FUNDER = "bright-futures"
LARGE = bytes(range(256)) * 4096  # a megabyte: many chunks


@pytest.fixture(autouse=True)
def _files_of_this_test(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "files"


def approved(**values: Any) -> GrantSubmission:
    """A submission on its way to the funder."""
    return services.approve_submission(complete_draft(**values), by=UserFactory())


def intent_of(submission: GrantSubmission) -> Intent:
    found: Intent = Intent.objects.get(kind="grant.submit", subject_id=submission.pk)
    return found


def digest(content: bytes) -> str:
    """A digest as the wire names it."""
    return f"sha-256={base64.b64encode(hashlib.sha256(content).digest()).decode()}"


def requests(simulator: Running, portal: str = FUNDER) -> list[str]:
    """What the funder saw, in order: the last part of each address."""
    return [
        f"{arrival['method']} {arrival['path'].partition('?')[0].rpartition('/')[2]}"
        for arrival in simulator.oracle(portal)["arrivals"]
    ]


def outcomes(submission: GrantSubmission) -> list[str]:
    attempts = Attempt.objects.filter(intent=intent_of(submission)).order_by("no")
    return [f"{attempt.purpose} {attempt.outcome}" for attempt in attempts]


# --- The road -----------------------------------------------------------------------------------


def test_an_approved_grant_is_accepted_once(simulator: Running, run: Run) -> None:
    row = approved()

    run()

    row.refresh_from_db()
    [held] = simulator.oracle(FUNDER)["acceptances"]
    assert (row.status, row.tracking_number) == (Status.ACCEPTED, held["confirmation_number"])
    assert held["payload_sha256"] == row.payload_sha256
    assert (held["entity_number"], held["form"]) == (row.entity.name, row.opportunity.number)
    assert simulator.oracle(FUNDER)["violations"] == {"limits": 0, "concurrency": 0}


def test_every_file_arrives_as_it_was_attached(simulator: Running, run: Run) -> None:
    draft = complete_draft(LARGE)
    attach(draft, b"Dear foundation", name="Letter (signed) é.xlsx")
    row = services.approve_submission(draft, by=UserFactory())

    run()

    row.refresh_from_db()
    assert row.status == Status.ACCEPTED
    assert simulator.oracle(FUNDER)["attachments"][intent_of(row).idempotency_key] == {
        "budget.xlsx": digest(LARGE),
        "Letter (signed) é.xlsx": digest(b"Dear foundation"),
    }


def test_every_move_is_on_the_ledger_once(simulator: Running, run: Run) -> None:
    row = approved()

    run()

    entries = LedgerEntry.objects.filter(subject=f"grant:{row.pk}").order_by("seq")
    assert list(entries.values_list("type", flat=True)) == [
        "grant.attached", "grant.pending", "grant.sending", "grant.submitted", "grant.accepted",
    ]  # fmt: skip
    assert ledger.verify().broken is None


@pytest.mark.parametrize("fault", ["drop_after", "5xx_after", "truncated"])
def test_a_lost_answer_to_finalize_is_looked_up_and_never_sent_twice(
    fault: str, simulator: Running, run: Run
) -> None:
    simulator.script(FUNDER, fault)
    row = approved()

    run()

    row.refresh_from_db()
    [held] = simulator.oracle(FUNDER)["acceptances"]
    assert (row.status, row.tracking_number) == (Status.ACCEPTED, held["confirmation_number"])
    assert requests(simulator).count("POST finalize") == 1
    assert outcomes(row)[:2] == ["send in_doubt", "look_up received"]


def test_what_was_created_but_never_finalized_is_sent_again(
    run: Run, settings: Settings, tmp_path: Path
) -> None:
    """The funder shows it as received, without a number: that is not a submission."""
    card = Path("portals/adapters/bright_futures/portal.toml").read_text()
    card = card.replace('slug = "bright-futures"', 'slug = "quick"')
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick" / "portal.toml").write_text(
        card.replace("timeout_seconds = 10", "timeout_seconds = 1")
    )
    settings.PORTALS_DIR = str(tmp_path)
    settings.WIRE_SETTLE_SECONDS = 0.2
    with running() as simulator:
        settings.PORTALS_BASE_URL = simulator.base_url
        CredentialFactory(portal=PortalFactory(slug="quick", title="Quick", jurisdiction="US"))
        simulator.script("quick", "drop_before")
        row = approved(opportunity__funder__portal="quick")

        run()

        row.refresh_from_db()
        assert row.status == Status.ACCEPTED
        assert len(simulator.oracle("quick")["acceptances"]) == 1
        assert requests(simulator, "quick").count("POST finalize") == 2
        assert outcomes(row)[0] == "send in_doubt"
        assert "look_up not_found" in outcomes(row)


def test_what_we_sent_and_forgot_is_recognised_and_not_sent_twice(
    simulator: Running, run: Run
) -> None:
    """A backup was restored: the funder has it, but our rows are those of before."""
    row = approved()
    key, frozen = intent_of(row).idempotency_key, bytes(intent_of(row).payload.wire_bytes)
    headers = {"Authorization": f"Bearer {SECRET}", "Idempotency-Key": f'"{key}"'}
    address = f"{simulator.base_url}/{FUNDER}/v2/submissions"
    with httpx.Client(headers=headers) as client:
        number = client.post(address, content=frozen).json()["id"]
        client.put(
            f"{address}/{number}/attachments/budget.xlsx",
            content=BUDGET,
            headers={"Digest": digest(BUDGET)},
        )
        client.post(f"{address}/{number}/finalize")

    run()

    row.refresh_from_db()
    [held] = simulator.oracle(FUNDER)["acceptances"]
    assert (row.status, row.tracking_number) == (Status.ACCEPTED, held["confirmation_number"])


@pytest.mark.parametrize("route", ["create", "attach"])
def test_what_goes_wrong_before_finalize_is_simply_done_again(
    route: str, simulator: Running, run: Run
) -> None:
    simulator.script(FUNDER, {"fault": "drop_after", "route": route})
    row = approved()

    run()

    row.refresh_from_db()
    assert row.status == Status.ACCEPTED
    assert requests(simulator).count("POST finalize") == 1
    assert "send in_doubt" not in outcomes(row)


def test_a_refusal_brings_the_funders_reasons(simulator: Running, run: Run) -> None:
    row = approved(entity=EntityFactory(name="REJ Trust"))

    run()

    row.refresh_from_db()
    assert row.status == Status.REJECTED
    assert row.reasons == ["simulate: Rejected as asked."]
    assert simulator.oracle(FUNDER)["acceptances"] == []


def test_a_file_changed_after_approval_never_arrives(simulator: Running, run: Run) -> None:
    row = approved(budget=b"twelve")
    Path(row.attachments.get().file.path).write_bytes(b"twenty")

    run()

    row.refresh_from_db()
    assert row.status == Status.FALLOUT
    assert "did not take “budget.xlsx”" in row.cause
    assert requests(simulator).count("POST finalize") == 0


# --- The command --------------------------------------------------------------------------------


def submit_grants(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """The command's exit status, its summary and what it complained of."""
    out, complaints, status = io.StringIO(), io.StringIO(), 0
    try:
        call_command("submit_grants", *arguments, "--json", stdout=out, stderr=complaints)
    except SystemExit as ended:
        status = int(str(ended.code))
    told: dict[str, Any] = json.loads(out.getvalue())
    return status, told, complaints.getvalue()


def test_the_command_approves_what_is_complete_and_the_lanes_send_it(
    simulator: Running, run: Run
) -> None:
    rows = [complete_draft() for _ in range(3)]
    approver = UserFactory()

    status, told, _ = submit_grants("--approved-by", approver.username)
    run()

    assert (status, told) == (0, {"approved": 3, "complete": 3, "blocked": []})
    assert {GrantSubmission.objects.get(pk=row.pk).status for row in rows} == {Status.ACCEPTED}
    assert {row.history.filter(status="pending").get().history_user for row in rows} == {approver}


def test_the_command_reports_the_rest_and_fails() -> None:
    ready = complete_draft()
    empty = GrantSubmissionFactory()
    late = complete_draft()
    late.opportunity.closes_at = timezone.now() - timedelta(minutes=1)
    late.opportunity.save()
    own = complete_draft()

    status, told, complaints = submit_grants("--approved-by", own.prepared_by.username)

    assert status == 1
    assert told["approved"] == 1
    assert {blocked["id"] for blocked in told["blocked"]} == {empty.pk, late.pk, own.pk}
    assert "Project title is missing." in complaints
    assert "closed on" in complaints
    assert "somebody else must approve it" in complaints
    ready.refresh_from_db()
    assert ready.status == Status.PENDING


def test_without_an_approver_the_command_only_looks() -> None:
    row = complete_draft()

    status, told, _ = submit_grants()

    row.refresh_from_db()
    assert (status, told["approved"], told["complete"]) == (0, 0, 1)
    assert row.status == Status.DRAFT


def test_the_command_keeps_to_one_funder() -> None:
    ours, other = complete_draft(), GrantSubmissionFactory(opportunity__funder__slug="zed-trust")

    status, told, _ = submit_grants("--funder", FUNDER, "--approved-by", UserFactory().username)

    ours.refresh_from_db()
    other.refresh_from_db()
    assert (status, told["approved"]) == (0, 1)
    assert (ours.status, other.status) == (Status.PENDING, Status.DRAFT)


@pytest.mark.parametrize("option", ["--funder", "--approved-by"])
def test_a_name_that_nobody_has_is_refused(option: str) -> None:
    with pytest.raises(CommandError, match="There is no"):
        call_command("submit_grants", option, "nobody")


def test_an_upload_that_takes_its_time_is_over_before_the_point_of_no_return(
    simulator: Running, run: Run, settings: Settings
) -> None:
    """The moment to send is short; what comes before it may be slow, and is not armed yet."""
    settings.SEND_WITHIN_SECONDS = 1.0
    submission = approved()
    simulator.script(FUNDER, {"fault": "delay", "route": "attach", "seconds": 2})

    run()

    submission.refresh_from_db()
    assert submission.status == Status.ACCEPTED
    assert Attempt.objects.filter(intent=intent_of(submission), purpose="send").count() == 1
