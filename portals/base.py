"""The values that cross between lanes and adapters: plain, frozen, without a database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias

from portals.errors import Blocked, Changed, InDoubt, Rejected, Unavailable


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that goes with a submission; streamed from disk, never read whole."""

    name: str
    path: Path
    sha256: str
    size: int
    content_type: str


@dataclass(frozen=True, slots=True)
class Payload:
    """What is to be done at a portal: the frozen bytes, and what the answer must name."""

    key: str
    body: bytes
    trace_id: str
    entity_number: str = ""
    form: str = ""
    period: str = ""
    attachments: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """A recognised answer. `final` means the portal has accepted; else it will decide later."""

    number: str
    final: bool
    rule: str
    payload_sha256: str = ""  # what the portal says it holds, where it says so
    found: bool = False  # by a look-up, not as the answer to a submission


@dataclass(frozen=True, slots=True)
class Standing:
    """What a registry says about an entity, in its words and in ours."""

    standing: str  # one of Registration.Standing
    words: str
    source: str
    sha256: str
    rule: str
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as evidence: secrets are redacted before it is made."""

    method: str
    url: str
    sent_at: datetime
    took_ms: int
    request_headers: Mapping[str, str]
    request_body: bytes
    status: int = 0  # 0: no answer
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answer_body: bytes = b""
    fault: str = ""


Outcome: TypeAlias = Receipt | Standing | Unavailable | Rejected | InDoubt | Blocked | Changed


class Portal(Protocol):
    """What every adapter promises. Errors are raised as one of the five."""

    async def prepare(self, payload: Payload) -> None:
        """Do what may be repeated and must come before the point of no return."""

    async def submit(self, payload: Payload) -> Receipt:
        """Send a payload once; exactly one request in it is the point of no return."""

    async def find(self, payload: Payload) -> Receipt | None:
        """Look a submission up by its key; None means the portal says it never saw it."""

    async def filed_elsewhere(self, payload: Payload) -> str | None:
        """The confirmation number of what somebody else filed for this duty and period."""

    async def standing(self, payload: Payload) -> Standing:
        """Read what the registry says about an entity."""

    def forget_session(self) -> None:
        """Open a new session next time; where a portal has one at a time, that ends the old."""
