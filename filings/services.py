"""All the moves of filings and standing checks. Only the road writes a filing's status."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from compliance import ledger
from compliance.errors import DomainError, NotAllowed
from compliance.exposure import Law, cents_per_hour
from compliance.formulas import payable
from compliance.history import remember, update_tracked
from compliance.models import Deadline, Registration
from filings.checks_payload import problems_of
from filings.models import Batch, Filing, StatusCheck
from filings.payloads import end_of_day, freeze, prefill
from portals import intents
from portals.cards import Card
from portals.crash import crash_point
from portals.keys import derive_key, installation_secret
from portals.models import Intent, Portal
from portals.protocol import Move
from portals.registry import card_of, form_of, registry_of
from portals.road import Road
from portals.waking import wake

Status = Filing.Status
SUBMIT, CHECK = "filing.submit", "standing.check"

ROAD = Road(
    Filing, "filing", "confirmation_number", told=lambda row: {"deadline": row.deadline_id}
)


def open_filing(deadline: Deadline, *, by: User) -> Filing:
    """A draft for a deadline, filled with what we know. Asking again gives the one there is."""
    with ledger.recording(by=by):
        _one_at_a_time(Deadline, [deadline.pk])
        there = _live(deadline)
        return there or _open([deadline], by=by)[0]


def edit_filing(filing: Filing, *, answers: dict[str, Any], by: User) -> Filing:
    """Change the answers of a draft; whoever edits it is its preparer from then on."""
    with ledger.recording(by=by):
        row = _locked(filing)
        if row.status != Status.DRAFT:
            raise NotAllowed("Only a draft can be edited. Withdraw it and open a new one.")
        update_tracked([row], answers=answers, prepared_by=by, reason="edited")
        ROAD.record(row, "edited", by.username)
        return row


def check_filing(filing: Filing) -> list[str]:
    """What stands in the way of approving it, each in one sentence; empty if nothing does."""
    return problems_of(filing, today=timezone.localdate())


def approve_filing(filing: Filing, *, by: User) -> Filing:
    """Release a draft that somebody else prepared: freeze its bytes and queue it."""
    return approve_filings([filing], by=by)[0]


def approve_filings(filings: Iterable[Filing], *, by: User) -> list[Filing]:
    """Release drafts together: all of them, or none."""
    with ledger.recording(by=by):
        ids = [filing.pk for filing in filings]
        rows = list(_complete(Filing.objects.select_for_update(of=("self",)).filter(pk__in=ids)))
        for row in rows:
            _refuse_approval(row, by)
        bodies = {row.pk: freeze(row) for row in rows}
        opened = _queue(rows, bodies, by)
        now = timezone.now()
        for row in rows:
            row.approved_by, row.approved_at = by, now
            row.payload_sha256 = opened[row.pk].payload_sha256
        ROAD.move(rows, Status.PENDING, by.username, "approved")
    crash_point("approved")
    return rows


def withdraw_filing(filing: Filing, *, by: User, reason: str) -> Filing:
    """Take a filing back before anything of it has left."""
    if not reason.strip():
        raise NotAllowed("Say in a sentence why it is withdrawn; the reason goes on the ledger.")
    with ledger.recording(by=by):
        # The intent first, as the lanes lock, or we and they would wait for each other.
        found = Intent.objects.select_for_update().filter(kind=SUBMIT, subject_id=filing.pk)
        intent = found.live().first()
        row = _locked(filing)
        if row.status == Status.DRAFT:
            ROAD.move([row], Status.WITHDRAWN, by.username, reason)
            return row
        if row.status != Status.PENDING or intent is None or intent.sends:
            raise NotAllowed(
                f"It is {row.get_status_display().lower()}: the portal may have it, so it cannot "
                "be withdrawn here. If it waits in the review queue, resolve it there."
            )
        intents.move_by_hand(
            intent, Move(Intent.State.WITHDRAWN, "withdrawn", reason), actor=by.username
        )
        row.refresh_from_db()
        return row


@dataclass
class Due:
    """What `file_due` found and did."""

    filings: list[Filing] = field(default_factory=list)
    blocked: list[tuple[Filing, list[str]]] = field(default_factory=list)
    refused: list[tuple[Deadline, str]] = field(default_factory=list)
    by_hand: list[Deadline] = field(default_factory=list)

    @property
    def fees(self) -> Decimal:
        """The sum of the fees of what can be filed."""
        return sum((filing.fee for filing in self.filings), Decimal(0))


def file_due(
    deadlines: Iterable[Deadline], *, name: str, prepared_by: User, approved_by: User | None
) -> Due:
    """Open a filing for each deadline and approve, as batches, those without a problem."""
    due = Due()
    groups: dict[int, list[Filing]] = defaultdict(list)
    for deadline in deadlines:
        if not deadline.portal:
            due.by_hand.append(deadline)
            continue
        try:
            filing = open_filing(deadline, by=prepared_by)
        except DomainError as error:
            due.refused.append((deadline, str(error)))
            continue
        if filing.status != Status.DRAFT:
            continue
        if problems := check_filing(filing):
            due.blocked.append((filing, problems))
        else:
            groups[filing.portfolio_id].append(filing)
            due.filings.append(filing)
    if approved_by is not None:
        for portfolio_id, filings in groups.items():
            _approve_batch(portfolio_id, filings, name, prepared_by, approved_by)
    return due


def request_check(registration: Registration, *, by: User) -> StatusCheck:
    """Ask a registry for the standing of an entity. Asking again gives the look under way."""
    return request_checks([registration], by=by)[0]


def request_checks(registrations: Sequence[Registration], *, by: User) -> list[StatusCheck]:
    """One look for each registration that has none under way."""
    with ledger.recording(by=by):
        _one_at_a_time(Registration, [registration.pk for registration in registrations])
        live = {
            check.registration_id: check
            for check in StatusCheck.objects.filter(
                registration__in=registrations, ended_at__isnull=True
            )
        }
        by_portal: dict[str, list[Registration]] = defaultdict(list)
        for registration in registrations:
            if registration.pk not in live:
                by_portal[registry_of(registration.jurisdiction).slug].append(registration)
        for slug, group in by_portal.items():
            for check in _open_checks(card_of(slug), group, by):
                live[check.registration_id] = check
        return [live[registration.pk] for registration in registrations]


def _live(deadline: Deadline) -> Filing | None:
    ended = [Status.REJECTED, Status.WITHDRAWN]
    return Filing.objects.filter(deadline=deadline).exclude(status__in=ended).first()


def _open(deadlines: Sequence[Deadline], *, by: User) -> list[Filing]:
    rows = []
    for deadline in deadlines:
        registration = deadline.registration
        card = card_of(deadline.portal)
        form = form_of(card, deadline.form)
        rows.append(
            Filing(
                portfolio_id=registration.entity.portfolio_id,
                deadline=deadline,
                revision=Filing.objects.filter(deadline=deadline).count() + 1,
                portal=deadline.portal,
                form=deadline.form,
                answers=prefill(registration, form),
                fee=payable(deadline),
                prepared_by=by,
            )
        )
    Filing.objects.bulk_create(rows)
    remember(rows, created=True, reason="opened")
    for row in rows:
        ROAD.record(row, "draft", by.username)
    return rows


def _refuse_approval(row: Filing, by: User) -> None:
    if row.status != Status.DRAFT:
        raise NotAllowed(f"Only a draft can be approved; {row} is {row.status}.")
    if row.prepared_by_id == by.pk:
        raise NotAllowed(
            f"{by.username} prepared {row}, so somebody else must approve it.", code="four_eyes"
        )
    if problems := check_filing(row):
        raise NotAllowed(
            f"{row} cannot be approved: {' '.join(problems)}",
            code="incomplete",
            problems=tuple(problems),
        )


def _queue(rows: Sequence[Filing], bodies: dict[int, bytes], by: User) -> dict[int, Intent]:
    secret, law = installation_secret(), Law()
    groups: dict[str, list[Filing]] = defaultdict(list)
    for row in rows:
        groups[row.portal].append(row)
    opened: dict[int, Intent] = {}
    for slug, group in groups.items():
        card = card_of(slug)
        portal = _portal(card)
        specs = [_spec(row, bodies[row.pk], card, secret, law) for row in group]
        for intent in intents.open_intents(specs, portal=portal, actor=by.username):
            opened[intent.subject_id] = intent
        wake(portal.pk)
    return opened


def _spec(row: Filing, body: bytes, card: Card, secret: bytes, law: Law) -> intents.Spec:
    deadline = row.deadline
    key = derive_key(
        secret, SUBMIT, row.portfolio_id, row.portal, deadline.duty, deadline.registration_id,
        deadline.period, row.revision,
    )  # fmt: skip
    return intents.Spec(
        kind=SUBMIT,
        subject_id=row.pk,
        portfolio_id=row.portfolio_id,
        portal=row.portal,
        key=key,
        body=body,
        entity_number=deadline.registration.file_number,
        form=row.form,
        period=deadline.period,
        deadline_at=end_of_day(row, card),
        cost=cents_per_hour(deadline, law),
    )


def _approve_batch(
    portfolio_id: int, filings: list[Filing], name: str, prepared_by: User, approved_by: User
) -> None:
    with ledger.recording(by=approved_by):
        if prepared_by == approved_by:
            raise NotAllowed("A batch is approved by somebody else than who prepared it.")
        batch = Batch(
            portfolio_id=portfolio_id, name=name, prepared_by=prepared_by, approved_by=approved_by
        )
        batch.save()
        Filing.objects.filter(pk__in=[row.pk for row in filings]).update(batch=batch)
        ledger.record(
            type="batch.approved",
            subject=f"batch:{batch.pk}",
            actor=approved_by.username,
            portfolio_id=portfolio_id,
            filings=len(filings),
            fee_cents=int(sum(row.fee for row in filings) * 100),
        )
        approve_filings(filings, by=approved_by)


def _open_checks(card: Card, group: list[Registration], by: User) -> list[StatusCheck]:
    checks = StatusCheck.objects.bulk_create(
        StatusCheck(registration=registration, portal=card.slug, requested_by=by)
        for registration in group
    )
    secret = installation_secret()
    portal = _portal(card)
    specs = [
        intents.Spec(
            kind=CHECK,
            subject_id=check.pk,
            portfolio_id=check.registration.entity.portfolio_id,
            portal=card.slug,
            key=derive_key(secret, CHECK, check.pk),
            body=b"",
            is_read=True,
            entity_number=check.registration.file_number,
            rank=Intent.Rank.POLL,
        )
        for check in checks
    ]
    intents.open_intents(specs, portal=portal, actor=by.username)
    wake(portal.pk)
    return checks


def _one_at_a_time(model: type[Deadline] | type[Registration], ids: list[int]) -> None:
    """Two who ask for the same thing at once wait for each other, and get the same answer."""
    list(model.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))


def _portal(card: Card) -> Portal:
    return intents.portal_row(card.slug, card.title, card.jurisdiction)


def _locked(filing: Filing) -> Filing:
    row: Filing = _complete(Filing.objects.select_for_update(of=("self",))).get(pk=filing.pk)
    return row


def _complete(filings: Any) -> Any:
    """With all that checks and payloads read, so that a batch needs no query for each."""
    return filings.select_related(
        "deadline__registration__entity__portfolio", "prepared_by"
    ).prefetch_related(
        "deadline__registration__entity__officers", "deadline__registration__entity__addresses"
    )
