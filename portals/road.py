"""The road that everything we submit travels, from draft to accepted: one for all kinds.

A room gives the road its model and the name of the portal's number; the road writes every status,
with history, ledger entry and event in the same transaction, and follows what the lanes do.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils import timezone

from compliance import ledger
from compliance.errors import NotAllowed
from compliance.events import emit_many
from compliance.history import remember
from compliance.models import Event
from portals.handlers import Moved
from portals.models import Intent
from portals.protocol import Move

State = Intent.State


class Status(models.TextChoices):
    """Where it stands; final are accepted, rejected and withdrawn."""

    DRAFT = "draft", "Draft"
    PENDING = "pending", "Pending"
    SENDING = "sending", "Sending"
    SUBMITTED = "submitted", "Submitted"
    ACCEPTED = "accepted", "Accepted"
    REJECTED = "rejected", "Rejected"
    IN_DOUBT = "in_doubt", "In doubt"
    FALLOUT = "fallout", "Fallout"
    WITHDRAWN = "withdrawn", "Withdrawn"


MOVES: dict[str, frozenset[str]] = {
    Status.DRAFT: frozenset({Status.PENDING, Status.WITHDRAWN}),
    Status.PENDING: frozenset(
        {Status.SENDING, Status.WITHDRAWN, Status.FALLOUT, Status.ACCEPTED, Status.REJECTED,
         Status.SUBMITTED}
    ),
    Status.SENDING: frozenset(
        {Status.PENDING, Status.SUBMITTED, Status.ACCEPTED, Status.REJECTED, Status.IN_DOUBT,
         Status.FALLOUT}
    ),
    Status.SUBMITTED: frozenset({Status.ACCEPTED, Status.REJECTED, Status.FALLOUT}),
    Status.IN_DOUBT: frozenset(
        {Status.PENDING, Status.SUBMITTED, Status.ACCEPTED, Status.REJECTED, Status.FALLOUT}
    ),
    Status.FALLOUT: frozenset({Status.PENDING, Status.ACCEPTED, Status.WITHDRAWN}),
}  # fmt: skip

# Where its intent stands says where it stands itself.
AFTER: dict[str, Status] = {
    State.READY: Status.PENDING,
    State.ARMED: Status.SENDING,
    State.RECEIPTED: Status.SUBMITTED,
    State.ACCEPTED: Status.ACCEPTED,
    State.REJECTED: Status.REJECTED,
    State.IN_DOUBT: Status.IN_DOUBT,
    State.FALLOUT: Status.FALLOUT,
    State.WITHDRAWN: Status.WITHDRAWN,
}
FINAL = (Status.ACCEPTED, Status.REJECTED, Status.WITHDRAWN)


@dataclass(frozen=True)
class Road:
    """One kind of thing that is submitted, and how its moves are written."""

    model: type[Any]
    noun: str  # as ledger and events name it
    number: str  # the field that holds the portal's number
    told: Callable[[Any], dict[str, Any]]  # what its events say beside the number

    def move(self, rows: Sequence[Any], to: str, actor: str, reason: str) -> None:
        """The one place where a status is written: row, history, ledger and event."""
        came_from = {row.pk: row.status for row in rows}
        for row in rows:
            if to not in MOVES.get(row.status, frozenset()):
                raise NotAllowed(f"It cannot go from {row.status} to {to}: {row}.")
            row.status = to
            if to in FINAL:
                row.settled_at = timezone.now()
        fields = ["status", "settled_at", "approved_by", "approved_at", "payload_sha256",
                  "reasons", "cause", self.number]  # fmt: skip
        self.model.objects.bulk_update(rows, fields, batch_size=200)
        remember(rows, reason=reason[:100])
        for row in rows:
            self.record(row, to, actor, came_from=came_from[row.pk], reason=reason)
        emit_many([self._event(row, to) for row in rows])

    def record(self, row: Any, what: str, actor: str, **data: Any) -> None:
        """Put something about a row on the ledger."""
        kept = {"payload_sha256": row.payload_sha256, "number": getattr(row, self.number), **data}
        ledger.record(
            type=f"{self.noun}.{what}",
            subject=f"{self.noun}:{row.pk}",
            actor=actor,
            portfolio_id=row.portfolio_id,
            **{name: value for name, value in kept.items() if value},
        )

    def follow(self, moves: Sequence[Moved]) -> dict[str, list[Any]]:
        """Move the rows as their intents moved; by actor, those that were accepted."""
        ids = [moved.subject_id for moved in moves]
        rows = self.model.objects.select_for_update().in_bulk(ids)
        groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
        for moved in moves:
            row = rows[moved.subject_id]
            for name, value in self._learnt(moved.move).items():
                setattr(row, name, value)
            groups[moved.move.to, moved.actor, moved.move.cause].append(row)
        accepted: dict[str, list[Any]] = defaultdict(list)
        for (to, actor, cause), group in groups.items():
            self.move(group, AFTER[to], actor, cause or to)
            if to == State.ACCEPTED:
                accepted[actor] += group
        return accepted

    def _learnt(self, move: Move) -> dict[str, Any]:
        """What a move tells the row beside its status."""
        match move.to:
            case State.ACCEPTED:
                return {self.number: move.number, "cause": ""}
            case State.REJECTED:
                return {"reasons": list(move.reasons) or [move.detail]}
            case State.FALLOUT:
                return {"cause": move.detail[:300]}
            case _:
                return {}

    def _event(self, row: Any, to: str) -> Event:
        return Event(
            type=f"{self.noun}.{to}",
            portfolio_id=row.portfolio_id,
            subject=f"{self.noun}:{row.pk}",
            data={**self.told(row), "number": getattr(row, self.number)},
        )
