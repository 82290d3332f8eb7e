"""What django-q2 calls. A task is only a wake-up: the truth is in our tables."""

import logging
from dataclasses import asdict
from typing import Any

from compliance.escalation import escalate_deadlines
from compliance.history import service_user

log = logging.getLogger(__name__)


def tell_of_deadlines() -> dict[str, Any]:
    """Climb the escalation ladder for today."""
    report = escalate_deadlines(by=service_user("escalation"))
    if report.nobody_to_tell:
        log.warning("Rungs with nobody to tell: %s. Name owners.", report.nobody_to_tell)
    return asdict(report)
