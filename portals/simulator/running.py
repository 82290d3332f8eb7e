"""The simulator for tests and commands: made from the cards, run in a thread of its own."""

import asyncio
import importlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from portals import registry
from portals.cards import Card
from portals.simulator.contract import ContractSimulator
from portals.simulator.oracle import Journal
from portals.simulator.portal import PortalSimulator
from portals.simulator.server import SimulatorServer

Result = TypeVar("Result")


def simulator_class(card: Card) -> type[PortalSimulator]:
    """The simulator beside a card's adapter; without one the portal speaks the contract."""
    if card.slug in registry.cards():
        module = registry.module_of(card, "simulator")
    else:
        module = importlib.import_module(f"portals.adapters.{card.adapter}.simulator")
    if module is None:
        return ContractSimulator
    found: type[PortalSimulator] = module.Simulator
    return found


def build_server(
    cards: Mapping[str, Card] | None = None,
    *,
    weather: str = "calm",
    seed: int = 0,
    state: Path | None = None,
) -> SimulatorServer:
    """A server for these cards, or for every card we know; `state` makes it remember."""
    journal = Journal(state) if state else None
    simulators = {
        slug: simulator_class(card)(card, weather=weather, seed=seed, journal=journal)
        for slug, card in (registry.cards() if cards is None else cards).items()
    }
    return SimulatorServer(simulators, journal)


class Running:
    """A simulator at work in another thread. Every call runs on that thread's loop."""

    def __init__(
        self, server: SimulatorServer, loop: asyncio.AbstractEventLoop, base_url: str
    ) -> None:
        self.base_url = base_url
        self._server = server
        self._loop = loop

    def oracle(self, slug: str, *, brief: bool = False) -> dict[str, Any]:
        """What a portal accepted and counted."""
        return self._call(lambda: self._at(slug).report(brief=brief))

    def script(self, slug: str, *faults: str | Mapping[str, Any]) -> None:
        """Line faults up at a portal."""
        self._call(lambda: self._at(slug).weather.add_script(faults))

    def weather(self, slug: str, **probabilities: float) -> None:
        """Give faults their chances at a portal; none given means calm."""
        self._call(lambda: self._at(slug).weather.use_probabilities(probabilities))

    def set_truth(self, slug: str, mapping: Mapping[str, Mapping[str, str]]) -> None:
        """Say what a registry says about entities."""
        told = {number: dict(words) for number, words in mapping.items()}
        self._call(lambda: self._at(slug).truth.update(told))

    def reset(self) -> None:
        """Forget everything at every portal."""
        self._call(self._server.reset)

    def _at(self, slug: str) -> PortalSimulator:
        return self._server.simulators[slug]

    def _call(self, function: Callable[[], Result]) -> Result:
        async def call() -> Result:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(timeout=30)


@contextmanager
def running(
    cards: Mapping[str, Card] | None = None,
    *,
    weather: str = "calm",
    seed: int = 0,
    state: Path | None = None,
) -> Iterator[Running]:
    """Run the simulator on a free port for the length of a `with` block."""
    server = build_server(cards, weather=weather, seed=seed, state=state)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="portal-simulator", daemon=True)
    thread.start()
    try:
        base_url = asyncio.run_coroutine_threadsafe(server.start(), loop).result(timeout=30)
        yield Running(server, loop, base_url)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()
