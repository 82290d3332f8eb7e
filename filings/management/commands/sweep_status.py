"""Ask the registries for the standing of every entity."""

import asyncio
import json
import math
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance.errors import DomainError
from compliance.history import find_user, service_user
from compliance.models import Registration
from compliance.rules import pack_of
from filings.models import StatusCheck
from filings.services import request_checks
from portals.runner import run_lanes

CHUNK = 500


class Command(BaseCommand):
    help = "Queues one look at the registry for each registration that has none under way."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--jurisdiction", default="", help="Only this one, such as US-DE.")
        parser.add_argument("--by", default="", help="The user who asks.")
        parser.add_argument("--wait", action="store_true", help="Work the lanes until it is done.")
        parser.add_argument("--json", action="store_true", help="End with one line of JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            checks = self._ask(options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["wait"]:
            asyncio.run(run_lanes(until=math.inf, patience=120))
        found = StatusCheck.objects.filter(pk__in=checks, ended_at__isnull=False)
        standings = Counter(found.values_list("standing", flat=True))
        told = {"asked": len(checks), "answered": found.count(), "standings": dict(standings)}
        if options["json"]:
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(f"{told['asked']} asked, {told['answered']} answered so far.")

    def _ask(self, options: dict[str, Any]) -> list[int]:
        by = find_user(options["by"]) if options["by"] else service_user("sweeper")
        rows = Registration.objects.filter(ended_on__isnull=True).select_related("entity")
        if options["jurisdiction"]:
            pack_of(options["jurisdiction"])
            rows = rows.filter(jurisdiction=options["jurisdiction"])
        checks: list[int] = []
        last = 0
        while chunk := list(rows.filter(pk__gt=last).order_by("pk")[:CHUNK]):
            last = chunk[-1].pk
            checks += [check.pk for check in request_checks(chunk, by=by)]
        return checks
