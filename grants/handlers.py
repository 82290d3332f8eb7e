"""What the lanes' outcomes do to grant submissions."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Literal

from django.urls import reverse

from grants.models import GrantSubmission
from grants.services import settle_submissions
from portals.handlers import Moved, Shown
from portals.models import Intent
from portals.protocol import Move

Status = GrantSubmission.Status
State = Intent.State

SUBMISSION_AFTER: dict[str, str] = {
    State.READY: Status.PENDING,
    State.ARMED: Status.SENDING,
    State.RECEIPTED: Status.SUBMITTED,
    State.ACCEPTED: Status.ACCEPTED,
    State.REJECTED: Status.REJECTED,
    State.IN_DOUBT: Status.IN_DOUBT,
    State.FALLOUT: Status.FALLOUT,
    State.WITHDRAWN: Status.WITHDRAWN,
}


class GrantSubmit:
    """Sends a grant submission, and keeps the tracking number when it was accepted."""

    road: Literal["submit"] = "submit"

    def moved(self, moves: Sequence[Moved]) -> None:
        """Move the submissions as their intents moved."""
        ids = [moved.subject_id for moved in moves]
        rows = GrantSubmission.objects.select_for_update().in_bulk(ids)
        groups: dict[tuple[str, str, str], list[Moved]] = defaultdict(list)
        for moved in moves:
            groups[moved.move.to, moved.actor, moved.move.cause].append(moved)
        for (to, actor, cause), group in groups.items():
            submissions = [rows[moved.subject_id] for moved in group]
            values = {moved.subject_id: _learnt(moved.move) for moved in group}
            settle_submissions(submissions, SUBMISSION_AFTER[to], actor, cause or to, values)

    def shown(self, subject_ids: Collection[int]) -> dict[int, Shown]:
        """Titles and links for the review queue."""
        rows = GrantSubmission.objects.filter(pk__in=subject_ids).select_related(
            "entity", "opportunity"
        )
        return {
            row.pk: Shown(str(row), reverse("admin:grants_grantsubmission_change", args=[row.pk]))
            for row in rows
        }


def _learnt(move: Move) -> dict[str, Any]:
    """What a move tells the submission beside its status."""
    match move.to:
        case State.ACCEPTED:
            return {"tracking_number": move.number, "cause": ""}
        case State.REJECTED:
            return {"reasons": list(move.reasons) or [move.detail]}
        case State.FALLOUT:
            return {"cause": move.detail[:300]}
        case _:
            return {}
