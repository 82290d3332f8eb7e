"""Every simulated portal on one port, and the doors through which tests look behind them."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from portals.simulator.oracle import Journal
from portals.simulator.portal import PortalSimulator
from portals.simulator.weather import BadWeather

HOST = "127.0.0.1"


class SimulatorServer:
    """Answers for each portal at `/{slug}`, and behind `/_oracle`, `/_weather`, `/_truth`."""

    def __init__(
        self, simulators: Mapping[str, PortalSimulator], journal: Journal | None = None
    ) -> None:
        self.simulators = dict(simulators)
        self.journal = journal
        self._runner: web.ServerRunner | None = None

    async def start(self, port: int = 0) -> str:
        """Listen, and say where; port 0 takes a free one."""
        # A plain server without the framework's router: the first part of the path is the route.
        server = web.Server(self.handle, access_log=None)
        # What still waits at the end is a delay that nobody needs any more.
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, port, backlog=1024).start()
        return f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Close every connection and the journal."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self.journal is not None:
            self.journal.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send a request to its portal, or to a door of the simulator's own."""
        path = request.raw_path.partition("?")[0]
        parts = path.split("/")[1:]
        if "%" in path:
            parts = [unquote(part) for part in parts]
        simulator = self.simulators.get(parts[0])
        if simulator is not None:
            return await simulator.handle(request, parts[1:])
        try:
            return web.json_response(await self._look_behind(request, parts))
        except BadWeather as error:
            return web.json_response({"error": str(error)}, status=400)
        except KeyError:
            known = ", ".join(sorted(self.simulators))
            return web.json_response(
                {"error": f"There is nothing at {path}. Portals are: {known}."}, status=404
            )

    async def _look_behind(self, request: web.BaseRequest, parts: list[str]) -> object:
        match request.method, parts:
            case "GET", ["_oracle"]:
                return {slug: one.report(brief=True) for slug, one in self.simulators.items()}
            case "GET", ["_oracle", slug]:
                return self.simulators[slug].report(brief="brief=1" in request.query_string)
            case "GET", ["_weather"]:
                return {slug: one.weather.describe() for slug, one in self.simulators.items()}
            case "GET", ["_weather", slug]:
                return self.simulators[slug].weather.describe()
            case "POST", ["_weather", *slugs]:
                change = await read_object(request)
                for slug in slugs or self.simulators:
                    set_weather(self.simulators[slug], change)
                return {"status": "ok"}
            case "POST", ["_truth", slug]:
                self.simulators[slug].truth |= await read_object(request)
                return {"status": "ok"}
            case "POST", ["_reset"]:
                self.reset()
                return {"status": "ok"}
        raise KeyError

    def reset(self) -> None:
        """Forget everything at every portal."""
        for simulator in self.simulators.values():
            simulator.reset()
        if self.journal is not None:
            self.journal.clear()


async def read_object(request: web.BaseRequest) -> dict[str, Any]:
    """The JSON object that a door was given."""
    try:
        given = json.loads(await request.read())
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise BadWeather("The body is not a JSON object. Send one.")
    return given


def set_weather(simulator: PortalSimulator, change: Mapping[str, Any]) -> None:
    """Change the weather of one portal: a preset, chances, a script, in that order."""
    unknown = set(change) - {"preset", "probabilities", "script"}
    if unknown or not change:
        raise BadWeather("Send “preset”, “probabilities” or “script”, and nothing else.")
    if "preset" in change:
        simulator.weather.use_preset(change["preset"])
    if "probabilities" in change:
        simulator.weather.use_probabilities(change["probabilities"])
    if "script" in change:
        simulator.weather.add_script(change["script"])
