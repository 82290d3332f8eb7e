"""What being late costs, to the cent and to the day: law in, amounts out. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import accumulate

from compliance.due import add_months
from compliance.rules import Late

CENT = Decimal("0.01")
ZERO = Decimal(0)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of a delay: what is sure, and apart from it what may never be asked for."""

    certain: Decimal = ZERO
    to_review: Decimal = ZERO  # the law behind it is not certain
    on_notice: Decimal = ZERO  # only after a notice; as if that had come on the due date

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.certain + other.certain,
            self.to_review + other.to_review,
            self.on_notice + other.on_notice,
        )

    def __sub__(self, other: "Cost") -> "Cost":
        return self + other.times(-1)

    def times(self, count: int) -> "Cost":
        """The same for so many."""
        return Cost(self.certain * count, self.to_review * count, self.on_notice * count)

    @property
    def at_most(self) -> Decimal:
        """All of it, for ranking; never shown as a sum that is owed."""
        return self.certain + self.to_review + self.on_notice


@dataclass(frozen=True, slots=True)
class Owing:
    """An amount that must be paid by a day, and the law of its lateness."""

    late: Late
    due: date
    base: Decimal
    needs_review: bool = False


def cost_on(owing: Owing, on: date) -> Cost:
    """What has been added by that day to what is still unpaid."""
    amount = penalty_on(owing.late, due=owing.due, on=on, base=owing.base)
    if owing.late.on_notice:
        return Cost(on_notice=amount)
    return Cost(to_review=amount) if owing.needs_review else Cost(certain=amount)


def cost_of_one_more_day(owing: Owing, on: date) -> Cost:
    """What is lost by filing on the day after instead of on that day."""
    return cost_on(owing, on + DAY) - cost_on(owing, on)


def cost_by_day(owings: Mapping[Owing, int], first: date, last: date) -> list[tuple[date, Cost]]:
    """The running total of all of them for each day of a stretch; of each there are so many."""
    # Most amounts change on a few days only, so that those alone are computed.
    rises: dict[date, Cost] = defaultdict(Cost)
    for owing, count in owings.items():
        before = Cost()
        for day in _days_of_change(owing, first, last):
            cost = cost_on(owing, day)
            if cost != before:
                rises[day] += (cost - before).times(count)
                before = cost
    days = [first + timedelta(days=offset) for offset in range((last - first).days + 1)]
    return list(zip(days, accumulate(rises.get(day, Cost()) for day in days), strict=True))


def penalty_on(late: Late, *, due: date, on: date, base: Decimal) -> Decimal:
    """Everything that one duty's law adds by that day; all of it counts from the grace's end."""
    starts = due + timedelta(days=late.grace_days)
    days = (on - starts).days
    if days <= 0:
        return ZERO
    months = months_begun(starts, on)
    total = _once(late, days, base) + _running(late, days, months, base)
    if late.cap is not None:
        total = min(total, late.cap)
    return total.quantize(CENT, ROUND_HALF_UP)


def months_begun(since: date, on: date) -> int:
    """Months or parts of months after a day: the day after it is in the first."""
    if on <= since:
        return 0
    months = (on.year - since.year) * 12 + on.month - since.month
    return months + (on.day > since.day)


def _days_of_change(owing: Owing, first: date, last: date) -> list[date]:
    """The first day, and every later one on which the amount may be another than before."""
    late, starts = owing.late, owing.due + timedelta(days=owing.late.grace_days)
    if late.per_day:
        days = [starts + timedelta(days=n) for n in range(1, (last - starts).days + 1)]
    else:
        days = [starts + timedelta(days=step.after_days + 1) for step in late.steps]
        days.append(starts + DAY)
        if late.per_month or late.percent_per_month:
            months = range(1, months_begun(starts, last) + 1)
            days += [add_months(starts, n) + DAY for n in months]
    return sorted({first, *(day for day in days if first < day <= last)})


def _once(late: Late, days: int, base: Decimal) -> Decimal:
    steps = sum((step.amount for step in late.steps if days > step.after_days), ZERO)
    return (late.flat or ZERO) + _percent(base, late.percent) + steps


def _running(late: Late, days: int, months: int, base: Decimal) -> Decimal:
    bearing = base + (late.flat or ZERO) if late.interest_on_penalty else base
    monthly = (late.per_month or ZERO) + _percent(bearing, late.percent_per_month)
    return (late.per_day or ZERO) * days + monthly * months


def _percent(amount: Decimal, percent: Decimal | None) -> Decimal:
    return amount * percent / 100 if percent else ZERO
