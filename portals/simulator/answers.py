"""Answers of a simulated portal, and the pages and refusals that come instead of one."""

import json
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, NamedTuple

from aiohttp import web

from portals.simulator.weather import Fault

LOGIN_PAGE = (
    "<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Sign in</h1>"
    '<form method="post" action="/login"><input name="user"><input name="password" '
    'type="password"><button>Sign in</button></form></body></html>'
)
CAPTCHA_PAGE = (
    "<!DOCTYPE html><html><head><title>Are you human?</title></head><body>"
    '<div class="g-recaptcha" data-sitekey="simulated"></div>'
    "<p>Please complete the CAPTCHA to continue.</p></body></html>"
)


class Answer(NamedTuple):
    """What goes back: JSON, or a page of HTML."""

    status: int
    content: Mapping[str, Any] | str
    headers: Mapping[str, str] = {}

    def encoded(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.content, str):
            return self.content.encode()
        return json.dumps(self.content, ensure_ascii=False).encode()

    def response(self) -> web.Response:
        """The same for the wire."""
        kind = "text/html" if isinstance(self.content, str) else "application/json"
        return web.Response(
            status=self.status,
            body=self.encoded(),
            headers=self.headers,
            content_type=kind,
        )


def rejected(errors: list[dict[str, str]], *, status: int = 422) -> Answer:
    """Read and refused, with reasons."""
    return Answer(status, {"status": "rejected", "errors": errors})


def problem(field: str, message: str) -> dict[str, str]:
    """One reason."""
    return {"field": field, "message": message}


EXPIRED = Answer(401, {"status": "unauthorized"})
DUPLICATE = Answer(409, {"status": "duplicate"})
NOT_FOUND = Answer(404, {"status": "not_found"})
NO_SUCH_ROUTE = Answer(405, {"status": "not_offered"})


def blocked(seconds: float, *, absolute: bool) -> Answer:
    """403 with the moment at which the block ends, or the seconds until then."""
    reset = time.time() + seconds if absolute else seconds
    return Answer(403, {"status": "blocked"}, {"X-RateLimit-Reset": str(math.ceil(reset))})


def paused(status: int, word: str, seconds: float, *, absolute: bool) -> Answer:
    """Not processed; come back after so many seconds, or at a date."""
    if absolute:
        # A date has whole seconds; rounding down would call the client back too early.
        when = datetime.fromtimestamp(math.ceil(time.time() + seconds), UTC)
        return Answer(
            status, {"status": word}, {"Retry-After": format_datetime(when, usegmt=True)}
        )
    return Answer(status, {"status": word}, {"Retry-After": str(math.ceil(seconds))})


def refusal(fault: Fault) -> Answer | None:
    """The answer of a fault that does no work, or None when the fault lets the work be done."""
    match fault.fault:
        case "5xx_before":
            return Answer(fault.status, "<html><body><h1>Server error</h1></body></html>")
        case "429":
            return paused(429, "too_many_requests", fault.seconds, absolute=fault.absolute)
        case "503":
            return paused(503, "unavailable", fault.seconds, absolute=fault.absolute)
        case "closed":
            return paused(503, "closed", fault.seconds, absolute=fault.absolute)
        case "403_reset":
            return blocked(fault.seconds, absolute=fault.absolute)
        case "captcha":
            return Answer(403, CAPTCHA_PAGE)
        case "login_page":
            return Answer(200, LOGIN_PAGE)
        case "duplicate":
            return DUPLICATE
    return None
