"""All the moves of intents, in bulk. Nothing else writes an intent's state.

Each move, its attempt, its ledger entry and what it does to its subject share one transaction.
A lane's moves are guarded by the lane's epoch: an owner that was replaced writes nothing.
"""

import hashlib
import random
import uuid
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from compliance import ledger
from compliance.errors import DomainError, NotAllowed
from compliance.history import acting_as, service_user
from portals.base import Attached, Exchange, Payload
from portals.cards import Card
from portals.clock import database_now
from portals.handlers import Moved, handler_of
from portals.models import Attempt, Intent, IntentPayload, Lane, Portal
from portals.protocol import Hold, Known, Move, State, repeat_until, too_late_to_repeat

LANES = "lanes"  # who acts when no person does

MOVES: dict[str, frozenset[str]] = {
    State.READY: frozenset(
        {State.READY, State.ARMED, State.FALLOUT, State.WITHDRAWN, State.ACCEPTED,
         State.RECEIPTED, State.REJECTED}
    ),
    State.ARMED: frozenset(
        {State.READY, State.RECEIPTED, State.ACCEPTED, State.REJECTED, State.IN_DOUBT,
         State.FALLOUT, State.WITHDRAWN}
    ),
    State.RECEIPTED: frozenset({State.ACCEPTED, State.REJECTED, State.FALLOUT, State.RECEIPTED}),
    State.IN_DOUBT: frozenset(
        {State.ACCEPTED, State.REJECTED, State.RECEIPTED, State.READY, State.FALLOUT,
         State.IN_DOUBT}
    ),
    State.FALLOUT: frozenset({State.READY, State.ACCEPTED, State.WITHDRAWN}),
}  # fmt: skip


class LostLane(DomainError):
    """Another owner has the lane; what we know is for it to find out by itself."""

    code = "lost_lane"


class LaneHeld(DomainError):
    """Somebody switched the portal off, or stopped the lane; nothing more may be sent."""

    code = "lane_held"


@dataclass(frozen=True)
class Spec:
    """A thing to be done, before it is an intent."""

    kind: str
    subject_id: int
    portfolio_id: int
    portal: str
    key: str
    body: bytes
    is_read: bool = False
    entity_number: str = ""
    form: str = ""
    period: str = ""
    attachments: tuple[Attached, ...] = ()
    deadline_at: datetime | None = None
    cost: int = 0
    rank: int = Intent.Rank.BULK


@dataclass(frozen=True)
class Work:
    """An intent as a lane carries it: frozen, so that no query can fire inside the lane."""

    id: int
    kind: str
    rank: int
    payload: Payload
    known: Known
    attempt: int = 0


@dataclass(frozen=True)
class Result:
    """What one try came to."""

    work: Work
    move: Move
    purpose: str
    outcome: str
    rule: str = ""
    detail: str = ""
    category: str = ""
    exchanges: tuple[Exchange, ...] = ()


def portal_row(slug: str, title: str, jurisdiction: str) -> Portal:
    """The row of a portal and its lane, made when first needed."""
    portal, _ = Portal.objects.get_or_create(
        slug=slug, defaults={"title": title, "jurisdiction": jurisdiction}
    )
    Lane.objects.get_or_create(portal=portal)
    return portal


def open_intents(specs: Sequence[Spec], *, portal: Portal, actor: str) -> list[Intent]:
    """Queue things to be done at a portal. Asking again for the same gives what is there."""
    with ledger.recording():
        now = timezone.now()
        known = set(
            Intent.objects.filter(idempotency_key__in=[spec.key for spec in specs]).values_list(
                "idempotency_key", flat=True
            )
        )
        fresh = [spec for spec in specs if spec.key not in known]
        made = Intent.objects.bulk_create([_intent(spec, portal, now) for spec in fresh])
        IntentPayload.objects.bulk_create(
            [_payload_row(intent, spec) for intent, spec in zip(made, fresh, strict=True)]
        )
        for intent in made:
            _record(intent, "", State.READY, actor, payload_sha256=intent.payload_sha256)
        return list(
            Intent.objects.filter(idempotency_key__in=[spec.key for spec in specs]).order_by("id")
        )


def next_work(portal_id: int, most: int, *, now: datetime) -> list[Work]:
    """What the lane should take up next, in order. It is not yet armed."""
    return [_work(row) for row in _with_payload(Intent.objects.ready(portal_id, now=now)[:most])]


def open_questions(portal_id: int, state: str, most: int, *, now: datetime) -> list[Work]:
    """What was sent and waits for a look-up."""
    rows = Intent.objects.to_ask_about(portal_id, now=now).filter(state=state)[:most]
    return [_work(row) for row in _with_payload(rows)]


def arm(lane: Lane, works: Sequence[Work], card: Card) -> list[Work]:
    """Put a wave on the record before its first byte leaves. What is not armed is not sent."""
    with ledger.recording():
        _hold_lane(lane)
        _refuse_if_held(lane)
        now = database_now()
        locked = Intent.objects.select_for_update().filter(
            pk__in=[work.id for work in works], state=State.READY
        )
        rows, expired = {}, []
        for row in locked:
            if row.sends and row.resend_by and now >= row.resend_by:
                expired.append((row, too_late_to_repeat(card), State.READY))
            else:
                rows[row.pk] = row
        for row, move, _ in expired:
            _write(row, move, now)
        _tell(expired, LANES, epoch=lane.epoch)
        writes = [pk for pk, row in rows.items() if not row.is_read]
        common = {"state": State.ARMED, "epoch": lane.epoch, "tries": F("tries") + 1}
        Intent.objects.filter(pk__in=rows).update(**common)
        Intent.objects.filter(pk__in=writes).update(
            sends=F("sends") + 1,
            first_sent_at=Coalesce("first_sent_at", now),
            last_sent_at=now,
        )
        until = repeat_until(card, now)
        Intent.objects.filter(pk__in=writes, sends=1).update(resend_by=until)
        numbers = _next_numbers(writes)
        Attempt.objects.bulk_create(
            Attempt(
                intent_id=pk, no=numbers[pk], purpose=Attempt.Purpose.SEND, epoch=lane.epoch,
                payload_sha256=rows[pk].payload_sha256, armed_at=now,
            )
            for pk in writes
        )  # fmt: skip
        _tell(
            [(row, Move(State.ARMED), State.READY) for row in rows.values() if not row.is_read],
            LANES,
            epoch=lane.epoch,
            attempts=numbers,
        )
        armed = Intent.objects.in_bulk(list(rows))
        return [
            _work(armed[work.id], work.payload, numbers.get(work.id, 0))
            for work in works
            if work.id in armed
        ]


def settle(lane: Lane, results: Sequence[Result]) -> None:
    """Write what a wave came to: attempts, intents, their subjects and the ledger at once."""
    with ledger.recording():
        _hold_lane(lane)
        now = timezone.now()
        rows = {
            row.pk: row
            for row in Intent.objects.select_for_update().filter(
                pk__in=[result.work.id for result in results]
            )
        }
        told, ended = [], []
        for result in results:
            row = rows[result.work.id]
            if row.state != result.work.known.state:
                continue  # a person moved it meanwhile; their word stands
            came_from = row.state
            ended.append(result)
            _write(row, result.move, now)
            if came_from != result.move.to:
                told.append((row, result.move, came_from))
        _end_attempts(lane, ended, now)
        _hold(lane, [result.move.hold for result in results if result.move.hold])
        answers = {result.work.id: _answer_sha256(result) for result in ended}
        _tell(told, LANES, epoch=lane.epoch, answers=answers)


def doubt_orphans(lane: Lane) -> int:
    """A new owner does not know what became of what the last one armed: it is in doubt."""
    with ledger.recording():
        now = timezone.now()
        armed = Intent.objects.select_for_update().filter(
            portal_id=lane.portal_id, state=State.ARMED
        )
        told = []
        for row in armed:
            detail = "The program stopped between sending and the answer."
            to = State.READY if row.is_read else State.IN_DOUBT
            move = Move(to, "owner_lost", detail, values={"not_before": now, "tries": 0})
            _write(row, move, now)
            if not row.is_read:
                told.append((row, move, State.ARMED))
        Attempt.objects.filter(
            intent__in=[row.pk for row, _, _ in told], outcome=Attempt.Outcome.OPEN
        ).update(
            outcome=Attempt.Outcome.IN_DOUBT, ended_at=now, rule="owner lost",
            detail="The program stopped before it saw an answer.",
        )  # fmt: skip
        _tell(told, LANES, epoch=lane.epoch)
        return len(told)


def move_by_hand(intent: Intent, move: Move, *, actor: str) -> Intent:
    """A person's move, from a state where people may move it."""
    with ledger.recording():
        row: Intent = Intent.objects.select_for_update().get(pk=intent.pk)
        came_from = row.state
        if came_from == State.ARMED:
            raise NotAllowed("It is being sent right now. Wait until the portal has answered.")
        _write(row, move, timezone.now())
        _tell([(row, move, came_from)], actor)
        return row


def promote_urgent(portal_id: int, *, now: datetime) -> int:
    """What has come close to its deadline goes before the rest."""
    soon = now + timedelta(hours=settings.URGENT_WITHIN_HOURS)
    return Intent.objects.filter(
        portal_id=portal_id, state=State.READY, rank=Intent.Rank.BULK, deadline_at__lte=soon
    ).update(rank=Intent.Rank.URGENT)


def _hold_lane(lane: Lane) -> None:
    """Keep others from taking the lane while we write, and stop if one already has."""
    now_at = Lane.objects.select_for_update().values_list("epoch", "owner").get(pk=lane.pk)
    if now_at != (lane.epoch, lane.owner):
        raise LostLane("Another worker has taken over this lane; nothing was written.")


def _refuse_if_held(lane: Lane) -> None:
    """The kill switch and a stop hold at once, also for who works the lane already."""
    row = Lane.objects.select_related("portal").get(pk=lane.pk)
    paused = row.paused_until is not None and row.paused_until > timezone.now()
    if not row.portal.is_enabled or row.needs_person or paused:
        raise LaneHeld(f"{row.portal} is switched off or paused; nothing was armed.")


def _hold(lane: Lane, holds: Sequence[Hold]) -> None:
    """The strictest of what the portal asked for holds the whole lane."""
    if not holds:
        return
    strictest = max(holds, key=_until)
    Lane.objects.filter(pk=lane.pk).update(
        needs_person=strictest.until is None,
        paused_until=strictest.until,
        pause_cause=strictest.cause[:300],
    )


def _until(hold: Hold) -> datetime:
    return hold.until or datetime.max.replace(tzinfo=UTC)


def _write(row: Intent, move: Move, now: datetime) -> None:
    if move.to not in MOVES.get(row.state, frozenset()):
        raise NotAllowed(f"An intent cannot go from {row.state} to {move.to}.")
    values: dict[str, Any] = {**move.values, "state": move.to, "cause": move.cause}
    values["detail"] = _storable(move.detail)
    if move.number:
        values["number"] = move.number
    if move.to not in Intent.LIVE:
        values |= {"settled_at": now, "claimed_by": None, "claimed_at": None}
    Intent.objects.filter(pk=row.pk).update(**values)
    for name, value in values.items():
        setattr(row, name, value)


def _tell(
    moves: Sequence[tuple[Intent, Move, str]],
    actor: str,
    *,
    epoch: int = 0,
    attempts: dict[int, int] | None = None,
    answers: dict[int, str] | None = None,
) -> None:
    """Put moves on the ledger and carry them over to their subjects."""
    by_kind: dict[str, list[Moved]] = defaultdict(list)
    for row, move, came_from in moves:
        if row.is_read and move.to in Intent.LIVE:
            continue  # a look is on the record when it has ended
        _record(
            row, came_from, move.to, actor,
            epoch=epoch, cause=move.cause, number=move.number or row.number,
            payload_sha256=row.payload_sha256, attempt=(attempts or {}).get(row.pk, row.tries),
            answer_sha256=(answers or {}).get(row.pk, ""),
        )  # fmt: skip
        by_kind[row.kind].append(Moved(row.pk, row.subject_id, came_from, move, actor))
    with acting_as(service_user(LANES)) if actor == LANES else nullcontext():
        for kind, moved in by_kind.items():
            handler_of(kind).moved(moved)


def _record(row: Intent, came_from: str, to: str, actor: str, **data: Any) -> None:
    ledger.record(
        type=f"intent.{to}",
        subject=f"intent:{row.pk}",
        actor=actor,
        portfolio_id=row.portfolio_id,
        kind=row.kind,
        of=f"{row.kind.split('.')[0]}:{row.subject_id}",
        came_from=came_from,
        key=row.idempotency_key,
        **{name: value for name, value in data.items() if value not in ("", 0)},
    )


def _end_attempts(lane: Lane, results: Sequence[Result], now: datetime) -> None:
    looks = [result for result in results if result.purpose != Attempt.Purpose.SEND]
    numbers = _next_numbers([result.work.id for result in looks])
    Attempt.objects.bulk_create(
        Attempt(
            intent_id=result.work.id, no=numbers[result.work.id], purpose=result.purpose,
            epoch=lane.epoch, payload_sha256=result.work.known.payload_sha256, armed_at=now,
            ended_at=now, **_ending(result),
        )
        for result in looks
    )  # fmt: skip
    for result in results:
        if result.purpose == Attempt.Purpose.SEND:
            Attempt.objects.filter(intent_id=result.work.id, outcome=Attempt.Outcome.OPEN).update(
                ended_at=now, **_ending(result)
            )


def _ending(result: Result) -> dict[str, Any]:
    return {
        "outcome": result.outcome,
        "category": result.category,
        "rule": result.rule,
        "detail": _storable(result.detail),
        "answer_sha256": _answer_sha256(result),
        "exchanges": [_kept(exchange, result.work.payload) for exchange in result.exchanges],
    }


def _answer_sha256(result: Result) -> str:
    if not result.exchanges:
        return ""
    return hashlib.sha256(result.exchanges[-1].answer_body).hexdigest()


def _kept(exchange: Exchange, payload: Payload) -> dict[str, Any]:
    """An exchange as JSON; our own frozen bytes are not stored a second time."""
    kept = asdict(exchange)
    kept["sent_at"] = exchange.sent_at.isoformat()
    body = exchange.request_body
    kept["request_body"] = "[the frozen payload]" if body == payload.body else _text(body)
    kept["answer_body"] = _text(exchange.answer_body)
    return kept


def _text(body: bytes) -> str:
    """Bytes as text; what is not UTF-8 shows as escapes."""
    return _storable(body.decode("utf-8", errors="backslashreplace"))


def _storable(text: str) -> str:
    """Text that any database takes; PostgreSQL refuses NUL."""
    return text.replace("\x00", "\\x00")


def _next_numbers(ids: Sequence[int]) -> dict[int, int]:
    numbers = dict.fromkeys(ids, 1)
    for pk, no in Attempt.objects.filter(intent_id__in=ids).values_list("intent_id", "no"):
        numbers[pk] = max(numbers[pk], no + 1)
    return numbers


def _with_payload(rows: Any) -> Any:
    return rows.select_related("payload")


def _work(row: Intent, payload: Payload | None = None, attempt: int = 0) -> Work:
    known = Known(
        state=row.state,
        is_read=row.is_read,
        is_urgent=row.rank <= Intent.Rank.URGENT,
        tries=row.tries,
        sends=row.sends,
        doubts=row.doubts,
        cause=row.cause,
        absences=row.absences,
        payload_sha256=row.payload_sha256,
        first_sent_at=row.first_sent_at,
        last_sent_at=row.last_sent_at,
        resend_by=row.resend_by,
        jitter=random.random(),  # noqa: S311 - spreads retries, guards nothing
    )
    return Work(row.pk, row.kind, row.rank, payload or payload_of(row), known, attempt)


def payload_of(row: Intent) -> Payload:
    """The frozen bytes of an intent and what its answer must name."""
    kept = row.payload
    return Payload(
        key=row.idempotency_key,
        body=bytes(kept.wire_bytes),
        trace_id=row.trace_id,
        entity_number=kept.entity_number,
        form=kept.form,
        period=kept.period,
        attachments=tuple(
            Attached(**{**item, "path": settings.MEDIA_ROOT / item["path"]})
            for item in kept.attachments
        ),
    )


def _intent(spec: Spec, portal: Portal, now: datetime) -> Intent:
    soon = now + timedelta(hours=settings.URGENT_WITHIN_HOURS)
    rank = spec.rank
    if rank == Intent.Rank.BULK and spec.deadline_at and spec.deadline_at <= soon:
        rank = Intent.Rank.URGENT
    return Intent(
        kind=spec.kind,
        subject_id=spec.subject_id,
        portfolio_id=spec.portfolio_id,
        portal=portal,
        is_read=spec.is_read,
        idempotency_key=spec.key,
        payload_sha256=hashlib.sha256(spec.body).hexdigest(),
        trace_id=uuid.uuid4().hex,
        rank=rank,
        cost=spec.cost,
        deadline_at=spec.deadline_at,
        not_before=now,
        created_at=now,
    )


def _payload_row(intent: Intent, spec: Spec) -> IntentPayload:
    return IntentPayload(
        intent=intent,
        wire_bytes=spec.body,
        entity_number=spec.entity_number,
        form=spec.form,
        period=spec.period,
        attachments=[
            # Relative, so that the folder of files may move.
            {**asdict(item), "path": str(item.path.relative_to(settings.MEDIA_ROOT))}
            for item in spec.attachments
        ],
    )
