"""Portfolios, entities, registrations, deadlines; the ledger and its events."""

from compliance.models.access import (
    ApiToken,
    Membership,
    OwnedByEntity,
    OwnedByRegistration,
    Portfolio,
    ScopedQuerySet,
)
from compliance.models.deadlines import (
    Deadline,
    DeadlineQuerySet,
)
from compliance.models.entities import (
    JURISDICTION,
    Address,
    Entity,
    Officer,
    Registration,
    ShareClass,
)
from compliance.models.record import (
    Event,
    LedgerEntry,
    LedgerHead,
)

__all__ = [
    "JURISDICTION",
    "Address",
    "ApiToken",
    "Deadline",
    "DeadlineQuerySet",
    "Entity",
    "Event",
    "LedgerEntry",
    "LedgerHead",
    "Membership",
    "Officer",
    "OwnedByEntity",
    "OwnedByRegistration",
    "Portfolio",
    "Registration",
    "ScopedQuerySet",
    "ShareClass",
]
