"""Send every complete application whose opportunity is still open."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import track

from compliance.errors import DomainError, NotFound
from compliance.history import acting_as, find_user
from grants.models import Funder, GrantSubmission
from grants.services import Submitted, submit_drafts


class Command(BaseCommand):
    help = "Approves every complete draft whose opportunity is open, and reports the rest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--funder", default="", help="Only submissions to this funder.")
        parser.add_argument(
            "--approved-by", default="", help="Who approves; without it nothing is sent."
        )
        parser.add_argument("--json", action="store_true", help="End with one line of JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = _submit(options["funder"], options["approved_by"])
        except DomainError as error:
            raise CommandError(str(error)) from error
        for draft, problems in done.blocked:
            self.stderr.write(f"{draft}: {' '.join(problems)}")
        approved = bool(options["approved_by"])
        if options["json"]:
            self.stdout.write(json.dumps(_told(done, approved=approved)))
        else:
            word = "approved" if approved else "complete; name --approved-by to send them"
            self.stdout.write(f"{len(done.complete)} {word}. {len(done.blocked)} not complete.")
        if done.blocked:
            sys.exit(1)


def _submit(funder: str, approved_by: str) -> Submitted:
    by = find_user(approved_by) if approved_by else None
    drafts = GrantSubmission.objects.filter(status=GrantSubmission.Status.DRAFT)
    if funder:
        drafts = drafts.filter(opportunity__funder=_funder(funder))
    rows = drafts.select_related("opportunity__funder", "entity").order_by(
        "opportunity__closes_at", "id"
    )
    screen = Console(stderr=True)
    shown = track(
        rows, "Grants", total=rows.count(), console=screen, disable=not screen.is_terminal
    )
    with acting_as(by):
        return submit_drafts(shown, approved_by=by)


def _funder(slug: str) -> Funder:
    found = Funder.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Funder.objects.values_list("slug", flat=True)) or "none"
        raise NotFound(f"There is no funder “{slug}”. Known are: {known}.")
    return found


def _told(done: Submitted, *, approved: bool) -> dict[str, Any]:
    return {
        "approved": len(done.complete) if approved else 0,
        "complete": len(done.complete),
        "blocked": [
            {"id": draft.pk, "title": str(draft), "problems": problems}
            for draft, problems in done.blocked
        ],
    }
