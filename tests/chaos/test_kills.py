"""Real processes, real sockets, real kill -9: one acceptance for each filing, none lost.

The portals' own count is the oracle. Each test says how often it killed, and fails if it killed
too seldom to have shown anything.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings as project

from compliance import ledger
from filings import services
from filings.models import Filing
from portals.models import Attempt, Intent, Lane
from portals.simulator.running import Running
from tests.factories import FilingFactory, UserFactory
from tests.lanes import Run

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

JURISDICTIONS = ["US-DE", "US-CA", "US-NY"]
FAULTS = {"drop_after": 0.1, "drop_before": 0.05, "5xx_after": 0.1, "truncated": 0.05}
CRASH_POINTS = ["taken", "armed", "answered", "settled"]


def approve(count: int) -> list[Filing]:
    """So many filings on their way to each of the three portals."""
    approver = UserFactory()
    drafts = [
        FilingFactory(deadline__registration__jurisdiction=jurisdiction)
        for jurisdiction in JURISDICTIONS
        for _ in range(count)
    ]
    return services.approve_filings(drafts, by=approver)


def worker(database_url: str, simulator: Running, **environment: str) -> subprocess.Popen[bytes]:
    """A process of its own that works the lanes until it is killed."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "run_lanes"],
        cwd=project.BASE_DIR,
        env={
            **os.environ,
            "DATABASE_URL": database_url,
            "PORTALS_BASE_URL": simulator.base_url,
            "WIRE_SETTLE_SECONDS": "0.2",
            "DATA_DIR": str(project.DATA_DIR),
            **environment,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@contextmanager
def killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave no process behind, whatever the test does."""
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def wait_until_it_works(process: subprocess.Popen[bytes]) -> None:
    """Until the process owns a lane: before that there is nothing to lose."""
    deadline = time.monotonic() + 30
    while not Lane.objects.filter(owner__contains=f"/{process.pid}/").exists():
        assert time.monotonic() < deadline, "it did not take a lane"
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.02)


def assert_each_filed_once(simulator: Running, filings: list[Filing]) -> None:
    """Every filing is accepted here and held once there, and the ledger holds together."""
    assert set(Filing.objects.values_list("status", flat=True)) == {"accepted"}
    held = 0
    for slug in ("us-de", "us-ca", "us-ny"):
        oracle = simulator.oracle(slug)
        assert oracle["duplicates"] == 0, oracle["acceptances"]
        assert oracle["violations"] == {"limits": 0, "concurrency": 0}
        held += len(oracle["acceptances"])
        known = set(
            Filing.objects.filter(portal=slug).values_list("confirmation_number", flat=True)
        )
        assert known == {item["confirmation_number"] for item in oracle["acceptances"]}
    assert held == len(filings)
    assert not Attempt.objects.filter(outcome="open").exists()
    verdict = ledger.verify()
    assert verdict.broken is None
    assert verdict.entries >= 6 * len(filings)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_kill_at_a_named_point_files_once(
    point: str, database_url: str, simulator: Running, run: Run
) -> None:
    filings = approve(2)

    process = worker(database_url, simulator, CRASH_AT=point)
    with killed_at_the_end(process):
        ended = process.wait(timeout=60)
    run(90, 60)

    assert ended == -signal.SIGKILL, f"it did not die at {point}"
    assert_each_filed_once(simulator, filings)


def test_kills_at_any_moment_in_bad_weather_file_once(
    database_url: str, simulator: Running, run: Run
) -> None:
    """One worker after the other is killed somewhere in its work; the next takes over at once."""
    chance = random.Random(20)
    filings = approve(25)
    for slug in ("us-de", "us-ca", "us-ny"):
        simulator.weather(slug, **FAULTS)
    kills = 0
    while kills < 12 and Intent.objects.filter(state__in=["ready", "in_doubt"]).exists():
        process = worker(database_url, simulator)
        with killed_at_the_end(process):
            wait_until_it_works(process)
            time.sleep(chance.uniform(0.9, 2.2))
        kills += 1
    for slug in ("us-de", "us-ca", "us-ny"):
        simulator.weather(slug)

    run(150, 100)

    assert kills >= 8
    assert Attempt.objects.filter(outcome="in_doubt").count() >= 3
    assert_each_filed_once(simulator, filings)
