"""The append-only record: a chain of canonical entries under one head. Append and verify, no more.

An entry's digest covers the digest before it, so that no entry can be changed, removed or moved
without every later digest changing too. What a cut of the newest entries cannot hide is the head
digest that somebody keeps elsewhere.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from compliance.bulk import insert_rows
from compliance.errors import DomainError, Malformed
from compliance.history import acting_as
from compliance.models import LedgerEntry, LedgerHead

GENESIS = hashlib.sha256(b"goodstanding/ledger/v1").hexdigest()
COLUMNS = ("seq", "prev", "digest", "body", "at", "type", "actor", "subject", "portfolio")
LARGEST = 2**53 - 1  # beyond it, other languages read another number
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry before it has its place in the chain."""

    type: str
    subject: str
    actor: str
    portfolio_id: int | None
    at: datetime
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Break:
    """The first place where the chain does not hold."""

    seq: int
    why: str


@dataclass(frozen=True)
class Verdict:
    """What a verification saw."""

    entries: int
    head: str
    broken: Break | None


_drafts: ContextVar[list[Draft] | None] = ContextVar("ledger_drafts", default=None)


@contextmanager
def recording(by: User | None = None) -> Iterator[None]:
    """One transaction whose entries are appended at its very end, so that the head is locked last.

    Inside another one it joins that: the outermost appends. `by` is who the history of rows
    names; without it, whoever is acting already.
    """
    outer = _drafts.get()
    with transaction.atomic(), acting_as(by) if by else nullcontext():
        if outer is not None:
            before = len(outer)
            try:
                yield
            except BaseException:
                del outer[before:]
                raise
            return
        drafts: list[Draft] = []
        token = _drafts.set(drafts)
        try:
            yield
        finally:
            _drafts.reset(token)
        _append(drafts)


def record(
    *, type: str, subject: str, actor: str, portfolio_id: int | None = None, **data: Any
) -> None:
    """Put what is being done on the record, in the transaction that does it."""
    drafts = _drafts.get()
    if drafts is None:
        raise DomainError(f"“{type}” was to be recorded outside of ledger.recording().")
    told = _composed(type), _composed(subject), _composed(actor)
    drafts.append(Draft(*told, portfolio_id, timezone.now(), _composed(data)))


def canonical(value: dict[str, Any]) -> bytes:
    """The one byte form of an entry: sorted keys, NFC text, integers; anything else is refused."""
    if _composed(value) != value:
        raise Malformed("A ledger entry cannot hold text that is not in normal form C (NFC).")
    return _encode(value).encode()


def verify(*, since: int = 1) -> Verdict:
    """Read every entry from its stored bytes and say where the chain first fails, if it does."""
    prev, seq = GENESIS, 0
    entries = LedgerEntry.objects.order_by("seq")
    if since > 1:
        entries = entries.filter(seq__gte=since)
        before = LedgerEntry.objects.filter(seq=since - 1).values_list("digest", flat=True).first()
        prev, seq = before or GENESIS, since - 1
    checked = 0
    for entry in entries.iterator(chunk_size=2000):
        seq += 1
        if why := _fault(entry, seq, prev):
            return Verdict(checked, prev, Break(seq, why))
        prev, checked = entry.digest, checked + 1
    head = LedgerHead.objects.filter(pk=1).first()
    size, digest = (head.size, head.digest) if head else (0, GENESIS)
    if (size, digest) != (seq, prev):
        why = (
            f"the head says {size} entries and {digest[:12]}, the chain has {seq} and {prev[:12]}"
        )
        return Verdict(checked, prev, Break(seq + 1, why))
    return Verdict(checked, prev, None)


def _append(drafts: list[Draft]) -> None:
    if not drafts:
        return
    LedgerHead.objects.get_or_create(pk=1, defaults={"digest": GENESIS})
    head = LedgerHead.objects.select_for_update().get(pk=1)
    size, prev = head.size, head.digest
    rows = []
    for draft in drafts:
        size += 1
        body = _encode(_body(draft, size, prev)).encode()  # composed as it was recorded
        digest = _digest(prev, body)
        told = draft.at, draft.type, draft.actor, draft.subject, draft.portfolio_id
        rows.append((size, prev, digest, body, *told))
        prev = digest
    insert_rows(LedgerEntry, COLUMNS, rows)
    LedgerHead.objects.filter(pk=1).update(size=size, digest=prev)


def _body(draft: Draft, seq: int, prev: str) -> dict[str, Any]:
    return {
        "v": 1,
        "origin": settings.LEDGER_ORIGIN,
        "app": settings.VERSION,
        "seq": seq,
        "prev": prev,
        "at": draft.at.isoformat(),
        "type": draft.type,
        "actor": draft.actor,
        "subject": draft.subject,
        "portfolio": draft.portfolio_id,
        "data": draft.data,
    }


def _digest(prev: str, body: bytes) -> str:
    return hashlib.sha256(bytes.fromhex(prev) + body).hexdigest()


def _fault(entry: LedgerEntry, seq: int, prev: str) -> str:
    """Why this entry cannot stand at this place, or an empty string."""
    body = bytes(entry.body)
    if entry.seq != seq:
        return f"entry {seq} is missing; the next one is {entry.seq}"
    if entry.prev != prev or entry.digest != _digest(prev, body):
        return "its digest does not follow from the entry before it and its own bytes"
    try:
        read = json.loads(body)
        if canonical(read) != body:
            return "its bytes are not in canonical form"
    except (ValueError, Malformed):
        return "its bytes cannot be read"
    told = (read["seq"], read["prev"], read["at"], read["type"], read["actor"], read["subject"])
    shown = (entry.seq, entry.prev, entry.at.isoformat(), entry.type, entry.actor, entry.subject)
    if told != shown or read["portfolio"] != entry.portfolio_id:
        return "its columns say something else than its bytes"
    return ""


def _composed(value: Any) -> Any:
    """What an entry may hold, its text as NFC; a person's words never stop a transaction here.

    Every value of every entry comes through, so the common kinds are asked for first.
    """
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= LARGEST:
        return value
    if isinstance(value, dict) and all(_is_key(key) for key in value):
        return {key: _composed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_composed(item) for item in value]
    raise Malformed(
        f"A ledger entry cannot hold {type(value).__name__} {value!r:.60}: only objects "
        "with ASCII keys, lists, text, integers below 2^53, booleans and null."
    )


def _is_key(key: object) -> bool:
    return isinstance(key, str) and key.isascii()
