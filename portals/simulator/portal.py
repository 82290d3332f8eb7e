"""What every simulated portal has: arrivals counted, weather, and routes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import web

from portals.cards import Card
from portals.simulator.answers import EXPIRED, NO_SUCH_ROUTE, Answer, refusal
from portals.simulator.oracle import Journal, Oracle
from portals.simulator.weather import FAIR, Exposure, Fault, Weather

SECRET = "rehearsal"  # noqa: S105 - the one password that every simulated portal takes


HUNG_UP = web.RequestKey("hung_up", bool)


class Route(NamedTuple):
    """What a request asks for, and who does it."""

    name: str
    work: Callable[..., Awaitable[Answer]]
    arguments: tuple[str, ...] = ()
    exposure: Exposure = Exposure.REPEATABLE


class PortalSimulator:
    """One portal on a path of the server. Subclasses say what it answers."""

    def __init__(
        self, card: Card, *, weather: str = "calm", seed: int = 0, journal: Journal | None = None
    ) -> None:
        self.card = card
        self.oracle = Oracle(card, journal)
        self.weather = Weather(card, preset=weather, seed=seed)
        self.truth: dict[str, dict[str, str]] = {}
        self._waiting: list[web.BaseRequest] = []

    def route(self, method: str, parts: list[str]) -> Route | None:
        """The route of a request, or None where there is none."""
        raise NotImplementedError

    def refuse(self, keep_away: float) -> Answer | None:
        """The answer to an arrival that breaks the card; by default it is only counted."""
        return None

    def end_session(self, request: web.BaseRequest) -> None:
        """Throw the caller out; a portal without sessions has nothing to end."""

    def reset(self) -> None:
        """Forget everything and start the weather again."""
        self.oracle.forget()
        self.weather.start_again()
        self.truth = {}

    async def handle(self, request: web.BaseRequest, parts: list[str]) -> web.StreamResponse:
        """Count a request in, answer it in today's weather, count it out."""
        if self._waiting:
            self._count_out_who_hung_up()
        keep_away = self.oracle.arrive(request.method, request.raw_path)
        try:
            # Let what arrived at the same moment be counted too; an answer given before that
            # would hide that two were under way at once.
            await asyncio.sleep(0)
            route = self.route(request.method, parts)
            if route is None:
                return NO_SUCH_ROUTE.response()
            refused = self.refuse(keep_away) if keep_away else None
            if refused is not None:
                return refused.response()
            fault = self.weather.next(route.name, route.exposure)
            if fault is FAIR:
                return (await route.work(request, fault, *route.arguments)).response()
            self.oracle.faults[fault.fault] += 1
            return await self._answer_in(fault, request, route)
        except ConnectionError:
            return web.Response()  # the client hung up while it was still sending
        finally:
            if HUNG_UP not in request:
                self.oracle.depart()

    async def _answer_in(
        self, fault: Fault, request: web.BaseRequest, route: Route
    ) -> web.StreamResponse:
        refused = refusal(fault)
        if refused is not None:
            return refused.response()
        if fault.fault == "drop_before":
            return hang_up(request)
        if fault.fault == "session_expiry":
            self.end_session(request)
            return EXPIRED.response()
        if fault.fault == "delay" and fault.first:
            if request.method == "POST":
                await request.read()  # what has arrived is worked on even if nobody waits for it
            await self._wait(request, fault.seconds)
        answer = await route.work(request, fault, *route.arguments)
        match fault.fault:
            case "drop_after":
                return hang_up(request)
            case "5xx_after":
                return Answer(fault.status, "<html><body>Server error</body></html>").response()
            case "truncated":
                return await self._cut(request, answer, wire=fault.wire)
            case "delay" if not fault.first:
                await self._wait(request, fault.seconds)
        return answer.response()

    async def _cut(
        self, request: web.BaseRequest, answer: Answer, *, wire: bool
    ) -> web.StreamResponse:
        whole = answer.response()
        body = answer.encoded()
        half = body[: len(body) // 2]
        if not wire:
            whole.body = half
            return whole
        response = web.StreamResponse(status=answer.status, headers=whole.headers)
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(half)
        return hang_up(request, flush=True)

    async def _wait(self, request: web.BaseRequest, seconds: float) -> None:
        self._waiting.append(request)
        try:
            await asyncio.sleep(seconds)
        finally:
            if request in self._waiting:
                self._waiting.remove(request)

    def _count_out_who_hung_up(self) -> None:
        # A client that gave up on a slow answer has nothing under way any more; without this
        # its next request would look like one too many.
        for request in list(self._waiting):
            if request.transport is None or request.transport.is_closing():
                self._waiting.remove(request)
                request[HUNG_UP] = True
                self.oracle.depart()

    def report(self, *, brief: bool = False) -> dict[str, Any]:
        """What the oracle knows."""
        return self.oracle.report(brief=brief)

    def hidden_until(self, fault: Fault) -> float:
        """The monotonic moment from which look-ups see what is being accepted now."""
        if fault.fault == "stale_lookup":
            return time.monotonic() + fault.seconds
        stale = self.weather.staleness()
        if not stale:
            return 0.0
        self.oracle.faults["stale_lookup"] += 1
        return time.monotonic() + stale


def hang_up(request: web.BaseRequest, *, flush: bool = False) -> web.Response:
    """Close the connection without an answer, or after what was written of it."""
    if request.transport is not None:
        if flush:
            request.transport.close()
        else:
            request.transport.abort()
    return web.Response()
