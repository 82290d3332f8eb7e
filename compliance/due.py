"""The due-rule grammar: when a duty falls due, from a line of text and a few dates. Pure.

    due    := none | atom | atom "|" atom … | "min(" atom "," atom ")"
    atom   := fixed:MM-DD | window:MM-DD..MM-DD
            | anniversary_date | anniversary_month_first | anniversary_month_end[(+|-)nM]
            | anniversary_quarter_end | fye:+nM@(d|end) | taxyear:nM@(d|end)
            | event:<name>+n(d|M|Y)[@d]
    first  := none | award_terms | with_formation | with_registration | event:… | <start>
              [";then:" <start>] [";skip_if_after:" MM-DD]
    start  := next_calendar_year | first_anniversary | second_anniversary | first_year_of_parity
            | first_fiscal_year_end | first_tax_year | second_tax_year
    parity := n/a | odd | even | formation_year | formation_year+1 | mod5=0
    opens  := (due | month_start)[-n(d|M)]

compliance/packs/README.md tells what each means.
"""

import calendar
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Literal, TypeAlias

EVENTS = (
    "formation",
    "last_filing",
    "registry_notice",
    "period_end",
    "pop_end",
    "final_financial_report",
    "auditor_report",
)
STARTS = (
    "none",
    "award_terms",
    "next_calendar_year",
    "first_anniversary",
    "second_anniversary",
    "first_year_of_parity",
    "first_fiscal_year_end",
    "first_tax_year",
    "second_tax_year",
)
PARITIES = ("n/a", "odd", "even", "formation_year", "formation_year+1", "mod5=0")
# Nothing is computed outside these years, so that no date can overflow.
FIRST_YEAR, LAST_YEAR = 1600, 2200
MONTH_END = 31


class RuleError(ValueError):
    """A rule that the grammar does not know; the message says what to write instead."""


# --- Dates ------------------------------------------------------------------------------------


def on_day(year: int, month: int, day: int) -> date:
    """That day, or the last one of a shorter month: Feb 29 becomes Feb 28."""
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def add_months(start: date, months: int, *, day: int = 0) -> date:
    """The same day so many months later, or the given one; kept inside the month."""
    years, month = divmod(start.month - 1 + months, 12)
    return on_day(start.year + years, month + 1, day or start.day)


def month_end(day: date) -> date:
    """The last day of its month."""
    return on_day(day.year, day.month, MONTH_END)


@dataclass(frozen=True, slots=True)
class Anchors:
    """The dates that rules count from."""

    base: date  # formation; for a foreign entity, qualification in the state
    fiscal_year_end: tuple[int, int] = (12, 31)
    events: Mapping[str, tuple[date, ...]] = field(default_factory=dict)

    def anniversary(self, year: int) -> date:
        """The base's month and day in that year."""
        return on_day(year, self.base.month, self.base.day)

    def fiscal_year_end_in(self, year: int) -> date:
        """The last day of the fiscal year that ends in that year."""
        return on_day(year, *self.fiscal_year_end)

    def first_fiscal_year_end(self) -> date:
        """The end of the fiscal year in which the base lies."""
        this = self.fiscal_year_end_in(self.base.year)
        return this if this >= self.base else self.fiscal_year_end_in(self.base.year + 1)

    def dates_of(self, event: str) -> tuple[date, ...]:
        """When a named event happened; formation always has."""
        return (self.base,) if event == "formation" else tuple(self.events.get(event, ()))


@dataclass(frozen=True, slots=True)
class Span:
    """One time that a duty falls due."""

    due: date
    opens: date | None = None
    # What the first rule and parity look at: an anniversary, or else the due date.
    cycle_on: date = date.min
    year: int | None = None  # names its period; None where only the date itself can


# --- Atoms ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same day of every cycle year; with a window, open from an earlier day."""

    month: int
    day: int
    opens: tuple[int, int] | None = None

    def in_year(self, year: int, anchors: Anchors) -> Span:
        """Due in that year; a window that begins later in the year began in the one before."""
        due = date(year, self.month, self.day)
        if self.opens is None:
            return Span(due, None, due, year)
        opened = year if self.opens <= (self.month, self.day) else year - 1
        return Span(due, date(opened, *self.opens), due, year)


@dataclass(frozen=True, slots=True)
class Anniversary:
    """A day told by the anniversary: itself, its month's first or last day, its quarter's end."""

    point: Literal["date", "month_first", "month_end", "quarter_end"]
    shift: int = 0

    def in_year(self, year: int, anchors: Anchors) -> Span:
        """Told by the anniversary of that year; shifted, it may fall into a neighbouring one."""
        anniversary = anchors.anniversary(year)
        match self.point:
            case "date":
                due = anniversary
            case "month_first":
                due = anniversary.replace(day=1)
            case "month_end":
                due = add_months(anniversary, self.shift, day=MONTH_END)
            case "quarter_end":
                due = add_months(anniversary, -anniversary.month % 3, day=MONTH_END)
        return Span(due, None, anniversary, due.year)


@dataclass(frozen=True, slots=True)
class FiscalYear:
    """A day of a month after the fiscal year's end, or (of_tax_year) of the year then begun.

    Both are the same day of the calendar; they differ in which year the first one belongs to.
    """

    months: int
    day: int
    of_tax_year: bool = False

    def in_year(self, year: int, anchors: Anchors) -> Span:
        """Counted from the fiscal year that ended in that year."""
        due = add_months(anchors.fiscal_year_end_in(year), self.months, day=self.day)
        return Span(due, None, due, due.year)


@dataclass(frozen=True, slots=True)
class Event:
    """So long after something happened, or on a day of the month then reached."""

    name: str
    count: int
    unit: Literal["d", "M", "Y"]
    day: int = 0

    def after(self, happened: date) -> Span:
        """Due then; there is nothing to file before it happened."""
        if self.unit == "d":
            due = happened + timedelta(days=self.count)
        else:
            months = self.count * (12 if self.unit == "Y" else 1)
            due = add_months(happened, months, day=self.day)
        return Span(due, min(happened, due), due)

    def spans(self, anchors: Anchors) -> Iterator[Span]:
        """One for each time that it happened."""
        for happened in anchors.dates_of(self.name):
            if FIRST_YEAR <= happened.year <= LAST_YEAR:
                yield self.after(happened)


Cyclic: TypeAlias = Fixed | Anniversary | FiscalYear
Atom: TypeAlias = Cyclic | Event


@dataclass(frozen=True, slots=True)
class Due:
    """A parsed due rule: one atom, several instalments, or the earlier of two atoms."""

    text: str
    atoms: tuple[Atom, ...]
    earlier_of: bool = False

    @property
    def is_event(self) -> bool:
        """Nothing in it comes round by itself."""
        return all(isinstance(atom, Event) for atom in self.atoms)

    @property
    def counts_closed_years(self) -> bool:
        """It asks about a fiscal year that has ended, so the first one must end first."""
        return any(isinstance(atom, FiscalYear) and not atom.of_tax_year for atom in self.atoms)

    def in_year(self, year: int, anchors: Anchors) -> list[Span]:
        """What comes round in a cycle year."""
        cyclic = [atom for atom in self.atoms if not isinstance(atom, Event)]
        spans = [atom.in_year(year, anchors) for atom in cyclic]
        if self.earlier_of:
            return [self._earliest(spans, year, anchors)]
        if len(self.atoms) > 1:  # instalments: a year would not tell them apart
            return [replace(span, year=None) for span in spans]
        return spans

    def happened(self, anchors: Anchors) -> list[Span]:
        """What follows from events; an event inside min() only ever hastens its partner."""
        if self.earlier_of:
            return []
        events = (atom for atom in self.atoms if isinstance(atom, Event))
        return [span for atom in events for span in atom.spans(anchors)]

    def _earliest(self, spans: list[Span], year: int, anchors: Anchors) -> Span:
        last = min(spans, key=lambda span: span.due)
        since = (
            anchors.fiscal_year_end_in(year)
            if self.counts_closed_years
            else add_months(last.due, -12)
        )
        hastened = [
            span.due
            for atom in self.atoms
            if isinstance(atom, Event)
            for span in atom.spans(anchors)
            if span.opens and since < span.opens and span.due < last.due
        ]
        due = min(hastened, default=last.due)
        # The period is told by the date that comes by itself, or an event would rename it.
        return replace(last, due=due, opens=min(last.opens, due) if last.opens else None)


@dataclass(frozen=True, slots=True)
class First:
    """How a duty begins: perhaps with one of its own, then from which cycle on."""

    initial: Event | None = None
    start: str = "none"
    skip_after: tuple[int, int] | None = None  # whose base is later in its year skips the first

    def is_skipped(self, anchors: Anchors) -> bool:
        """Whether the law spares this one the first time, because it came late in the year."""
        base = anchors.base
        return self.skip_after is not None and (base.month, base.day) > self.skip_after

    def threshold(self, due: Due, anchors: Anchors) -> date:
        """No cycle before this day counts."""
        begins = self._begins(due, anchors)
        spared = self.initial is None and self.is_skipped(anchors)
        return add_months(begins, 12) if spared else begins

    def _begins(self, due: Due, anchors: Anchors) -> date:
        base, year_end = anchors.base, anchors.first_fiscal_year_end()
        match self.start:
            case "next_calendar_year" | "first_year_of_parity":
                return date(base.year + 1, 1, 1)
            case "first_anniversary":
                return add_months(base, 12)
            case "second_anniversary":
                return add_months(base, 24)
            case "first_fiscal_year_end":
                return year_end + timedelta(days=1)
            case "first_tax_year":
                return year_end + timedelta(days=1) if due.counts_closed_years else base
            case "second_tax_year":
                closes = anchors.fiscal_year_end_in(year_end.year + 1)
                return (closes if due.counts_closed_years else year_end) + timedelta(days=1)
            case _:
                return base


@dataclass(frozen=True, slots=True)
class Opens:
    """From when a duty can be met, counted back from its due date."""

    from_month_start: bool
    count: int = 0
    unit: Literal["d", "M"] = "d"

    def before(self, due: date) -> date:
        """The first day on which it is taken; never after the due date."""
        start = due.replace(day=1) if self.from_month_start else due
        if self.unit == "d":
            return start - timedelta(days=self.count)
        return add_months(start, -self.count)


# --- Evaluation -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Schedule:
    """A duty's whole rhythm: the due rule, how it begins, every how many years, which years."""

    due: Due
    first: First
    every: int = 1
    parity: str = "n/a"

    def spans(self, anchors: Anchors, *, since: date, through: date) -> list[Span]:
        """Every time it falls due from one day to another, in order. Total for any dates."""
        if not FIRST_YEAR <= anchors.base.year < LAST_YEAR - 2:
            return []
        found = [*self._single(anchors), *self._cycles(anchors, since, through)]
        return sorted(
            {span for span in found if max(since, anchors.base) <= span.due <= through},
            key=lambda span: (span.due, span.year or 0),
        )

    def _single(self, anchors: Anchors) -> list[Span]:
        happened = self.due.happened(anchors)
        if self.first.initial is None or self.first.is_skipped(anchors):
            return happened
        if happened and self.due.is_event:
            return happened  # the first rule stands in only until the event is known
        return [*happened, *self.first.initial.spans(anchors)]

    def _cycles(self, anchors: Anchors, since: date, through: date) -> list[Span]:
        if self.due.is_event:
            return []
        threshold = self.first.threshold(self.due, anchors)
        # A cycle's due date lies at most a year from its cycle year.
        start = max(since.year - 1, threshold.year - 1, FIRST_YEAR + 1)
        end = min(through.year + 1, LAST_YEAR - 1)
        origin = self._origin(threshold, anchors) if self.every > 1 else threshold.year
        return [
            span
            for year in range(start, end + 1)
            for span in self.due.in_year(year, anchors)
            if span.cycle_on >= threshold and self._falls_in(span.cycle_on.year, origin, anchors)
        ]

    def _origin(self, threshold: date, anchors: Anchors) -> int:
        """The year of the first cycle that counts."""
        years = range(threshold.year - 1, threshold.year + 2)
        begun = (span.cycle_on for year in years for span in self.due.in_year(year, anchors))
        return min(day for day in begun if day >= threshold).year

    def _falls_in(self, year: int, origin: int, anchors: Anchors) -> bool:
        match self.parity:
            case "odd":
                return year % 2 == 1
            case "even":
                return year % 2 == 0
            case "mod5=0":
                return year % 5 == 0
            case "formation_year":
                return (year - anchors.base.year) % self.every == 0
            case "formation_year+1":
                return (year - anchors.base.year - 1) % self.every == 0
            case _:
                return (year - origin) % self.every == 0


# --- Parsing ----------------------------------------------------------------------------------

_FIXED = re.compile(r"fixed:(\d\d)-(\d\d)", re.ASCII)
_WINDOW = re.compile(r"window:(\d\d)-(\d\d)\.\.(\d\d)-(\d\d)", re.ASCII)
_ANNIVERSARY = re.compile(
    r"anniversary_(date|month_first|month_end|quarter_end)(?:([+-]\d\d?)M)?", re.ASCII
)
_FISCAL = re.compile(r"(?:fye:\+|(taxyear:))(\d\d?)M@(\d\d?|end)", re.ASCII)
_EVENT = re.compile(r"event:([a-z_]+)\+(\d{1,3})([dMY])(?:@(\d\d?))?", re.ASCII)
_OPENS = re.compile(r"(due|month_start)(?:-(\d{1,3})([dM]))?", re.ASCII)


def parse_due(text: str) -> Due | None:
    """A due rule as written in a pack; None for “none”."""
    if text == "none":
        return None
    if text.startswith("min(") and text.endswith(")"):
        atoms = tuple(_atom(part) for part in text[4:-1].split(","))
        if len(atoms) != 2 or all(isinstance(atom, Event) for atom in atoms):
            raise RuleError(
                f"“{text}”: min() takes two rules, of which one comes round by itself; "
                "write for example min(event:auditor_report+30d,fye:+9M@end)"
            )
        return Due(text, atoms, earlier_of=True)
    atoms = tuple(_atom(part) for part in text.split("|"))
    if len(set(atoms)) != len(atoms):
        raise RuleError(f"“{text}” names the same day twice; write it once")
    return Due(text, atoms)


def parse_first(text: str) -> First:
    """A first rule as written in a pack."""
    rule, skips, last = text.partition(";skip_if_after:")
    skip_after = _month_day(text, *_pair(text, last)) if skips else None
    head, then, start = rule.partition(";then:")
    if head in ("with_formation", "with_registration"):
        initial = Event("formation", 0, "d")
    elif head.startswith("event:"):
        initial = _event(head)
    else:
        return First(None, _start(rule), skip_after)
    return First(initial, _start(start) if then else "none", skip_after)


def parse_opens(text: str) -> Opens:
    """An opening rule as written in a pack."""
    found = _OPENS.fullmatch(text)
    if found is None:
        raise RuleError(
            f"“{text}” is not an opening rule; write due-60d, month_start or month_start-5M"
        )
    start, count, unit = found.groups()
    return Opens(start == "month_start", int(count or 0), "M" if unit == "M" else "d")


def parse_month_day(text: str) -> tuple[int, int]:
    """A fiscal year's last day, written MM-DD; 02-29 is the end of every February."""
    month, _, day = text.partition("-")
    try:
        found = date.fromisoformat(f"2000-{month}-{day}")
    except ValueError:
        raise RuleError(
            f"“{text}” is not a day of the year; write it as MM-DD, for example 12-31"
        ) from None
    return found.month, found.day


def _atom(text: str) -> Atom:
    if found := _FIXED.fullmatch(text):
        return Fixed(*_month_day(text, *found.groups()))
    if found := _WINDOW.fullmatch(text):
        first, last = found.groups()[:2], found.groups()[2:]
        return Fixed(*_month_day(text, *last), opens=_month_day(text, *first))
    if found := _ANNIVERSARY.fullmatch(text):
        return _anniversary(text, *found.groups())
    if found := _FISCAL.fullmatch(text):
        return _fiscal_year(text, *found.groups())
    if text.startswith("event:"):
        return _event(text)
    raise RuleError(
        f"“{text}” is not a due rule; write one such as fixed:03-01, anniversary_month_end or "
        "fye:+4M@15"
    )


def _pair(rule: str, text: str) -> tuple[str, str]:
    if found := re.fullmatch(r"(\d\d)-(\d\d)", text, re.ASCII):
        return found[1], found[2]
    raise RuleError(f"“{rule}”: “{text}” is not a day of the year; write it as MM-DD")


def _month_day(rule: str, month: str, day: str) -> tuple[int, int]:
    try:
        # A day that must exist in every year: Feb 29 of a common year would be a guess.
        date(2001, int(month), int(day))
    except ValueError:
        raise RuleError(
            f"“{rule}”: {month}-{day} does not exist in every year; write a month and day "
            "that do, such as 02-28"
        ) from None
    return int(month), int(day)


def _anniversary(rule: str, point: str, shift: str | None) -> Anniversary:
    if shift and (point != "month_end" or abs(int(shift)) > 12):
        raise RuleError(f"“{rule}”: only anniversary_month_end can be shifted, by up to 12 months")
    match point:
        case "date" | "month_first" | "quarter_end":
            return Anniversary(point)
        case _:
            return Anniversary("month_end", int(shift or 0))


def _fiscal_year(rule: str, tax_year: str | None, months: str, day: str) -> FiscalYear:
    if not 1 <= int(months) <= 12:
        raise RuleError(f"“{rule}”: a year has the months 1 to 12; write one of them")
    return FiscalYear(int(months), _day(rule, day), of_tax_year=bool(tax_year))


def _event(rule: str) -> Event:
    found = _EVENT.fullmatch(rule)
    if found is None:
        raise RuleError(
            f"“{rule}” is not an event rule; write for example event:formation+90d or "
            "event:formation+3M@15"
        )
    name, count, unit, day = found.groups()
    if name not in EVENTS:
        raise RuleError(f"“{rule}”: there is no event “{name}”; known are {', '.join(EVENTS)}")
    if unit == "d" and day:
        raise RuleError(f"“{rule}”: a day of the month (@{day}) goes with months or years only")
    if unit == "Y" and int(count) > 100:
        raise RuleError(f"“{rule}”: {count} years is too long; write at most 100")
    match unit:
        case "M" | "Y":
            return Event(name, int(count), unit, _day(rule, day) if day else 0)
        case _:
            return Event(name, int(count), "d")


def _day(rule: str, day: str) -> int:
    if day == "end":
        return MONTH_END
    if not 1 <= int(day) <= 31:
        raise RuleError(f"“{rule}”: no month has a day {day}; write 1 to 31, or end")
    return int(day)


def _start(text: str) -> str:
    if text not in STARTS:
        raise RuleError(
            f"“{text}” is not a way for a duty to begin; write one of {', '.join(STARTS)}, "
            "with_formation, with_registration or event:…, perhaps with ;then:"
        )
    return text
