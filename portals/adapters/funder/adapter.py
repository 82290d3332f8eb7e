"""Any funder that speaks the funder contract: create, attach, finalize.

Creating and attaching may be repeated with the same key. The point of no return is finalize.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import httpx

from portals.base import Attached, Payload, Receipt, Standing
from portals.cards import Card
from portals.contract import Answer, Problem, Word, is_absence, parsed
from portals.errors import Blocked, Changed, InDoubt, Rejected
from portals.http import Wire

CHUNK = 64 * 1024


class Created(Answer):
    """The funder has a place for our submission."""

    id: Word
    status: Literal["received"]


class Refused(Answer):
    """The funder read it and refused it."""

    errors: list[Problem]


class Submission(Answer):
    """What the funder says of a submission."""

    id: Word
    status: Literal["received", "validating", "validated", "rejected", "accepted"]
    tracking_number: Word | None = None
    errors: list[Problem] = []


class Adapter:
    """Speaks the funder contract with a bearer key."""

    def __init__(self, wire: Wire, card: Card, *, user: str, secret: str) -> None:
        self.wire = wire
        self.card = card
        self.secret = secret
        self.prepared: dict[str, Submission] = {}

    async def prepare(self, payload: Payload) -> None:
        """Create and attach: it takes its time, and may be repeated with the same key."""
        made = await self._create(payload)
        if not _is_finalized(made):
            for attached in payload.attachments:
                await self._attach(made.id, attached, payload)
        self.prepared[payload.key] = made

    def forget_session(self) -> None:
        """A bearer key needs no session."""

    async def submit(self, payload: Payload) -> Receipt:
        """Finalize once what was prepared."""
        if payload.key not in self.prepared:
            await self.prepare(payload)
        made = self.prepared.pop(payload.key)
        if _is_finalized(made):  # by an attempt that we have forgotten
            return _receipt(made)
        response = await self.wire.commit(
            "POST", f"/v2/submissions/{made.id}/finalize", headers=self._headers(payload)
        )
        finalized = parsed(Submission, response, 202, after_commit=True)
        if finalized.id != made.id:
            raise InDoubt("The answer names another submission than ours.", "202 names another")
        return Receipt(finalized.tracking_number or "", final=False, rule="202 finalized")

    async def find(self, payload: Payload) -> Receipt | None:
        """Look it up by key. One that was created but never finalized counts as not there."""
        found = await self._by_key(payload)
        if found is None or not _is_finalized(found):
            return None
        if found.status == "rejected":
            raise Rejected("The funder refused it.", "find rejected", _reasons(found.errors))
        return _receipt(found)

    async def filed_elsewhere(self, payload: Payload) -> str | None:
        """The contract has no look-up by applicant: only our own key can be asked for."""
        return None

    async def standing(self, payload: Payload) -> Standing:
        """A funder keeps no register."""
        raise Changed("A funder's portal has no standing to read; check the duty's portal.")

    async def _create(self, payload: Payload) -> Submission:
        headers = self._headers(payload) | {"Content-Type": "application/json; charset=utf-8"}
        response = await self._ask(
            "POST", "/v2/submissions", content=payload.body, headers=headers
        )
        if response.status_code == 422:
            refused = parsed(Refused, response, 422)
            raise Rejected("The funder refused it.", "422 create", _reasons(refused.errors))
        if response.status_code == 409:
            found = await self._by_key(payload)
            if found is None:
                raise Changed("The funder calls it a duplicate, but does not find our key.")
            return found
        created = parsed(Created, response, 201)
        return Submission(id=created.id, status=created.status)

    async def _attach(self, number: str, attached: Attached, payload: Payload) -> None:
        digest = base64.b64encode(bytes.fromhex(attached.sha256)).decode()
        headers = self._headers(payload) | {
            "Content-Type": attached.content_type,
            "Content-Length": str(attached.size),
            "Digest": f"sha-256={digest}",
        }
        response = await self._ask(
            "PUT",
            f"/v2/submissions/{number}/attachments/{attached.name}",
            content=streamed(attached.path),
            headers=headers,
        )
        if response.status_code not in (200, 201):
            raise Changed(f"The funder did not take “{attached.name}”: {response.status_code}.")

    async def _by_key(self, payload: Payload) -> Submission | None:
        response = await self._ask(
            "GET", "/v2/submissions", params={"key": payload.key}, headers=self._headers(payload)
        )
        return None if is_absence(response) else parsed(Submission, response, 200)

    async def _ask(self, method: str, path: str, **options: object) -> httpx.Response:
        response = await self.wire.ask(method, path, **options)
        if response.status_code == 401:
            raise Blocked(
                f"{self.card.title} refuses our key. Correct the credential.",
                "401",
                needs_person=True,
            )
        return response

    def _headers(self, payload: Payload) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.secret}",
            "Idempotency-Key": f'"{payload.key}"',
            "X-Trace-Id": payload.trace_id,
        }


async def streamed(path: Path) -> AsyncIterator[bytes]:
    """A file in chunks, read off the event loop and never held whole."""
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


def _is_finalized(made: Submission) -> bool:
    """Created alone it is only received, and has no number."""
    return made.status != "received" or made.tracking_number is not None


def _receipt(found: Submission) -> Receipt:
    final = found.status == "accepted"
    if final and not found.tracking_number:
        raise Changed("The funder says accepted but gives no tracking number.")
    return Receipt(
        found.tracking_number or "", final=final, rule=f"find {found.status}", found=True
    )


def _reasons(errors: list[Problem]) -> tuple[str, ...]:
    return tuple(f"{error.field}: {error.message}" for error in errors)
