"""New York on localhost: keeps keys for a day, and silently cuts long text."""

import json
from collections.abc import Mapping
from typing import Any

from portals.simulator.contract import ContractSimulator

LONGEST_TEXT = 4096


class Simulator(ContractSimulator):
    """The contract with sessions and kept keys, as the card says, and text cut without a word."""

    def stored(self, filing: Mapping[str, Any], body: bytes) -> bytes:
        """What is kept of a filing: other bytes than it sent, if a text was too long."""
        kept = cut(filing, self.card.field_max_characters or LONGEST_TEXT)
        return body if kept == filing else json.dumps(kept, ensure_ascii=False).encode()


def cut(value: Any, longest: int) -> Any:
    """The same value with every text cut to its longest."""
    match value:
        case str():
            return value[:longest]
        case Mapping():
            return {key: cut(inner, longest) for key, inner in value.items()}
        case list():
            return [cut(inner, longest) for inner in value]
    return value
