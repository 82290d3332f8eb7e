"""All the moves of grant submissions. Only the road writes a submission's status."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from compliance import ledger
from compliance.errors import DomainError, NotAllowed
from compliance.history import remember, update_tracked
from compliance.models import Entity
from grants import attachments
from grants.checks_payload import Problem, critical, problems_of
from grants.models import Attachment, GrantSubmission, Opportunity
from grants.payloads import attached_files, freeze, prefill
from grants.schemas import schema_of
from portals import intents
from portals.base import Attached
from portals.crash import crash_point
from portals.keys import derive_key, installation_secret
from portals.models import Intent
from portals.protocol import Move
from portals.registry import card_of
from portals.road import Road
from portals.waking import wake

Status = GrantSubmission.Status
SUBMIT = "grant.submit"
# A name becomes a part of the funder's address, so it has nothing that an address is made of.
FILE_NAME = re.compile(r"\w[\w .()-]{0,149}")

ROAD = Road(
    GrantSubmission,
    "grant",
    "tracking_number",
    told=lambda row: {"opportunity": row.opportunity_id},
)


def open_submission(opportunity: Opportunity, entity: Entity, *, by: User) -> GrantSubmission:
    """A draft, filled with what we know. Asking again gives the one there is."""
    with ledger.recording(by=by):
        Entity.objects.select_for_update().get(pk=entity.pk)  # two clicks open one draft
        ours = GrantSubmission.objects.filter(opportunity=opportunity, entity=entity)
        live = ours.exclude(status__in=[Status.REJECTED, Status.WITHDRAWN]).first()
        if live is not None:
            return _locked(live)
        if opportunity.closes_at <= timezone.now():
            raise NotAllowed(
                f"{opportunity} closed on {opportunity.closes_at:%d %b %Y}. Choose another one."
            )
        schema = schema_of(opportunity.funder.slug, opportunity.schema_version)
        row = GrantSubmission(
            portfolio_id=entity.portfolio_id,
            opportunity=opportunity,
            entity=entity,
            revision=ours.count() + 1,
            answers=prefill(entity, schema),
            prepared_by=by,
        )
        GrantSubmission.objects.bulk_create([row])
        remember([row], created=True, reason="opened")
        ROAD.record(row, "draft", by.username)
        return row


def edit_submission(
    submission: GrantSubmission, *, answers: dict[str, Any], by: User
) -> GrantSubmission:
    """Change the answers of a draft; whoever edits it is its preparer from then on."""
    with ledger.recording(by=by):
        row = _draft(submission)
        update_tracked([row], answers=_as_typed(answers), prepared_by=by, reason="edited")
        ROAD.record(row, "edited", by.username)
        return row


def attach_file(
    submission: GrantSubmission, *, name: str, file: IO[bytes], content_type: str, by: User
) -> Attachment:
    """Add a file to a draft, or put it in the place of the one of that name.

    It is streamed to disk before the transaction begins, and removed again if that fails.
    """
    if not FILE_NAME.fullmatch(name) or not unicodedata.is_normalized("NFC", name):
        raise NotAllowed(
            f"“{name}” cannot be the name of an attachment. Use letters, digits, spaces, dots, "
            "hyphens, underscores and brackets, at most 150, and begin with a letter or digit."
        )
    opportunity = _draft_unlocked(submission).opportunity
    schema = schema_of(opportunity.funder.slug, opportunity.schema_version)
    place, measured = attachments.keep(file, name=name, most=schema.attachments.max_bytes)
    try:
        with ledger.recording(by=by):
            row = _draft(submission)
            return _attach(row, name, place, measured, content_type, by)
    except BaseException:
        attachments.discard(place)
        raise


def detach_file(submission: GrantSubmission, *, name: str, by: User) -> GrantSubmission:
    """Take a file away from a draft."""
    with ledger.recording(by=by):
        row = _draft(submission)
        there = row.attachments.filter(name=name).first()
        if there is None:
            raise NotAllowed(f"There is no attachment “{name}”. Check the name.")
        there.delete()
        _discard_after_commit(there)
        update_tracked([row], prepared_by=by, reason=f"detached {name}"[:100])
        ROAD.record(row, "detached", by.username, name=name, sha256=there.sha256)
        return row


def check_submission(submission: GrantSubmission) -> list[Problem]:
    """What stands in the way of approving it, each in one sentence; warnings are among them."""
    return problems_of(submission, now=timezone.now())


def approve_submission(submission: GrantSubmission, *, by: User) -> GrantSubmission:
    """Release a draft that somebody else prepared: freeze its bytes and queue it."""
    with ledger.recording(by=by):
        row = _locked(submission)
        _refuse_approval(row, by)
        attached = attached_files(row)
        intent = _queue(row, freeze(row, attached), attached, by)
        row.approved_by, row.approved_at = by, timezone.now()
        row.payload_sha256 = intent.payload_sha256
        ROAD.move([row], Status.PENDING, by.username, "approved")
    crash_point("approved")
    return row


def withdraw_submission(submission: GrantSubmission, *, by: User, reason: str) -> GrantSubmission:
    """Take a submission back before anything of it has left."""
    if not reason.strip():
        raise NotAllowed("Say in a sentence why it is withdrawn; the reason goes on the ledger.")
    with ledger.recording(by=by):
        # The intent first, as the lanes lock, or we and they would wait for each other.
        found = Intent.objects.select_for_update().filter(kind=SUBMIT, subject_id=submission.pk)
        intent = found.live().first()
        row = _locked(submission)
        if row.status == Status.DRAFT:
            ROAD.move([row], Status.WITHDRAWN, by.username, reason)
            return row
        if row.status != Status.PENDING or intent is None or intent.sends:
            raise NotAllowed(
                f"It is {row.get_status_display().lower()}: the funder may have it, so it cannot "
                "be withdrawn here. If it waits in the review queue, resolve it there."
            )
        move = Move(Intent.State.WITHDRAWN, "withdrawn", reason)
        intents.move_by_hand(intent, move, actor=by.username)
        row.refresh_from_db()
        return row


@dataclass
class Submitted:
    """What `submit_drafts` found and did."""

    complete: list[GrantSubmission] = field(default_factory=list)
    blocked: list[tuple[GrantSubmission, list[str]]] = field(default_factory=list)


def submit_drafts(drafts: Iterable[GrantSubmission], *, approved_by: User | None) -> Submitted:
    """Approve every draft without a problem, each by itself; without an approver only look."""
    done = Submitted()
    for draft in drafts:
        problems = [str(problem) for problem in critical(check_submission(draft))]
        if not problems and approved_by is not None:
            try:
                draft = approve_submission(draft, by=approved_by)
            except DomainError as error:
                problems = [str(error)]
        if problems:
            done.blocked.append((draft, problems))
        else:
            done.complete.append(draft)
    return done


def _attach(
    row: GrantSubmission,
    name: str,
    place: str,
    measured: attachments.Measure,
    content_type: str,
    by: User,
) -> Attachment:
    values = {"file": place, "content_type": content_type, "size": measured.size,
              "sha256": measured.sha256}  # fmt: skip
    kept: Attachment | None = row.attachments.select_for_update().filter(name=name).first()
    if kept is None:
        kept = Attachment.objects.create(submission=row, name=name, **values)
    else:
        _discard_after_commit(kept)
        update_tracked([kept], reason="replaced", **values)
    # Who attaches a file prepares the submission, so that nobody approves what they attached.
    update_tracked([row], prepared_by=by, reason=f"attached {name}"[:100])
    ROAD.record(
        row, "attached", by.username, name=name, sha256=measured.sha256, size=measured.size
    )
    return kept


def _discard_after_commit(attachment: Attachment) -> None:
    """Only then, or a transaction that fails would have lost the file."""
    place = str(attachment.file.name)
    transaction.on_commit(lambda: attachments.discard(place))


def _refuse_approval(row: GrantSubmission, by: User) -> None:
    if row.status != Status.DRAFT:
        raise NotAllowed(f"Only a draft can be approved; {row} is {row.status}.")
    if row.prepared_by_id == by.pk:
        raise NotAllowed(
            f"{by.username} prepared {row}, so somebody else must approve it.", code="four_eyes"
        )
    problems = tuple(str(problem) for problem in critical(check_submission(row)))
    if problems:
        raise NotAllowed(
            f"{row} cannot be approved: {' '.join(problems)}", code="incomplete", problems=problems
        )


def _queue(row: GrantSubmission, body: bytes, attached: tuple[Attached, ...], by: User) -> Intent:
    opportunity = row.opportunity
    card = card_of(opportunity.funder.portal)
    portal = intents.portal_row(card.slug, card.title, card.jurisdiction)
    key = derive_key(
        installation_secret(), SUBMIT, row.portfolio_id, card.slug, opportunity.pk,
        row.entity_id, row.revision,
    )  # fmt: skip
    spec = intents.Spec(
        kind=SUBMIT,
        subject_id=row.pk,
        portfolio_id=row.portfolio_id,
        portal=card.slug,
        key=key,
        body=body,
        form=opportunity.number,
        attachments=attached,
        deadline_at=opportunity.closes_at,
    )
    opened = intents.open_intents([spec], portal=portal, actor=by.username)
    wake(portal.pk)
    return opened[0]


def _as_typed(answers: dict[str, Any]) -> dict[str, Any]:
    """A browser sends a line break as two characters; the person typed one."""
    return {
        name: value.replace("\r\n", "\n") if isinstance(value, str) else value
        for name, value in answers.items()
    }


def _draft(submission: GrantSubmission) -> GrantSubmission:
    return _refuse_unless_draft(_locked(submission))


def _draft_unlocked(submission: GrantSubmission) -> GrantSubmission:
    """An early look, so that nothing is streamed in vain; what counts is the locked one."""
    row: GrantSubmission = _complete(GrantSubmission.objects.all()).get(pk=submission.pk)
    return _refuse_unless_draft(row)


def _refuse_unless_draft(row: GrantSubmission) -> GrantSubmission:
    if row.status != Status.DRAFT:
        raise NotAllowed("Only a draft can be edited. Withdraw it and open a new one.")
    return row


def _locked(submission: GrantSubmission) -> GrantSubmission:
    rows = GrantSubmission.objects.select_for_update(of=("self",))
    row: GrantSubmission = _complete(rows).get(pk=submission.pk)
    return row


def _complete(submissions: Any) -> Any:
    """With all that checks and payloads read."""
    return submissions.select_related("opportunity__funder", "entity", "prepared_by")
