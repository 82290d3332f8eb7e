"""The moves of a grant submission before it reaches its lane."""

import hashlib
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from compliance import ledger
from compliance.errors import NotAllowed
from compliance.models import Event, LedgerEntry
from grants import services
from grants.checks_payload import Flag, Severity
from grants.models import GrantSubmission
from portals.keys import derive_key, installation_secret
from portals.models import Intent
from tests.factories import EntityFactory, GrantSubmissionFactory, OpportunityFactory, UserFactory
from tests.grants.drafts import ANSWERS, BUDGET, SHEET, attach, complete_draft

pytestmark = pytest.mark.django_db

Status = GrantSubmission.Status


@pytest.fixture(autouse=True)
def _files_of_this_test(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def files(root: Path) -> list[bytes]:
    """What lies on the disk."""
    return sorted(path.read_bytes() for path in root.rglob("*") if path.is_file())


def types_on_the_ledger(submission: GrantSubmission) -> list[str]:
    entries = LedgerEntry.objects.filter(subject=f"grant:{submission.pk}").order_by("seq")
    return list(entries.values_list("type", flat=True))


def intent_of(submission: GrantSubmission) -> Intent:
    found: Intent = Intent.objects.get(kind="grant.submit", subject_id=submission.pk)
    return found


def closed(submission: GrantSubmission) -> GrantSubmission:
    submission.opportunity.closes_at = timezone.now() - timedelta(minutes=1)
    submission.opportunity.save()
    return submission


# --- Opening and editing ------------------------------------------------------------------------


def test_a_draft_begins_with_what_we_know() -> None:
    entity = EntityFactory(name="Harbor Light Inc.")

    draft = services.open_submission(OpportunityFactory(), entity, by=UserFactory())

    assert draft.status == Status.DRAFT
    assert draft.portfolio == entity.portfolio
    assert draft.answers == {
        "organization_name": "Harbor Light Inc.",
        "organization_address": "12 Harbor Street, Wilmington, DE, 19801",
    }
    assert types_on_the_ledger(draft) == ["grant.draft"]


def test_asking_again_gives_the_draft_there_is() -> None:
    opportunity, entity, by = OpportunityFactory(), EntityFactory(), UserFactory()

    first = services.open_submission(opportunity, entity, by=by)
    again = services.open_submission(opportunity, entity, by=by)

    assert again == first


def test_after_a_withdrawal_the_next_draft_has_its_own_number() -> None:
    opportunity, entity, by = OpportunityFactory(), EntityFactory(), UserFactory()
    first = services.open_submission(opportunity, entity, by=by)
    services.withdraw_submission(first, by=by, reason="The board changed its mind.")

    second = services.open_submission(opportunity, entity, by=by)

    assert (first.revision, second.revision) == (1, 2)


def test_nothing_is_opened_for_what_is_closed() -> None:
    opportunity = OpportunityFactory(closes_at=timezone.now() - timedelta(minutes=1))

    with pytest.raises(NotAllowed, match="closed on"):
        services.open_submission(opportunity, EntityFactory(), by=UserFactory())


def test_whoever_edits_a_draft_is_its_preparer() -> None:
    draft, editor = GrantSubmissionFactory(), UserFactory()

    edited = services.edit_submission(draft, answers={"project_title": "Boats"}, by=editor)

    edited.refresh_from_db()
    assert (edited.answers, edited.prepared_by) == ({"project_title": "Boats"}, editor)
    assert edited.history.latest().history_change_reason == "edited"
    assert types_on_the_ledger(draft) == ["grant.edited"]


def test_a_browsers_line_breaks_become_what_was_typed() -> None:
    draft = GrantSubmissionFactory()

    edited = services.edit_submission(
        draft, answers={"summary": "One.\r\nTwo."}, by=draft.prepared_by
    )

    assert edited.answers["summary"] == "One.\nTwo."


@pytest.mark.parametrize("verb", ["edit", "attach", "detach", "approve"])
def test_only_a_draft_is_changed(verb: str) -> None:
    row = services.approve_submission(complete_draft(), by=UserFactory())
    by = UserFactory()
    change: dict[str, Any] = {
        "edit": lambda: services.edit_submission(row, answers={}, by=by),
        "attach": lambda: attach(row, name="late.pdf"),
        "detach": lambda: services.detach_file(row, name="budget.xlsx", by=by),
        "approve": lambda: services.approve_submission(row, by=by),
    }

    with pytest.raises(NotAllowed, match="Only a draft"):
        change[verb]()

    assert [one.name for one in row.attachments.all()] == ["budget.xlsx"]


# --- Files --------------------------------------------------------------------------------------


def test_an_attached_file_is_known_by_its_digest(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1024  # several chunks
    draft = GrantSubmissionFactory()

    attach(draft, content)

    kept = draft.attachments.get()
    assert (kept.sha256, kept.size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert Path(kept.file.path).read_bytes() == content
    assert types_on_the_ledger(draft) == ["grant.attached"]


def test_a_file_that_was_looked_at_is_still_kept_whole() -> None:
    draft, file = GrantSubmissionFactory(), io.BytesIO(BUDGET)
    file.read()

    kept = services.attach_file(
        draft, name="budget.xlsx", file=file, content_type=SHEET, by=draft.prepared_by
    )

    assert (kept.size, kept.sha256) == (len(BUDGET), hashlib.sha256(BUDGET).hexdigest())


@pytest.mark.django_db(transaction=True)
def test_a_file_attached_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    draft = GrantSubmissionFactory()
    attach(draft, b"first")

    attach(draft, b"second")

    assert draft.attachments.get().sha256 == hashlib.sha256(b"second").hexdigest()
    assert files(tmp_path) == [b"second"]


@pytest.mark.django_db(transaction=True)
def test_a_detached_file_is_gone(tmp_path: Path) -> None:
    draft = complete_draft()

    services.detach_file(draft, name="budget.xlsx", by=UserFactory())

    assert not draft.attachments.exists()
    assert files(tmp_path) == []
    assert types_on_the_ledger(draft) == ["grant.attached", "grant.detached"]


def test_a_file_larger_than_the_funder_takes_leaves_nothing_behind(tmp_path: Path) -> None:
    draft = GrantSubmissionFactory()

    with pytest.raises(NotAllowed, match="larger than 10,000,000 bytes"):
        attach(draft, bytes(10_000_001))

    assert files(tmp_path) == []
    assert not draft.attachments.exists()


@pytest.mark.parametrize(
    "name", ["", "a/b.pdf", "..", ".hidden", "a?b", "50%.pdf", "a\nb", "x" * 151]
)
def test_a_name_that_an_address_cannot_carry_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotAllowed, match="cannot be the name"):
        attach(GrantSubmissionFactory(), name=name)

    assert files(tmp_path) == []


def test_who_attaches_a_file_cannot_approve_it() -> None:
    draft, second = complete_draft(), UserFactory()
    services.attach_file(
        draft, name="budget.xlsx", file=io.BytesIO(b"mine"), content_type=SHEET, by=second
    )

    with pytest.raises(NotAllowed) as raised:
        services.approve_submission(draft, by=second)

    assert raised.value.code == "four_eyes"


# --- Checks -------------------------------------------------------------------------------------


def test_a_complete_draft_has_no_problem() -> None:
    assert services.check_submission(complete_draft()) == []


def test_every_problem_is_found_at_once() -> None:
    draft = closed(GrantSubmissionFactory(answers={**ANSWERS, "project_title": "x" * 101}))

    found = services.check_submission(draft)

    assert [problem.flag for problem in found] == [
        Flag.CLOSED_OPPORTUNITY,
        Flag.TRUNCATION_RISK,
        Flag.MISSING_ATTACHMENT,
    ]
    assert {problem.severity for problem in found} == {Severity.CRITICAL}


def test_the_applicants_name_is_checked_as_it_will_be_sent() -> None:
    draft = complete_draft(entity=EntityFactory(name="Harbor  Light"))

    [problem] = services.check_submission(draft)

    assert (problem.flag, problem.at) == (Flag.UNCLEAN_TEXT, "applicant")


def test_the_portals_own_limit_counts_too(settings: Settings, tmp_path: Path) -> None:
    card = (Path("portals/adapters/bright_futures/portal.toml")).read_text()
    (tmp_path / "narrow").mkdir()
    narrow = card.replace('slug = "bright-futures"', 'slug = "narrow"')
    (tmp_path / "narrow" / "portal.toml").write_text(narrow + "\nfield_max_characters = 30\n")
    settings.PORTALS_DIR = str(tmp_path)
    draft = complete_draft(opportunity__funder__portal="narrow")

    [problem] = services.check_submission(draft)

    assert (problem.flag, problem.at) == (Flag.TRUNCATION_RISK, "summary")


@pytest.mark.parametrize(
    "opportunity",
    [{"funder__portal": "nowhere"}, {"funder__slug": "nobody"}, {"schema_version": 9}],
)
def test_without_a_portal_or_a_schema_there_is_no_way_in(opportunity: dict[str, Any]) -> None:
    draft = GrantSubmissionFactory(
        answers=ANSWERS, **{f"opportunity__{name}": value for name, value in opportunity.items()}
    )

    [problem] = services.check_submission(draft)

    assert problem.flag == Flag.NO_WAY_IN


# --- Approving ----------------------------------------------------------------------------------


def test_approval_freezes_the_bytes_and_queues_them() -> None:
    draft, by = complete_draft(), UserFactory()

    row = services.approve_submission(draft, by=by)

    intent = intent_of(row)
    frozen = bytes(intent.payload.wire_bytes)
    assert (row.status, row.approved_by) == (Status.PENDING, by)
    assert row.payload_sha256 == hashlib.sha256(frozen).hexdigest() == intent.payload_sha256
    assert (intent.portal.slug, intent.deadline_at) == (
        "bright-futures",
        draft.opportunity.closes_at,
    )
    assert types_on_the_ledger(row) == ["grant.attached", "grant.pending"]
    assert Event.objects.get(type="grant.pending").subject == f"grant:{row.pk}"
    assert ledger.verify().broken is None


def test_the_wire_names_files_by_digest_and_never_by_path(tmp_path: Path) -> None:
    row = services.approve_submission(complete_draft(), by=UserFactory())

    frozen = bytes(intent_of(row).payload.wire_bytes)
    told = json.loads(frozen)
    assert told == {
        "opportunity": row.opportunity.number,
        "schema_version": 1,
        "applicant": row.entity.name,
        "fields": ANSWERS,
        "attachments": [
            {
                "name": "budget.xlsx",
                "content_type": SHEET,
                "size": len(BUDGET),
                "sha256": hashlib.sha256(BUDGET).hexdigest(),
            }
        ],
    }
    assert str(tmp_path).encode() not in frozen


def test_the_same_answers_in_another_order_give_the_same_bytes() -> None:
    backwards = dict(reversed(ANSWERS.items()))
    entity, opportunity = EntityFactory(), OpportunityFactory()
    first = complete_draft(entity=entity, opportunity=opportunity)
    services.withdraw_submission(first, by=first.prepared_by, reason="Typed anew.")
    second = complete_draft(
        entity=entity, opportunity=opportunity, revision=2, answers=backwards | {"keywords": ""}
    )
    third = complete_draft(entity=EntityFactory(name=entity.name), opportunity=opportunity)

    digests = {
        services.approve_submission(draft, by=UserFactory()).payload_sha256
        for draft in (second, third)
    }
    assert len(digests) == 1


def test_the_key_is_derived_from_what_is_to_be_done() -> None:
    row = services.approve_submission(complete_draft(), by=UserFactory())

    assert intent_of(row).idempotency_key == derive_key(
        installation_secret(), "grant.submit", row.portfolio_id, "bright-futures",
        row.opportunity_id, row.entity_id, row.revision,
    )  # fmt: skip


def test_a_preparer_does_not_approve_their_own() -> None:
    draft = complete_draft()

    with pytest.raises(NotAllowed) as raised:
        services.approve_submission(draft, by=draft.prepared_by)

    assert raised.value.code == "four_eyes"
    assert not Intent.objects.exists()


def test_an_incomplete_draft_is_not_approved_and_says_all_that_is_missing() -> None:
    draft = GrantSubmissionFactory(answers={**ANSWERS, "contact_name": ""})

    with pytest.raises(NotAllowed) as raised:
        services.approve_submission(draft, by=UserFactory())

    assert raised.value.problems == (
        "Contact name is missing. Fill it in.",
        "budget.xlsx is missing. Attach it under exactly this name.",
    )


def test_a_warning_does_not_stop_an_approval() -> None:
    draft = complete_draft(answers={**ANSWERS, "project_title": "x" * 99 + "\N{BOOKS}"})

    [problem] = services.check_submission(draft)
    row = services.approve_submission(draft, by=UserFactory())

    assert (problem.flag, problem.severity) == (Flag.TRUNCATION_RISK, Severity.WARNING)
    assert row.status == Status.PENDING


@pytest.mark.parametrize("content", [None, b"something else"])
def test_a_file_that_changed_on_the_disk_is_not_sent(content: bytes | None) -> None:
    draft = complete_draft()
    path = Path(draft.attachments.get().file.path)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)

    with pytest.raises(NotAllowed) as raised:
        services.approve_submission(draft, by=UserFactory())

    assert raised.value.code == "file_changed"
    draft.refresh_from_db()
    assert draft.status == Status.DRAFT


# --- Withdrawing --------------------------------------------------------------------------------


def test_what_has_not_left_can_be_withdrawn() -> None:
    row = services.approve_submission(complete_draft(), by=UserFactory())

    withdrawn = services.withdraw_submission(row, by=UserFactory(), reason="Wrong year.")

    assert withdrawn.status == Status.WITHDRAWN
    assert intent_of(row).state == Intent.State.WITHDRAWN
    assert types_on_the_ledger(row)[-1] == "grant.withdrawn"


def test_what_may_have_left_is_not_withdrawn_here() -> None:
    row = services.approve_submission(complete_draft(), by=UserFactory())
    Intent.objects.filter(subject_id=row.pk).update(sends=1)

    with pytest.raises(NotAllowed, match="the funder may have it"):
        services.withdraw_submission(row, by=UserFactory(), reason="Wrong year.")


def test_a_withdrawal_gives_its_reason() -> None:
    with pytest.raises(NotAllowed, match="Say in a sentence"):
        services.withdraw_submission(complete_draft(), by=UserFactory(), reason=" ")
