"""What the rows of a file tell of registrations: events are added, a file takes none back."""

from collections.abc import Iterable
from datetime import date
from typing import TypeAlias

from django.utils import timezone

from compliance.errors import NotAllowed
from compliance.facts import refuse_day
from compliance.imports.rows import RegistrationCells
from compliance.models import Registration, RegistrationEvent

# An event as it is named before its registration has a key: where, number, name, day.
EventKey: TypeAlias = tuple[str, str, str, date]


def known_events(entities: Iterable[int]) -> list[tuple[int, EventKey]]:
    """What was told of these entities' registrations, each with its entity."""
    told = RegistrationEvent.objects.holding().filter(registration__entity__in=entities)
    return [
        (row.registration.entity_id, _key(row.registration, row.name, row.happened_on))
        for row in told.select_related("registration")
    ]


def new_events(
    registration: Registration, cells: RegistrationCells, known: set[EventKey]
) -> list[RegistrationEvent]:
    """The events of a row that nobody has told yet; they are known from then on."""
    made = []
    for name, day in cells.events:
        key = _key(registration, name, day)
        if key not in known:
            known.add(key)
            made.append(RegistrationEvent(registration=registration, name=name, happened_on=day))
    return made


def refuse_events(cells: RegistrationCells, formed_on: date) -> None:
    """No event before the entity was there, nor one that is yet to come."""
    for name, day in cells.events:
        try:
            refuse_day(name, day, formed_on=formed_on, today=timezone.localdate())
        except NotAllowed as error:
            raise NotAllowed(f"events: {error}") from error


def _key(registration: Registration, name: str, day: date) -> EventKey:
    return registration.jurisdiction, registration.file_number, name, day
