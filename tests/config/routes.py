"""Every route of the API and what it takes to use it. A new route needs a row here."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admindocs.views import simplify_regex
from django.urls import URLPattern, URLResolver, get_resolver

READ = "read"
PREPARE, APPROVE = "filings.prepare_filing", "filings.approve_filing"
WITHDRAW, CHECK = "filings.withdraw_filing", "filings.request_check"
TELL = "compliance.change_registration"
WORK, RESEND = "portals.work_fallout", "portals.approve_resend"
PREPARE_GRANT, APPROVE_GRANT = "grants.prepare_grant", "grants.approve_grant"

PERMISSION_OF = {
    "GET portfolios": READ,
    "GET portfolios/<slug>": READ,
    "GET entities": READ,
    "GET entities/<pk>": READ,
    "GET entities/<pk>/franchise-tax": READ,
    "POST franchise-tax": READ,  # it computes and keeps nothing
    "GET registrations": READ,
    "GET registrations/<pk>": READ,
    "POST registrations/<pk>/check_standing": CHECK,
    "POST registrations/<pk>/set_management": "compliance.manage_registration",
    "GET registrations/<pk>/facts": READ,
    "POST registrations/<pk>/set_traits": TELL,
    "POST registrations/<pk>/record_event": TELL,
    "POST registrations/<pk>/retract_event": TELL,
    "GET deadlines": READ,
    "GET deadlines/<pk>": READ,
    "POST deadlines/<pk>/assign": "compliance.assign_deadline",
    "POST preview-deadlines": READ,  # it computes and keeps nothing
    "GET filings": READ,
    "POST filings": PREPARE,
    "GET filings/<pk>": READ,
    "PATCH filings/<pk>": PREPARE,
    "POST filings/<pk>/check": PREPARE,
    "POST filings/<pk>/approve": APPROVE,
    "POST filings/<pk>/withdraw": WITHDRAW,
    "GET batches": READ,
    "GET batches/<pk>": READ,
    "GET status-checks": READ,
    "GET status-checks/<pk>": READ,
    "GET portals": READ,
    "GET portals/<slug>": READ,
    "GET intents": READ,
    "GET intents/<pk>": READ,
    "GET fallout": READ,
    "GET fallout/<pk>": READ,
    "POST fallout/<pk>/claim": WORK,
    "POST fallout/<pk>/release": WORK,
    "POST fallout/<pk>/adopt": WORK,
    "POST fallout/<pk>/withdraw": WORK,
    "POST fallout/<pk>/request_replay": WORK,
    "GET resolutions": READ,
    "GET resolutions/<pk>": READ,
    "POST resolutions/<pk>/approve": RESEND,
    "POST resolutions/<pk>/refuse": RESEND,
    "GET ledger": READ,
    "GET ledger/<pk>": READ,
    "GET events": READ,
    "GET events/<pk>": READ,
    "GET funders": READ,
    "GET funders/<slug>": READ,
    "GET opportunities": READ,
    "GET opportunities/<pk>": READ,
    "GET grant-submissions": READ,
    "GET grant-submissions/<pk>": READ,
    "POST grant-submissions/<pk>/check": PREPARE_GRANT,
    "POST grant-submissions/<pk>/approve": APPROVE_GRANT,
    "POST grant-submissions/<pk>/withdraw": "grants.withdraw_grant",
}
# What belongs to no portfolio: whoever may read, reads it.
SHARED = ("portals", "funders", "opportunities")


def routes() -> Iterator[str]:
    """Every method and path that the URLconf has under /api/v1, hidden from OpenAPI or not."""
    for path, view in _views(get_resolver(), ""):
        if not path.startswith("/api/v1/"):
            continue
        short = path.removeprefix("/api/v1/").rstrip("/")
        for method in getattr(view, "actions", {"any": ""}):
            if method != "head":
                yield f"{method.upper()} {short}"


def _views(resolver: URLResolver, before: str) -> Iterator[tuple[str, Any]]:
    for pattern in resolver.url_patterns:
        regex = before + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield simplify_regex(regex), pattern.callback
        else:
            yield from _views(pattern, regex)
