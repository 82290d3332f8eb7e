"""Values as people write them in spreadsheets; what could mean two things is refused."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import TypeAlias

from compliance.due import RuleError, parse_month_day
from compliance.errors import Malformed
from compliance.models import RegistrationEvent
from compliance.rules import Pack

Cell: TypeAlias = str | date  # a date only where the file itself says that it is one

OLDEST_YEAR = 1700  # an older date of a company is a slip of the pen
INVISIBLE = ("Cc", "Cf", "Cs")
EIN_DIGITS = 9
KINDS = {
    "corporation": (
        "corporation corp inc incorporated company ccorp ccorporation scorp scorporation "
        "stockcorporation businesscorporation closecorporation professionalcorporation pc "
        "forprofitcorporation"
    ),
    "llc": (
        "llc limitedliabilitycompany limitedliabilityco ltdliabilitycompany pllc "
        "professionallimitedliabilitycompany seriesllc singlememberllc smllc"
    ),
    "nonprofit": (
        "nonprofit nonprofitcorporation nonprofitcorp nonprofitorganization notforprofit "
        "notforprofitcorporation nfp npo 501c3 501c3nonprofit nonstockcorporation"
    ),
    "lp": "lp limitedpartnership lllp limitedliabilitylimitedpartnership",
}
KIND_OF = {alias: kind for kind, aliases in KINDS.items() for alias in aliases.split()}
_SLASHED = re.compile(r"([0-9]{1,2})/([0-9]{1,2})(?:/([0-9]+))?")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?$")


class Jurisdictions:
    """Every way to write a jurisdiction whose law we have."""

    def __init__(self, packs: dict[str, Pack]) -> None:
        self._codes: defaultdict[str, set[str]] = defaultdict(set)
        self._packs = packs
        for code, pack in packs.items():
            short = code.removeprefix("US-")
            for alias in (code, short, pack.title):
                self._codes[_plain(alias)].add(code)

    def find(self, text: str) -> str:
        """The code of a jurisdiction, or a sentence that says why there is none."""
        found = self._codes.get(_plain(text), set())
        if len(found) == 1:
            return next(iter(found))
        if found:
            raise Malformed(f"“{text}” could be {' or '.join(sorted(found))}. Write the code.")
        raise Malformed(
            f"There is no pack for “{text:.60}”. Write a code such as US-DE, or add its pack."
        )

    def traits_of(self, code: str) -> dict[str, str]:
        """The traits that decide duties of a jurisdiction, each in words."""
        return dict(self._packs[code].traits)


def kind_of(text: str) -> str:
    """The kind of an entity behind the many names it goes by."""
    kind = KIND_OF.get(_plain(text))
    if kind is None:
        raise Malformed(
            f"“{text:.60}” is no kind of entity that we know. Write one of {', '.join(KINDS)}."
        )
    return kind


def day_of(cell: Cell) -> date:
    """A date written as ISO, or as month/day/year where no other reading is possible."""
    if isinstance(cell, date):
        return _plausible(cell)
    text = _MIDNIGHT.sub("", cell)
    if found := _SLASHED.fullmatch(text):
        return _plausible(_slashed_day(text, *found.groups()))
    if not _ISO.fullmatch(text):
        raise Malformed(f"“{text:.60}” is not a date. Write it as YYYY-MM-DD.")
    return _plausible(_existing(text, *(int(part) for part in text.split("-"))))


def month_day_of(cell: Cell) -> tuple[int, int]:
    """The last day of a fiscal year; Excel turns 12-31 into a date, whose year says nothing."""
    if isinstance(cell, date):
        return cell.month, cell.day
    text = _MIDNIGHT.sub("", cell)
    found = _SLASHED.fullmatch(text)
    if found and found[3] is None:
        read = _slashed_day(text, found[1], found[2], "2000")  # a leap year
        return read.month, read.day
    if found or _ISO.fullmatch(text):
        read = day_of(text)
        return read.month, read.day
    try:
        return parse_month_day(text)
    except RuleError as error:
        raise Malformed(f"{error}.") from error


def traits_of(text: str, known: dict[str, str]) -> tuple[str, ...]:
    """The traits of a registration, separated by semicolons."""
    found = _parts(text)
    for trait in found:
        if trait not in known:
            told = "; ".join(f"{name} ({words})" for name, words in known.items()) or "none"
            raise Malformed(
                f"“{trait:.60}” decides no duty there. Known are: {told}. Separate several by “;”."
            )
    return tuple(sorted(set(found)))


def events_of(text: str) -> tuple[tuple[str, date], ...]:
    """What happened and when: registry_notice=2026-03-01, separated by semicolons."""
    found = []
    for part in _parts(text):
        name, _, day = (piece.strip() for piece in part.partition("="))
        if name not in RegistrationEvent.Name.values or not day:
            raise Malformed(
                f"“{part:.60}” is no event. Write it as NAME=YYYY-MM-DD, several separated by "
                f"“;”; the names are {', '.join(RegistrationEvent.Name.values)}."
            )
        found.append((name, day_of(day)))
    return tuple(dict.fromkeys(found))


def tax_id_of(text: str) -> str:
    """A tax id; nine digits are written as an EIN."""
    digits = text.replace("-", "")
    if not (digits.isascii() and digits.isdigit()):
        return text
    if len(digits) != EIN_DIGITS:
        raise Malformed(
            f"It has {len(digits)} digits, and an EIN has nine. Excel drops leading zeros: format "
            "the column as text and type it again."
        )
    return f"{digits[:2]}-{digits[2:]}"


def text_of(text: str, *, longest: int) -> str:
    """A text that every registry can show, or a sentence that says what is wrong with it."""
    for character in text:
        if unicodedata.category(character) in INVISIBLE:
            raise Malformed(
                f"It has a control character or an invisible one (U+{ord(character):04X}). "
                "Type it again without."
            )
    if len(text) > longest:
        raise Malformed(f"It has {len(text):,} characters; the most is {longest}. Shorten it.")
    return text


def _parts(text: str) -> list[str]:
    return [part for part in (piece.strip() for piece in text.split(";")) if part]


def _slashed_day(text: str, month: str, day: str, year: str | None) -> date:
    if year is None or len(year) != 4:
        raise Malformed(f"“{text}” has no year of four digits. Write it as YYYY-MM-DD.")
    if int(month) > 12 >= int(day):
        raise Malformed(f"“{text}” has no month {month}. Write it as YYYY-MM-DD.")
    if int(day) <= 12 and int(day) != int(month):
        raise Malformed(
            f"“{text}” could be month/day or day/month. Write it in ISO form, the year first: "
            f"{_iso(year, month, day)} or {_iso(year, day, month)}."
        )
    return _existing(text, int(year), int(month), int(day))


def _iso(year: str, month: str, day: str) -> str:
    return f"{year}-{int(month):02}-{int(day):02}"


def _existing(text: str, year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError:
        raise Malformed(
            f"“{text}” is a day that does not exist. Correct it, as YYYY-MM-DD."
        ) from None


def _plausible(day: date) -> date:
    if day.year < OLDEST_YEAR:
        raise Malformed(f"“{day}” is before {OLDEST_YEAR}. Correct the year.")
    return day


def _plain(text: str) -> str:
    """Letters and digits alone, so that L.L.C., llc and LLC are one."""
    kept: Iterable[str] = (letter for letter in text.casefold() if letter.isalnum())
    return "".join(kept)
