"""The law of a pack in plain words: rules as sentences, and the page that people read. Pure."""

import calendar
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import assert_never

from compliance.deadlines import Facts, Owed, deadlines_for
from compliance.due import (
    MONTH_END,
    Anniversary,
    Atom,
    Due,
    Event,
    First,
    FiscalYear,
    Fixed,
    Opens,
    add_months,
)
from compliance.rules import Duty, Fee, Late, Pack
from compliance.wording import counted, money

EXAMPLE = date(2019, 3, 14)  # formation of the entity in the example timelines
EXAMPLE_YEARS = 12  # long enough to meet what comes every five years twice
NEXT_SHOWN = 3

ORDINALS = (
    "", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth", "eleventh", "twelfth",
)  # fmt: skip
HAPPENINGS = {
    "formation": "formation (for a foreign entity, registration here)",
    "last_filing": "the last filing",
    "registry_notice": "the registry's notice",
    "period_end": "the end of the reporting period",
    "pop_end": "the end of the period of performance",
    "final_financial_report": "the final financial report",
    "auditor_report": "the auditor's report",
}
BEGINNINGS = {
    "none": "",
    "award_terms": "as the terms of the award say",
    "next_calendar_year": "in the calendar year after formation or registration",
    "first_anniversary": "with the first anniversary",
    "second_anniversary": "with the second anniversary",
    "first_year_of_parity": "in the first such year after that of formation or registration",
    "first_fiscal_year_end": "after the end of the first fiscal year",
    "first_tax_year": "with the first tax year",
    "second_tax_year": "with the second tax year",
}
YEARS_OF = {
    "n/a": "",
    "odd": "in odd years",
    "even": "in even years",
    "mod5=0": "in years that 5 divides",
    "formation_year": "counted from the year of formation or registration",
    "formation_year+1": "counted from the year after formation or registration",
}
RHYTHMS = {
    "annual": "Every year",
    "biennial": "Every two years",
    "quadrennial": "Every four years",
    "quinquennial": "Every five years",
    "once": "Once",
    "per_award": "For each award",
    "none": "Never",
}
PEOPLE = {
    "corporation": "corporations",
    "llc": "LLCs",
    "nonprofit": "nonprofit corporations",
    "lp": "limited partnerships",
}
WEEKENDS = {
    "none": "The date does not move off a weekend or holiday.",
    "next_business_day": "A date without business moves to the next working day.",
    "unknown": "Whether the date moves off a weekend is not known: take it as fixed.",
}
UNITS = {"d": "day", "M": "month", "Y": "year"}


# --- Rules ------------------------------------------------------------------------------------


def due_words(due: Due | None) -> str:
    """When a duty falls due: “on March 1”, “on the last day of the anniversary's month”."""
    if due is None:
        return "never"
    atoms = [atom_words(atom) for atom in due.atoms]
    if due.earlier_of:
        return f"{' or '.join(atoms)}, whichever comes first"
    return _listed(atoms)


def atom_words(atom: Atom) -> str:
    """One atom of a due rule."""
    match atom:
        case Fixed():
            return _fixed_words(atom)
        case Anniversary():
            return _anniversary_words(atom)
        case Event():
            return event_words(atom)
        case FiscalYear():
            return _fiscal_year_words(atom)
        case _:
            assert_never(atom)


def event_words(event: Event) -> str:
    """So long after something happened."""
    happened = HAPPENINGS[event.name]
    if not event.count and not event.day:
        return f"together with {happened}"
    length = counted(event.count, UNITS[event.unit])
    if not event.day:
        return f"within {length} of {happened}"
    return f"on {_day_of_month(event.day)} of the month {length} after {happened}"


def first_words(first: First) -> str:
    """How a duty begins; empty where it begins with whatever comes first."""
    start = BEGINNINGS[first.start]
    spared = ""
    if first.skip_after:
        spared = f"; an entity that came after {_month_day(*first.skip_after)} skips the first one"
    if first.initial is None:
        return f"begins {start}{spared}" if start else ""
    then = f"; from then on as said, beginning {start}" if start else ""
    return f"the first is due {event_words(first.initial)}{then}{spared}"


def parity_words(parity: str) -> str:
    """In which years a duty falls that does not come every year; empty where that is open."""
    return YEARS_OF[parity]


def opens_words(opens: Opens) -> str:
    """From when a duty can be met."""
    start = "the first day of the month in which it is due" if opens.from_month_start else ""
    if not opens.count:
        return f"from {start or 'its due date'}"
    back = counted(opens.count, UNITS[opens.unit])
    return f"from {back} before {start or 'it is due'}"


def late_words(late: Late, currency: str = "USD") -> str:
    """What lateness costs and leads to, as amounts that can be computed."""
    parts = list(_costs(late, currency))
    if late.grace_days and parts:
        parts.append(f"only from {counted(late.grace_days, 'day')} after the due date on")
    if late.on_notice and parts:
        parts.append("only after the agency's notice")
    if late.cap is not None:
        parts.append(f"at most {money(late.cap, currency)} in all")
    return _listed(parts, last="; ", between="; ")


def _costs(late: Late, currency: str) -> Iterator[str]:
    if late.flat is not None:
        yield money(late.flat, currency)
    if late.percent is not None:
        yield f"{_number(late.percent)}% of the fee"
    if late.per_day is not None:
        yield f"{money(late.per_day, currency)} a day"
    if late.per_month is not None:
        yield f"{money(late.per_month, currency)} for each month begun"
    if late.percent_per_month is not None:
        base = "the fee and the penalty" if late.interest_on_penalty else "the fee"
        yield f"{_number(late.percent_per_month)}% of {base} for each month begun"
    for step in late.steps:
        amount = money(step.amount, currency)
        yield f"{amount} more once it is over {counted(step.after_days, 'day')} late"


def _fixed_words(atom: Fixed) -> str:
    due = _month_day(atom.month, atom.day)
    return f"from {_month_day(*atom.opens)} to {due}" if atom.opens else f"on {due}"


def _fiscal_year_words(atom: FiscalYear) -> str:
    day, month = _day_of_month(atom.day), ORDINALS[atom.months]
    if atom.of_tax_year:
        return f"on {day} of the tax year's {month} month"
    return f"on {day} of the {month} month after the fiscal year's end"


def _anniversary_words(atom: Anniversary) -> str:
    match atom.point:
        case "date":
            return "on the anniversary of formation or registration"
        case "month_first":
            return "on the first day of the anniversary's month"
        case "quarter_end":
            return "on the last day of the calendar quarter of the anniversary"
        case "month_end" if atom.shift:
            side = "after" if atom.shift > 0 else "before"
            nth = "" if abs(atom.shift) == 1 else f"{ORDINALS[abs(atom.shift)]} "
            return f"on the last day of the {nth}month {side} the anniversary's"
        case "month_end":
            return "on the last day of the anniversary's month"
        case _:
            assert_never(atom.point)


def _month_day(month: int, day: int) -> str:
    return f"{calendar.month_name[month]} {day}"


def _day_of_month(day: int) -> str:
    return "the last day" if day == MONTH_END else f"day {day}"


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _listed(parts: Iterable[str], *, between: str = ", ", last: str = " and ") -> str:
    *most, end = [*parts] or [""]
    return f"{between.join(most)}{last}{end}" if most else end


# --- The page ---------------------------------------------------------------------------------


def page(pack: Pack) -> str:
    """A pack as a page of Markdown, for people who will not read TOML."""
    unsure = sum(duty.confidence != "high" for duty in pack.duty)
    parts = [
        f"# {pack.title} ({pack.jurisdiction})",
        "Written from `pack.toml` by `manage.py render_packs`. Change that file, not this page.",
        f"* Agency: {pack.agency}\n* Every source was last read on: {pack.verified_on}\n"
        f"* Needs review before anyone relies on it: {unsure} of {len(pack.duty)}",
        _table(
            ("what", "who", "when", "next fee", "sure"), [_summary(pack, d) for d in pack.duty]
        ),
        *(_section(pack, duty) for duty in pack.duty),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(pack: Pack, duty: Duty) -> tuple[str, ...]:
    return (duty.title, _who(duty), _rhythm(duty), _next_fee(pack, duty), _sure(duty))


def _section(pack: Pack, duty: Duty) -> str:
    rows = [(name, text) for name, text in _rows(pack, duty) if text]
    told = [f"## {duty.title}", _table(("", ""), rows)]
    if duty.schedule is not None:
        told.append(_example(pack, duty))
    return "\n\n".join(told)


def _rows(pack: Pack, duty: Duty) -> Iterator[tuple[str, str]]:
    yield "Who", _who(duty)
    yield "Only if", _sentence(pack.traits[duty.only_if]) if duty.only_if else ""
    yield "In force", _in_force(duty)
    yield "When", _sentence(f"{_rhythm(duty)}. {_begins(duty)}") if duty.due else ""
    yield "Open", _sentence(opens_words(duty.opens)) if duty.opens else ""
    yield "Weekends", WEEKENDS[duty.weekend] if duty.due else ""
    yield "Fee", _fees(pack, duty)
    yield "If late", _lateness(pack, duty.late)
    yield "Where", _where(pack, duty) if duty.due else ""
    yield "Law", f"{duty.cite}. {f'<{duty.url}>' if duty.url else ''}".strip()
    yield "Read in", duty.source
    yield "Sure", _sure(duty)
    yield "Note", duty.note


def _who(duty: Duty) -> str:
    told = []
    for target in duty.applies_to:
        side, _, kind = target.rpartition("-")
        told.append(f"{side} {PEOPLE[kind]}" if side else PEOPLE[kind])
    who = _sentence(_listed(told)).removesuffix(".")
    return f"{who}; only with the trait `{duty.only_if}`" if duty.only_if else who


def _in_force(duty: Duty) -> str:
    since = f" from {duty.since}" if duty.since else ""
    until = f" until {duty.until}" if duty.until else ""
    return f"For due dates{since}{until}." if since or until else ""


def _rhythm(duty: Duty) -> str:
    if duty.due is None:
        return "The law asks nothing"
    years = parity_words(duty.parity)
    return f"{RHYTHMS[duty.frequency]}{f' ({years})' if years else ''}, {due_words(duty.due)}"


def _begins(duty: Duty) -> str:
    """How it begins, unless the due rule has said it already."""
    if duty.due and duty.due.atoms == (duty.first.initial,):
        return ""
    return _sentence(first_words(duty.first))


def _fees(pack: Pack, duty: Duty) -> str:
    told = [_fee(pack, fee) for fee in duty.fee]
    if duty.formula:
        told.append(f"An amount depends on facts (`{duty.formula}`).")
    return " ".join([*told, duty.fee_note]).strip() or ("Not known." if duty.due else "")


def _fee(pack: Pack, fee: Fee) -> str:
    since = f" for due dates from {fee.since} on" if fee.since else ""
    return f"{money(fee.amount, pack.currency)}{since} ({fee.cite})."


def _next_fee(pack: Pack, duty: Duty) -> str:
    """What the next one costs after the day the sources were read."""
    coming = (owed.fee for owed in _timeline(pack, duty) if owed.due_on > pack.verified_on)
    amount = next(coming, duty.fee_on(pack.verified_on))
    plain = "" if amount is None else money(amount, pack.currency)
    if duty.formula:
        return f"{plain}; depends on facts" if plain else "depends on facts"
    return plain or ("not known" if duty.due else "")


def _lateness(pack: Pack, late: Late) -> str:
    amounts = late_words(late, pack.currency)
    told = [
        late.penalty,
        f"In amounts: {amounts}" if amounts else "",
        f"{counted(late.grace_days, 'day')} of grace" if late.grace_days and not amounts else "",
        late.consequence,
        f"That comes after: {late.after}" if late.after else "",
    ]
    return " ".join(_sentence(part) for part in told if part)


def _where(pack: Pack, duty: Duty) -> str:
    agency = duty.agency or pack.agency
    if not duty.portal:
        return f"{agency}; no portal of ours takes it: file it by hand."
    return f"{agency}, through the portal `{duty.portal}` as `{duty.form}`."


def _sure(duty: Duty) -> str:
    return "high" if duty.confidence == "high" else f"**needs review** ({duty.confidence})"


def _example(pack: Pack, duty: Duty) -> str:
    shown = _timeline(pack, duty)
    born = f"formed (or, if foreign, registered here) on {EXAMPLE}, fiscal year to December 31"
    if not shown:
        return f"Example: for an entity {born}, no date follows from these facts alone."
    rows = [
        (
            owed.period,
            f"{owed.opens_on}" if owed.opens_on else "",
            f"{owed.due_on}",
            "" if owed.fee is None else money(owed.fee, owed.currency),
        )
        for owed in shown
    ]
    return f"Example: an entity {born}.\n\n{_table(('period', 'opens', 'due', 'fee'), rows)}"


def _timeline(pack: Pack, duty: Duty) -> list[Owed]:
    """The first deadline of all, and the next ones after the day the sources were read."""
    side, _, kind = min(duty.targets).partition("-")
    facts = Facts(
        kind=kind,
        formed_on=EXAMPLE,
        is_foreign=side == "foreign",
        registered_on=EXAMPLE,
        traits=frozenset({duty.only_if} if duty.only_if else ()),
    )
    alone = pack.model_copy(update={"duty": (duty,)})
    through = add_months(pack.verified_on, 12 * EXAMPLE_YEARS)
    found = deadlines_for(alone, facts, through)
    later = [owed for owed in found[1:] if owed.due_on > pack.verified_on]
    return [*found[:1], *later[:NEXT_SHOWN]]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    """Text that cannot end its cell, its row or start a tag by accident."""
    return " ".join(text.replace("|", "\\|").split())


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
