"""Entities, registrations, deadlines and the record, as people see them.

Registrations and deadlines are registered in filings/admin.py, which adds what can be done there.
"""

import compliance.admin.entities
import compliance.admin.notices
import compliance.admin.record  # noqa: F401 - these register their pages
from compliance.admin.deadlines import DeadlineAdmin
from compliance.admin.registrations import RegistrationAdmin, stale_standing

__all__ = ["DeadlineAdmin", "RegistrationAdmin", "stale_standing"]
