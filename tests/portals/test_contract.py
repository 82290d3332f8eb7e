"""What every adapter promises, asked of each one against its own simulator on a socket."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from portals import registry
from portals.base import Attached, Payload, Receipt
from portals.contract import Accepted, is_absence, parsed
from portals.errors import InDoubt, PortalError, Rejected, Unavailable
from portals.http import Attempting, NotSent, Wire, attempting
from portals.limiter import Limiter
from portals.simulator.running import Running

pytestmark = pytest.mark.django_db(transaction=True)

# One card for each adapter: what holds for one that has no code of its own holds for all.
CARDS = sorted({card.adapter: slug for slug, card in registry.cards().items()}.values())
CORPORATE = [slug for slug in CARDS if registry.card_of(slug).adapter != "funder"]

LOST = [
    "drop_before", "drop_after", "5xx_before", "5xx_after", "truncated", "login_page",
    "other_entity",
]  # fmt: skip


class Line:
    """An adapter on a line of its own, for one attempt."""

    def __init__(self, slug: str) -> None:
        self.card = registry.card_of(slug)
        self.attempt = Attempting(1, may_ask=lambda: True, may_commit=lambda: True)

    def ask(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run one call of the adapter; an error of the portal is its value."""

        async def inside() -> Any:
            limiter = Limiter(self.card.limits[:1], self.card.max_concurrency, quiet_for=99)
            async with Wire(self.card, limiter, version="test") as wire:
                module: Any = registry.module_of(self.card, "adapter")
                adapter = module.Adapter(wire, self.card, user="rehearsal", secret="rehearsal")
                attempting.set(self.attempt)
                try:
                    return await call(adapter)
                except PortalError as error:
                    return error

        return asyncio.run(inside())


def payload_for(slug: str, number: str = "7001", **values: Any) -> Payload:
    """A payload that the portal takes."""
    card = registry.card_of(slug)
    form = card.forms[0] if card.forms else ""
    body = (
        f'{{"form":"{form}","entity_number":"{number}","entity_name":"Acme","jurisdiction":"ZZ",'
        f'"period":"2026","fields":{{}},"fee_cents":5000}}'
    )
    known = {"key": f"key-{number}", "entity_number": number, "form": form, "period": "2026"}
    return Payload(**{**known, "body": body.encode(), "trace_id": "trace", **values})


@pytest.mark.parametrize("slug", CORPORATE)
def test_a_submission_is_accepted_and_found_under_its_key(slug: str, simulator: Running) -> None:
    payload = payload_for(slug)

    receipt = Line(slug).ask(lambda adapter: adapter.submit(payload))
    found = Line(slug).ask(lambda adapter: adapter.find(payload))

    assert isinstance(receipt, Receipt)
    assert receipt.final
    assert (found.number, found.found) == (receipt.number, True)


@pytest.mark.parametrize("slug", CARDS)
def test_a_key_that_was_never_sent_is_not_found(slug: str, simulator: Running) -> None:
    payload = payload_for(slug, key="never")

    assert Line(slug).ask(lambda adapter: adapter.find(payload)) is None


@pytest.mark.parametrize("slug", CORPORATE)
def test_a_refusal_carries_its_reasons(slug: str, simulator: Running) -> None:
    payload = payload_for(slug, "REJ-1")

    refused = Line(slug).ask(lambda adapter: adapter.submit(payload))

    assert isinstance(refused, Rejected)
    assert refused.reasons


@pytest.mark.parametrize("slug", CORPORATE)
def test_what_was_filed_by_hand_is_seen(slug: str, simulator: Running) -> None:
    payload = payload_for(slug, "HAND-1")

    assert Line(slug).ask(lambda adapter: adapter.filed_elsewhere(payload))


@pytest.mark.parametrize("slug", CARDS)
@pytest.mark.parametrize("fault", LOST)
def test_anything_unrecognised_after_the_point_of_no_return_is_a_doubt(
    slug: str, fault: str, simulator: Running
) -> None:
    if fault == "other_entity" and slug not in CORPORATE:
        fault = "5xx_after"  # a funder's answer names no entity
    simulator.script(slug, fault)
    line = Line(slug)

    ending = line.ask(lambda adapter: adapter.submit(payload_for(slug)))

    assert isinstance(ending, InDoubt)
    assert line.attempt.committed
    assert not line.attempt.refused


@pytest.mark.parametrize("slug", CARDS)
@pytest.mark.parametrize("fault", ["429", "503"])
def test_told_to_wait_means_not_processed(slug: str, fault: str, simulator: Running) -> None:
    simulator.script(slug, {"fault": fault, "seconds": 3})
    line = Line(slug)

    ending = line.ask(lambda adapter: adapter.submit(payload_for(slug)))

    assert isinstance(ending, Unavailable)
    assert ending.retry_after is not None
    assert 1 <= ending.retry_after <= 4
    assert line.attempt.refused


@pytest.mark.parametrize("slug", CARDS)
def test_a_fence_that_has_fallen_sends_nothing(slug: str, simulator: Running) -> None:
    line = Line(slug)
    line.attempt = Attempting(1, may_ask=lambda: True, may_commit=lambda: False)

    ending = line.ask(lambda adapter: adapter.submit(payload_for(slug)))

    assert isinstance(ending, NotSent)
    assert not line.attempt.committed
    assert simulator.oracle(slug)["acceptances"] == []


@pytest.mark.parametrize("slug", CARDS)
def test_a_portal_that_is_not_there_has_received_nothing(
    slug: str, simulator: Running, settings: Any
) -> None:
    settings.PORTALS_BASE_URL = "http://127.0.0.1:9"
    line = Line(slug)

    ending = line.ask(lambda adapter: adapter.submit(payload_for(slug)))

    assert isinstance(ending, Unavailable)
    assert not line.attempt.committed


@pytest.mark.parametrize("slug", CARDS)
def test_every_request_carries_what_the_contract_asks(slug: str, simulator: Running) -> None:
    line = Line(slug)

    line.ask(lambda adapter: adapter.submit(payload_for(slug)))

    sent = [
        {name.lower(): value for name, value in exchange.request_headers.items()}
        for exchange in line.attempt.exchanges
    ]
    assert sent
    for headers in sent:
        assert headers["cache-control"] == "no-cache, no-store, must-revalidate"
        assert headers["pragma"] == "no-cache"
        assert headers["user-agent"] == "Goodstanding/test"
        assert "if-none-match" not in headers
    assert sent[-1]["x-trace-id"] == "trace"


@pytest.mark.parametrize("slug", CARDS)
def test_no_secret_is_kept_with_the_evidence(slug: str, simulator: Running) -> None:
    line = Line(slug)

    line.ask(lambda adapter: adapter.submit(payload_for(slug)))

    kept = repr(line.attempt.exchanges)
    assert line.attempt.exchanges
    assert '"secret"' not in kept
    assert "Bearer" not in kept
    assert "csrf_token" not in kept


def test_attachments_are_streamed_with_their_digest(simulator: Running, tmp_path: Path) -> None:
    content = b"budget " * 100_000
    path = tmp_path / "budget.pdf"
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    attached = Attached("budget.pdf", path, digest, len(content), "application/pdf")
    payload = payload_for("bright-futures", attachments=(attached,))

    receipt = Line("bright-futures").ask(lambda adapter: adapter.submit(payload))

    assert isinstance(receipt, Receipt)
    held = simulator.oracle("bright-futures")["attachments"][payload.key]
    in_base64 = base64.b64encode(bytes.fromhex(digest)).decode()
    assert held == {"budget.pdf": f"sha-256={in_base64}"}


@pytest.mark.parametrize("number", ["9" * 201, "A-1\x00", "A-1\n2"])
def test_a_number_that_cannot_be_kept_is_not_recognised(number: str) -> None:
    told = {
        "status": "accepted", "confirmation_number": number, "entity_number": "7001",
        "period": "2026", "filed_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip
    answer = httpx.Response(200, json=told, request=httpx.Request("POST", "http://zz/submit"))

    with pytest.raises(InDoubt):
        parsed(Accepted, answer, 200, after_commit=True)


def test_a_gateways_own_404_is_no_absence() -> None:
    page = httpx.Response(404, html="<h1>Not Found</h1>")
    said = httpx.Response(404, json={"status": "not_found"})

    assert not is_absence(page)
    assert is_absence(said)
