"""From an entity to answers, and from answers and files to the exact bytes that will be sent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compliance.errors import NotAllowed
from compliance.ledger import canonical
from compliance.models import Address, Entity
from grants.attachments import measure
from grants.models import GrantSubmission
from grants.schemas import Schema
from portals.base import Attached


def prefill(entity: Entity, schema: Schema) -> dict[str, Any]:
    """The answers that we know, for the fields that ask for them."""
    known = {
        "entity_name": entity.name,
        "home_jurisdiction": entity.home_jurisdiction,
        "principal_address": _principal_address(entity),
    }
    given = {rule.name: known.get(rule.prefill, "") for rule in schema.field}
    return {name: value for name, value in given.items() if value}


def freeze(submission: GrantSubmission, attached: Sequence[Attached]) -> bytes:
    """The wire bytes of a submission: the same answers and files give the same bytes.

    Files enter by name, type, size and digest; where they lie on our disk is nobody's business.
    """
    opportunity = submission.opportunity
    document = {
        "opportunity": opportunity.number,
        "schema_version": opportunity.schema_version,
        "applicant": submission.entity.name,
        "fields": answered(submission.answers),
        "attachments": [
            {
                "name": file.name,
                "content_type": file.content_type,
                "size": file.size,
                "sha256": file.sha256,
            }
            for file in attached
        ],
    }
    return canonical(document)


def attached_files(submission: GrantSubmission) -> tuple[Attached, ...]:
    """The files of a submission, read once more to see that they are what was attached."""
    found = []
    for row in submission.attachments.order_by("name"):
        path = Path(row.file.path)
        measured = measure(path)
        if measured is None or (measured.sha256, measured.size) != (row.sha256, row.size):
            gone = "is no longer on the disk" if measured is None else "has changed on the disk"
            raise NotAllowed(
                f"{row.name} {gone} since it was attached. Attach it again.", code="file_changed"
            )
        found.append(Attached(row.name, path, row.sha256, row.size, row.content_type))
    return tuple(found)


def answered(answers: dict[str, Any]) -> dict[str, Any]:
    """The fields that were filled in; one left empty is not sent."""
    return {name: value for name, value in answers.items() if value not in ("", None)}


def _principal_address(entity: Entity) -> str:
    found = entity.addresses.filter(use=Address.Use.PRINCIPAL).first()
    return str(found) if found else ""
