"""Tells people of the deadlines that come near, once for each rung of the ladder."""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance.errors import DomainError
from compliance.escalation import Escalated, escalate_deadlines, preview_escalation
from compliance.history import find_user, service_user
from compliance.models import Rung
from compliance.wording import counted


class Command(BaseCommand):
    help = "Tell owners, backups and officers what comes near. Each rung is told once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", metavar="USER", help="default: the service account")
        parser.add_argument("--dry-run", action="store_true", help="say what it would tell")
        parser.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["dry_run"]:
                report = preview_escalation()
            else:
                name = options["by"]
                by = find_user(name) if name else service_user("escalation")
                report = escalate_deadlines(by=by)
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            told = {**asdict(report), "dry_run": options["dry_run"]}
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(sentence(report, is_rehearsal=options["dry_run"]))
        if wrong := problems(report):
            raise CommandError(wrong)


def sentence(report: Escalated, *, is_rehearsal: bool) -> str:
    """What was told, or would be, for a person."""
    start = "Would tell" if is_rehearsal else "Told"
    rungs = ", ".join(f"{Rung(rung).label.lower()} {n:,}" for rung, n in report.told.items())
    told = f"{start} {counted(sum(report.told.values()), 'notice')}: {rungs}."
    if report.unowned:
        told += f" Of deadlines that nobody owns: {report.unowned:,}."
    return told if is_rehearsal else f"{told} Mails sent: {report.mail.sent:,}."


def problems(report: Escalated) -> str:
    """What went wrong and what to do, or nothing."""
    found = []
    if report.nobody_to_tell:
        found.append(
            f"{counted(report.nobody_to_tell, 'notice')} had nobody to go to. Name an owner, or "
            "add a compliance officer to the portfolio."
        )
    if report.mail.failed:
        found.append(
            f"{counted(report.mail.failed, 'mail')} could not be sent; the next run tries again. "
            "Check EMAIL_URL."
        )
    if report.mail.without_address:
        people = counted(report.mail.without_address, "person", "people")
        found.append(f"{people} to be told have no e-mail address. Enter one on their page.")
    return " ".join(found)
