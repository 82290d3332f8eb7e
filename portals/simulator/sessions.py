"""Log-ins of a simulated portal: a cookie, a CSRF token, an end after idling."""

import secrets
import time
from dataclasses import dataclass

from aiohttp import web

COOKIE = "portal_session"


@dataclass(slots=True)
class Session:
    """One log-in."""

    csrf_token: str
    last_used: float


class Sessions:
    """The open sessions of one portal."""

    def __init__(self, idle_seconds: float, *, one_at_a_time: bool) -> None:
        self.idle_seconds = idle_seconds
        self.one_at_a_time = one_at_a_time
        self._open: dict[str, Session] = {}

    def open(self) -> tuple[str, Session]:
        """Start a session; where the portal allows only one, the older ends."""
        if self.one_at_a_time:
            self._open.clear()
        token = secrets.token_urlsafe(16)
        self._open[token] = Session(secrets.token_urlsafe(16), time.monotonic())
        return token, self._open[token]

    def admits(self, request: web.BaseRequest) -> bool:
        """Whether the request carries an open session and its CSRF token."""
        session = self._current(request)
        return session is not None and request.headers.get("X-CSRF-Token") == session.csrf_token

    def touch(self, request: web.BaseRequest) -> None:
        """Any request with the cookie keeps its session from idling."""
        self._current(request)

    def end(self, request: web.BaseRequest) -> None:
        """End the caller's session."""
        self._open.pop(request.cookies.get(COOKIE, ""), None)

    def _current(self, request: web.BaseRequest) -> Session | None:
        token = request.cookies.get(COOKIE, "")
        session = self._open.get(token)
        if session is None:
            return None
        now = time.monotonic()
        if now - session.last_used > self.idle_seconds:
            del self._open[token]
            return None
        session.last_used = now
        return session
