"""What a funder asks for, as data: fields, lengths in the funder's own counting, attachments."""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from compliance.errors import Malformed, NotFound

OWN_FUNDERS = Path(__file__).parent / "funders"
LARGEST = 2**53 - 1  # beyond it, other languages read another number

Unit: TypeAlias = Literal["characters", "characters_without_spaces", "words", "bytes"]
Kind: TypeAlias = Literal["text", "lines", "email", "date", "whole_number", "choice", "yes_no"]
Prefill: TypeAlias = Literal["", "entity_name", "home_jurisdiction", "principal_address"]
Model = TypeVar("Model", bound=BaseModel)

UNITS: dict[str, str] = {
    "characters": "characters",
    "characters_without_spaces": "characters without spaces",
    "words": "words",
    "bytes": "bytes",
}


class Table(BaseModel):
    """A part of a funder's files. A key that we do not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldRule(Table):
    """One field of an application."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    label: str = Field(min_length=1)
    kind: Kind = "text"
    required: bool = False
    max_length: int = Field(default=0, ge=0)  # 0: the funder names none
    counted_in: Unit = "characters"
    minimum: int = Field(default=0, ge=-LARGEST)
    maximum: int = Field(default=LARGEST, le=LARGEST)
    choices: tuple[str, ...] = ()
    prefill: Prefill = ""

    @model_validator(mode="after")
    def details_fit_the_kind(self) -> "FieldRule":
        """A rule that can never be used was meant for another kind of field."""
        if (self.kind == "choice") != bool(self.choices):
            raise ValueError("a choice names its choices, and nothing else does")
        if self.max_length and self.kind not in ("text", "lines", "email"):
            raise ValueError(f"max_length means nothing for kind {self.kind}")
        bounds = {"minimum", "maximum"} & self.model_fields_set
        if bounds and self.kind != "whole_number":
            raise ValueError(f"{bounds.pop()} means nothing for kind {self.kind}")
        if self.minimum > self.maximum:
            raise ValueError("minimum is above maximum")
        if self.prefill and self.kind not in ("text", "lines"):
            raise ValueError(f"prefill gives text, which kind {self.kind} does not take")
        return self


class AttachmentRules(Table):
    """The files that may and must go with an application."""

    types: tuple[str, ...] = ()
    max_bytes: int = Field(default=25_000_000, ge=1)
    max_count: int = Field(default=0, ge=0)
    required: tuple[str, ...] = ()

    @model_validator(mode="after")
    def what_is_required_is_allowed(self) -> "AttachmentRules":
        """An application that no one could complete is a mistake in the schema."""
        if len(self.required) > self.max_count:
            raise ValueError("more files are required than max_count allows")
        if self.max_count and not self.types:
            raise ValueError("types names no type that the funder takes")
        return self


class Schema(Table):
    """One version of what a funder asks for."""

    funder: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    title: str = Field(min_length=1)
    version: int = Field(ge=1)
    verified_on: date
    source: str = Field(min_length=1)
    field: Annotated[tuple[FieldRule, ...], Field(min_length=1)]
    attachments: AttachmentRules = AttachmentRules()

    @model_validator(mode="after")
    def fields_are_told_apart(self) -> "Schema":
        """Two fields of one name would overwrite each other on the wire."""
        names = [rule.name for rule in self.field]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the field {twice[0]} is there twice")
        return self

    @property
    def fields(self) -> Mapping[str, FieldRule]:
        """The fields by name."""
        return {rule.name: rule for rule in self.field}


class CaseFile(Table):
    """A file of a worked example: what is known of it without its content."""

    name: str
    content_type: str
    size: int = Field(ge=0)


class Expected(Table):
    """A problem that must be found, and where."""

    flag: str
    at: str


class Case(Table):
    """A worked example that must come out as written."""

    name: str = Field(min_length=1)
    version: int = Field(ge=1)
    answers: dict[str, Any]
    attachments: tuple[CaseFile, ...] = ()
    expect: tuple[Expected, ...] = ()


class Cases(Table):
    """The worked examples beside a funder's schemas."""

    case: Annotated[tuple[Case, ...], Field(min_length=1)]


def schema_of(slug: str, version: int, *, root: Path = OWN_FUNDERS) -> Schema:
    """One version of a funder's schema."""
    found = schemas_of(slug, root=root)
    if version not in found:
        known = ", ".join(str(number) for number in found)
        raise NotFound(
            f"The funder “{slug}” has no schema version {version}. Known are: {known}. "
            f"Correct the opportunity, or add grants/funders/{slug}/schema_v{version}.toml."
        )
    return found[version]


def schemas_of(slug: str, *, root: Path = OWN_FUNDERS) -> dict[int, Schema]:
    """Every version of a funder's schema, oldest first."""
    paths = sorted((root / slug).glob("schema_v*.toml")) if _is_slug(slug) else []
    if not paths:
        raise NotFound(
            f"There is no schema for the funder “{slug}”. Known are: "
            f"{', '.join(funders(root=root)) or 'none'}. Add grants/funders/{slug}/schema_v1.toml."
        )
    schemas = [_read_schema(path, path.stat().st_mtime_ns) for path in paths]
    return {schema.version: schema for schema in sorted(schemas, key=lambda one: one.version)}


def funders(*, root: Path = OWN_FUNDERS) -> list[str]:
    """The slugs of the funders whose schema we have."""
    return sorted({path.parent.name for path in root.glob("*/schema_v*.toml")})


def read_cases(slug: str, *, root: Path = OWN_FUNDERS) -> tuple[Case, ...]:
    """The worked examples of a funder."""
    path = root / slug / "cases.toml"
    return _validated(Cases, path, _document(path)).case


def length_of(text: str, unit: Unit) -> int:
    """The length of a text as the funder counts it."""
    match unit:
        case "characters":
            return len(text)
        case "characters_without_spaces":
            return sum(not character.isspace() for character in text)
        case "words":
            return len(text.split())
        case "bytes":
            return len(text.encode(errors="surrogatepass"))


@lru_cache(maxsize=256)
def _read_schema(path: Path, _stamp: int) -> Schema:
    schema = _validated(Schema, path, _document(path))
    if schema.funder != path.parent.name:
        raise Malformed(
            f"{path}: funder: “{schema.funder}” is in the folder “{path.parent.name}”. "
            f"Name the folder “{schema.funder}”."
        )
    if path.name != f"schema_v{schema.version}.toml":
        raise Malformed(
            f"{path}: version: the file says {schema.version}. "
            f"Name it schema_v{schema.version}.toml, or correct the version."
        )
    return schema


def _is_slug(slug: str) -> bool:
    return re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) is not None


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Malformed(
            f"{path}: cannot be read: {error.strerror}. Every funder's folder needs this file."
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
            "grants/funders/README.md explains each field."
        ) from error


def _place(loc: tuple[int | str, ...], document: dict[str, Any]) -> str:
    """The field as a person finds it: “field 3 (summary), max_length”."""
    if len(loc) >= 2 and isinstance(loc[1], int):
        table = document[str(loc[0])][loc[1]]
        name = table.get("name", "") if isinstance(table, dict) else ""
        where = f"{loc[0]} {loc[1] + 1}" + (f" ({name})" if name else "")
        return ", ".join(filter(None, [where, ".".join(str(part) for part in loc[2:])]))
    return ".".join(str(part) for part in loc) or "the file"
