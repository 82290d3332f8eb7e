"""What the law asks of one registration, and when: pack + facts → deadlines. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from compliance.calendars import next_working_day
from compliance.due import Anchors, Span
from compliance.rules import Case, Duty, Expected, Pack

# A period is told once, and its earlier date may lie before the days that were asked for: a year
# and the longest roll.
LOOK_BACK = timedelta(days=366 + 7)


def target_of(kind: str, *, is_foreign: bool) -> str:
    """A kind of entity as the packs write it in full."""
    return f"{'foreign' if is_foreign else 'domestic'}-{kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What must be known of an entity in one jurisdiction to tell its duties."""

    kind: str
    formed_on: date
    is_foreign: bool = False
    registered_on: date | None = None
    ended_on: date | None = None
    fiscal_year_end: tuple[int, int] = (12, 31)
    traits: frozenset[str] = frozenset()
    events: Mapping[str, tuple[date, ...]] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Its kind as the packs write it."""
        return target_of(self.kind, is_foreign=self.is_foreign)

    @property
    def base(self) -> date:
        """Where it all counts from: formation, or for a foreign entity its registration here."""
        return self.registered_on if self.is_foreign and self.registered_on else self.formed_on

    @property
    def anchors(self) -> Anchors:
        """The dates as the due rules want them."""
        return Anchors(self.base, self.fiscal_year_end, self.events)


@dataclass(frozen=True, slots=True)
class Owed:
    """One duty for one period, as the law has it."""

    duty: str
    title: str
    period: str
    opens_on: date | None
    due_on: date
    fee: Decimal | None
    currency: str
    penalty: str
    portal: str
    form: str
    citation: str
    confidence: str
    formula: str  # names what the fee does not include until it is computed


def deadlines_for(
    pack: Pack, facts: Facts, through: date, since: date | None = None
) -> list[Owed]:
    """Everything due from one day to another, in date order; each duty once for a period."""
    found: dict[tuple[str, str], Owed] = {}
    start = since or facts.base
    for duty in pack.duties_of[facts.target]:
        for owed in _owed(pack, duty, facts, start, through):
            known = found.setdefault((owed.duty, owed.period), owed)
            if owed.due_on < known.due_on:
                # Where one text of the law follows another, the earlier date is the safe one.
                found[owed.duty, owed.period] = owed
    asked = (owed for owed in found.values() if start <= owed.due_on <= through)
    return sorted(asked, key=lambda owed: (owed.due_on, owed.duty, owed.period))


def binds(duty: Duty, facts: Facts) -> bool:
    """Whether a duty is one of this entity's at all."""
    return facts.target in duty.targets and (duty.only_if is None or duty.only_if in facts.traits)


def _owed(pack: Pack, duty: Duty, facts: Facts, since: date, through: date) -> Iterator[Owed]:
    schedule = duty.schedule
    if schedule is None or not binds(duty, facts):
        return
    earliest = since - LOOK_BACK if since > date.min + LOOK_BACK else since
    last = min(through, facts.ended_on or date.max)
    for span in schedule.spans(facts.anchors, since=earliest, through=last):
        if duty.governs(span.due):
            yield Owed(
                duty=duty.id,
                title=duty.title,
                period=str(span.year) if span.year else span.due.isoformat(),
                opens_on=_opens_on(duty, span, facts),
                due_on=_rolled(pack, duty, span.due),
                fee=duty.fee_on(span.due),
                currency=pack.currency,
                penalty=duty.late.penalty,
                portal=duty.portal,
                form=duty.form,
                citation=duty.cite,
                confidence=duty.confidence,
                formula=duty.formula,
            )


def _rolled(pack: Pack, duty: Duty, due: date) -> date:
    """Only where the law says so: a rolled date that is wrong costs a penalty."""
    if duty.weekend != "next_business_day":
        return due
    # The country's holidays, unless the duty names others: lists of a state's holidays hold days
    # on which its offices are open, and a date that moves too little is merely early.
    return next_working_day(due, duty.calendar or pack.jurisdiction[:2])


def _opens_on(duty: Duty, span: Span, facts: Facts) -> date | None:
    opens = span.opens
    if opens is None and duty.opens is not None:
        opens = duty.opens.before(span.due)
    return max(opens, facts.base) if opens else None


# --- Worked examples --------------------------------------------------------------------------


def facts_of_case(case: Case) -> Facts:
    """The facts that a case tells."""
    return Facts(
        kind=case.kind,
        formed_on=case.formed,
        is_foreign=case.foreign,
        registered_on=case.registered,
        fiscal_year_end=case.fiscal_year_end,
        traits=frozenset(case.traits),
        events=case.events,
    )


def case_failure(pack: Pack, case: Case) -> str:
    """How the pack departs from a case, or an empty string."""
    facts = facts_of_case(case)
    if not any(duty.id == case.duty and binds(duty, facts) for duty in pack.duty):
        return f"no duty “{case.duty}” binds a {facts.target}"
    came = [
        owed
        for owed in deadlines_for(pack, facts, case.through, case.since)
        if owed.duty == case.duty
    ]
    if [owed.due_on for owed in came] != [expected.due for expected in case.expect]:
        days = ", ".join(owed.due_on.isoformat() for owed in came) or "nothing"
        return f"the pack gives {days}"
    wrong = [_difference(*pair) for pair in zip(case.expect, came, strict=True)]
    return "; ".join(filter(None, wrong))


def duties_without_case(pack: Pack, cases: Sequence[Case]) -> list[Duty]:
    """The duties that no case puts to the test: a deadline of theirs, or that there is none."""
    return [duty for duty in pack.duty if not any(_tests(case, duty) for case in cases)]


def _tests(case: Case, duty: Duty) -> bool:
    if case.duty != duty.id or not binds(duty, facts_of_case(case)):
        return False
    return duty.due is None or any(duty.governs(expected.due) for expected in case.expect)


def _difference(expected: Expected, owed: Owed) -> str:
    told = {"opens": owed.opens_on, "fee": owed.fee, "period": owed.period}
    return "; ".join(
        f"{owed.due_on}: {name} is {told[name]}, not {value}"
        for name, value in expected
        if name in expected.model_fields_set and name in told and told[name] != value
    )
