"""A portal's card: what it is, what it offers and what it allows, checked as it is read."""

import re
import tomllib
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from portals.card_lines import line_of

LONG_SECONDS = 10.0  # longer windows are kept on record; shorter ones are waited out
ONE_DAY = r"(mon|tue|wed|thu|fri|sat|sun)"
CLOCK = r"^(([01]\d|2[0-3]):[0-5]\d|24:00)$"
MONTH_DAY = r"^(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"

HOST = re.compile(r"^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$")


class CardError(ValueError):
    """A card that cannot be used; the message names file, line, field and remedy."""


class Limit(BaseModel):
    """At most so many requests in any window of so many seconds, counted at the portal."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    requests: int = Field(ge=1)
    seconds: float = Field(gt=0)


class Weekly(BaseModel):
    """A part of each of some days of the week, by the portal's own clock."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    days: str = Field(pattern=rf"^{ONE_DAY}(-{ONE_DAY})?$")
    opens: str = Field(alias="from", pattern=CLOCK)
    closes: str = Field(alias="to", pattern=CLOCK)

    @model_validator(mode="after")
    def begins_before_it_ends(self) -> "Weekly":
        """One entry stays within one day."""
        if self.opens >= self.closes:
            raise ValueError(
                f"from {self.opens} is not before to {self.closes}; what goes past midnight is "
                "two entries, one to 24:00 and one from 00:00"
            )
        return self


class Hours(Weekly):
    """When the portal is open."""


class WeeklyClosure(Weekly):
    """Maintenance that comes each week."""

    reason: str = Field(min_length=1)


class Closure(BaseModel):
    """Maintenance that comes once; a time without an offset is on the portal's own clock."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    begins: datetime = Field(alias="from")
    ends: datetime = Field(alias="to")
    reason: str = Field(min_length=1)

    @field_validator("begins", "ends", mode="before")
    @classmethod
    def says_the_hour(cls, value: Any) -> Any:
        """A day alone leaves open whether it is the first or the last that counts."""
        if type(value) is date:
            raise ValueError(f"write the hour too: {value}T00:00:00")
        return value

    @model_validator(mode="after")
    def begins_before_it_ends(self) -> "Closure":
        """Compared as written, where both are written on the same clock."""
        if (self.begins.tzinfo is None) != (self.ends.tzinfo is None):
            raise ValueError("write from and to both with an offset, or both without")
        if self.begins >= self.ends:
            raise ValueError(f"from {self.begins} is not before to {self.ends}; swap them")
        return self


def _closure_kind(value: Any) -> str:
    weekly = "days" in value if isinstance(value, dict) else isinstance(value, WeeklyClosure)
    return "weekly" if weekly else "once"


AnyClosure = Annotated[
    Annotated[Closure, Tag("once")] | Annotated[WeeklyClosure, Tag("weekly")],
    Discriminator(_closure_kind),
]
MonthDay = Annotated[str, Field(pattern=MONTH_DAY)]


def _day_kind(value: Any) -> str:
    is_yearly = isinstance(value, str) and len(value) == len("01-31")
    return "month-day" if is_yearly else "date"


SeasonDay = Annotated[
    Annotated[date, Tag("date")] | Annotated[MonthDay, Tag("month-day")],
    Discriminator(_day_kind),
]


class Season(BaseModel):
    """Days, first and last included, on which other limits are declared; yearly as "01-15"."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    begins: SeasonDay = Field(alias="from")
    ends: SeasonDay = Field(alias="to")
    limits: Annotated[tuple[Limit, ...], Field(min_length=1)]
    max_concurrency: int | None = Field(default=None, ge=1, le=1000)

    @model_validator(mode="after")
    def begins_before_it_ends(self) -> "Season":
        """Dates in order; a yearly season may go round the end of the year."""
        if isinstance(self.begins, str) != isinstance(self.ends, str):
            raise ValueError('write from and to both as dates, or both yearly as "01-15"')
        if isinstance(self.begins, date) and isinstance(self.ends, date) and (
            self.begins > self.ends
        ):  # fmt: skip
            raise ValueError(f"from {self.begins} is after to {self.ends}; swap them")
        return self


class Card(BaseModel):
    """One portal, as declared in its `portal.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    slug: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    title: str = Field(min_length=1)
    jurisdiction: str
    adapter: str = Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$")
    base_url: str = Field(pattern=r"^https?://[^\s]+$")
    hosts: tuple[str, ...] = ()  # beside the one of base_url, reached by https alone
    timezone: str
    verified_on: date
    doubt_class: Literal["A", "B", "C", "D", "E"] = "E"
    max_concurrency: int = Field(default=1, ge=1, le=1000)
    limits: Annotated[tuple[Limit, ...], Field(min_length=1)]
    timeout_seconds: float = Field(default=20, gt=0, le=300)
    session_idle_seconds: int = Field(default=0, ge=0)
    duplicate_window_hours: float = Field(default=0, ge=0)
    lookup: bool = True
    lookup_lag_seconds: float = Field(default=0, ge=0)
    # The longest that the portal is known to work on a request that it has taken in.
    processing_seconds: float = Field(default=300, ge=0)
    key_retention_hours: float = Field(default=0, ge=0)
    status_freshness_hours: int = Field(default=72, ge=1)
    open_hours: tuple[Hours, ...] = ()
    closures: tuple[AnyClosure, ...] = ()
    seasons: tuple[Season, ...] = ()
    automation: Literal["allowed", "assisted", "browser"] = "allowed"
    simulated: bool = True  # until a person has proven it against the real portal
    egress_proxy: str = Field(default="", pattern=r"^(|(https?|socks5)://[^\s]+)$")
    forms: tuple[str, ...] = ()
    field_max_characters: int = Field(default=0, ge=0)

    @field_validator("timezone")
    @classmethod
    def zone_exists(cls, value: str) -> str:
        """A clock that does not exist cannot tell opening hours."""
        if value not in available_timezones():
            raise ValueError(f"“{value}” is not a time zone; write one like America/New_York")
        return value

    @field_validator("limits")
    @classmethod
    def each_window_once(cls, limits: tuple[Limit, ...]) -> tuple[Limit, ...]:
        """Two limits of one window leave open which holds."""
        for one, other in pairwise(sorted(limits, key=lambda limit: limit.seconds)):
            if one.seconds == other.seconds:
                raise ValueError(f"two limits for {one.seconds:g} s; keep the lower one")
        return limits

    @field_validator("seasons")
    @classmethod
    def counted_before_it_begins(cls, seasons: tuple[Season, ...], info: Any) -> Any:
        """A long window can only be kept if it was counted before the season began."""
        counted = {limit.seconds for limit in info.data.get("limits", ())}
        for season in seasons:
            refuse_uncounted(season.limits, counted)
        return seasons

    @field_validator("base_url")
    @classmethod
    def address_is_plain(cls, value: str) -> str:
        """Whoever reads an address must see at once where it leads."""
        parts = urlsplit(value)
        if not parts.hostname or "@" in parts.netloc or "\\" in value or parts.query:
            raise ValueError(
                "write only the scheme, the host and the path; credentials are entered in the "
                "admin, never here"
            )
        return value

    @field_validator("hosts")
    @classmethod
    def hosts_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """A list of hosts that could be read in two ways would be no list."""
        for host in value:
            if not HOST.match(host):
                raise ValueError(f"“{host}” is not a host; write a name like files.example.gov")
        return value

    @property
    def is_rehearsed(self) -> bool:
        """Whether it stands for the portal on an address of our own."""
        return False

    @property
    def zone(self) -> ZoneInfo:
        """The portal's own clock."""
        return ZoneInfo(self.timezone)


class RehearsedCard(Card):
    """A card whose portal is rehearsed under PORTALS_BASE_URL; no file can make one."""

    @property
    def is_rehearsed(self) -> bool:
        """Always."""
        return True


def refuse_uncounted(limits: tuple[Limit, ...], counted: set[float]) -> None:
    """A window that outlives a process must be one that the card's limits count all year."""
    for limit in limits:
        if limit.seconds > LONG_SECONDS and limit.seconds not in counted:
            raise ValueError(
                f"a window of {limit.seconds:g} s is not among the card's limits, so requests "
                "before the change were not counted in it; declare one for it there too"
            )


def read_card(path: Path) -> Card:
    """Read a card, or say in one sentence which file, line and field is wrong, and the remedy."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        return Card.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CardError(f"{path}: not a TOML file: {error}. Correct the line it names.") from error
    except ValidationError as error:
        raise CardError(f"{path}:{_told(error, text)}") from error


def _told(error: ValidationError, text: str) -> str:
    first = error.errors()[0]
    where = [part for part in first["loc"] if part not in ("once", "weekly", "date", "month-day")]
    message = first["msg"].removeprefix("Value error, ")
    return (
        f"{line_of(text, where)}: {'.'.join(str(part) for part in where) or 'card'}: {message}. "
        f"{_remedy(first['type'], where)} portals/adapters/README.md explains each field."
    )


def _remedy(kind: str, where: list[Any]) -> str:
    name = where[-1] if where else "card"
    if kind == "missing":
        return f"Add a line for {name}."
    if kind == "extra_forbidden":
        return f"Remove {name}, or correct its spelling."
    return f"Correct {name}."
