"""A portal's card: what it is, what it offers and what it allows, checked as it is read."""

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

HOST = re.compile(r"^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$")


class CardError(ValueError):
    """A card that cannot be used; the message names the file, the field and the remedy."""


class Limit(BaseModel):
    """At most so many requests in any window of so many seconds, counted at the portal."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    requests: int = Field(ge=1)
    seconds: float = Field(gt=0)


class Hours(BaseModel):
    """When the portal is open, in its own time zone."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    days: str = Field(pattern=r"^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?$")
    opens: str = Field(alias="from", pattern=r"^([01]\d|2[0-3]):[0-5]\d$")
    closes: str = Field(alias="to", pattern=r"^([01]\d|2[0-3]):[0-5]\d$")


class Card(BaseModel):
    """One portal, as declared in its `portal.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    slug: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    title: str
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
    closures: tuple[dict[str, date | str], ...] = ()
    seasons: tuple[dict[str, date | str | int], ...] = ()
    automation: Literal["allowed", "assisted", "browser"] = "allowed"
    simulated: bool = True  # until a person has proven it against the real portal
    egress_proxy: str = ""
    forms: tuple[str, ...] = ()
    field_max_characters: int = Field(default=0, ge=0)

    @field_validator("timezone")
    @classmethod
    def zone_exists(cls, value: str) -> str:
        """A clock that does not exist cannot tell opening hours."""
        if value not in available_timezones():
            raise ValueError(f"“{value}” is not a time zone; write one like America/New_York")
        return value

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


def read_card(path: Path) -> Card:
    """Read a card, or say in one sentence which file and field is wrong and what to write."""
    try:
        return Card.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CardError(f"{path}: not a TOML file: {error}. Correct the line it names.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "card"
        raise CardError(
            f"{path}: {where}: {first['msg']}. Correct the field; portals/adapters/README.md "
            "explains each."
        ) from error
