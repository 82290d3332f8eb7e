"""California on localhost: refuses duplicates for 72 hours, and text that is not clean."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from portals.simulator.answers import problem
from portals.simulator.contract import ContractSimulator

# Whitespace at either end or doubled, and control characters anywhere.
UNCLEAN = re.compile(r"^\s|\s$|\s\s|[\x00-\x1f\x7f-\x9f]")


class Simulator(ContractSimulator):
    """The contract with strict text; the card's duplicate window does the rest."""

    unreadable_status = 422

    def problems(self, filing: Mapping[str, Any]) -> list[dict[str, str]]:
        """Every text that is not clean, by its name, then what any portal rejects."""
        return [*unclean(filing), *super().problems(filing)]


def unclean(value: object, name: str = "") -> Iterator[dict[str, str]]:
    """Each text inside a value that has stray whitespace or control characters."""
    match value:
        case str() if UNCLEAN.search(value):
            yield problem(name, "has stray whitespace or control characters")
        case Mapping():
            for key, inner in value.items():
                yield from unclean(inner, f"{name}.{key}" if name else key)
        case list():
            for place, inner in enumerate(value):
                yield from unclean(inner, f"{name}.{place}")
