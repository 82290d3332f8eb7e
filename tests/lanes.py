"""The simulator on a socket, and the lanes run until they are idle."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from portals import registry
from portals.models import Credential, Portal
from portals.runner import Report, run_lanes
from portals.simulator.portal import SECRET as REHEARSAL
from portals.simulator.running import Running, running

Run = Callable[..., Report]


@pytest.fixture
def simulator(settings: Settings, transactional_db: None) -> Iterator[Running]:
    """Every portal on localhost, calm, with credentials that it takes."""
    settings.WIRE_SETTLE_SECONDS = 0.2
    settings.SEND_WITHIN_SECONDS = 1.5
    with running() as portals:
        settings.PORTALS_BASE_URL = portals.base_url
        rows = [
            Portal(slug=card.slug, title=card.title, jurisdiction=card.jurisdiction)
            for card in registry.cards().values()
        ]
        Portal.objects.bulk_create(rows)
        Credential.objects.bulk_create(
            Credential(portal=row, username=REHEARSAL, secret=REHEARSAL) for row in rows
        )
        yield portals


@pytest.fixture
def run() -> Run:
    """Work the lanes here until nothing is due within the patience."""

    def run_until_idle(seconds: float = 30.0, patience: float = 15.0) -> Report:
        until = time.monotonic() + seconds
        return asyncio.run(run_lanes(until=until, patience=patience))

    return run_until_idle
