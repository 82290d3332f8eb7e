"""The simulator's own ledger: what arrived and when, what was accepted, what broke the card."""

import json
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from portals.cards import Card

ARRIVALS_KEPT = 100_000  # in detail; the counts and the windows cover all of them


@dataclass(slots=True)
class Record:
    """What the portal holds about one submission."""

    key: str
    entity_number: str
    form: str
    period: str
    received_sha256: str
    payload_sha256: str  # of what it stored, which is not always what it received
    confirmation_number: str
    at: float  # seconds since the epoch
    visible_at: float = 0.0  # on the monotonic clock; look-ups do not see it before
    looks_left: int = 0  # look-ups that will still say it was only received
    was_received: bool = False  # answered with a receipt, to be decided later
    errors: tuple[dict[str, str], ...] = ()

    @property
    def duty(self) -> tuple[str, str, str]:
        """What it discharges; a portal should hold one acceptance for it."""
        return (self.entity_number, self.form, self.period)

    @property
    def filed_at(self) -> str:
        """When, as the portal prints it."""
        return datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")


class Journal:
    """Acceptances as lines of JSON, so that a portal remembers across restarts."""

    def __init__(self, path: Path) -> None:
        self._earlier: dict[str, list[Record]] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            self._remember(line)
        self._file = path.open("a", encoding="utf-8")
        if text and not text.endswith("\n"):
            self._file.write("\n")  # or the next line would be lost with the one that was cut

    def _remember(self, line: str) -> None:
        try:
            data = json.loads(line)
        except json.JSONDecodeError:
            return  # cut by a kill, so it was never answered
        slug = data.pop("slug")
        record = Record(**data | {"visible_at": 0.0, "errors": ()})
        self._earlier.setdefault(slug, []).append(record)

    def earlier(self, slug: str) -> list[Record]:
        """What one portal accepted in earlier runs."""
        return self._earlier.get(slug, [])

    def write(self, slug: str, record: Record) -> None:
        """Hand the line to the kernel before the answer leaves, so that a kill loses nothing."""
        self._file.write(json.dumps({"slug": slug, **asdict(record)}) + "\n")
        self._file.flush()

    def clear(self) -> None:
        """Forget everything."""
        self._file.truncate(0)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


class Oracle:
    """Counts at the portal, by the portal's clock. The client's view is never used."""

    def __init__(self, card: Card, journal: Journal | None = None) -> None:
        self.card = card
        self.journal = journal
        self.forget()
        for record in journal.earlier(card.slug) if journal else ():
            self._count(record, by_hand=False)

    def forget(self) -> None:
        """Start from nothing; what is under way right now is still counted out."""
        self.acceptances: list[Record] = []
        self.duplicates = 0
        self.requests = 0
        self.violations = {"limits": 0, "concurrency": 0}
        self.faults: Counter[str] = Counter()
        self._keys: set[str] = set()
        self._duties: set[tuple[str, str, str]] = set()
        self._arrivals: deque[tuple[float, str, str]] = deque(maxlen=ARRIVALS_KEPT)
        self._windows = [
            (deque[float](maxlen=limit.requests), limit.seconds) for limit in self.card.limits
        ]
        self.under_way = getattr(self, "under_way", 0)

    def arrive(self, method: str, path: str) -> float:
        """Count an arrival; the seconds to keep away if it broke the card, else 0."""
        at = time.monotonic()
        keep_away = 0.0
        for window, seconds in self._windows:
            # The window holds the last N arrivals: one more within W is the N+1st.
            if len(window) == window.maxlen and at - window[0] < seconds:
                self.violations["limits"] += 1
                keep_away = max(keep_away, window[0] + seconds - at)
            window.append(at)
        self.under_way += 1
        if self.under_way > self.card.max_concurrency:
            self.violations["concurrency"] += 1
            keep_away = max(keep_away, 1.0)
        self.requests += 1
        self._arrivals.append((at, method, path))
        return keep_away

    def depart(self) -> None:
        """Count an answer, or a client that has hung up."""
        self.under_way -= 1

    def next_number(self) -> int:
        """The next confirmation's place in the row."""
        return len(self.acceptances) + 1

    def accept(self, record: Record, *, by_hand: bool) -> None:
        """Enter an acceptance; `by_hand` says that somebody had filed the same before."""
        self._count(record, by_hand=by_hand)
        if self.journal:
            self.journal.write(self.card.slug, record)

    def _count(self, record: Record, *, by_hand: bool) -> None:
        names_a_duty = bool(record.entity_number and record.form)
        again = by_hand or record.key in self._keys
        if again or (names_a_duty and record.duty in self._duties):
            self.duplicates += 1
        self._keys.add(record.key)
        self._duties.add(record.duty)
        self.acceptances.append(record)

    def report(self, *, brief: bool = False) -> dict[str, Any]:
        """Everything the tests ask; in brief the two long lists are counts."""
        acceptances = [self._line(record) for record in self.acceptances] if not brief else []
        arrivals = (
            [{"at": at, "method": method, "path": path} for at, method, path in self._arrivals]
            if not brief
            else []
        )
        return {
            "acceptances": len(self.acceptances) if brief else acceptances,
            "duplicates": self.duplicates,
            "arrivals": self.requests if brief else arrivals,
            "requests": self.requests,
            "violations": dict(self.violations),
            "faults": dict(self.faults),
        }

    @staticmethod
    def _line(record: Record) -> dict[str, str]:
        return {
            "key": record.key,
            "entity_number": record.entity_number,
            "form": record.form,
            "period": record.period,
            "payload_sha256": record.payload_sha256,
            "confirmation_number": record.confirmation_number,
            "at": record.filed_at,
        }
