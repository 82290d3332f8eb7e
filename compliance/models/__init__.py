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
    DUE_SOON_DAYS,
    ESCALATION,
    Deadline,
    DeadlineQuerySet,
    escalation_level,
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
from compliance.models.record import (
    Event,
    LedgerEntry,
    LedgerHead,
)

__all__ = [
    "DUE_SOON_DAYS",
    "ESCALATION",
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
    "RegistrationEvent",
    "RegistrationEventQuerySet",
    "ScopedQuerySet",
    "ShareClass",
    "escalation_level",
]
