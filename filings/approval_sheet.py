"""What an approval of many filings covers: counts, sums, and the digest that it binds to."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.contrib.auth.models import User

from compliance import wording
from filings.models import Filing
from filings.payloads import freeze
from filings.services import check_filing
from portals.holds import card_or_none

LARGEST = 10


def portal_title(slug: str) -> str:
    """A portal's name, or its slug where its folder has gone."""
    card = card_or_none(slug)
    return card.title if card else slug


def is_simulated(slug: str) -> bool:
    """Whether nobody has yet proven our code against the real portal."""
    card = card_or_none(slug)
    return card is not None and card.simulated


@dataclass(frozen=True)
class Selection:
    """What an approval of many filings would cover, and what it must leave out."""

    ready: list[Filing]
    blocked: list[tuple[Filing, list[str]]]

    @property
    def fees(self) -> Decimal:
        """The sum of the fees."""
        return sum((filing.fee for filing in self.ready), Decimal(0))

    @property
    def label(self) -> str:
        """What the button does and how far it reaches."""
        count = wording.counted(len(self.ready), "filing")
        return f"Approve {count}, {wording.money(self.fees)} in fees"

    @property
    def digest(self) -> str:
        """Names exactly these filings with exactly these bytes: what the approval binds to."""
        seen = hashlib.sha256()
        for filing in sorted(self.ready, key=lambda filing: filing.pk):
            seen.update(f"{filing.pk}:".encode() + hashlib.sha256(freeze(filing)).digest())
        return seen.hexdigest()

    @property
    def largest(self) -> list[tuple[Filing, str]]:
        """The ten highest fees."""
        rows = sorted(self.ready, key=lambda filing: -filing.fee)[:LARGEST]
        return [(filing, wording.money(filing.fee, filing.deadline.currency)) for filing in rows]

    @property
    def by_portal(self) -> list[tuple[str, int]]:
        """How many go where."""
        return Counter(portal_title(filing.portal) for filing in self.ready).most_common()


def selection_of(filings: Sequence[Filing], by: User) -> Selection:
    """Part what this person can approve from what stands in its own way."""
    chosen = Selection([], [])
    for filing in filings:
        if problems := _against(filing, by):
            chosen.blocked.append((filing, problems))
        else:
            chosen.ready.append(filing)
    return chosen


def _against(filing: Filing, by: User) -> list[str]:
    if filing.status != Filing.Status.DRAFT:
        return [f"It is {filing.get_status_display().lower()}, not a draft."]
    if filing.prepared_by_id == by.pk:
        return ["You prepared it, so somebody else must approve it."]
    return check_filing(filing)
