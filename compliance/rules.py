"""The schema of a pack, one jurisdiction's law as data, and the loader that finds packs."""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from django.conf import settings
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    field_validator,
    model_validator,
)

from compliance.calendars import is_calendar
from compliance.due import (
    PARITIES,
    Due,
    First,
    Opens,
    RuleError,
    Schedule,
    parse_due,
    parse_first,
    parse_month_day,
    parse_opens,
)
from compliance.errors import Malformed, NotFound

OWN_PACKS = Path(__file__).parent / "packs"
KINDS = ("corporation", "llc", "nonprofit", "lp")
# “llc” means both; a law that tells them apart writes “domestic-llc” or “foreign-llc”.
TARGETS = {
    **{kind: (f"domestic-{kind}", f"foreign-{kind}") for kind in KINDS},
    **{
        f"{home}-{kind}": (f"{home}-{kind}",) for kind in KINDS for home in ("domestic", "foreign")
    },
}
YEARS = {"annual": 1, "biennial": 2, "quadrennial": 4, "quinquennial": 5}
SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"

Model = TypeVar("Model", bound=BaseModel)
Money = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=2)]
Slug = Annotated[str, Field(pattern=SLUG, max_length=60)]


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        raise RuleError(f"{value!r} is not a rule; write it as text in quotation marks")
    return value


DueRule = Annotated[Due | None, PlainValidator(lambda value: parse_due(_text_of(value)))]
FirstRule = Annotated[First, PlainValidator(lambda value: parse_first(_text_of(value)))]
OpensRule = Annotated[Opens, PlainValidator(lambda value: parse_opens(_text_of(value)))]
MonthDay = Annotated[
    tuple[int, int], PlainValidator(lambda value: parse_month_day(_text_of(value)))
]


class Part(BaseModel):
    """A table of a pack. A key that we do not know is a mistake, not an extension."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, which keeps nothing that followed from the old ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class Fee(Part):
    """An amount, for due dates from a day on; without one, as far back as our sources go."""

    since: date | None = Field(default=None, alias="from")
    amount: Money
    cite: str = Field(min_length=1)


class Step(Part):
    """A penalty that is added once the delay is longer than so many days."""

    after_days: int = Field(ge=1)
    amount: Money


class Late(Part):
    """What lateness costs and leads to. Months are counted as begun: a part is a whole one."""

    penalty: str = Field(default="", max_length=300)  # in words, with its citation
    flat: Money | None = None  # once, on the first day after the grace
    percent: Decimal | None = Field(default=None, ge=0, le=1000)  # of the fee, once
    per_day: Money | None = None
    per_month: Money | None = None
    percent_per_month: Decimal | None = Field(default=None, ge=0, le=100)  # of the fee
    interest_on_penalty: bool = False  # the monthly percentage also runs on `flat`
    steps: tuple[Step, ...] = ()
    cap: Money | None = None  # the most that all of it comes to
    on_notice: bool = False  # only after the agency's notice, whose date the law does not fix
    grace_days: int = Field(default=0, ge=0)
    consequence: str = ""
    after: str = ""


class Duty(Part):
    """One demand of the law on some kinds of entities."""

    id: str = Field(pattern=SLUG, max_length=80)
    title: str = Field(min_length=1, max_length=200)
    applies_to: tuple[str, ...] = Field(min_length=1)
    only_if: Slug | None = None
    since: date | None = Field(default=None, alias="from")
    until: date | None = None
    frequency: Literal[
        "annual", "biennial", "quadrennial", "quinquennial", "once", "per_award", "none"
    ]
    due: DueRule = None
    first: FirstRule = First()
    parity: str = "n/a"
    opens: OpensRule | None = None
    weekend: Literal["none", "next_business_day", "unknown"] = "unknown"
    calendar: str | None = None
    fee: tuple[Fee, ...] = ()
    formula: str = Field(default="", pattern=r"^([a-z][a-z0-9_]*)?$")
    fee_note: str = ""
    late: Late = Late()
    portal: str = Field(default="", max_length=60)
    form: str = Field(default="", max_length=60)
    agency: str = ""
    cite: str = Field(min_length=1, max_length=300)
    url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    source: str = Field(min_length=1)
    confidence: Literal["high", "medium", "low"]
    note: str = ""

    @field_validator("applies_to")
    @classmethod
    def targets_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Only kinds of entities that exist."""
        for target in value:
            if target not in TARGETS:
                raise ValueError(f"“{target}” is no kind; write one of {', '.join(TARGETS)}")
        return value

    @field_validator("parity")
    @classmethod
    def parity_is_known(cls, value: str) -> str:
        """Only parities of the grammar."""
        if value not in PARITIES:
            raise ValueError(f"“{value}” is no parity; write one of {', '.join(PARITIES)}")
        return value

    @field_validator("calendar")
    @classmethod
    def calendar_is_known(cls, value: str | None) -> str | None:
        """Only calendars whose holidays we know."""
        if value is not None and not is_calendar(value):
            raise ValueError(f"we know no holidays of “{value}”; write one like US or US-DC")
        return value

    @field_validator("fee")
    @classmethod
    def fees_are_dated(cls, value: tuple[Fee, ...]) -> tuple[Fee, ...]:
        """Newest first, each from a day of its own."""
        days = [fee.since or date.min for fee in value]
        if days != sorted(set(days), reverse=True):
            raise ValueError("put the newest fee first, and give each a “from” of its own")
        return value

    @model_validator(mode="after")
    def agrees_with_itself(self) -> "Duty":
        """A rhythm that can be computed, and no more certainty than its source gives."""
        if (self.frequency == "none") != (self.due is None):
            raise ValueError("a duty with frequency “none” has no due rule, and only that one")
        if self.frequency in ("once", "per_award") and self.due and not self.due.is_event:
            raise ValueError(f"frequency “{self.frequency}” needs a due rule of event:…")
        if self.parity != "n/a" and YEARS.get(self.frequency, 1) == 1:
            raise ValueError("parity is for a duty that does not come every year; leave it out")
        if self.since and self.until and self.until < self.since:
            raise ValueError("“until” is before “from”; correct one of them")
        if self.confidence == "high" and (not self.url or self._is_from_memory):
            raise ValueError(
                "high confidence needs a url and a source other than general knowledge; "
                "add them or write medium"
            )
        return self

    @property
    def _is_from_memory(self) -> bool:
        return self.source.lower().startswith("general knowledge")

    @cached_property
    def targets(self) -> frozenset[str]:
        """Whom it binds, each written in full."""
        return frozenset(full for target in self.applies_to for full in TARGETS[target])

    @cached_property
    def schedule(self) -> Schedule | None:
        """Its rhythm; None where the law asks nothing."""
        if self.due is None:
            return None
        return Schedule(self.due, self.first, YEARS.get(self.frequency, 1), self.parity)

    def governs(self, due: date) -> bool:
        """Whether this text was in force for that due date."""
        return (self.since or date.min) <= due <= (self.until or date.max)

    def fee_on(self, due: date) -> Decimal | None:
        """The amount for that due date, without what a formula adds; None where unknown."""
        return next((fee.amount for fee in self.fee if (fee.since or date.min) <= due), None)

    def overlaps(self, other: "Duty") -> bool:
        """Whether both would speak of the same entity on the same day under the same id."""
        return (
            self.id == other.id
            and bool(self.targets & other.targets)
            and max(self.since or date.min, other.since or date.min)
            <= min(self.until or date.max, other.until or date.max)
        )


class Pack(Part):
    """One jurisdiction's law."""

    jurisdiction: str = Field(pattern=r"^[A-Z]{2}(-[A-Z0-9]{1,3})?$")
    title: str = Field(min_length=1)
    agency: str = Field(min_length=1)
    verified_on: date
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    # What each `only_if` says of an entity, in words that a person can affirm.
    traits: dict[Slug, Annotated[str, Field(min_length=1, max_length=300)]] = {}
    duty: tuple[Duty, ...] = Field(min_length=1)
    sha256: str = ""  # of the file's bytes; the loader's word, never the file's

    @model_validator(mode="after")
    def duties_do_not_overlap(self) -> "Pack":
        """One id speaks once to one kind of entity on one day."""
        for one, other in combinations(self.duty, 2):
            if one.overlaps(other):
                raise ValueError(
                    f"two duties “{one.id}” bind the same kind of entity at the same time; "
                    "give one another id, kind, “from” or “until”"
                )
        return self

    @model_validator(mode="after")
    def traits_are_in_words(self) -> "Pack":
        """A person is asked nothing that is not told, and nothing that decides no duty."""
        asked = {duty.only_if for duty in self.duty if duty.only_if}
        if asked != set(self.traits):
            trait = min(asked ^ set(self.traits))
            raise ValueError(
                f"[traits] and the only_if of the duties must name the same: look at “{trait}”"
            )
        return self

    @cached_property
    def duties_of(self) -> dict[str, tuple[Duty, ...]]:
        """The duties of each kind of entity, written in full, in the pack's order."""
        return {
            target: tuple(duty for duty in self.duty if target in duty.targets)
            for full in TARGETS.values()
            for target in full
        }


class Expected(Part):
    """A deadline that a case foretells; what it leaves out is not compared."""

    due: date
    opens: date | None = None
    fee: Decimal | None = None
    period: str | None = None


class Case(Part):
    """A worked example: these facts, this stretch of time, exactly these deadlines of a duty."""

    name: str = Field(min_length=1)
    duty: str
    kind: Literal["corporation", "llc", "nonprofit", "lp"]
    foreign: bool = False
    formed: date
    registered: date | None = None
    fiscal_year_end: MonthDay = (12, 31)
    traits: tuple[Slug, ...] = ()
    events: dict[str, tuple[date, ...]] = {}
    since: date = Field(alias="from")
    through: date
    expect: tuple[Expected, ...]

    @model_validator(mode="after")
    def says_when_it_came(self) -> "Case":
        """A foreign entity's dates count from its registration."""
        if self.foreign and self.registered is None:
            raise ValueError("a foreign entity needs “registered”, its date in this jurisdiction")
        return self


class Cases(Part):
    """All worked examples of a pack."""

    case: tuple[Case, ...] = Field(min_length=1)


# --- Loading ----------------------------------------------------------------------------------


def pack_folders() -> dict[str, Path]:
    """Where the pack of each jurisdiction is, ours and the operator's; nothing is read yet."""
    found: dict[str, Path] = {}
    for root in _roots():
        for folder in sorted(_folders_in(root)):
            code = folder.name.upper()
            if code in found:
                raise Malformed(
                    f"{folder}: {code} already has the pack {found[code]}. Remove one of them."
                )
            found[code] = folder
    return found


def packs() -> dict[str, Pack]:
    """Every pack we know, by jurisdiction."""
    return {code: read_pack(folder) for code, folder in pack_folders().items()}


def pack_of(jurisdiction: str) -> Pack:
    """The law of one jurisdiction."""
    folders = pack_folders()
    if jurisdiction not in folders:
        raise NotFound(
            f"There is no pack for “{jurisdiction}”. Known are: {', '.join(sorted(folders))}. "
            "Add a folder as compliance/packs/README.md shows, here or in PACKS_DIR."
        )
    return read_pack(folders[jurisdiction])


def read_pack(folder: Path) -> Pack:
    """The pack of a folder, or one sentence that names the file, the field and what to do."""
    path = folder / "pack.toml"
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return _read_pack(path, stamp)


@lru_cache(maxsize=256)
def _read_pack(path: Path, _stamp: int) -> Pack:
    raw, document = _document(path)
    pack = _validated(Pack, path, {**document, "sha256": hashlib.sha256(raw).hexdigest()})
    if pack.jurisdiction.lower() != path.parent.name:
        raise Malformed(
            f"{path}: jurisdiction: “{pack.jurisdiction}” is in the folder “{path.parent.name}”. "
            f"Name the folder “{pack.jurisdiction.lower()}”."
        )
    return pack


def read_cases(folder: Path) -> tuple[Case, ...]:
    """The worked examples of a pack."""
    path = folder / "cases.toml"
    return _validated(Cases, path, _document(path)[1]).case


def _roots() -> list[Path]:
    if not settings.PACKS_DIR:
        return [OWN_PACKS]
    extra = Path(settings.PACKS_DIR)
    if not extra.is_dir():
        raise Malformed(f"PACKS_DIR: “{extra}” is not a folder. Correct the setting or empty it.")
    return [OWN_PACKS, extra]


def _folders_in(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.is_dir() and not path.name.startswith((".", "_")):
            yield path


def _document(path: Path) -> tuple[bytes, dict[str, Any]]:
    try:
        raw = path.read_bytes()
        return raw, tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise Malformed(
            f"{path}: cannot be read: {error.strerror}. Every pack folder needs this file."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: not a TOML file: {error}. Correct the line it names.") from error


def _validated(model: type[Model], path: Path, document: dict[str, Any]) -> Model:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        what = first["msg"].removeprefix("Value error, ")
        raise Malformed(
            f"{path}: {_place(first['loc'], document)}: {what}. Correct it; "
            "compliance/packs/README.md explains each field."
        ) from error


def _place(loc: tuple[int | str, ...], document: dict[str, Any]) -> str:
    """The field as a person finds it: “duty 3 (annual-report), fee.0.amount”."""
    if len(loc) >= 2 and isinstance(loc[1], int):
        table = document[str(loc[0])][loc[1]]
        name = table.get("id") or table.get("name") if isinstance(table, dict) else ""
        where = f"{loc[0]} {loc[1] + 1}" + (f" ({name})" if name else "")
        return ", ".join(filter(None, [where, ".".join(str(part) for part in loc[2:])]))
    return ".".join(str(part) for part in loc) or "the file"
