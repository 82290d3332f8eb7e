"""Dates, ages, money and states as people say them, the same on every page."""

from datetime import date, datetime
from decimal import Decimal

from django.utils.html import format_html
from django.utils.safestring import SafeString

SIGNS = {"USD": "$", "GBP": "£", "EUR": "€"}

# A state is a word and a shape, never a colour alone. The tone only colours it.
SHAPES: dict[str, tuple[str, str]] = {
    "active": ("●", "good"),
    "delinquent": ("▲", "bad"),
    "suspended": ("▲", "bad"),
    "dissolved": ("▲", "bad"),
    "not_listed": ("◆", "doubt"),
    "pending_review": ("◆", "doubt"),
    "unknown": ("○", "quiet"),
    "stale": ("◌", "quiet"),
    "draft": ("○", "quiet"),
    "pending": ("◔", "busy"),
    "sending": ("◑", "busy"),
    "submitted": ("◕", "busy"),
    "accepted": ("●", "good"),
    "rejected": ("▲", "bad"),
    "in_doubt": ("◆", "doubt"),
    "fallout": ("◆", "doubt"),
    "withdrawn": ("✕", "quiet"),
    "ready": ("◔", "busy"),
    "armed": ("◑", "busy"),
    "receipted": ("◕", "busy"),
    "owed": ("○", "quiet"),
    "due_soon": ("◔", "busy"),
    "overdue": ("▲", "bad"),
    "met": ("●", "good"),
    "waived": ("✕", "quiet"),
    "not_due": ("✕", "quiet"),
    "open": ("●", "good"),
    "paused": ("◐", "busy"),
    "needs_person": ("◆", "doubt"),
    "off": ("✕", "quiet"),
}


def state(code: str, words: str) -> SafeString:
    """A state with its shape, for people and for screen readers."""
    shape, tone = SHAPES.get(code, ("○", "quiet"))
    return format_html(
        '<span class="gs-state gs-{}"><span aria-hidden="true">{}</span>&nbsp;{}</span>',
        tone,
        shape,
        words,
    )


def money(amount: Decimal, currency: str = "USD") -> str:
    """An amount with its currency; cents only where there are any."""
    digits = f"{amount:,.2f}".removesuffix(".00")
    sign = SIGNS.get(currency)
    return f"{sign}{digits}" if sign else f"{digits} {currency}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun: 1 filing, 214 filings."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def day(when: date) -> str:
    """A date as people write it: Fri 1 Mar 2027."""
    return f"{when:%a} {when.day} {when:%b %Y}"


def day_and_distance(when: date, *, today: date) -> str:
    """A date and how far away it is: Fri 1 Mar 2027 · in 12 days."""
    days = (when - today).days
    match days:
        case 0:
            distance = "today"
        case 1:
            distance = "tomorrow"
        case -1:
            distance = "yesterday"
        case _ if days > 0:
            distance = f"in {counted(days, 'day')}"
        case _:
            distance = f"{counted(-days, 'day')} ago"
    return f"{day(when)} · {distance}"


def moment(when: datetime) -> str:
    """A moment on the clock it carries: Fri 1 Mar 2027, 10:02 UTC."""
    return f"{day(when)}, {when:%H:%M} {when.tzname()}"


def age(since: datetime, *, now: datetime) -> str:
    """How long ago something was: 3 h ago."""
    seconds = max(0, int((now - since).total_seconds()))
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h ago"
    return f"{seconds // 86400} days ago"
