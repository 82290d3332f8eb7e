"""Registrations, and how old the evidence of their standing is. Registered in filings/admin.py."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import (
    HttpRequest,
)
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from compliance import wording
from compliance.admin_base import (
    ScopedRelatedFilter,
    TrackedAdmin,
)
from compliance.models import (
    Registration,
)


def stale_standing() -> Q:
    """Registrations whose evidence is older than its portal's limit; few limits exist."""
    now = timezone.now()
    limits = Registration.objects.order_by().values_list("standing_fresh_hours", flat=True)
    stale = Q(pk__in=[])
    for hours in set(limits.distinct()):
        read_before = now - timedelta(hours=hours)
        stale |= Q(standing_fresh_hours=hours, standing_read_at__lt=read_before)
    return stale


class StaleFilter(admin.SimpleListFilter):
    """By the age of the evidence."""

    title = "evidence"
    parameter_name = "evidence"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Two kinds of age."""
        return [("stale", "Stale"), ("current", "Not stale")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Older than the portal's limit, or not."""
        match self.value():
            case "stale":
                return queryset.filter(stale_standing())
            case "current":
                return queryset.exclude(stale_standing())
            case _:
                return queryset


def shown_standing(row: Registration) -> SafeString:
    """A standing with its shape; too old, it shows as stale."""
    word = row.get_standing_display()
    if row.standing_is_stale:
        return wording.state("stale", f"{word}, stale")
    return wording.state(row.standing, word)


class RegistrationAdmin(TrackedAdmin):
    """Entities in their jurisdictions, and how they stand there."""

    list_display = ["name_shown", "jurisdiction", "file_number", "standing_shown", "read_shown"]
    list_filter = [
        "standing",
        StaleFilter,
        "jurisdiction",
        "is_foreign",
        "management",
        ("ended_on", admin.EmptyFieldListFilter),
        ("entity__portfolio", ScopedRelatedFilter),
    ]
    list_select_related = ["entity"]
    search_fields = ["entity__name", "name_as_registered", "file_number"]
    autocomplete_fields = ["entity"]
    readonly_fields = ["management", "standing_shown", "evidence"]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    "entity",
                    ("jurisdiction", "is_foreign"),
                    "file_number",
                    "name_as_registered",
                    ("registered_on", "ended_on"),
                    "registered_agent",
                    "management",
                ]
            },
        ),
        ("Standing", {"fields": ["standing_shown", "evidence"]}),
    ]

    @display(description="name", ordering="entity__name")
    def name_shown(self, row: Registration) -> str:
        """The name under which the registry knows it."""
        return row.name

    @display(description="standing", ordering="standing")
    def standing_shown(self, row: Registration) -> SafeString:
        """Shape and word."""
        return shown_standing(row)

    @display(description="read", ordering="standing_read_at", empty_value="never")
    def read_shown(self, row: Registration) -> str | None:
        """How old the evidence is."""
        read_at = row.standing_read_at
        return wording.age(read_at, now=timezone.now()) if read_at else None

    @display(description="evidence")
    def evidence(self, row: Registration) -> SafeString:
        """What the registry said, where and when it was read."""
        if row.standing_read_at is None:
            return format_html("{}", "No registry has been asked yet.")
        return format_html(
            "“{}”, read {} ({}) from {}{}",
            row.standing_words,
            wording.age(row.standing_read_at, now=timezone.now()),
            wording.moment(row.standing_read_at),
            row.standing_source,
            f". Stale: older than {row.standing_fresh_hours} h." if row.standing_is_stale else ".",
        )
