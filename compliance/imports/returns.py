"""The file that goes back: the rows that were refused, as they came, with a column of errors."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias, cast

from compliance.errors import Malformed
from compliance.imports.raw import ERRORS_COLUMN, RawRow, Source, column_of, guarded

Return: TypeAlias = Callable[[RawRow, Sequence[str]], None]


@contextmanager
def open_return(path: Path, source: Source) -> Iterator[Return]:
    """A file of the source's family; what was not UTF-8 goes back in its own bytes."""
    try:
        # With the mark, without which Excel would take UTF-8 for something else.
        encoding = "utf-8-sig" if source.header else "utf-8"
        file = path.open("w", encoding=encoding, errors="surrogateescape", newline="")
    except OSError as error:
        raise Malformed(
            f"“{path}” cannot be written: {error.strerror}. Give another file to --errors."
        ) from error
    with file:
        yield _table(file, source.header) if source.header else _objects(file)


def _table(file: TextIO, header: tuple[str, ...]) -> Return:
    writer = csv.writer(file)
    places = [index for index, name in enumerate(header) if column_of(name) != ERRORS_COLUMN]
    writer.writerow([*(guarded(header[index]) for index in places), ERRORS_COLUMN])

    def give_back(row: RawRow, problems: Sequence[str]) -> None:
        cells = tuple(str(cell) for cell in row.original)
        kept = [cells[index] if index < len(cells) else "" for index in places]
        told = " ".join([f"Line {row.line}.", *problems])
        beyond = cells[len(header) :]  # of a row with too many cells: nothing is lost
        writer.writerow([*map(guarded, kept), guarded(told), *map(guarded, beyond)])

    return give_back


def _objects(file: TextIO) -> Return:
    def give_back(row: RawRow, problems: Sequence[str]) -> None:
        original = cast(dict[str, Any], row.original)  # only tables have rows without names
        told = [f"Line {row.line}.", *problems]
        file.write(json.dumps({**original, ERRORS_COLUMN: told}) + "\n")

    return give_back
