"""A made-up register of any size, spread over every jurisdiction, kind and day of the year."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice

from compliance import rules
from compliance.models import Entity, Portfolio, Registration

CHUNK = 2_000
FIRST_DAY = date(2005, 1, 1)


def register_many(count: int, *, portfolio: Portfolio) -> None:
    """Write so many entities with one registration each, a chunk at a time."""
    codes = sorted(code for code in rules.pack_folders() if code != "US")
    numbers = iter(range(count))
    while chunk := list(islice(numbers, CHUNK)):
        entities = Entity.objects.bulk_create(_entities(chunk, codes, portfolio))
        Registration.objects.bulk_create(
            Registration(
                entity=entity,
                jurisdiction=codes[number % len(codes)],
                is_foreign=number % 3 == 0,
                file_number=f"{number:08d}",
                registered_on=entity.formed_on + timedelta(days=number % 700),
            )
            for number, entity in zip(chunk, entities, strict=True)
        )


def _entities(chunk: list[int], codes: list[str], portfolio: Portfolio) -> Iterator[Entity]:
    for number in chunk:
        yield Entity(
            portfolio=portfolio,
            name=f"Measured {number}, LLC",
            kind=rules.KINDS[number // len(codes) % len(rules.KINDS)],
            home_jurisdiction=codes[number % len(codes)],
            formed_on=FIRST_DAY + timedelta(days=number * 37 % 6_500),
        )
