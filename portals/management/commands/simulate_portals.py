"""Rehearse: every portal we have a card for, on one port of this machine."""

import asyncio
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from compliance.errors import DomainError
from portals.simulator.running import build_server
from portals.simulator.server import SimulatorServer
from portals.simulator.weather import PRESETS


class Command(BaseCommand):
    help = "Serve every portal on localhost; prints the address for PORTALS_BASE_URL."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What may be asked."""
        parser.add_argument("--port", type=int, default=8600, help="0 takes a free one")
        parser.add_argument("--weather", choices=list(PRESETS), default="calm")
        parser.add_argument("--seed", type=int, default=0, help="the same seed, the same faults")
        parser.add_argument("--state", type=Path, help="a file in which acceptances are kept")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        try:
            server = build_server(
                weather=options["weather"], seed=options["seed"], state=options["state"]
            )
            asyncio.run(self._serve(server, options["port"]))
        except DomainError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(
                f"The simulator cannot start: {error}. Choose another --port or --state."
            ) from error

    async def _serve(self, server: SimulatorServer, port: int) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        try:
            address = await server.start(port)
            self.stdout.write(address)
            self.stdout.flush()
            await stop.wait()
        finally:
            await server.stop()
