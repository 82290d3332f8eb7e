"""From an entity to answers, and from answers to the exact bytes that will be sent."""

import json
from datetime import datetime, time
from typing import Any

from compliance.models import Address, Entity, Registration
from filings.models import Filing
from portals.cards import Card
from portals.forms import Form

CHIEF = ("chief executive", "ceo", "president", "managing member", "manager")


def prefill(registration: Registration, form: type[Form]) -> dict[str, Any]:
    """The answers that we know, for the fields that the form has."""
    entity = registration.entity
    known = {
        "principal_address": _address(entity, Address.Use.PRINCIPAL),
        "mailing_address": _address(entity, Address.Use.MAILING),
        "process_address": _address(entity, Address.Use.PROCESS)
        or _address(entity, Address.Use.PRINCIPAL),
        "registered_agent": registration.registered_agent,
        "officers": _officers(entity),
        "chief_executive": _chief(entity),
    }
    return {name: value for name, value in known.items() if name in form.model_fields and value}


def freeze(filing: Filing) -> bytes:
    """The wire bytes of a filing: the same answers give the same bytes."""
    deadline = filing.deadline
    registration = deadline.registration
    document = {
        "form": filing.form,
        "entity_number": registration.file_number,
        "entity_name": registration.name,
        "jurisdiction": registration.jurisdiction,
        "period": deadline.period,
        "fields": filing.answers,
        "fee_cents": int(filing.fee * 100),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def end_of_day(filing: Filing, card: Card) -> datetime:
    """The last moment of the due date on the portal's clock."""
    return datetime.combine(filing.deadline.due_on, time.max, tzinfo=card.zone)


def _address(entity: Entity, use: str) -> str:
    return next((str(address) for address in entity.addresses.all() if address.use == use), "")


def _officers(entity: Entity) -> list[dict[str, str]]:
    return [
        {"name": officer.name, "title": officer.title, "address": officer.address}
        for officer in entity.officers.all()
        if officer.until is None
    ]


def _chief(entity: Entity) -> str:
    for officer in entity.officers.all():
        if officer.until is None and officer.title.casefold().startswith(CHIEF):
            return ", ".join(filter(None, [officer.name, officer.address]))
    return ""
