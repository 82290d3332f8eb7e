"""Brings the deadlines of a jurisdiction up to its pack as installed."""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance.amendments import (
    apply_amendment,
    preview_amendment,
    require_two_people,
)
from compliance.errors import DomainError
from compliance.history import find_user
from filings.amendments import being_filed, sentence


class Command(BaseCommand):
    help = "Apply an amended pack to what is owed. Dates that are due or being filed stay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("jurisdiction", metavar="JURISDICTION", help="such as US-DE")
        parser.add_argument("--by", required=True, metavar="USER")
        parser.add_argument("--approved-by", required=True, metavar="USER", help="another person")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="what was amended")
        parser.add_argument("--dry-run", action="store_true", help="say what it would do")
        parser.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        code = options["jurisdiction"].upper()
        try:
            by, approver = find_user(options["by"]), find_user(options["approved_by"])
            reason = options["reason"]
            if options["dry_run"]:
                require_two_people(by, approver, reason)
                done = preview_amendment(code, busy=being_filed)
            else:
                done = apply_amendment(
                    code, by=by, approved_by=approver, reason=reason, busy=being_filed
                )
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            told = {**asdict(done), "more": str(done.more), "dry_run": options["dry_run"]}
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(sentence(done, is_rehearsal=options["dry_run"]))
