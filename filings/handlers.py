"""What the lanes' outcomes do to filings and to the standing of registrations."""

from collections.abc import Collection, Sequence
from typing import Literal

from django.urls import reverse
from django.utils import timezone

from compliance import ledger
from compliance.events import emit_many
from compliance.history import find_user, remember, service_user
from compliance.models import Event, Registration
from compliance.services import meet_deadlines
from filings.models import Filing, StatusCheck
from filings.services import ROAD
from portals.handlers import Moved, Shown
from portals.intents import LANES
from portals.models import Intent
from portals.registry import card_of

State = Intent.State


class FilingSubmit:
    """Sends a filing, and meets its deadline when it was accepted."""

    road: Literal["submit"] = "submit"

    def moved(self, moves: Sequence[Moved]) -> None:
        """Move the filings as their intents moved."""
        for actor, filings in ROAD.follow(moves).items():
            self._meet(filings, actor)

    def shown(self, subject_ids: Collection[int]) -> dict[int, Shown]:
        """Titles and links for the review queue."""
        rows = Filing.objects.filter(pk__in=subject_ids).select_related(
            "deadline__registration__entity"
        )
        return {
            row.pk: Shown(str(row), reverse("admin:filings_filing_change", args=[row.pk]))
            for row in rows
        }

    def _meet(self, filings: list[Filing], actor: str) -> None:
        by = service_user(LANES) if actor == LANES else find_user(actor)
        meet_deadlines(
            [filing.deadline for filing in filings],
            on=timezone.localdate(),
            by=by,
            reason="filing accepted",
        )


class StandingCheck:
    """Reads a standing, and records each change of it once."""

    road: Literal["standing"] = "standing"

    def moved(self, moves: Sequence[Moved]) -> None:
        """End the looks that have ended; while one is under way there is nothing to say."""
        ended = {moved.subject_id: moved for moved in moves if moved.move.to not in Intent.LIVE}
        checks = StatusCheck.objects.select_for_update(of=("self",)).select_related(
            "registration__entity"
        )
        for check in checks.filter(pk__in=ended, ended_at__isnull=True):
            self._end(check, ended[check.pk])

    def shown(self, subject_ids: Collection[int]) -> dict[int, Shown]:
        """Titles and links for the review queue."""
        rows = StatusCheck.objects.filter(pk__in=subject_ids).select_related(
            "registration__entity"
        )
        return {
            row.pk: Shown(str(row), reverse("admin:filings_statuscheck_change", args=[row.pk]))
            for row in rows
        }

    def _end(self, check: StatusCheck, moved: Moved) -> None:
        now = timezone.now()
        read = moved.move.standing
        check.ended_at = now
        check.error_category = moved.move.category
        check.detail = moved.move.detail
        if read is not None:
            check.standing, check.words, check.source = read.standing, read.words, read.source
            check.sha256, check.rule = read.sha256, read.rule
            self._learn(check, moved.actor)
        check.save()

    def _learn(self, check: StatusCheck, actor: str) -> None:
        """The registration shows what was read; a change of standing is told once."""
        registration = check.registration
        before = registration.standing
        registration.standing = check.standing
        registration.standing_words = check.words
        registration.standing_source = check.source
        registration.standing_read_at = check.ended_at
        registration.standing_sha256 = check.sha256
        registration.standing_fresh_hours = card_of(check.portal).status_freshness_hours
        Registration.objects.bulk_update(
            [registration],
            ["standing", "standing_words", "standing_source", "standing_read_at",
             "standing_sha256", "standing_fresh_hours"],
        )  # fmt: skip
        if before == check.standing:
            return
        remember([registration], reason=f"standing read: {check.words}"[:100])
        portfolio_id = registration.entity.portfolio_id
        subject = f"registration:{registration.pk}"
        ledger.record(
            type="registration.standing", subject=subject, actor=actor, portfolio_id=portfolio_id,
            came_from=before, standing=check.standing, words=check.words, sha256=check.sha256,
        )  # fmt: skip
        data = {"came_from": before, "standing": check.standing, "words": check.words}
        emit_many([Event(type="registration.standing", portfolio_id=portfolio_id,
                         subject=subject, data=data)])  # fmt: skip
