"""The sidebar and the look of the admin."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def environment(request: HttpRequest) -> list[str] | None:
    """Says in the header that this is not the real thing, where it is not."""
    from django.conf import settings  # the settings import this module

    if settings.PORTALS_BASE_URL:
        return ["Rehearsal: simulated portals", "warning"]
    return ["Development", "info"] if settings.DEBUG else None


def waiting_badge(request: HttpRequest) -> str:
    """How many items wait in the review queue, for this user; nothing where none do."""
    from portals.models import Intent  # models cannot be imported while settings are read

    count = Intent.objects.fallout().visible_to(request.user).count()
    return f"{count:,}" if count else ""


def may(permission: str) -> Callable[[HttpRequest], bool]:
    """Show an item to who holds a permission."""
    return lambda request: bool(request.user.has_perm(permission))


def is_superuser(request: HttpRequest) -> bool:
    """Show an item to superusers."""
    return bool(request.user.is_superuser)


def item(title: str, icon: str, model: str, **more: Any) -> dict[str, Any]:
    """One link to a model's list, for who may see that model."""
    app, name = model.split(".")
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{name}_changelist"),
        "permission": may(f"{app}.view_{name}"),
        **more,
    }


# In the order in which people work.
SIDEBAR = [
    {
        "title": "Today",
        "items": [
            {"title": "What needs me", "icon": "today", "link": reverse_lazy("admin:index")}
        ],
    },
    {
        "title": "Filings",
        "items": [
            item("Filings", "description", "filings.filing"),
            item("Batches", "stacks", "filings.batch"),
            item("Standing checks", "fact_check", "filings.statuscheck"),
        ],
    },
    {
        "title": "Review queue",
        "items": [
            {
                "title": "Waiting for a person",
                "icon": "back_hand",
                "link": reverse_lazy("admin:portals_fallout"),
                "permission": may("portals.view_intent"),
                "badge": "config.navigation.waiting_badge",
                "badge_variant": "warning",
            },
        ],
    },
    {
        "title": "Entities",
        "items": [
            item("Entities", "domain", "compliance.entity"),
            item("Registrations", "app_registration", "compliance.registration"),
            item("Events of registrations", "history_edu", "compliance.registrationevent"),
            item("Officers", "badge", "compliance.officer"),
            item("Addresses", "location_on", "compliance.address"),
            item("Share classes", "pie_chart", "compliance.shareclass"),
        ],
    },
    {
        "title": "Deadlines",
        "items": [
            {
                **item("Deadlines", "event", "compliance.deadline"),
                "active": lambda request: (
                    "/compliance/deadline/" in request.path and "/amendments/" not in request.path
                ),
            },
            {
                "title": "Amendments",
                "icon": "gavel",
                "link": reverse_lazy("admin:filings_amendments"),
                "permission": may("compliance.view_deadline"),
            },
            item("Notices", "mark_email_read", "compliance.notice"),
        ],
    },
    {
        "title": "Grants",
        "items": [
            item("Applications", "volunteer_activism", "grants.grantsubmission"),
            item("Opportunities", "campaign", "grants.opportunity"),
            item("Funders", "account_balance", "grants.funder"),
            item("Attachments", "attach_file", "grants.attachment"),
        ],
    },
    {
        "title": "Portals",
        "collapsible": True,
        "items": [
            item("Portals", "language", "portals.portal"),
            item("Lanes", "alt_route", "portals.lane"),
            item("Credentials", "key", "portals.credential"),
            item("Limits used", "speed", "portals.limitblock"),
        ],
    },
    {
        "title": "Record",
        "collapsible": True,
        "items": [
            item("Ledger", "menu_book", "compliance.ledgerentry"),
            item("Head of the ledger", "link", "compliance.ledgerhead"),
            item("Events", "notifications", "compliance.event"),
            {
                **item("Intents", "send", "portals.intent"),
                "active": lambda request: (
                    "/portals/intent/" in request.path and "/fallout/" not in request.path
                ),
            },
            item("Attempts", "swap_vert", "portals.attempt"),
            item("Resolutions", "gavel", "portals.resolution"),
        ],
    },
    {
        "title": "People",
        "collapsible": True,
        "items": [
            item("People", "person", "auth.user"),
            item("Roles", "group", "auth.group"),
            item("Portfolios", "work", "compliance.portfolio"),
            item("Memberships", "diversity_3", "compliance.membership"),
            item("API tokens", "vpn_key", "compliance.apitoken"),
            {**item("Wake-ups", "schedule", "django_q.schedule"), "permission": is_superuser},
            {**item("Done tasks", "task_alt", "django_q.success"), "permission": is_superuser},
            {**item("Failed tasks", "error", "django_q.failure"), "permission": is_superuser},
            {**item("Queued tasks", "pending", "django_q.ormq"), "permission": is_superuser},
        ],
    },
]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Goodstanding",
    "SITE_HEADER": "Goodstanding",
    "SITE_SUBHEADER": "What is owed, filed and proven",
    "SITE_SYMBOL": "verified",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("goodstanding/favicon.svg"),
        }
    ],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "config.navigation.environment",
    "DASHBOARD_CALLBACK": "config.dashboard.dashboard",
    "STYLES": [lambda request: static("goodstanding/goodstanding.css")],
    "SCRIPTS": [lambda request: static("goodstanding/a11y.js")],
    "COMMAND": {
        "search_models": [
            "compliance.entity",
            "compliance.registration",
            "filings.filing",
            "grants.grantsubmission",
        ],
        "show_history": False,
    },
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "show_all_applications": False,
        "navigation": SIDEBAR,
    },
    # White on 600 and 600 on white are above 6 : 1; 500 on the dark ground is above 5 : 1.
    "COLORS": {
        "primary": {
            "50": "#eef6f9",
            "100": "#d8eaf1",
            "200": "#b3d5e2",
            "300": "#84bacd",
            "400": "#5ea7c0",
            "500": "#4a9bb7",
            "600": "#14627d",
            "700": "#115168",
            "800": "#0f4256",
            "900": "#0d3646",
            "950": "#082430",
        },
    },
}
