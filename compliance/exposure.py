"""What the deadlines of a portfolio cost if nobody files: rows and packs in, amounts out."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path

from compliance import rules
from compliance.errors import DomainError, NotFound
from compliance.models import Deadline, DeadlineQuerySet, Portfolio
from compliance.penalties import ZERO, Cost, Owing, cost_by_day, cost_of_one_more_day, cost_on
from compliance.rules import Duty, Pack

COSTLIEST = 10
HOURS = 24


class Law:
    """The packs as they are now: each is read once, when the first deadline asks for it."""

    def __init__(self) -> None:
        self._folders: dict[str, Path] | None = None
        self._duties: dict[tuple[str, str, str], list[Duty]] = {}

    def duty_of(self, deadline: Deadline) -> Duty | None:
        """The text that governs a deadline; None where its pack no longer has one."""
        duties = self._duties_for(deadline)
        return next((duty for duty in duties if duty.governs(deadline.due_on)), None)

    def owing_of(self, deadline: Deadline) -> Owing | None:
        """A deadline's amount with the law of its lateness; an unknown fee counts as nothing."""
        duty = self.duty_of(deadline)
        if duty is None:
            return None
        fee = ZERO if deadline.fee is None else deadline.fee
        return Owing(duty.late, deadline.due_on, fee, deadline.needs_review)

    def is_at_least(self, deadline: Deadline) -> bool:
        """Whether a percentage runs on an amount that is not wholly known."""
        duty = self.duty_of(deadline)
        if duty is None or not (duty.late.percent or duty.late.percent_per_month):
            return False
        return deadline.fee is None or bool(duty.formula)

    def _duties_for(self, deadline: Deadline) -> list[Duty]:
        registration = deadline.registration
        home = "foreign" if registration.is_foreign else "domestic"
        target = f"{home}-{registration.entity.kind}"
        key = (registration.jurisdiction, target, deadline.duty)
        if key not in self._duties:
            pack = self._pack(registration.jurisdiction)
            self._duties[key] = [
                duty
                for duty in (pack.duty if pack else ())
                if duty.id == deadline.duty and target in duty.targets
            ]
        return self._duties[key]

    def _pack(self, jurisdiction: str) -> Pack | None:
        if self._folders is None:
            self._folders = rules.pack_folders()
        folder = self._folders.get(jurisdiction)
        return rules.read_pack(folder) if folder else None


@dataclass(frozen=True, slots=True)
class Costly:
    """One deadline, and what it will have cost by the last day."""

    deadline: Deadline
    cost: Cost


@dataclass
class Exposure:
    """What was found in a stretch of days, by currency: amounts of two are never added up."""

    by_day: dict[str, list[tuple[date, Cost]]] = field(default_factory=dict)
    costliest: list[Costly] = field(default_factory=list)
    deadlines: int = 0
    at_least: int = 0  # a percentage runs on an amount that is not wholly known
    without_law: int = 0  # no pack has the duty any more


def owed_before(last: date, *, portfolio: str = "") -> DeadlineQuerySet:
    """The deadlines that can cost something by that day, with all that their law asks."""
    found = Deadline.objects.unmet().filter(due_on__lt=last)
    if portfolio:
        if not Portfolio.objects.filter(slug=portfolio).exists():
            raise NotFound(f"There is no portfolio “{portfolio}”. Check its short name.")
        found = found.filter(registration__entity__portfolio__slug=portfolio)
    # Nobody's tax id is decrypted for a forecast.
    complete: DeadlineQuerySet = found.select_related("registration__entity").defer(
        "registration__entity__tax_id"
    )
    return complete


def exposure_by_day(
    deadlines: Iterable[Deadline], first: date, last: date
) -> dict[str, list[tuple[date, Cost]]]:
    """The running total for each day if nothing is filed, by currency."""
    return exposure_of(deadlines, first, last).by_day


def exposure_of(deadlines: Iterable[Deadline], first: date, last: date) -> Exposure:
    """All there is to tell of the owed ones, read once and in order; few are kept in memory."""
    found, law = Exposure(), Law()
    # Many deadlines share their law, date and fee, so that each such group is computed once.
    groups: dict[str, Counter[Owing]] = defaultdict(Counter)
    at_the_end: dict[Owing, Cost] = {}
    heap: list[tuple[Decimal, int, Costly]] = []
    for deadline in deadlines:
        if deadline.status != Deadline.Status.OWED:
            continue
        found.deadlines += 1
        owing = law.owing_of(deadline)
        if owing is None:
            found.without_law += 1
            continue
        found.at_least += law.is_at_least(deadline)
        groups[deadline.currency][owing] += 1
        if owing not in at_the_end:
            at_the_end[owing] = cost_on(owing, last)
        _keep(heap, Costly(deadline, at_the_end[owing]))
    found.costliest = [costly for _, _, costly in sorted(heap, reverse=True)]
    found.by_day = {code: cost_by_day(group, first, last) for code, group in groups.items()}
    return found


def cost_per_day(deadline: Deadline, on: date, law: Law | None = None) -> Cost:
    """What is lost by filing a deadline on the day after instead of on that day."""
    owing = (law or Law()).owing_of(deadline)
    if owing is None or deadline.status != Deadline.Status.OWED:
        return Cost()
    return cost_of_one_more_day(owing, on)


def cents_per_hour(deadline: Deadline, law: Law) -> int:
    """What an hour's delay costs at the due date, for the order of a lane.

    An order must not stop a filing: where the law cannot be read, it counts as nothing.
    """
    try:
        owing = law.owing_of(deadline)
    except DomainError:
        return 0
    if owing is None:
        return 0
    cost = cost_of_one_more_day(owing, owing.due)
    return int((cost.certain + cost.to_review) * 100 / HOURS)


def _keep(heap: list[tuple[Decimal, int, Costly]], costly: Costly) -> None:
    if not costly.cost.at_most:
        return
    # The key keeps the order fixed where amounts are equal: the older row comes first.
    item = (costly.cost.at_most, -costly.deadline.pk, costly)
    (heapq.heappushpop if len(heap) == COSTLIEST else heapq.heappush)(heap, item)
