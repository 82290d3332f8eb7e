"""The reference contract, read strictly: a portal that speaks it needs only a card.

Only a recognised answer counts. Accepted means that the confirmation was parsed and names our
entity and period; whatever else comes back after the point of no return is a doubt.
"""

import asyncio
import hashlib
import json
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from portals.base import Payload, Receipt, Standing
from portals.cards import Card
from portals.errors import Blocked, Changed, InDoubt, Rejected, Unavailable
from portals.http import Wire, attempting

MAPPED_WORDS = Path(__file__).parent / "adapters" / "reference" / "standing.toml"


# What a portal says is kept as it is, so it must fit: short, and without control characters.
Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]

Words = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]


class Answer(BaseModel):
    """An answer of the contract. An unknown key means that the portal has changed."""

    model_config = ConfigDict(extra="forbid", strict=True)


Known = TypeVar("Known", bound=Answer)


class Problem(Answer):
    """Why one field was refused."""

    field: Words
    message: Words


class Accepted(Answer):
    """The portal has filed it."""

    status: Literal["accepted"]
    confirmation_number: Word
    entity_number: Word
    period: Word
    filed_at: Word


class Received(Answer):
    """The portal has it and will decide."""

    status: Literal["received"]
    receipt_number: Word


class Refused(Answer):
    """The portal read it and refused it."""

    status: Literal["rejected"]
    errors: list[Problem]


class Found(Answer):
    """What a look-up by key says."""

    status: Literal["accepted", "received", "rejected", "unknown"]
    confirmation_number: Word | None = None
    entity_number: Word | None = None
    period: Word | None = None
    payload_sha256: Word | None = None
    errors: list[Problem] = []


class Filed(Answer):
    """One filing that a registry shows for an entity."""

    form: Word
    period: Word
    confirmation_number: Word
    filed_at: Word


class FiledList(Answer):
    """All that it shows."""

    filings: list[Filed]


class Status(Answer):
    """A registry's words about an entity."""

    entity_number: Word
    entity_name: Word
    status: Word
    as_of: Word


class SessionOpened(Answer):
    """A session, with the token that its forms must carry."""

    csrf_token: str


class ContractAdapter:
    """Speaks the corporate contract, with or without a session, as the card says."""

    def __init__(self, wire: Wire, card: Card, *, user: str, secret: str) -> None:
        self.wire = wire
        self.card = card
        self.user = user
        self.secret = secret
        self.csrf_token = ""
        self.opening = asyncio.Lock()  # one log-in at a time, or each would end the other

    async def prepare(self, payload: Payload) -> None:
        """Log in, where the portal wants it."""
        await self._ensure_session()

    def forget_session(self) -> None:
        """Open a new session next time."""
        self.csrf_token = ""

    async def submit(self, payload: Payload) -> Receipt:
        """Send a filing once."""
        await self._ensure_session()
        headers = self._headers(payload)
        response = await self.wire.commit("POST", "/submit", content=payload.body, headers=headers)
        if response.status_code in (401, 419):
            attempting.get().refused = True  # the contract: not processed
            self._raise_if_session_ended(response, headers.get("X-CSRF-Token", ""))
        return self._recognised(response, payload)

    async def find(self, payload: Payload) -> Receipt | None:
        """Look a submission up by its key."""
        response = await self._read(f"/submissions/{payload.key}", payload)
        if is_absence(response):
            return None
        found = parsed(Found, response, 200)
        match found.status:
            case "rejected":
                raise Rejected("The portal refused it.", "find rejected", _reasons(found.errors))
            case "unknown":
                raise InDoubt(
                    "The portal knows the key but not what became of it.", "find unknown"
                )
            case "received":
                return Receipt("", final=False, rule="find received", found=True)
            case "accepted":
                return self._found(found, payload)

    async def filed_elsewhere(self, payload: Payload) -> str | None:
        """Ask whether this duty and period was already filed, by whomever."""
        response = await self._read(
            f"/entities/{quote(payload.entity_number, safe='')}/filings",
            payload,
            params={"form": payload.form, "period": payload.period},
        )
        for filed in parsed(FiledList, response, 200).filings:
            if (filed.form, filed.period) == (payload.form, payload.period):
                return filed.confirmation_number
        return None

    async def standing(self, payload: Payload) -> Standing:
        """Read the registry's words and map them; words we do not know are for a person."""
        path = f"/entities/{quote(payload.entity_number, safe='')}/status"
        response = await self._read(path, payload)
        source = str(response.request.url)
        digest = hashlib.sha256(response.content).hexdigest()
        if is_absence(response):
            return Standing("not_listed", "", source, digest, "status 404")
        status = parsed(Status, response, 200)
        if status.entity_number != payload.entity_number:
            raise Changed(f"Asked for {payload.entity_number}, told of {status.entity_number}.")
        mapped = self.words().get(_folded(status.status))
        return Standing(
            mapped or "pending_review",
            status.status,
            source,
            digest,
            "status words" if mapped else "status words unknown",
            status.as_of,
        )

    def words(self) -> dict[str, str]:
        """This registry's words, folded, and the standing each one means."""
        return mapped_words(MAPPED_WORDS)

    async def _read(
        self, path: str, payload: Payload, params: dict[str, str] | None = None
    ) -> httpx.Response:
        await self._ensure_session()
        token = self.csrf_token
        headers = {"X-Trace-Id": payload.trace_id}
        response = await self.wire.ask("GET", path, params=params, headers=headers)
        self._raise_if_session_ended(response, token)
        return response

    async def _ensure_session(self) -> None:
        """Log in where the portal wants it; repeatable, so it may start again from zero."""
        if not self.card.session_idle_seconds:
            return
        async with self.opening:
            if not self.csrf_token:
                self.csrf_token = await self._open_session()

    async def _open_session(self) -> str:
        self.wire.client.cookies.clear()
        body = json.dumps({"user": self.user, "secret": self.secret}).encode()
        headers = {"Content-Type": "application/json; charset=utf-8"}
        response = await self.wire.ask(
            "POST", "/session", content=body, headers=headers, secret=True
        )
        if response.status_code == 401:
            raise Blocked(
                f"{self.card.title} refuses our user name or secret. Correct the credential.",
                "session 401",
                needs_person=True,
            )
        return parsed(SessionOpened, response, 201).csrf_token

    def _raise_if_session_ended(self, response: httpx.Response, token: str) -> None:
        """The session of that token is over; a newer one may be open already."""
        if response.status_code in (401, 419):
            if self.csrf_token == token:
                self.csrf_token = ""
            raise Unavailable("The session had ended; a new one will be opened.", "session ended")

    def _headers(self, payload: Payload) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-Idempotency-Key": payload.key,
            "X-Trace-Id": payload.trace_id,
        }
        if self.csrf_token:
            headers["X-CSRF-Token"] = self.csrf_token
        return headers

    def _recognised(self, response: httpx.Response, payload: Payload) -> Receipt:
        """The receipt in an answer to a submission, or the error that it amounts to."""
        status = response.status_code
        if status in (400, 422):
            refused = parsed(Refused, response, status, after_commit=True)
            raise Rejected(
                "The portal refused it.", f"{status} rejected", _reasons(refused.errors)
            )
        if status == 409:
            raise InDoubt("The portal says that it has it already.", "409 duplicate")
        if status == 202:
            received = parsed(Received, response, 202, after_commit=True)
            return Receipt(received.receipt_number, final=False, rule="202 received")
        accepted = parsed(Accepted, response, 200, after_commit=True)
        named = (accepted.entity_number, accepted.period)
        if named != (payload.entity_number, payload.period) or not accepted.confirmation_number:
            raise InDoubt(f"The answer names {named}, not what we sent.", "200 names another")
        return Receipt(accepted.confirmation_number, final=True, rule="200 accepted")

    def _found(self, found: Found, payload: Payload) -> Receipt:
        if (found.entity_number, found.period) != (payload.entity_number, payload.period):
            raise Changed("The look-up names another entity or period than ours.")
        if not found.confirmation_number:
            raise InDoubt("The portal says accepted but gives no number.", "find without number")
        return Receipt(
            found.confirmation_number,
            final=True,
            rule="find accepted",
            payload_sha256=found.payload_sha256 or "",
            found=True,
        )


def is_absence(response: httpx.Response) -> bool:
    """The portal itself says that it is not there; a gateway's own page does not count."""
    said = response.headers.get("content-type", "").partition(";")[0].strip()
    return response.status_code == 404 and said == "application/json"


def parsed(
    model: type[Known], response: httpx.Response, status: int, *, after_commit: bool = False
) -> Known:
    """An answer of that shape, or what its strangeness means at this point of the road."""
    why = f"status {response.status_code} where we expected {status}"
    if response.status_code == status:
        try:
            return model.model_validate_json(response.content)
        except ValidationError as error:
            why = str(error).splitlines()[0]
    request = response.request
    detail = f"{request.method} {request.url.path} gave an answer that we do not know ({why})"
    rule = f"{response.status_code} unrecognised"
    if after_commit:
        raise InDoubt(f"{detail}; it may have been processed.", rule)
    raise Changed(f"{detail}.", rule)


@lru_cache(maxsize=64)
def mapped_words(path: Path) -> dict[str, str]:
    """A mapping table beside an adapter: standing → the words that mean it, folded for look-up."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {_folded(word): standing for standing, words in table.items() for word in words}


def _folded(words: str) -> str:
    return " ".join(words.casefold().split())


def _reasons(errors: list[Problem]) -> tuple[str, ...]:
    return tuple(f"{error.field}: {error.message}" for error in errors)
