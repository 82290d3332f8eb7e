"""How entities come in from a large file, and that memory does not grow with it."""

import csv
from pathlib import Path

import pytest
from django.db import connection

from compliance.imports.readers import open_source
from compliance.imports.services import ImportCounts, Keep, import_entities
from compliance.models import Entity, Portfolio, Registration
from tests.bench.measure import IS_SHORT, Timed, measured, tell
from tests.factories import PortfolioFactory, UserFactory

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]
ROWS = 2_000 if IS_SHORT else 100_000
EVERY_BAD = 1_000  # one row in so many has a date that does not exist
FLAT = 150 * 1024 * 1024
HEADER = [
    "external_id", "name", "type", "home_jurisdiction", "formed_on", "jurisdiction",
    "file_number", "officer_name", "officer_title", "street", "city", "region", "postal_code",
]  # fmt: skip


def write_file(path: Path) -> None:
    """So many made-up entities, a few of them refused."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(HEADER)
        for number in range(ROWS):
            day = "2019-02-30" if number % EVERY_BAD == 7 else f"20{number % 20:02d}-03-14"
            name = f"Measured {number}, LLC"
            rows.writerow(
                [f"E-{number}", name, "LLC", "Delaware", day, "DE", f"{number:08d}",
                 "Dana Reyes", "Manager", "12 Harbor Street", "Wilmington", "DE", "19801"]
            )  # fmt: skip


def imported(path: Path, portfolio: Portfolio, keep: Keep) -> tuple[Timed, ImportCounts]:
    """Import the file, and watch the clock and the memory."""
    with open_source(path) as source, measured() as (taken, look):
        counts = import_entities(
            source,
            portfolio=portfolio,
            by=UserFactory(),
            keep=keep,
            on_progress=lambda done, total: look(done),
        )
    return taken, counts


@pytest.mark.django_db(transaction=True)
def test_a_large_file_comes_in_without_being_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "entities.csv"
    write_file(path)
    portfolio = PortfolioFactory()
    refused = -(-(ROWS - 7) // EVERY_BAD)

    first = imported(path, portfolio, Keep.GOOD_ROWS)
    again = imported(path, portfolio, Keep.GOOD_ROWS)
    # Last, because it is the hungriest: what it would write on the ledger waits until its end.
    rehearsal = imported(path, PortfolioFactory(), Keep.NOTHING)

    ways = {"imported": first, "again, nothing changed": again, "rehearsed": rehearsal}
    tell(
        f"import_entities, {ROWS:,} rows of CSV, {connection.vendor}",
        ["way", "seconds", "rows/s", "memory grown", "created", "refused"],
        [
            [way, f"{taken.seconds:.2f}", f"{ROWS / taken.seconds:,.0f}",
             f"{taken.grown / 2**20:.0f} MB", counts.created, counts.refused]
            for way, (taken, counts) in ways.items()
        ],
    )  # fmt: skip
    assert rehearsal[1].created == first[1].created == ROWS - refused
    assert again[1].unchanged == ROWS - refused
    assert all(counts.refused == refused for _, counts in ways.values())
    assert Entity.objects.count() == Registration.objects.count() == ROWS - refused
    assert max(taken.grown for taken, _ in ways.values()) < FLAT
