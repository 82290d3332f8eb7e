"""How fast what is owed is written down, against one `get_or_create` for each deadline."""

from datetime import date

import pytest
from django.contrib.auth.models import User
from django.db import connection

from compliance import ledger, rules
from compliance.deadlines import deadlines_for
from compliance.due import add_months
from compliance.history import acting_as
from compliance.models import Deadline, LedgerEntry, Registration
from compliance.services import facts_of
from compliance.sync import COPIED, sync_deadlines
from tests.bench.measure import IS_SHORT, Timed, measured, tell
from tests.bench.registry import register_many
from tests.factories import PortfolioFactory, UserFactory

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]
REGISTRATIONS = 3_000 if IS_SHORT else 100_000
PEER_REGISTRATIONS = 300 if IS_SHORT else 1_500
TODAY = date(2026, 11, 18)
THROUGH = date(2028, 5, 31)
FLAT = 150 * 1024 * 1024


def write_one_by_one(registrations: list[Registration], by: User) -> int:
    """The plain way: ask and create, deadline by deadline, with history and ledger entry."""
    packs, since = rules.packs(), add_months(TODAY, -12)
    written = 0
    for registration in registrations:
        pack = packs[registration.jurisdiction]
        start = max(registration.registered_on, since)
        for owed in deadlines_for(pack, facts_of(registration), THROUGH, start):
            with ledger.recording(by=by):
                row, _ = Deadline.objects.get_or_create(
                    registration=registration,
                    duty=owed.duty,
                    period=owed.period,
                    defaults={
                        **{name: getattr(owed, name) for name in COPIED[2:]},
                        "pack_sha256": pack.sha256,
                    },
                )
                ledger.record(
                    type="deadline.owed", subject=f"deadline:{row.pk}", actor=by.username
                )
            written += 1
    return written


@pytest.mark.django_db(transaction=True)
def test_deadlines_are_written_at_the_speed_of_the_database() -> None:
    by, portfolio = UserFactory(), PortfolioFactory()
    rules.packs()  # reading the law is a matter of starting up, for both ways
    register_many(PEER_REGISTRATIONS, portfolio=portfolio)
    with measured() as (peer, _), acting_as(by):
        rows = list(Registration.objects.select_related("entity").order_by("pk"))
        peer_count = write_one_by_one(rows, by)
    before = LedgerEntry.objects.count()
    register_many(REGISTRATIONS, portfolio=PortfolioFactory())
    ours = Registration.objects.filter(pk__gt=rows[-1].pk)

    with measured() as (first, look):
        made = sync_deadlines(ours, through=THROUGH, by=by, today=TODAY, on_progress=look)
    with measured() as (second, look_again):
        again = sync_deadlines(ours, through=THROUGH, by=by, today=TODAY, on_progress=look_again)

    ratio = (made.created / first.seconds) / (peer_count / peer.seconds)
    ways: list[tuple[str, int, Timed, str]] = [
        ("get_or_create, one by one", peer_count, peer, "1.0 ×"),
        ("sync_deadlines", made.created, first, f"{ratio:.1f} ×"),
        ("again, nothing changed", 0, second, f"{second.seconds / first.seconds:.0%} of the time"),
    ]
    tell(
        f"sync_deadlines, {REGISTRATIONS:,} registrations, {connection.vendor}",
        ["way", "deadlines", "seconds", "deadlines/s", "memory grown", "ratio"],
        [
            [way, count, f"{taken.seconds:.2f}", f"{count / taken.seconds:,.0f}",
             f"{taken.grown / 2**20:.0f} MB", told]
            for way, count, taken, told in ways
        ],
    )  # fmt: skip
    assert made.created >= REGISTRATIONS  # a bench that wrote nothing measured nothing
    assert LedgerEntry.objects.count() - before == made.created
    assert Deadline.history.filter(registration__in=ours).count() == made.created
    assert (again.created, again.unchanged) == (0, REGISTRATIONS)
    assert max(first.grown, second.grown) < FLAT
    assert second.seconds < first.seconds * (0.5 if IS_SHORT else 0.25)
    if connection.vendor == "postgresql":
        assert ratio >= (8 if IS_SHORT else 20)
        assert made.created / first.seconds >= (1_500 if IS_SHORT else 5_000)
