"""What happened to an intent, in plain words and in order, from the ledger and its attempts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from compliance.models import LedgerEntry
from portals.fallout import CAUSES
from portals.models import Attempt, Intent

# Ledger entries that people want to read; what a lane did shows better in its attempts.
TOLD: dict[str, str] = {
    "filing.draft": "{actor} opened the draft",
    "filing.edited": "{actor} edited the answers",
    "grant.draft": "{actor} opened the draft",
    "grant.edited": "{actor} edited the answers",
    "intent.ready": "{actor} put it back in the lane",
    "intent.receipted": "The portal has it and will decide",
    "intent.accepted": "Accepted",
    "intent.rejected": "The portal refused it",
    "intent.withdrawn": "{actor} withdrew it",
    "intent.fallout": "It was put before a person",
    "fallout.claimed": "{actor} took it",
    "fallout.released": "{actor} gave it back",
    "fallout.replay_requested": "{actor} asked to send it again",
    "fallout.replay_refused": "{actor} refused to send it again",
    "fallout.adopt": "{actor} adopted it as accepted",
}
OUTCOMES: dict[str, str] = {
    "open": "nothing known yet",
    "not_sent": "not sent after all",
    "accepted": "accepted",
    "received": "received; the portal will decide",
    "rejected": "refused",
    "unavailable": "the portal could not be reached",
    "in_doubt": "no answer that we can trust",
    "blocked": "the portal told us to stop",
    "changed": "an answer that we do not recognise",
    "answered": "answered",
    "not_found": "not found",
}
PURPOSES = {"send": "Sent", "look_up": "Looked up", "read": "Read"}


@dataclass(frozen=True)
class Told:
    """One line of the story."""

    at: datetime
    words: str
    detail: str = ""


def story_of(intent: Intent, attempts: Iterable[Attempt]) -> list[Told]:
    """What happened, in order, in plain words: from the ledger and from the attempts."""
    subject = f"{intent.kind.split('.')[0]}:{intent.subject_id}"
    entries = LedgerEntry.objects.filter(subject__in=[f"intent:{intent.pk}", subject])
    lines = [line for entry in entries.order_by("seq")[:500] if (line := _from_ledger(entry))]
    for attempt in attempts:
        lines += _from_attempt(attempt)
    return sorted(lines, key=lambda line: line.at)


def _from_ledger(entry: LedgerEntry) -> Told | None:
    data = json.loads(bytes(entry.body))["data"]
    if entry.type in ("filing.pending", "grant.pending") and data.get("came_from") == "draft":
        return Told(entry.at, f"{entry.actor} approved it")
    words = TOLD.get(entry.type)
    first_queued = entry.type == "intent.ready" and not data.get("came_from")
    if words is None or first_queued:  # that it was queued follows from its approval
        return None
    actor = "The lane" if entry.actor == "lanes" else entry.actor
    why = CAUSES.get(data.get("cause", ""), "") or data.get("reason", "")
    return Told(entry.at, words.format(actor=actor), why)


def _from_attempt(attempt: Attempt) -> list[Told]:
    did = PURPOSES[attempt.purpose]
    came = OUTCOMES[attempt.outcome]
    if attempt.ended_at is None or attempt.ended_at == attempt.armed_at:
        return [Told(attempt.armed_at, f"{did}: {came}", attempt.detail)]
    seconds = (attempt.ended_at - attempt.armed_at).total_seconds()
    return [
        Told(attempt.armed_at, did),
        Told(attempt.ended_at, f"After {seconds:.1f} s: {came}", attempt.detail),
    ]
