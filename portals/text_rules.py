"""What every portal asks of text. Refused, never repaired: a signed document is not changed."""

import unicodedata
from collections.abc import Iterator
from typing import Any


def text_problems(where: str, text: str, *, may_break_lines: bool = False) -> Iterator[str]:
    """What a portal would mangle in a text, each in one sentence."""
    lines = text.split("\n") if may_break_lines else [text]
    if any(_is_control(character) for line in lines for character in line):
        kept = "" if may_break_lines else " or a line break"
        yield f"{where} has a control character{kept}. Type it again without."
    elif text != text.strip() or any(line != " ".join(line.split()) for line in lines):
        yield f"{where} has spaces at an end or two in a row. Remove them."
    if not unicodedata.is_normalized("NFC", text):
        yield f"{where} has accents in a form that portals mangle. Type the letters again."


def texts_in(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text inside a value, with the place where a person finds it."""
    match value:
        case str():
            yield where, value
        case dict():
            for name, item in value.items():
                yield from texts_in(item, f"{where}.{name}" if where else str(name))
        case list():
            for index, item in enumerate(value, start=1):
                yield from texts_in(item, f"{where} {index}")


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs")
