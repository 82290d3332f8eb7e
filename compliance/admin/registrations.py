"""Registrations, and how old the evidence of their standing is. Registered in filings/admin.py."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget

from compliance import wording
from compliance.admin.facts import FactsOnPage
from compliance.admin_base import (
    ReasonForm,
    RefusalsTold,
    ScopedRelatedFilter,
    TrackedAdmin,
    go_to,
    person,
)
from compliance.models import (
    Registration,
)
from compliance.services import moved_by_management, set_management


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


class ManagementForm(ReasonForm):
    """Asks how a registration is managed from now on, and says what that does."""

    form_before_template = "admin/compliance/management_dialog.html"
    field_order = ["management", "reason"]
    management = forms.ChoiceField(
        label="From now on",
        choices=Registration.Management.choices,
        widget=UnfoldAdminSelectWidget(),
    )

    def get_before_template_context(
        self, request: HttpRequest, object_id: int | str | None = None
    ) -> dict[str, Any]:
        """How many deadlines go, or come back."""
        page: Any = admin.site.get_model_admin(Registration)
        row = page.found(request, object_id)
        today = timezone.localdate()
        go = moved_by_management(row, Registration.Management.DORMANT, today=today).count()
        back = moved_by_management(row, Registration.Management.MANAGED, today=today).count()
        managed, *others = (str(label).lower() for label in Registration.Management.labels)
        return {
            "registration": row,
            "now": row.get_management_display().lower(),
            "stopping": f"{', '.join(others).capitalize()}: "
            f"{wording.counted(go, 'deadline')} to come would no longer be due.",
            "beginning": f"{managed.capitalize()}: "
            f"{wording.counted(back, 'deadline')} would be owed again.",
        }


class RegistrationAdmin(FactsOnPage, TrackedAdmin):
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
    actions_detail = ["manage"]
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

    def has_manage_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may begin or stop looking after a registration."""
        return request.user.has_perm("compliance.manage_registration")

    @action(
        description="Manage",
        permissions=["manage"],
        dialog={
            "title": "How this registration is managed",
            "description": "",
            "form_class": ManagementForm,
            "form_submit_text": "Change how it is managed",
        },
    )
    def manage(self, request: HttpRequest, form: ManagementForm, object_id: str) -> HttpResponse:
        """Begin or stop looking after it; its deadlines to come follow."""
        row = self.found(request, object_id)
        to, today = form.cleaned_data["management"], timezone.localdate()
        is_same = row.management == to
        reach = wording.counted(moved_by_management(row, to, today=today).count(), "deadline")
        with RefusalsTold(request):
            row = set_management(
                row, to, by=person(request), reason=form.cleaned_data["reason"], today=today
            )
            word = row.get_management_display().lower()
            told = f"It is {word} already." if is_same else f"Now {word}; {reach} moved with it."
            messages.success(request, told)
        return go_to(reverse("admin:compliance_registration_change", args=[object_id]))

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
