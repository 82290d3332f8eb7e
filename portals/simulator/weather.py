"""What goes wrong at a simulated portal: by script, or by chance from a seed."""

import random
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import accumulate
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from portals.cards import Card

Kind: TypeAlias = Literal[
    "ok",
    "drop_before",
    "drop_after",
    "delay",
    "5xx_before",
    "5xx_after",
    "429",
    "503",
    "403_reset",
    "captcha",
    "truncated",
    "login_page",
    "session_expiry",
    "duplicate",
    "202_later",
    "mangled",
    "other_entity",
    "stale_lookup",
    "closed",
]
KINDS: tuple[str, ...] = get_args(Kind)
RouteName: TypeAlias = Literal[
    "", "submit", "find", "filings", "status", "session", "health", "create", "attach", "finalize"
]


class BadWeather(ValueError):
    """A weather report that cannot be read; the message says what may be written."""


class Fault(BaseModel):
    """One thing that goes wrong. “Before” did nothing; “after” did the work first."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    fault: Kind
    route: RouteName = ""  # empty: the request after which there is no return
    seconds: float = Field(default=1.0, ge=0)
    absolute: bool = False  # Retry-After as a date, X-RateLimit-Reset as seconds since the epoch
    first: bool = False  # a delay before the work instead of after it
    wire: bool = False  # truncated by a hang-up instead of inside a whole answer
    status: int = Field(default=500, ge=500, le=599)
    looks: int = Field(default=2, ge=0)  # look-ups that still say “received”
    rejects: bool = False  # decided later, and against us


FAIR = Fault(fault="ok")


class Exposure(Enum):
    """How much can go wrong with a request."""

    DECISIVE = "decisive"  # the one after which there is no return
    REPEATABLE = "repeatable"
    DOOR = "door"  # logging in, asking for health


DOOR_KINDS = {"drop_before", "delay", "5xx_before", "429", "503", "closed"}
REPEATABLE_KINDS = DOOR_KINDS | {
    "drop_after",
    "5xx_after",
    "403_reset",
    "captcha",
    "truncated",
    "login_page",
    "session_expiry",
}
EXPOSED = {
    # A stale look-up goes with any other fault, so it is drawn apart from them.
    Exposure.DECISIVE: set(KINDS) - {"stale_lookup", "ok"},
    Exposure.REPEATABLE: REPEATABLE_KINDS,
    Exposure.DOOR: DOOR_KINDS,
}

# The ways in which a kind comes, equally likely; kinds not named here come in one way.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "429": [{}, {"absolute": True}],
    "503": [{}, {"absolute": True}],
    "403_reset": [{}, {"absolute": True}],
    "5xx_before": [{"status": 500}, {"status": 502}],
    "5xx_after": [{"status": 500}, {"status": 504}],
    "delay": [{"seconds": 0.25}, {"seconds": 0.25, "first": True}],
    "truncated": [{}, {"wire": True}],
}

PRESETS: dict[str, dict[str, float]] = {
    "calm": {},
    # January to March: slow, crowded, sessions thrown out; now and then an answer is lost.
    "season": {
        "delay": 0.05,
        "429": 0.02,
        "503": 0.01,
        "session_expiry": 0.01,
        "202_later": 0.02,
        "drop_before": 0.005,
        "drop_after": 0.005,
        "5xx_before": 0.005,
        "5xx_after": 0.005,
        "403_reset": 0.002,
        "stale_lookup": 0.1,
    },
    # Three of ten requests, of every kind; what stops a whole lane is rarer than the rest.
    "hostile": {
        "drop_before": 0.03,
        "drop_after": 0.03,
        "delay": 0.03,
        "5xx_before": 0.03,
        "5xx_after": 0.03,
        "truncated": 0.03,
        "login_page": 0.02,
        "session_expiry": 0.02,
        "202_later": 0.02,
        "429": 0.015,
        "503": 0.015,
        "duplicate": 0.01,
        "mangled": 0.005,
        "other_entity": 0.005,
        "closed": 0.005,
        "403_reset": 0.004,
        "captcha": 0.001,
        "stale_lookup": 0.3,
    },
}


def read_fault(item: object) -> Fault:
    """One item of a script: the name of a fault, or a table with a name and details."""
    try:
        return Fault.model_validate({"fault": item} if isinstance(item, str) else item)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "item"
        raise BadWeather(
            f"{item!r} is no fault: {where}: {first['msg']}. Known faults: {', '.join(KINDS)}."
        ) from None


class Weather:
    """The faults of one portal. The same seed and the same requests give the same faults."""

    def __init__(self, card: Card, *, preset: str = "calm", seed: int = 0) -> None:
        self.card = card
        self._seed = f"{seed}:{card.slug}"
        self._first_preset = preset
        self.start_again()

    def start_again(self) -> None:
        """Back to the seed and to the weather of the beginning."""
        self._random = random.Random(self._seed)  # noqa: S311 - repeatable, not secret
        self._scripts: dict[str, deque[Fault]] = {}
        self.use_preset(self._first_preset)

    def use_preset(self, name: str) -> None:
        """Take a named weather, without what this portal's card rules out."""
        if name not in PRESETS:
            raise BadWeather(f"There is no weather “{name}”. Known are: {', '.join(PRESETS)}.")
        ruled_out = set()
        if not self.card.session_idle_seconds:
            ruled_out.add("session_expiry")
        if not self.card.lookup_lag_seconds:
            ruled_out.add("stale_lookup")
        chances = {kind: p for kind, p in PRESETS[name].items() if kind not in ruled_out}
        self.use_probabilities(chances)
        self.preset = name

    def use_probabilities(self, chances: Mapping[str, float]) -> None:
        """Give each kind its chance; kinds not named have none. A script goes on before them."""
        unknown = set(chances) - set(KINDS)
        if unknown:
            raise BadWeather(
                f"{', '.join(sorted(unknown))}: no such fault. Known are: {', '.join(KINDS)}."
            )
        if not all(
            isinstance(chance, int | float) and 0 <= chance <= 1 for chance in chances.values()
        ):
            raise BadWeather("A chance is a number between 0 and 1.")
        total = sum(chances.values()) - chances.get("stale_lookup", 0)
        if total > 1 + 1e-9:
            raise BadWeather("The chances add up to more than 1. Lower some of them.")
        self.preset = "custom"
        self.chances = dict(chances)
        self._tables = {exposure: self._table(kinds) for exposure, kinds in EXPOSED.items()}

    def _table(self, kinds: set[str]) -> tuple[list[float], list[Fault]]:
        chances: list[float] = []
        faults: list[Fault] = []
        for kind, chance in self.chances.items():
            variants = VARIANTS.get(kind, [{}]) if kind in kinds else []
            for details in variants:
                chances.append(chance / len(variants))
                faults.append(read_fault({"fault": kind, **details}))
        return list(accumulate(chances)), faults

    def add_script(self, items: Iterable[object]) -> None:
        """Line faults up, one for each request to their route; they come before any chance."""
        for fault in [read_fault(item) for item in items]:
            self._scripts.setdefault(fault.route, deque()).append(fault)

    def next(self, route: str, exposure: Exposure) -> Fault:
        """What happens to this request."""
        if self._scripts:
            names = (route, "") if exposure is Exposure.DECISIVE else (route,)
            for name in names:
                if name in self._scripts:
                    return self._next_of_script(name)
        edges, faults = self._tables[exposure]
        if not edges:
            return FAIR
        place = bisect(edges, self._random.random())
        return faults[place] if place < len(faults) else FAIR

    def _next_of_script(self, name: str) -> Fault:
        script = self._scripts[name]
        fault = script.popleft()
        if not script:
            del self._scripts[name]
        return FAIR if fault.fault == "ok" else fault

    def staleness(self) -> float:
        """For how long look-ups will not see what is being accepted now."""
        chance = self.chances.get("stale_lookup", 0)
        if not chance or self._random.random() >= chance:
            return 0.0
        return self.card.lookup_lag_seconds or 1.0

    def describe(self) -> dict[str, Any]:
        """The weather as it could be set again."""
        return {
            "preset": self.preset,
            "probabilities": self.chances,
            "script": [
                fault.model_dump(exclude_defaults=True)
                for script in self._scripts.values()
                for fault in script
            ],
        }
