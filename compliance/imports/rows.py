"""What a row of a file says of an entity. An empty cell says nothing, so it erases nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from compliance.errors import Malformed
from compliance.imports.raw import RawRow
from compliance.imports.values import (
    Cell,
    Jurisdictions,
    day_of,
    events_of,
    kind_of,
    month_day_of,
    tax_id_of,
    text_of,
    traits_of,
)
from compliance.models import Address, Entity, Officer, Registration

Value = TypeVar("Value")
LONGEST_TAX_ID = 50
FIELDS = {
    "external_id": (Entity, "external_id"),
    "name": (Entity, "name"),
    "file_number": (Registration, "file_number"),
    "registered_agent": (Registration, "registered_agent"),
    "officer_name": (Officer, "name"),
    "officer_title": (Officer, "title"),
    "street": (Address, "street"),
    "city": (Address, "city"),
    "region": (Address, "region"),
    "postal_code": (Address, "postal_code"),
}
LONGEST: dict[str, int] = {
    column: getattr(model._meta.get_field(name), "max_length")  # noqa: B009 - typed too widely
    for column, (model, name) in FIELDS.items()
}
ADDRESS = ("street", "city", "region", "postal_code")
OF_REGISTRATION = ("file_number", "registered_on", "registered_agent", "traits", "events")


@dataclass(frozen=True)
class RegistrationCells:
    """The registration that a row names; what it leaves empty is None or empty."""

    jurisdiction: str
    file_number: str
    registered_on: date | None
    registered_agent: str
    traits: tuple[str, ...] | None = None  # all of them, or nothing is said of them
    events: tuple[tuple[str, date], ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What names it in a portfolio."""
        return self.jurisdiction, self.file_number


@dataclass(frozen=True)
class EntityRow:
    """A row that could be read."""

    raw: RawRow
    external_id: str
    entity: dict[str, Any]  # fields of the entity, only those that the row gives
    registration: RegistrationCells | None
    officer: tuple[str, str] | None  # name and title
    address: dict[str, str] | None  # whole or not at all: half of an address is another address

    @property
    def identity(self) -> tuple[Any, ...] | None:
        """What names an entity that has neither an id nor a file number, if all of it is there."""
        values = [
            self.entity.get(name) for name in ("name", "kind", "home_jurisdiction", "formed_on")
        ]
        return None if None in values else tuple(values)


def read_row(raw: RawRow, jurisdictions: Jurisdictions) -> EntityRow:
    """The row as values, or every problem that it has, each in a sentence."""
    reading = _Reading(raw)
    row = reading.row(jurisdictions)
    if reading.problems:
        raise Malformed("The row cannot be read.", problems=tuple(reading.problems))
    return row


class _Reading:
    """One row being read; problems are gathered, so that a person sees all of them at once."""

    def __init__(self, raw: RawRow) -> None:
        self._raw = raw
        self.problems = list(raw.problems)
        self._cells = {
            column: cell.strip() if isinstance(cell, str) else cell
            for column, cell in raw.cells.items()
        }
        if raw.problems:
            self._cells = {}  # what its reader refused is not looked at any further

    def row(self, jurisdictions: Jurisdictions) -> EntityRow:
        return EntityRow(
            raw=self._raw,
            external_id=self._text("external_id"),
            entity=self._entity(jurisdictions),
            registration=self._registration(jurisdictions),
            officer=self._officer(),
            address=self._address(),
        )

    def _entity(self, jurisdictions: Jurisdictions) -> dict[str, Any]:
        year_end = self._value("fiscal_year_end", month_day_of)
        found: dict[str, Any] = {
            "name": self._text("name") or None,
            "kind": self._value("type", lambda cell: kind_of(str(cell))),
            "home_jurisdiction": self._value(
                "home_jurisdiction", lambda cell: _home(jurisdictions.find(str(cell)))
            ),
            "formed_on": self._value("formed_on", day_of),
            "tax_id": self._value("tax_id", _tax_id),
            "fiscal_year_end_month": year_end[0] if year_end else None,
            "fiscal_year_end_day": year_end[1] if year_end else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _registration(self, jurisdictions: Jurisdictions) -> RegistrationCells | None:
        jurisdiction = self._value("jurisdiction", lambda cell: jurisdictions.find(str(cell)))
        number = self._text("file_number")
        given = [column for column in OF_REGISTRATION if self._cells.get(column)]
        if not self._cells.get("jurisdiction"):
            if given:
                self.problems.append(
                    f"jurisdiction: it is empty, but {given[0]} is not. Say where the entity is "
                    "registered."
                )
            return None
        if not number:
            self.problems.append(
                "file_number: it is empty, but jurisdiction is not. Give the registry's number."
            )
        return RegistrationCells(
            jurisdiction or "",
            number,
            self._value("registered_on", day_of),
            self._text("registered_agent"),
            self._traits(jurisdictions.traits_of(jurisdiction) if jurisdiction else {}),
            self._value("events", lambda cell: events_of(str(cell))) or (),
        )

    def _traits(self, known: dict[str, str]) -> tuple[str, ...] | None:
        return self._value("traits", lambda cell: traits_of(str(cell), known))

    def _officer(self) -> tuple[str, str] | None:
        name, title = self._text("officer_name"), self._text("officer_title")
        if bool(name) != bool(title):
            self.problems.append("officer_name and officer_title go together. Give both or none.")
        return (name, title) if name and title else None

    def _address(self) -> dict[str, str] | None:
        found = {column: self._text(column) for column in ADDRESS}
        if not any(found.values()):
            return None
        if not (found["street"] and found["city"]):
            self.problems.append("An address needs a street and a city. Give both, or no address.")
        return found

    def _text(self, column: str) -> str:
        longest = LONGEST[column]
        return self._value(column, lambda cell: text_of(str(cell), longest=longest)) or ""

    def _value(self, column: str, read: Callable[[Cell], Value]) -> Value | None:
        cell = self._cells.get(column, "")
        if cell == "":
            return None
        try:
            return read(cell)
        except Malformed as error:
            problem = f"{column}: {error}"
            if problem not in self.problems:
                self.problems.append(problem)
            return None


def _home(code: str) -> str:
    if code == "US":
        raise Malformed("An entity is formed in a state. Write that, for example US-DE.")
    return code


def _tax_id(cell: Cell) -> str:
    return tax_id_of(text_of(str(cell), longest=LONGEST_TAX_ID))
