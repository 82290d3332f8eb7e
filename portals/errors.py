"""What a portal may do to us, as five errors that double as outcomes.

They carry what the next step needs: what was recognised, and until when to keep away.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Category(StrEnum):
    """How an answer, or the lack of one, is classified for people and reports."""

    TRANSIENT_NETWORK = "TRANSIENT_NETWORK"
    RATE_LIMITED = "RATE_LIMITED"
    PORTAL_BLOCKED = "PORTAL_BLOCKED"
    SCHEMA_MISMATCH = "SCHEMA_MISMATCH"
    PERMANENT_FAILURE = "PERMANENT_FAILURE"
    IN_DOUBT = "IN_DOUBT"


@dataclass(eq=False)
class PortalError(Exception):
    """Something other than the answer we hoped for."""

    detail: str
    rule: str = ""  # the recogniser's rule that matched

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False)
class Unavailable(PortalError):
    """The portal did not process the request: it never left, or it was refused unread.

    `retry_after` seconds hold the whole lane; without it only this intent backs off.
    """

    retry_after: float | None = None
    category: Category = Category.TRANSIENT_NETWORK


@dataclass(eq=False)
class Rejected(PortalError):
    """The portal read it and refused it, with reasons."""

    reasons: tuple[str, ...] = ()
    category: Category = Category.PERMANENT_FAILURE


@dataclass(eq=False)
class InDoubt(PortalError):
    """It may have arrived; only evidence or a person can say."""

    category: Category = Category.IN_DOUBT


@dataclass(eq=False)
class Blocked(PortalError):
    """The portal keeps us out: 403 with a reset, a CAPTCHA, a block page. The lane stops."""

    retry_after: float | None = None
    needs_person: bool = False
    category: Category = Category.PORTAL_BLOCKED


@dataclass(eq=False)
class Changed(PortalError):
    """The portal no longer looks as its card says; nothing was sent that could count."""

    category: Category = Category.SCHEMA_MISMATCH
    seen: dict[str, str] = field(default_factory=dict)
