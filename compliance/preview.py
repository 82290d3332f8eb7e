"""What the law would ask of an entity that need not exist, for the command and the API alike."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from compliance.calendars import parse_day
from compliance.deadlines import Facts, Owed, deadlines_for, target_of
from compliance.due import EVENTS, RuleError, parse_month_day
from compliance.errors import Malformed
from compliance.rules import KINDS, Pack, pack_of

SHOWN = ("duty", "period", "opens_on", "due_on", "fee", "citation", "confidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An entity as somebody describes it, and the days that they want to know of."""

    jurisdiction: str
    kind: str
    formed_on: date
    since: date
    through: date
    is_foreign: bool = False
    registered_on: date | None = None
    fiscal_year_end: str = "12-31"
    traits: frozenset[str] = frozenset()
    events: tuple[str, ...] = ()  # each as NAME=YYYY-MM-DD


def preview_deadlines(question: Question, *, mark: str = "") -> list[Owed]:
    """The deadlines asked for. `mark` is how the asker writes names: “--” on a command line."""
    _check(question, mark)
    pack = pack_of(_code(question))
    _refuse_unknown(question.traits, pack)
    return deadlines_for(pack, _facts(question, mark), question.through, question.since)


def is_unspoken(question: Question) -> bool:
    """Whether the pack says nothing of such an entity: no deadline then means “not known”."""
    target = target_of(question.kind, is_foreign=question.is_foreign)
    return not any(target in duty.targets for duty in pack_of(_code(question)).duty)


def shown(owed: Owed) -> dict[str, str | None]:
    """A deadline as the answer shows it: text, or nothing."""
    values = {name: getattr(owed, name) for name in SHOWN}
    return {name: None if value is None else str(value) for name, value in values.items()}


def _check(question: Question, mark: str) -> None:
    if question.kind not in KINDS:
        name = f"{mark}entity-type" if mark else "entity_type"
        raise Malformed(
            f"{name}: “{question.kind}” is no kind of entity. Write one of {', '.join(KINDS)}."
        )
    if question.through < question.since:
        raise Malformed(
            f"{mark}through {question.through} is before {mark}from {question.since}. "
            "Exchange them."
        )
    if question.is_foreign and question.registered_on is None:
        raise Malformed(
            f"A foreign entity's dates count from its registration. Add {mark}registered."
        )


def _code(question: Question) -> str:
    return question.jurisdiction.strip().upper()


def _facts(question: Question, mark: str) -> Facts:
    return Facts(
        kind=question.kind,
        formed_on=question.formed_on,
        is_foreign=question.is_foreign,
        registered_on=question.registered_on,
        fiscal_year_end=_year_end(question.fiscal_year_end, mark),
        traits=question.traits,
        events=parse_events(question.events),
    )


def parse_events(texts: Iterable[str]) -> dict[str, tuple[date, ...]]:
    """Events as they are asked for: NAME=YYYY-MM-DD, as often as one happened."""
    found: dict[str, tuple[date, ...]] = defaultdict(tuple)
    for text in texts:
        name, _, day = text.partition("=")
        if name not in EVENTS[1:] or not day:  # formation is told by itself
            raise Malformed(
                f"“{text:.60}” is no event. Write it as NAME=YYYY-MM-DD; the names are "
                f"{', '.join(EVENTS[1:])}."
            )
        found[name] += (parse_day(day),)
    return dict(found)


def _refuse_unknown(traits: frozenset[str], pack: Pack) -> None:
    for trait in sorted(traits - set(pack.traits)):
        known = "; ".join(f"{name} ({words})" for name, words in pack.traits.items())
        raise Malformed(
            f"“{trait:.60}” decides no duty of {pack.title}. Known are: {known or 'none'}."
        )


def _year_end(text: str, mark: str) -> tuple[int, int]:
    try:
        return parse_month_day(text)
    except RuleError as error:
        name = f"{mark}fiscal-year-end" if mark else "fiscal_year_end"
        raise Malformed(f"{name}: {error}.") from error
