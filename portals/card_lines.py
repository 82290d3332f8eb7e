"""Finds the line of a card on which a field stands; the TOML reader does not tell."""

import re
from collections.abc import Sequence


def line_of(text: str, where: Sequence[int | str]) -> int:
    """The line of a field such as ("limits", 0, "seconds"), or of what should hold it."""
    place = 0
    for step, part in enumerate(where):
        following = where[step + 1] if step + 1 < len(where) else None
        found = _after(text, place, part, following)
        if found is None:
            break
        place = found
    return text.count("\n", 0, place) + 1


def _after(text: str, place: int, part: int | str, following: int | str | None) -> int | None:
    if isinstance(part, int):
        return _item(text, place, part)
    tables = [found.start() for found in _table(part).finditer(text, place)]
    if tables:
        # The item's own heading, when one of several tables is meant.
        return tables[following] if isinstance(following, int) else tables[0]
    found = re.compile(rf"(?<![\w-])[\"']?{re.escape(part)}[\"']?\s*=").search(text, place)
    return found.start() if found else None


def _table(name: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*\[\[\s*{re.escape(name)}\s*\]\]", re.MULTILINE)


def _item(text: str, place: int, number: int) -> int | None:
    """The n-th inline table after a place; a [[heading]] is already the item."""
    if text[place:].lstrip().startswith("[["):
        return place
    depth, seen = 0, -1
    for found in re.finditer(r"[{}]", text[place:]):
        depth += 1 if found.group() == "{" else -1
        seen += found.group() == "{" and depth == 1
        if seen == number:
            return place + found.start()
    return None
