"""django-q2 as a wake-up: real clusters, real queue rows, and what happens without them."""

import os
import signal
import subprocess
import sys
import time

import pytest
from django.conf import settings as project
from django_q.models import OrmQ, Schedule

from filings import services
from filings.models import Filing
from portals import waking
from portals.models import Lane
from portals.simulator.running import Running
from portals.tasks import wake_lanes
from tests.factories import FilingFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_approval_wakes_the_lanes_once(simulator: Running) -> None:
    for _ in range(3):
        services.approve_filing(FilingFactory(), by=UserFactory())

    assert OrmQ.objects.count() == 1
    assert Lane.objects.get(portal__slug="us-de").woken_at is not None


def test_a_wake_up_works_the_lanes_for_a_slice(simulator: Running) -> None:
    filing = services.approve_filing(FilingFactory(), by=UserFactory())

    settled = wake_lanes()

    filing.refresh_from_db()
    assert settled == 1
    assert filing.status == Filing.Status.ACCEPTED


def test_losing_every_queued_task_loses_nothing(simulator: Running) -> None:
    filing = services.approve_filing(FilingFactory(), by=UserFactory())
    OrmQ.objects.all().delete()

    wake_lanes()

    filing.refresh_from_db()
    assert filing.status == Filing.Status.ACCEPTED


@pytest.mark.django_db(transaction=False)
def test_every_installation_has_a_sweeper() -> None:
    sweeper = Schedule.objects.get(name="sweep lanes")

    assert (sweeper.func, sweeper.minutes, sweeper.repeats) == (waking.TASK, 1, -1)


def test_a_real_cluster_files_what_was_approved(simulator: Running, database_url: str) -> None:
    filing = services.approve_filing(FilingFactory(), by=UserFactory())

    cluster = subprocess.Popen(
        [sys.executable, "manage.py", "qcluster"],
        cwd=project.BASE_DIR,
        env={
            **os.environ,
            "DATABASE_URL": database_url,
            "PORTALS_BASE_URL": simulator.base_url,
            "DATA_DIR": str(project.DATA_DIR),
            "LANE_SLICE_SECONDS": "5",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a cluster hangs when its whole group is told to stop
    )
    try:
        deadline = time.monotonic() + 60
        while filing.status != Filing.Status.ACCEPTED and time.monotonic() < deadline:
            time.sleep(0.2)
            filing.refresh_from_db()
    finally:
        cluster.send_signal(signal.SIGTERM)
        try:
            cluster.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(cluster.pid, signal.SIGKILL)
            cluster.wait()

    assert filing.status == Filing.Status.ACCEPTED
    assert len(simulator.oracle("us-de")["acceptances"]) == 1
