"""What the rooms above give the lanes, without the lanes knowing the rooms.

`INTENT_HANDLERS` in the settings names one handler for each kind of intent.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from compliance.errors import NotFound
from portals.protocol import Move


@dataclass(frozen=True)
class Moved:
    """One intent's move, as its subject is told of it."""

    intent_id: int
    subject_id: int
    came_from: str
    move: Move
    actor: str


@dataclass(frozen=True)
class Shown:
    """How people see the subject of an intent."""

    title: str
    url: str


class Handler(Protocol):
    """One kind of work: what it asks of the portal, and what becomes of its subjects."""

    road: Literal["submit", "standing"]

    def moved(self, moves: Sequence[Moved]) -> None:
        """Carry moves over to the subjects, in the transaction that makes them."""

    def shown(self, subject_ids: Collection[int]) -> dict[int, Shown]:
        """Titles and links for the review queue."""


@lru_cache(maxsize=32)
def _made(path: str) -> Handler:
    return cast(Handler, import_string(path)())


def handler_of(kind: str) -> Handler:
    """The handler of a kind of intent."""
    try:
        return _made(settings.INTENT_HANDLERS[kind])
    except KeyError:
        raise NotFound(
            f"No handler is named for “{kind}”. Add it to INTENT_HANDLERS in config/settings.py."
        ) from None
