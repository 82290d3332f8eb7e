"""Portfolios, entities, registrations, deadlines; the ledger and its events."""

from compliance.models.access import (
    ApiToken,
    Membership,
    OwnedByEntity,
    OwnedByRegistration,
    Portfolio,
    ScopedQuerySet,
    people_of,
)
from compliance.models.deadlines import (
    DUE_SOON_DAYS,
    Deadline,
    DeadlineQuerySet,
    Reckoning,
)
from compliance.models.entities import (
    JURISDICTION,
    Address,
    Entity,
    Officer,
    Registration,
    ShareClass,
)
from compliance.models.facts import RegistrationEvent, RegistrationEventQuerySet
from compliance.models.notices import Notice, NoticeCopy, Rung, escalation_level, ladder
from compliance.models.record import (
    Event,
    LedgerEntry,
    LedgerHead,
)

__all__ = [
    "DUE_SOON_DAYS",
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
    "Notice",
    "NoticeCopy",
    "Officer",
    "OwnedByEntity",
    "OwnedByRegistration",
    "Portfolio",
    "Reckoning",
    "Registration",
    "RegistrationEvent",
    "RegistrationEventQuerySet",
    "Rung",
    "ScopedQuerySet",
    "ShareClass",
    "escalation_level",
    "ladder",
    "people_of",
]
