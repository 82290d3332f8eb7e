"""How a measurement is taken and told: seconds, memory, a table, and at which size."""

import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

# `./dev bench` measures at full size; `./dev test` does the same on little data, where fixed costs
# weigh more, so that a broken measurement is noticed early.
IS_SHORT = os.environ.get("BENCH", "short") != "full"
PAGE = resource.getpagesize()


@dataclass
class Timed:
    """What a stretch of work took."""

    seconds: float = 0.0
    grown: int = 0  # bytes of resident memory at its fullest, above the start


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@contextmanager
def measured() -> Iterator[tuple[Timed, Callable[[object], None]]]:
    """Time a stretch; the second value is called now and then to look at the memory."""
    taken = Timed()
    before = resident()

    def look(_: object = None) -> None:
        taken.grown = max(taken.grown, resident() - before)

    started = time.perf_counter()
    yield taken, look
    taken.seconds = time.perf_counter() - started
    look()


def tell(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, with what it was measured on."""
    size = "short" if IS_SHORT else "full"
    cores = len(os.sched_getaffinity(0))
    machine = f"{size} run, {cores} cores, Python {platform.python_version()}"
    table = Table(title=f"{title} ({machine})", title_justify="left")
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*map(str, row))
    Console(width=110).print(table)
