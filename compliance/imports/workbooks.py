"""Excel workbooks, looked at from outside before anything in them is unpacked."""

import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from compliance.errors import Malformed
from compliance.imports.raw import (
    MEGABYTE,
    MOST_UNKNOWN,
    RawRow,
    Source,
    columns_of,
    known_cells,
    text_problems,
)
from compliance.imports.values import Cell

LARGEST_WORKBOOK = 500 * MEGABYTE
LARGEST_RATIO = 200
LARGEST_NUMBER = 10**15  # Excel keeps 15 digits and makes zeros of the rest
EXCEL_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!")
OLE = bytes.fromhex("d0cf11e0a1b11ae1")
BROKEN_WORKBOOK = (
    zipfile.BadZipFile, zipfile.LargeZipFile, InvalidFileException, ParseError, KeyError,
    ValueError, TypeError, AttributeError, IndexError, EOFError, OSError, NotImplementedError,
)  # fmt: skip


@dataclass
class WorkbookSource:
    """The rows of a workbook's first sheet, under one header."""

    header: tuple[str, ...]
    total: int | None
    sheet_rows: Iterator[tuple[Any, ...]]
    done: int = 1
    unknown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._columns, self.unknown = columns_of(self.header)

    def rows(self) -> Iterator[RawRow]:
        """Every row; where the sheet itself is broken, that is said and reading ends."""
        while True:
            self.done += 1
            try:
                values = _next_quietly(self.sheet_rows)
            except BROKEN_WORKBOOK:
                why = "The sheet is broken here, and reading ends. Open it in Excel and save it."
                yield RawRow(self.done, {}, (), (why,))
                return
            if values is None:
                return
            if any(value is not None for value in values):
                yield self._row(values)

    def _row(self, values: tuple[Any, ...]) -> RawRow:
        width = len(self.header)
        cells = tuple(_cell_of(value) for value in values)
        shown = tuple(str(cell) for cell in cells)
        problems = list(text_problems(zip(self.header, shown, strict=False)))
        problems += _excel_problems(zip(self.header, values, strict=False))
        if any(shown[width:]):
            problems.append("It has cells outside of the header's columns. Move or clear them.")
        padded = cells + ("",) * (width - len(cells))
        return RawRow(self.done, known_cells(self._columns, padded), shown, tuple(problems))


@contextmanager
def open_workbook(path: Path) -> Iterator[Source]:
    """The first sheet of a workbook, or one sentence that says why it is refused."""
    _refuse_unsafe(path)
    book = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which we do not read
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
            sheet = book.worksheets[0]
            total = sheet.max_row
            sheet.reset_dimensions()  # what a file says of its own size is often wrong
        rows = sheet.iter_rows(values_only=True)
        header = _next_quietly(rows) or ()
    except BROKEN_WORKBOOK as error:
        if book is not None:
            book.close()
        raise _broken(path) from error
    try:
        names = tuple(str(_cell_of(value)) for value in header)
        source = WorkbookSource(names, total, rows)
        source.unknown += [f"sheet “{other.title}”" for other in book.worksheets[1:MOST_UNKNOWN]]
        yield source
    finally:
        book.close()


def _refuse_unsafe(path: Path) -> None:
    """Look at a workbook from outside, before anything in it is unpacked."""
    with path.open("rb") as file:
        if file.read(len(OLE)) == OLE:
            raise Malformed(
                f"“{path.name}” is encrypted, or of the older format .xls. Remove its password "
                "and save it as .xlsx."
            )
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except BROKEN_WORKBOOK as error:
        raise _broken(path) from error
    if any(member.filename.lower().endswith("vbaproject.bin") for member in members):
        raise Malformed(f"“{path.name}” holds macros. Save it as .xlsx without them, or as CSV.")
    size = sum(member.file_size for member in members)
    if size > LARGEST_WORKBOOK or size > LARGEST_RATIO * path.stat().st_size:
        raise Malformed(
            f"“{path.name}” unpacks to {size // MEGABYTE:,} MB, which is more than "
            f"{LARGEST_WORKBOOK // MEGABYTE} MB or more than {LARGEST_RATIO} times its own size. "
            "Save it as CSV."
        )


def _broken(path: Path) -> Malformed:
    return Malformed(
        f"“{path.name}” is not a workbook that we can read. Open it in Excel and save it again "
        "as .xlsx, or as CSV."
    )


def _next_quietly(rows: Iterator[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(rows, None)


def _cell_of(value: Any) -> Cell:
    """A cell's value as text, or as the date that it is."""
    match value:
        case None:
            return ""
        case datetime() if value.time() == time():
            return value.date()
        case datetime():
            return value.isoformat(" ")
        case date():
            return value
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def _excel_problems(cells: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for heading, value in cells:
        if isinstance(value, str) and value in EXCEL_ERRORS:
            yield f"{heading}: the cell holds Excel's error {value}. Correct the formula."
        if isinstance(value, int | float) and abs(value) >= LARGEST_NUMBER:
            yield (
                f"{heading}: Excel has rounded this number. Format the column as text and type "
                "it again."
            )
