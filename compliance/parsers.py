"""Bodies of API requests: JSON that is small, shallow and storable, or a refusal."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

MOST_BYTES = 1_000_000
MOST_NESTED = 32


class TooLarge(APIException):
    """More than a filing's answers can sensibly be."""

    status_code = 413
    default_detail = f"The body has more than {MOST_BYTES:,} bytes. Send less at once."
    default_code = "too_large"


class BoundedJSONParser(JSONParser):
    """Reads no more than it takes, and refuses what a database would choke on."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value that the body holds."""
        body = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise TooLarge
        try:
            value = json.loads(body.decode(), parse_constant=_refuse, parse_float=_finite)
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from error
        except RecursionError:
            raise ParseError(f"The body is nested more than {MOST_NESTED} levels deep.") from None
        _refuse_unstorable(value, MOST_NESTED)
        return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _refuse(digits)
    return number


def _refuse_unstorable(value: Any, levels: int) -> None:
    """PostgreSQL stores neither U+0000 nor half of a surrogate pair."""
    if levels < 0:
        raise ParseError(f"The body is nested more than {MOST_NESTED} levels deep.")
    match value:
        case str() if "\x00" in value or any("\ud800" <= mark <= "\udfff" for mark in value):
            raise ParseError("A text holds U+0000 or half a character. Remove it.")
        case dict():
            for name, item in value.items():
                _refuse_unstorable(name, levels)
                _refuse_unstorable(item, levels - 1)
        case list():
            for item in value:
                _refuse_unstorable(item, levels - 1)
