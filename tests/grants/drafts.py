"""Grant submissions as a person prepares them, for the tests of this room."""

import io
from typing import Any

from grants import services
from grants.models import GrantSubmission
from tests.factories import GrantSubmissionFactory

SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
BUDGET = b"twelve thousand for books"

ANSWERS: dict[str, Any] = {
    "project_title": "Reading rooms",
    "summary": "Two rooms with books.\n\nOpen after school.",
    "amount_requested_cents": 5_000_000,
    "project_starts_on": "2027-02-01",
    "focus_area": "education",
    "organization_name": "Harbor Light Inc.",
    "contact_name": "Ada Ng",
    "contact_email": "ada@harbor.example",
}


def attach(
    submission: GrantSubmission, content: bytes = BUDGET, *, name: str = "budget.xlsx"
) -> None:
    """Add a file as the submission's preparer."""
    services.attach_file(
        submission, name=name, file=io.BytesIO(content), content_type=SHEET,
        by=submission.prepared_by,
    )  # fmt: skip


def complete_draft(budget: bytes = BUDGET, **values: Any) -> GrantSubmission:
    """A draft that nothing stands in the way of."""
    draft = GrantSubmissionFactory(**{"answers": dict(ANSWERS), **values})
    attach(draft, budget)
    return draft
