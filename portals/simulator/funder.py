"""The funder contract on localhost: create, attach, finalize, look up."""

import base64
import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from portals.cards import Card
from portals.simulator.answers import DUPLICATE, EXPIRED, NOT_FOUND, Answer, problem
from portals.simulator.oracle import Journal, Record
from portals.simulator.portal import SECRET, PortalSimulator, Route
from portals.simulator.weather import Exposure, Fault

CHUNK = 64 * 1024


@dataclass(slots=True)
class Submission:
    """An application at the funder: open until it is finalized, then on the record."""

    id: str
    key: str
    received_sha256: str
    content: dict[str, Any] = field(default_factory=dict)
    attachments: dict[str, str] = field(default_factory=dict)
    record: Record | None = None


class FunderSimulator(PortalSimulator):
    """A funder that speaks the generic contract. Before finalize everything may be repeated.

    A submission that was only created is “received” and has no tracking number; finalize gives
    it one and moves it to “validating”, so that a look-up can tell the two apart.
    """

    def __init__(
        self, card: Card, *, weather: str = "calm", seed: int = 0, journal: Journal | None = None
    ) -> None:
        super().__init__(card, weather=weather, seed=seed, journal=journal)
        self._forget()
        for record in self.oracle.acceptances:
            self._keep(
                Submission(id_of(record.key), record.key, record.received_sha256, record=record)
            )

    def _forget(self) -> None:
        self._by_id: dict[str, Submission] = {}
        self._by_key: dict[str, Submission] = {}

    def reset(self) -> None:
        """Forget everything and start the weather again."""
        super().reset()
        self._forget()

    def route(self, method: str, parts: list[str]) -> Route | None:
        """The contract's routes."""
        match method, parts:
            case "POST", ["v2", "submissions"]:
                return Route("create", self.create)
            case "PUT", ["v2", "submissions", number, "attachments", name]:
                return Route("attach", self.attach, (number, name))
            case "POST", ["v2", "submissions", number, "finalize"]:
                return Route("finalize", self.finalize, (number,), Exposure.DECISIVE)
            case "GET", ["v2", "submissions", number]:
                return Route("find", self.find, (number,))
            case "GET", ["v2", "submissions"]:
                return Route("find", self.find_by_key)
            case (("HEAD" | "GET"), ["health"]):
                return Route("health", self.health, exposure=Exposure.DOOR)
        return None

    async def create(self, request: web.BaseRequest, fault: Fault) -> Answer:
        """Open a submission; the same key and content again give the same one."""
        body = await request.read()
        if not admits(request):
            return EXPIRED
        key = request.headers.get("Idempotency-Key", "").strip('"')
        content, problems = read_application(body)
        if not key:
            problems = [problem("Idempotency-Key", "is missing")]
        if problems:
            return Answer(422, {"errors": problems})
        digest = hashlib.sha256(body).hexdigest()
        earlier = self._by_key.get(key)
        if earlier is None:
            earlier = self._keep(Submission(id_of(key), key, digest, content))
        elif earlier.received_sha256 != digest:
            return Answer(422, {"errors": [problem("Idempotency-Key", "used for other content")]})
        elif earlier.record is not None:
            return DUPLICATE
        return Answer(201, {"id": earlier.id, "status": "received"})

    async def attach(
        self, request: web.BaseRequest, fault: Fault, number: str, name: str
    ) -> Answer:
        """Take a file as it streams in, if its digest is the one announced."""
        digest = hashlib.sha256()
        async for chunk in request.content.iter_chunked(CHUNK):
            digest.update(chunk)
        if not admits(request):
            return EXPIRED
        submission = self._by_id.get(number)
        if submission is None:
            return NOT_FOUND
        sent = f"sha-256={base64.b64encode(digest.digest()).decode()}"
        if request.headers.get("Digest") != sent:
            return Answer(422, {"errors": [problem("Digest", "does not match the content")]})
        known = submission.attachments.get(name) == sent
        if submission.record is not None and not known:
            return DUPLICATE
        submission.attachments[name] = sent
        return Answer(200 if known else 201, {"name": name})

    async def finalize(self, request: web.BaseRequest, fault: Fault, number: str) -> Answer:
        """Submit. There is no way back; a second time gives the first time's answer."""
        await request.read()
        if not admits(request):
            return EXPIRED
        submission = self._by_id.get(number)
        if submission is None:
            return NOT_FOUND
        if submission.record is None:
            submission.record = self._record(submission, fault)
            if not submission.record.errors:
                self.oracle.accept(submission.record, by_hand=False)
        return Answer(202, described(submission, "validating"))

    async def find(self, request: web.BaseRequest, fault: Fault, number: str) -> Answer:
        """Look a submission up by its number."""
        return self._look(request, fault, self._by_id.get(number))

    async def find_by_key(self, request: web.BaseRequest, fault: Fault) -> Answer:
        """Look a submission up by its key."""
        key = parse_qs(request.query_string).get("key", [""])[0]
        return self._look(request, fault, self._by_key.get(key))

    async def health(self, request: web.BaseRequest, fault: Fault) -> Answer:
        """Open for business."""
        return Answer(200, {"status": "ok"})

    def report(self, *, brief: bool = False) -> dict[str, Any]:
        """What the oracle knows, and the digests of the files that came, by key and name."""
        told = super().report(brief=brief)
        if not brief:
            told["attachments"] = {
                submission.key: dict(submission.attachments) for submission in self._by_id.values()
            }
        return told

    def _look(
        self, request: web.BaseRequest, fault: Fault, submission: Submission | None
    ) -> Answer:
        if not admits(request):
            return EXPIRED
        stale = fault.fault == "stale_lookup"
        if submission is None or stale:
            return NOT_FOUND
        record = submission.record
        if record is None:
            return Answer(200, described(submission, "received"))
        if record.visible_at > time.monotonic():
            return NOT_FOUND
        if record.looks_left:
            record.looks_left -= 1
            return Answer(200, described(submission, "validating"))
        if not record.was_received:
            return Answer(200, described(submission, "rejected" if record.errors else "accepted"))
        record.was_received = False
        return Answer(200, described(submission, "rejected" if record.errors else "validated"))

    def _record(self, submission: Submission, fault: Fault) -> Record:
        later = fault.fault == "202_later"
        asked_for = submission.content.get("simulate") == "reject_later"
        rejects = asked_for or (later and fault.rejects)
        kept = submission.received_sha256
        if fault.fault == "mangled":
            kept = hashlib.sha256(json.dumps(submission.content).upper().encode()).hexdigest()
        return Record(
            key=submission.key,
            entity_number=first_text(submission.content, "entity_number", "applicant"),
            form=first_text(submission.content, "form", "opportunity"),
            period=first_text(submission.content, "period"),
            received_sha256=submission.received_sha256,
            payload_sha256=kept,
            confirmation_number=f"{self.card.slug.upper()}-{self.oracle.next_number():08d}",
            at=time.time(),
            visible_at=self.hidden_until(fault),
            looks_left=fault.looks if later else 1,
            was_received=later,
            errors=(problem("application", "Rejected after review."),) if rejects else (),
        )

    def _keep(self, submission: Submission) -> Submission:
        self._by_id[submission.id] = submission
        self._by_key[submission.key] = submission
        return submission


def admits(request: web.BaseRequest) -> bool:
    """Whether the request carries the one key that every simulated funder takes."""
    return request.headers.get("Authorization") == f"Bearer {SECRET}"


def id_of(key: str) -> str:
    """The funder's number for a key, the same after a restart."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def read_application(body: bytes) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """An application, and why the funder refuses it; tests ask for a refusal by name."""
    try:
        content = json.loads(body.decode("utf-8"))
    except ValueError:
        return {}, [problem("body", "is not JSON in UTF-8")]
    if not isinstance(content, dict):
        return {}, [problem("body", "is not an object")]
    fields = content.get("fields")
    asked_for = fields.get("simulate") if isinstance(fields, dict) else content.get("simulate")
    if asked_for == "reject" or first_text(content, "entity_number", "applicant").startswith(
        "REJ"
    ):
        return content, [problem("simulate", "Rejected as asked.")]
    return {**content, "simulate": asked_for}, []


def first_text(content: dict[str, Any], *names: str) -> str:
    """The first of these names that holds text."""
    return next((content[name] for name in names if isinstance(content.get(name), str)), "")


def described(submission: Submission, status: str) -> dict[str, Any]:
    """A submission as the funder shows it."""
    record = submission.record
    return {
        "id": submission.id,
        "status": status,
        "tracking_number": record.confirmation_number if record else None,
        "errors": list(record.errors) if record and status == "rejected" else [],
    }
