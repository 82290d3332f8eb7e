"""Work the lanes in the foreground, without a cluster."""

import asyncio
import json
import math
import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance.errors import DomainError
from portals.registry import card_of
from portals.runner import Report, Runner


class Command(BaseCommand):
    help = "Works the lanes here: sends what is ready, looks up what is in doubt."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--until-idle", action="store_true", help="Stop when nothing is left.")
        parser.add_argument("--portal", action="append", help="Only this portal; may be repeated.")
        parser.add_argument(
            "--patience", type=float, default=120.0, help="Seconds to wait for what is due later."
        )
        parser.add_argument("--json", action="store_true", help="End with one line of JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            for slug in options["portal"] or []:
                card_of(slug)
        except DomainError as error:
            raise CommandError(str(error)) from error
        patience = options["patience"] if options["until_idle"] else None
        report = asyncio.run(_run(options["portal"], patience))
        if options["json"]:
            told = {"settled": report.settled, "lanes": sorted(report.lanes)}
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(f"{report.settled} settled on {len(report.lanes)} lanes.")


async def _run(portals: list[str] | None, patience: float | None) -> Report:
    runner = Runner(portals)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, runner.stop)
    return await runner.run(math.inf, patience=patience)
