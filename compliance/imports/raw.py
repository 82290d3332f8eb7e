"""Rows as they stand in a file, whatever its format, and what holds for all of them."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from compliance.errors import Malformed
from compliance.imports.values import Cell

COLUMNS = (
    "external_id", "name", "type", "home_jurisdiction", "formed_on", "fiscal_year_end", "tax_id",
    "jurisdiction", "file_number", "registered_on", "registered_agent", "officer_name",
    "officer_title", "street", "city", "region", "postal_code", "traits", "events",
)  # fmt: skip
ERRORS_COLUMN = "errors"  # of a file that we gave back; it may come in again
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run

MEGABYTE = 1024 * 1024
LONGEST_CELL = 32_767  # Excel's own limit
MOST_UNKNOWN = 50  # names of unknown columns that we keep

Original: TypeAlias = tuple[str, ...] | dict[str, Any]


@dataclass(frozen=True)
class RawRow:
    """A row as it stands in the file, and what its reader had to object to."""

    line: int
    cells: dict[str, Cell]
    original: Original
    problems: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """The digest of the row as it came, by which anybody can prove what it said."""
        return hashlib.sha256(json.dumps(self.original, sort_keys=True).encode()).hexdigest()


class Source(Protocol):
    """An opened file of entities."""

    header: tuple[str, ...]  # as it came; empty where every row names its own columns
    unknown: list[str]
    total: int | None

    @property
    def done(self) -> int:
        """How far we are, in the unit of `total`: bytes or rows."""

    def rows(self) -> Iterator[RawRow]:
        """Every row that is not blank."""


def column_of(heading: str) -> str:
    """A heading as we know it: “External ID” is external_id."""
    return re.sub(r"[^a-z0-9]+", "_", heading.strip().lower()).strip("_")


def visible(text: str) -> str:
    """A text that a terminal shows and never obeys."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def unguarded(text: str) -> str:
    """What `guarded` made safe, as it was: a file given back and corrected comes in again."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA) else text


def columns_of(header: tuple[str, ...]) -> tuple[dict[str, int], list[str]]:
    """Where each known column is, and the names of those that we do not know."""
    places: dict[str, int] = {}
    unknown = []
    if any(_is_undecoded(heading) for heading in header):
        raise Malformed("Line 1: the header is not UTF-8. Save the file as UTF-8 and try again.")
    for index, heading in enumerate(header):
        column = column_of(heading)
        if column in places:
            raise Malformed(f"Line 1: the column “{column}” is there twice. Remove one.")
        if column in COLUMNS:
            places[column] = index
        elif column and column != ERRORS_COLUMN:
            unknown.append(heading.strip()[:60])
    if not places:
        raise Malformed(
            "Line 1: the header names no column that we know. Separate the columns by commas and "
            f"name them: {', '.join(COLUMNS)}."
        )
    return places, unknown[:MOST_UNKNOWN]


def known_cells(columns: dict[str, int], cells: tuple[Cell, ...]) -> dict[str, Cell]:
    """The cells of the columns that we know, by column."""
    return {column: cells[place] for column, place in columns.items() if place < len(cells)}


def text_problems(cells: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What no cell of any column may hold, each in a sentence."""
    for heading, text in cells:
        if _is_undecoded(text):
            yield f"{heading}: it is not UTF-8. Save the file as UTF-8 and try again."
        if "\0" in text:
            yield f"{heading}: it has a NUL byte. Remove it, or export the file again."
        if len(text) > LONGEST_CELL:
            yield (
                f"{heading}: it has {len(text):,} characters; the most is {LONGEST_CELL:,}. "
                "Shorten it, or look for a quotation mark that is not closed."
            )


def _is_undecoded(text: str) -> bool:
    """Whether bytes that are not UTF-8 came through as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
