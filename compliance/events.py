"""What happened, kept in the transaction that made it happen, for whoever reacts to it later."""

from typing import Any

from compliance.models import Event


def emit(type: str, *, subject: str, portfolio_id: int | None, **data: Any) -> Event:
    """Leave a note of one thing that happened."""
    return Event.objects.create(type=type, subject=subject, portfolio_id=portfolio_id, data=data)


def emit_many(events: list[Event]) -> None:
    """Leave many notes in one statement."""
    Event.objects.bulk_create(events, batch_size=500)
