"""The corporate contract on localhost: submissions, look-ups, filings, standing, sessions."""

import hashlib
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from portals.cards import Card
from portals.simulator.answers import (
    DUPLICATE,
    EXPIRED,
    NO_SUCH_ROUTE,
    NOT_FOUND,
    Answer,
    problem,
    rejected,
)
from portals.simulator.oracle import Journal, Record
from portals.simulator.portal import SECRET, PortalSimulator, Route
from portals.simulator.sessions import COOKIE, Sessions
from portals.simulator.weather import Exposure, Fault

NAMES_A_DUTY = ("entity_number", "form", "period")
IN_GOOD_STANDING = "Good Standing"
# Entity numbers that begin so have a story, so that tests and demos can choose one.
REJECTED, BY_HAND, NOT_LISTED = "REJ", "HAND", "GONE"
WORDS = {"ODD": "Exempt \N{EN DASH} see remarks", "DEL": "Delinquent"}


class ContractSimulator(PortalSimulator):
    """A registry that speaks the reference contract, with what its card says it offers."""

    one_session_at_a_time = False
    unreadable_status = 400

    def __init__(
        self, card: Card, *, weather: str = "calm", seed: int = 0, journal: Journal | None = None
    ) -> None:
        super().__init__(card, weather=weather, seed=seed, journal=journal)
        self._forget()
        for record in self.oracle.acceptances:
            self._keep(record)

    def _forget(self) -> None:
        self._by_key: dict[str, Record] = {}
        self._by_entity: dict[str, list[Record]] = {}
        self.sessions = (
            Sessions(self.card.session_idle_seconds, one_at_a_time=self.one_session_at_a_time)
            if self.card.session_idle_seconds
            else None
        )

    def reset(self) -> None:
        """Forget everything and start the weather again."""
        super().reset()
        self._forget()

    def route(self, method: str, parts: list[str]) -> Route | None:
        """The contract's routes."""
        match method, parts:
            case "POST", ["submit"]:
                return Route("submit", self.submit, exposure=Exposure.DECISIVE)
            case "GET", ["submissions", key]:
                return Route("find", self.find, (key,))
            case "GET", ["entities", number, "filings"]:
                return Route("filings", self.filings, (number,))
            case "GET", ["entities", number, "status"]:
                return Route("status", self.status, (number,))
            case "POST", ["session"]:
                return Route("session", self.log_in, exposure=Exposure.DOOR)
            case (("HEAD" | "GET"), ["health"]):
                return Route("health", self.health, exposure=Exposure.DOOR)
        return None

    # What a state's own simulator may change.

    def problems(self, filing: Mapping[str, Any]) -> list[dict[str, str]]:
        """Why the portal rejects a filing; tests ask for a rejection by name."""
        if filing["entity_number"].startswith(REJECTED):
            return [problem("entity_number", "The entity may not file this form.")]
        fields = filing.get("fields")
        if isinstance(fields, dict) and fields.get("simulate") == "reject":
            return [problem("simulate", "Rejected as asked.")]
        return []

    def stored(self, filing: Mapping[str, Any], body: bytes) -> bytes:
        """What the portal keeps of a filing; a good one keeps the bytes as they came."""
        return body

    # The routes.

    async def submit(self, request: web.BaseRequest, fault: Fault) -> Answer:
        """Take a filing, unless the contract says otherwise."""
        body = await request.read()
        if self.sessions is not None and not self.sessions.admits(request):
            return EXPIRED
        key = request.headers.get("X-Idempotency-Key", "")
        if not key:
            return rejected([problem("X-Idempotency-Key", "is missing")], status=400)
        filing, unreadable = read_filing(body)
        if filing is None:
            return rejected(unreadable, status=self.unreadable_status)
        digest = hashlib.sha256(body).hexdigest()
        kept = self._kept_for(key)
        if kept is not None:
            return self._again(kept, digest)
        if self._refuses_as_duplicate(filing):
            return DUPLICATE
        return self._decide(key, filing, body, digest, fault)

    async def find(self, request: web.BaseRequest, fault: Fault, key: str) -> Answer:
        """What became of a submission; each look may bring a decision nearer."""
        if not self.card.lookup:
            return NO_SUCH_ROUTE
        self._touch_session(request)
        record = self._by_key.get(key)
        stale = fault.fault == "stale_lookup"
        if record is None or stale or record.visible_at > time.monotonic():
            return NOT_FOUND
        if record.looks_left:
            record.looks_left -= 1
            return self._found(record, "received")
        return self._found(record, "rejected" if record.errors else "accepted")

    async def filings(self, request: web.BaseRequest, fault: Fault, number: str) -> Answer:
        """What an entity has filed, by us or by hand."""
        if not self.card.lookup:
            return NO_SUCH_ROUTE
        self._touch_session(request)
        query = parse_qs(request.query_string)
        form, period = query.get("form", [""])[0], query.get("period", [""])[0]
        now = time.monotonic()
        found = [
            filing_line(record.form, record.period, record.confirmation_number, record.filed_at)
            for record in self._by_entity.get(number, ())
            if record.visible_at <= now
            and form in ("", record.form)
            and period in ("", record.period)
        ]
        if number.startswith(BY_HAND):
            found.insert(0, filing_line(form, period, f"PAPER-{number}", "2026-01-02T09:00:00Z"))
        return Answer(200, {"filings": found})

    async def status(self, request: web.BaseRequest, fault: Fault, number: str) -> Answer:
        """What the registry says about an entity, in its own words."""
        self._touch_session(request)
        told = self.truth.get(number, {})
        if number.startswith(NOT_LISTED) and not told:
            return NOT_FOUND
        return Answer(
            200,
            {
                "entity_number": number,
                "entity_name": told.get("entity_name", f"Entity {number}"),
                "status": told.get("status") or words_for(number),
                "as_of": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )

    async def log_in(self, request: web.BaseRequest, fault: Fault) -> Answer:
        """Open a session for any user who knows the one password."""
        if self.sessions is None:
            return NO_SUCH_ROUTE
        try:
            given = json.loads(await request.read())
        except ValueError:
            given = None
        if not isinstance(given, dict) or not given.get("user") or given.get("secret") != SECRET:
            return EXPIRED
        token, session = self.sessions.open()
        cookie = f"{COOKIE}={token}; Path=/{self.card.slug}; HttpOnly"
        return Answer(201, {"csrf_token": session.csrf_token}, {"Set-Cookie": cookie})

    async def health(self, request: web.BaseRequest, fault: Fault) -> Answer:
        """Open for business."""
        return Answer(200, {"status": "ok"})

    def end_session(self, request: web.BaseRequest) -> None:
        """Throw the caller out."""
        if self.sessions is not None:
            self.sessions.end(request)

    # Behind the routes.

    def _touch_session(self, request: web.BaseRequest) -> None:
        if self.sessions is not None:
            self.sessions.touch(request)

    def _kept_for(self, key: str) -> Record | None:
        """What a key stands for, while the portal keeps keys."""
        record = self._by_key.get(key) if self.card.key_retention_hours else None
        if record is None or time.time() - record.at > self.card.key_retention_hours * 3600:
            return None
        return record

    def _again(self, record: Record, digest: str) -> Answer:
        if record.received_sha256 != digest:
            return rejected([problem("X-Idempotency-Key", "was used for other content")])
        return self._first_answer(record)

    def _refuses_as_duplicate(self, filing: Mapping[str, Any]) -> bool:
        hours = self.card.duplicate_window_hours
        if not hours:
            return False
        if filing["entity_number"].startswith(BY_HAND):
            return True
        duty = tuple(filing[name] for name in NAMES_A_DUTY)
        since = time.time() - hours * 3600
        return any(
            record.duty == duty and record.at > since and not record.errors
            for record in self._by_entity.get(filing["entity_number"], ())
        )

    def _decide(
        self, key: str, filing: Mapping[str, Any], body: bytes, digest: str, fault: Fault
    ) -> Answer:
        later = fault.fault == "202_later"
        errors = self.problems(filing)
        if later and fault.rejects:
            errors = [problem("filing", "Rejected after review.")]
        kept = self.stored(filing, body)
        if fault.fault == "mangled":
            kept = mangled(filing)
        record = Record(
            key=key,
            entity_number=filing["entity_number"],
            form=filing["form"],
            period=filing["period"],
            received_sha256=digest,
            payload_sha256=digest if kept is body else hashlib.sha256(kept).hexdigest(),
            confirmation_number="" if errors else self._number(),
            at=time.time(),
            visible_at=self.hidden_until(fault),
            looks_left=fault.looks if later else 0,
            was_received=later,
            errors=tuple(errors),
        )
        self._keep(record)
        if not errors:
            # What was received counts from now on: a second one would be a duplicate.
            self.oracle.accept(record, by_hand=record.entity_number.startswith(BY_HAND))
        answer = self._first_answer(record)
        if fault.fault == "other_entity" and answer.status == 200:
            return Answer(200, {**accepted(record), "entity_number": "9999999"})
        return answer

    def _number(self) -> str:
        return f"{self.card.slug.upper()}-{self.oracle.next_number():08d}"

    def _keep(self, record: Record) -> None:
        known = self._by_key.get(record.key)
        if known is None or known.errors:
            self._by_key[record.key] = record
        if not record.errors:
            self._by_entity.setdefault(record.entity_number, []).append(record)

    def _first_answer(self, record: Record) -> Answer:
        if record.was_received:
            receipt = f"R-{record.received_sha256[:12].upper()}"
            return Answer(202, {"status": "received", "receipt_number": receipt})
        if record.errors:
            return rejected(list(record.errors))
        return Answer(200, accepted(record))

    @staticmethod
    def _found(record: Record, status: str) -> Answer:
        return Answer(
            200,
            {
                "status": status,
                "confirmation_number": (
                    record.confirmation_number if status == "accepted" else None
                ),
                "entity_number": record.entity_number,
                "period": record.period,
                "payload_sha256": record.payload_sha256,
                "errors": list(record.errors) if status == "rejected" else [],
            },
        )


def read_filing(body: bytes) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
    """A filing that names its duty, or what is wrong with the body."""
    try:
        filing = json.loads(body.decode("utf-8"))
    except ValueError:
        return None, [problem("body", "is not JSON in UTF-8")]
    if not isinstance(filing, dict):
        return None, [problem("body", "is not an object")]
    missing = [
        problem(name, "is missing")
        for name in NAMES_A_DUTY
        if not isinstance(filing.get(name), str) or not filing[name]
    ]
    return (None, missing) if missing else (filing, [])


def mangled(filing: Mapping[str, Any]) -> bytes:
    """A filing as a careless portal would store it: its name in capitals, a field lost."""
    name = str(filing.get("entity_name", "")).upper() + " "
    return json.dumps({**filing, "entity_name": name, "fields": {}}).encode()


def accepted(record: Record) -> dict[str, str]:
    """The answer to an accepted filing."""
    return {
        "status": "accepted",
        "confirmation_number": record.confirmation_number,
        "entity_number": record.entity_number,
        "period": record.period,
        "filed_at": record.filed_at,
    }


def filing_line(form: str, period: str, number: str, filed_at: str) -> dict[str, str]:
    """One filing in an entity's list."""
    return {
        "form": form,
        "period": period,
        "confirmation_number": number,
        "filed_at": filed_at,
    }


def words_for(number: str) -> str:
    """The registry's words for an entity nobody set the truth about."""
    for beginning, words in WORDS.items():
        if number.startswith(beginning):
            return words
    return IN_GOOD_STANDING
