"""What the lanes' outcomes do to grant submissions."""

from collections.abc import Collection, Sequence
from typing import Literal

from django.urls import reverse

from grants.models import GrantSubmission
from grants.services import ROAD
from portals.handlers import Moved, Shown


class GrantSubmit:
    """Sends a grant submission, and keeps the tracking number when it was accepted."""

    road: Literal["submit"] = "submit"

    def moved(self, moves: Sequence[Moved]) -> None:
        """Move the submissions as their intents moved."""
        ROAD.follow(moves)

    def shown(self, subject_ids: Collection[int]) -> dict[int, Shown]:
        """Titles and links for the review queue."""
        rows = GrantSubmission.objects.filter(pk__in=subject_ids).select_related(
            "entity", "opportunity"
        )
        return {
            row.pk: Shown(str(row), reverse("admin:grants_grantsubmission_change", args=[row.pk]))
            for row in rows
        }
