"""The demo: a made-up portfolio, simulated portals, a worker, and a filing season to watch."""

import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compliance.errors import DomainError
from config.demo import season
from config.demo.portfolio import PASSWORD, PEOPLE, seed
from config.demo.supervisor import Program, Supervisor, answers, free_port, listens

MANAGE = [sys.executable, str(settings.BASE_DIR / "manage.py")]
SEASON_SECONDS = 600.0


class Command(BaseCommand):
    help = "Brings up the demo and runs a filing season; data of an earlier demo is replaced."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--headless", action="store_true", help="No site; end with a summary.")
        parser.add_argument("--port", type=int, default=8000, help="Of the site.")

    def handle(self, *args: Any, **options: Any) -> None:
        # A pipe has no width of its own; the summary needs about this much.
        self.console = Console(width=None if sys.stdout.isatty() else 110)
        make_new_database()
        simulator = free_port()
        base_url = settings.PORTALS_BASE_URL = f"http://127.0.0.1:{simulator}"
        self.console.print("Making a portfolio of 21 entities whose due dates lie around today …")
        seed(timezone.localdate())
        environment = {**os.environ, "PORTALS_BASE_URL": base_url, "WIRE_SETTLE_SECONDS": "2"}
        try:
            with Supervisor(settings.DATA_DIR / "logs") as supervisor:
                supervisor.start(simulator_program(simulator, environment))
                season.set_weather(base_url)
                if not options["headless"]:
                    supervisor.start(site_program(options["port"], environment))
                    self._welcome(options["port"])
                supervisor.start(
                    Program("worker", [*MANAGE, "qcluster"], env=environment, patience=30.0)
                )
                ended_well = self._run(supervisor, base_url)
                if not options["headless"]:
                    self.console.print("The site stays up until Ctrl-C.")
                    supervisor.wait()
        except DomainError as error:
            raise CommandError(str(error)) from error
        if not supervisor.asked_to_stop and not ended_well:
            raise CommandError("The season did not end as it should; see above.")

    def _run(self, supervisor: Supervisor, base_url: str) -> bool:
        season.open_season()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                   TimeElapsedColumn())  # fmt: skip
        with Progress(*columns, console=self.console) as progress:
            bar = progress.add_task("Filings, looks at standing, and a grant", total=None)
            over = season.wait_until_over(
                SEASON_SECONDS,
                check=supervisor.check,
                told=lambda done, total: progress.update(bar, completed=done, total=total),
            )
        summary = season.summarise(base_url)
        self.console.print(season.table(summary))
        told = ", ".join(f"{count} {name}" for name, count in summary.standings.most_common())
        self.console.print(f"Standing read: {told}.")
        for problem in summary.wrong:
            self.console.print(f"[bold]Not as it should be:[/bold] {problem}")
        if not over:
            self.console.print(f"The season was not over after {SEASON_SECONDS:.0f} s.")
        return over and not summary.wrong

    def _welcome(self, port: int) -> None:
        self.console.print(f"\nGoodstanding is at [bold]http://127.0.0.1:{port}/admin/[/bold]\n")
        for username, (name, role) in PEOPLE.items():
            self.console.print(f"  {username:<6} {PASSWORD}   {name}, {role.lower()}")
        self.console.print(f"  {'admin':<6} {PASSWORD}   everything\n")


def make_new_database() -> None:
    """Start from an empty database; only ever the demo's own."""
    path = Path(settings.DATABASES["default"]["NAME"])
    if settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3" or (
        settings.DATA_DIR not in path.parents
    ):
        raise CommandError(
            "The demo replaces its data at each start, so it only works on a SQLite file of its "
            "own. Unset DATABASE_URL and run ./dev demo."
        )
    connections.close_all()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    call_command("migrate", verbosity=0)
    call_command("setup_roles", verbosity=0)


def simulator_program(port: int, environment: dict[str, str]) -> Program:
    """Every portal on one port of this machine."""
    return Program(
        "simulator",
        [*MANAGE, "simulate_portals", "--port", str(port), "--seed", "7"],
        env=environment,
        ready=lambda: listens(port),
        port=port,
    )


def site_program(port: int, environment: dict[str, str]) -> Program:
    """The site, served as in production but without HTTPS."""
    return Program(
        "site",
        [
            sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}",
            "--workers", "1", "--threads", "4", "--worker-class", "gthread",
        ],
        env=environment,
        ready=lambda: answers(port, "/livez"),
        port=port,
    )  # fmt: skip
