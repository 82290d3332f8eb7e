"""The only maker of HTTP clients. Every request that leaves takes its permit here.

A `Wire` is one lane's line to one portal: its own connection pool, cookies and headers, shared
with no other lane. `ask` is for what may be repeated; `commit` for the one request of an attempt
after which the portal may have it.
"""

import asyncio
import time
import zlib
from collections.abc import AsyncIterable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from portals.base import Exchange
from portals.cards import Card
from portals.errors import Blocked, Category, InDoubt, PortalError, Unavailable
from portals.limiter import Grant, Limiter, Stopping, UsedUp
from portals.outbound import refuse_elsewhere, transport_for

ANSWER_LIMIT = 4 * 1024 * 1024
KEPT_LIMIT = 64 * 1024
TOO_LARGE = "The answer is larger than we read"
SECRET_HEADERS = frozenset(
    {"authorization", "cookie", "set-cookie", "x-csrf-token", "proxy-authorization"}
)
SHORTEST_HOLD, LONGEST_HOLD = 1.0, 24 * 3600.0


class NotSent(PortalError):
    """It was armed, but the moment to send it has passed; nothing left."""


@dataclass
class Attempting:
    """What one attempt has done on the wire so far; each runs in a task of its own."""

    rank: int
    may_ask: Callable[[], bool]
    may_commit: Callable[[], bool]
    exchanges: list[Exchange] = field(default_factory=list)
    committed: bool = False  # the point of no return was passed
    refused: bool = False  # and the portal said that it did not process it


attempting: ContextVar[Attempting] = ContextVar("attempting")
_deadline: ContextVar[asyncio.Timeout] = ContextVar("deadline")
_committing: ContextVar[bool] = ContextVar("committing", default=False)


class PermitTransport(httpx.AsyncBaseTransport):
    """Takes a permit for each request, and starts its hard deadline when it has one."""

    def __init__(self, inner: httpx.AsyncBaseTransport, limiter: Limiter, timeout: float) -> None:
        self.inner = inner
        self.limiter = limiter
        self.timeout = timeout

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request under one permit; nothing here ever repeats it."""
        attempt = attempting.get()
        grant = await self._permit(attempt)
        # The last look before the first byte: a paused process must not wake up and send.
        if not (attempt.may_commit() if _committing.get() else attempt.may_ask()):
            grant.never_left()
            raise NotSent("The time to send it had passed before its turn came.", "fence")
        attempt.committed = attempt.committed or _committing.get()
        _deadline.get().reschedule(asyncio.get_running_loop().time() + self.timeout)
        try:
            response = await self.inner.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            grant.never_left()
            raise
        except BaseException:
            grant.unanswered()
            raise
        grant.answered()
        return response

    async def _permit(self, attempt: Attempting) -> Grant:
        try:
            return await self.limiter.permit(attempt.rank, timeout=self.timeout)
        except Stopping as error:
            raise NotSent("The lane was stopping before its turn came.", "stopping") from error
        except UsedUp as error:
            raise Unavailable(
                f"All requests that the portal allows us are used up. {error}",
                "own limit",
                retry_after=error.seconds,
                category=Category.RATE_LIMITED,
            ) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()


class Wire:
    """One lane's line to one portal."""

    def __init__(
        self,
        card: Card,
        limiter: Limiter,
        *,
        version: str,
        way_out: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.card = card
        self.limiter = limiter
        inner = way_out or transport_for(card)
        self.client = httpx.AsyncClient(
            transport=PermitTransport(inner, limiter, card.timeout_seconds),
            base_url=card.base_url,
            follow_redirects=False,
            timeout=httpx.Timeout(card.timeout_seconds),
            trust_env=False,
            headers={
                "User-Agent": f"Goodstanding/{version}",
                "Cache-Control": "no-cache, no-store, must-revalidate",
                "Pragma": "no-cache",
                "Accept-Encoding": "gzip",  # the one that we unpack under a cap
            },
        )

    async def __aenter__(self) -> "Wire":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send what may be repeated. A fault means: not known, try again."""
        try:
            response = await self._send(method, path, **options)
        except httpx.HTTPError as error:
            raise Unavailable(_words(error), "no answer") from error
        except TimeoutError as error:
            raise Unavailable("The portal did not answer in time.", "time-out") from error
        raise_if_kept_out(response)
        if response.status_code >= 500:
            words = f"{method} {response.request.url.path} failed: {response.status_code}."
            raise Unavailable(words, f"{response.status_code}")
        return response

    async def commit(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send the point of no return, once in an attempt. After it, a fault is a doubt."""
        attempt = attempting.get()
        if attempt.committed:
            raise RuntimeError("an attempt has one point of no return, and it has been passed")
        token = _committing.set(True)
        try:
            response = await self._send(method, path, **options)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            attempt.committed = False  # no connection: not one byte has left
            raise Unavailable(_words(error), "not connected") from error
        except httpx.HTTPError as error:
            raise InDoubt(f"{_words(error)}. It may have arrived.", "no answer") from error
        except TimeoutError as error:
            raise InDoubt(
                "The portal did not answer in time; it may have it.", "time-out"
            ) from error
        finally:
            _committing.reset(token)
        try:
            raise_if_kept_out(response)
        except (Unavailable, Blocked):
            attempt.refused = True
            raise
        return response

    async def _send(
        self,
        method: str,
        path: str,
        *,
        secret: bool = False,
        content: bytes | AsyncIterable[bytes] | None = None,
        **options: Any,
    ) -> httpx.Response:
        request = self.client.build_request(method, _joined(path), content=content, **options)
        refuse_elsewhere(request.url, self.card)
        sent_at, start = datetime.now(UTC), time.monotonic()
        response: httpx.Response | None = None
        fault = ""
        try:
            async with asyncio.timeout(None) as deadline:
                token = _deadline.set(deadline)
                try:
                    response = await self.client.send(request, stream=True)
                    await _read_capped(response)
                finally:
                    _deadline.reset(token)
        except BaseException as error:
            fault = _words(error)
            raise
        else:
            return response
        finally:
            if response is not None:
                await response.aclose()
            attempting.get().exchanges.append(
                Exchange(
                    method=method,
                    url=str(request.url),
                    sent_at=sent_at,
                    took_ms=int((time.monotonic() - start) * 1000),
                    request_headers=_redacted(request.headers),
                    request_body=b"[redacted]" if secret else _kept(content),
                    status=response.status_code if response is not None else 0,
                    answer_headers=_redacted(response.headers) if response is not None else {},
                    answer_body=_answer(response, secret=secret),
                    fault=fault,
                )
            )


def raise_if_kept_out(response: httpx.Response) -> None:
    """Recognise the answers that mean: not processed, and come back later."""
    status = response.status_code
    if status in (429, 503) and (after := response.headers.get("retry-after")):
        raise Unavailable(
            f"The portal answered {status}: come back later.",
            f"{status} Retry-After",
            retry_after=seconds_until(after),
            category=Category.RATE_LIMITED,
        )
    if status == 429:
        raise Unavailable(
            "The portal answered 429 without saying when to come back.",
            "429",
            retry_after=60.0,
            category=Category.RATE_LIMITED,
        )
    if status == 403 and (reset := response.headers.get("x-ratelimit-reset")):
        raise Blocked(
            "The portal blocks us until its reset time.",
            "403 X-RateLimit-Reset",
            retry_after=seconds_until(reset),
        )
    if status == 403 and b"captcha" in response.content.lower():
        raise Blocked("The portal asks for a CAPTCHA.", "403 CAPTCHA", needs_person=True)


def seconds_until(value: str) -> float:
    """Seconds from now, read from a delta, an epoch time or an HTTP date; within a day."""
    try:
        number = float(value)
        seconds = number - time.time() if number > 1_000_000_000 else number
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            seconds = 60.0
    return min(max(seconds, SHORTEST_HOLD), LONGEST_HOLD)


async def _read_capped(response: httpx.Response) -> None:
    """Read an answer whole, but never more than we are willing to hold, packed or unpacked."""
    packed = bytearray()
    async for part in response.aiter_raw():
        packed += part
        if len(packed) > ANSWER_LIMIT:
            raise httpx.DecodingError(TOO_LARGE, request=response.request)
    response._content = _unpacked(bytes(packed), response)  # as httpx's aread(), with a cap


def _unpacked(packed: bytes, response: httpx.Response) -> bytes:
    """The answer in plain bytes; a bomb is given up at the cap, before it has grown."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("identity", "") or not packed:
        return packed
    if coding not in ("gzip", "x-gzip"):
        raise httpx.DecodingError(f"The answer is packed as {coding!r}", request=response.request)
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(packed, ANSWER_LIMIT + 1)
    except zlib.error as error:
        raise httpx.DecodingError(f"It is not gzip: {error}", request=response.request) from error
    if len(plain) > ANSWER_LIMIT:
        raise httpx.DecodingError(TOO_LARGE, request=response.request)
    if not unpacker.eof:
        raise httpx.DecodingError("The packed answer ends early", request=response.request)
    return plain


def _joined(path: str) -> str:
    return path.lstrip("/")  # relative: httpx appends it to the base address


def _kept(content: bytes | AsyncIterable[bytes] | None) -> bytes:
    return content[:KEPT_LIMIT] if isinstance(content, bytes) else b""


def _answer(response: httpx.Response | None, *, secret: bool) -> bytes:
    if response is None or not hasattr(response, "_content"):
        return b""
    return b"[redacted]" if secret else response.content[:KEPT_LIMIT]


def _redacted(headers: httpx.Headers) -> dict[str, str]:
    return {
        name: "[redacted]" if name.lower() in SECRET_HEADERS else value
        for name, value in headers.items()
    }


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
