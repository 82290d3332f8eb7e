"""Readers of files of entities: one row at a time, in memory that does not grow."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from compliance.errors import Malformed, NotFound
from compliance.imports.raw import (
    COLUMNS,
    ERRORS_COLUMN,
    MEGABYTE,
    MOST_UNKNOWN,
    RawRow,
    Source,
    column_of,
    columns_of,
    known_cells,
    text_problems,
    unguarded,
)
from compliance.imports.values import Cell
from compliance.imports.workbooks import open_workbook

LONGEST_LINE = 32 * MEGABYTE


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """A file by its ending, or one sentence that says why it cannot be read."""
    if not path.is_file():
        raise NotFound(f"There is no file “{path}”. Check the name.")
    match path.suffix.lower():
        case ".csv":
            with path.open("rb") as file:
                yield CsvSource(file)
        case ".ndjson" | ".jsonl":
            with path.open("rb") as file:
                yield JsonSource(file)
        case ".xlsx":
            with open_workbook(path) as source:
                yield source
        case ".xlsm":
            raise Malformed(f"“{path.name}” may hold macros. Save it as .xlsx or CSV.")
        case suffix:
            raise Malformed(
                f"“{path.name}”: we do not read “{suffix}”. Save it as .csv, .xlsx or .ndjson."
            )


class Lines:
    """The lines of a text file; what is not UTF-8 in them stays visible as lone surrogates."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.number = 0
        self.read = 0
        self.taken: list[str] = []  # since somebody last emptied it

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.read += len(line)
        if len(line) > LONGEST_LINE:
            raise Malformed(
                f"The line is longer than {LONGEST_LINE // MEGABYTE} MB, and reading ends here. "
                "Shorten it."
            )
        if self.number == 1:
            line = _without_mark(line)
        text = line.decode("utf-8", "surrogateescape")
        self.taken.append(text)
        return text


class CsvSource:
    """Comma-separated rows under one header."""

    def __init__(self, file: BinaryIO) -> None:
        self.total: int | None = Path(file.name).stat().st_size
        self._lines = Lines(file)
        csv.field_size_limit(LONGEST_LINE)  # the default would lose our place in the file
        self._reader = csv.reader(self._lines, strict=True)
        try:
            self.header = tuple(next(self._reader, ()))
        except csv.Error as error:
            raise Malformed(f"Line 1: the header cannot be read: {error}. Correct it.") from error
        self._columns, self.unknown = columns_of(self.header)

    @property
    def done(self) -> int:
        """The bytes read so far."""
        return self._lines.read

    def rows(self) -> Iterator[RawRow]:
        """Every row; one that is not CSV is given as it stands, with the reason."""
        while True:
            self._lines.taken.clear()
            line = self._lines.number + 1
            try:
                cells = next(self._reader, None)
            except csv.Error as error:
                yield _unreadable(line, self._lines.taken, _csv_problem(error))
                continue
            except Malformed as error:
                yield _unreadable(line, [], str(error))
                return
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield self._row(line, tuple(unguarded(cell) for cell in cells))

    def _row(self, line: int, cells: tuple[str, ...]) -> RawRow:
        problems = list(text_problems(zip(self.header, cells, strict=False)))
        if len(cells) != len(self.header):
            problems.append(
                f"It has {len(cells)} cells, and the header has {len(self.header)}. Look for a "
                "comma too many or too few, or a line break inside a cell without quotation marks."
            )
        return RawRow(line, known_cells(self._columns, cells), cells, tuple(problems))


class JsonSource:
    """One JSON object on each line."""

    def __init__(self, file: BinaryIO) -> None:
        self.total: int | None = Path(file.name).stat().st_size
        self.header: tuple[str, ...] = ()
        self.unknown: list[str] = []
        self._lines = Lines(file)

    @property
    def done(self) -> int:
        """The bytes read so far."""
        return self._lines.read

    def rows(self) -> Iterator[RawRow]:
        """Every row; a line that is no object is given as it stands, with the reason."""
        while True:
            self._lines.taken.clear()
            try:
                text = next(self._lines, None)
            except Malformed as error:
                yield RawRow(self._lines.number, {}, {}, (str(error),))
                return
            if text is None:
                return
            if text.strip():
                yield self._row(self._lines.number, text)

    def _row(self, line: int, text: str) -> RawRow:
        original: dict[str, Any] = {"raw": text.rstrip("\r\n")}
        try:
            # Numbers stay as they are written: 007 is no number, and 1.10 is not 1.1.
            document = json.loads(
                text, parse_int=str, parse_float=str, object_pairs_hook=_object_of
            )
        except Malformed as error:
            return RawRow(line, {}, original, (str(error),))
        except (ValueError, RecursionError) as error:
            why = str(error).split(":")[0]
            return RawRow(line, {}, original, (f"It is not JSON: {why}. Correct it.",))
        if not isinstance(document, dict):
            return RawRow(line, {}, original, ("It is no JSON object. Write {…} on the line.",))
        return self._object(line, document)

    def _object(self, line: int, document: dict[str, Any]) -> RawRow:
        cells: dict[str, Cell] = {}
        problems = []
        for key, value in document.items():
            column = column_of(key)
            if column not in COLUMNS:
                self._note(key)
            elif column in cells:
                problems.append(f"{column}: it is there twice, as “{key}” too. Remove one.")
            elif isinstance(value, str):
                cells[column] = value
            elif value is not None:
                problems.append(f"{column}: it is neither text nor a number. Write it as text.")
        problems += text_problems(
            (key, value) for key, value in document.items() if isinstance(value, str)
        )
        return RawRow(line, cells, document, tuple(problems))

    def _note(self, key: str) -> None:
        if key not in self.unknown and key != ERRORS_COLUMN and len(self.unknown) < MOST_UNKNOWN:
            self.unknown.append(key)


def _without_mark(line: bytes) -> bytes:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Malformed("Line 1: the file is UTF-16. Save it as UTF-8 and try again.")
    return line.removeprefix(b"\xef\xbb\xbf")


def _csv_problem(error: csv.Error) -> str:
    if "unexpected end of data" in str(error) or "field limit" in str(error):
        return "A quotation mark opens a cell here that never closes. Close or remove it."
    return (
        f"It is not CSV: {error}. Put the cell in quotation marks, and double those inside of it."
    )


def _unreadable(line: int, taken: list[str], why: str) -> RawRow:
    return RawRow(line, {}, ("".join(taken).rstrip("\r\n"),), (why,))


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("It names a key twice. Remove one.")
    return found
