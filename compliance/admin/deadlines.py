"""Deadlines and the moves that settle them. Registered in filings/admin.py, which adds filings."""

from typing import Any

from django.contrib import messages
from django.http import (
    HttpRequest,
    HttpResponse,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from unfold.decorators import action, display

from compliance import wording
from compliance.admin.assignment import Assignable, named
from compliance.admin.filters import DueFilter, MineFilter, StageFilter
from compliance.admin.notices import sentence
from compliance.admin_base import (
    ReadOnly,
    ReasonForm,
    RefusalsTold,
    ScopedRelatedFilter,
    TrackedAdmin,
    go_to,
    person,
)
from compliance.errors import DomainError
from compliance.exposure import cost_per_day
from compliance.models import (
    Deadline,
)
from compliance.services import waive_deadline


class DeadlineAdmin(Assignable, ReadOnly, TrackedAdmin):
    """What is owed, to whom and when. Computed from the law; settled by moves alone."""

    list_display = [
        "title_shown", "jurisdiction", "due_shown", "fee_shown", "status_shown", "owner_shown",
        "cost_shown",
    ]  # fmt: skip
    list_display_links = ["title_shown"]
    list_filter = [
        MineFilter,
        DueFilter,
        StageFilter,
        "status",
        "registration__jurisdiction",
        "duty",
        "confidence",
        ("registration__entity__portfolio", ScopedRelatedFilter),
    ]
    list_select_related = ["registration__entity", "owner"]
    search_fields = ["title", "period", "registration__entity__name", "registration__file_number"]
    date_hierarchy = "due_on"
    actions = ["assign_selected"]
    actions_detail = ["assign", "waive"]
    readonly_fields = ["status_shown", "due_shown", "fee_shown", "cost_shown", "told_shown"]
    fieldsets = [
        (None, {"fields": ["registration", "title", "period", "status_shown", "settled_on"]}),
        (
            "When and how much",
            {
                "fields": [
                    "due_shown",
                    "target_on",
                    "opens_on",
                    "fee_shown",
                    "penalty",
                    "cost_shown",
                ]
            },
        ),
        ("Who", {"fields": ["owner", "backup", "told_shown"]}),
        ("Where", {"fields": ["portal", "form"]}),
        ("By what law", {"fields": ["citation", "confidence", "duty", "pack_sha256"]}),
    ]

    def has_waive_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may change deadlines at all."""
        return request.user.has_perm("compliance.change_deadline")

    @action(
        description="Waive",
        permissions=["waive"],
        dialog={
            "title": "Waive this deadline",
            "description": "Nothing will be filed for it. Cannot be undone.",
            "form_class": ReasonForm,
            "form_submit_text": "Waive this deadline",
        },
    )
    def waive(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        """Note that it need not be met."""
        deadline = self.found(request, object_id)
        with RefusalsTold(request):
            waive_deadline(
                deadline,
                on=timezone.localdate(),
                by=person(request),
                reason=form.cleaned_data["reason"],
            )
            messages.success(request, f"Waived: {deadline}.")
        return go_to(reverse("admin:compliance_deadline_change", args=[object_id]))

    @display(description="deadline", ordering="title", header=True)
    def title_shown(self, row: Deadline) -> list[str]:
        """What, and whose."""
        return [f"{row.title} {row.period}", row.registration.name]

    @display(description="owner", ordering="owner__username")
    def owner_shown(self, row: Deadline) -> str:
        """Who sees to it."""
        return named(row.owner)

    @display(description="told", empty_value="nobody yet")
    def told_shown(self, row: Deadline) -> SafeString | None:
        """Each rung that was reached, when, and who was told."""
        notices = row.notices.prefetch_related("people").order_by("pk")
        if not notices:
            return None
        return format_html_join(mark_safe("<br>"), "{}", ((sentence(one),) for one in notices))

    @display(description="jurisdiction", ordering="registration__jurisdiction")
    def jurisdiction(self, row: Deadline) -> str:
        """Where."""
        return row.registration.jurisdiction

    @display(description="due", ordering="due_on")
    def due_shown(self, row: Deadline) -> str:
        """When, and how far away that is."""
        return wording.day_and_distance(row.due_on, today=timezone.localdate())

    @display(description="fee", ordering="fee", empty_value="not known")
    def fee_shown(self, row: Deadline) -> SafeString | None:
        """How much, with the law behind it."""
        if row.fee is None:
            return None
        amount = wording.money(row.fee, row.currency)
        return format_html('<span title="{}">{}</span>', row.citation, amount)

    @display(description="status", ordering="status")
    def status_shown(self, row: Deadline) -> SafeString:
        """Its stage today, in a word; and whether the law behind it is certain."""
        stage = row.stage(timezone.localdate())
        word = f"{stage.label}, law to be reviewed" if row.needs_review else str(stage.label)
        dated = stage in (Deadline.Stage.DUE_SOON, Deadline.Stage.OVERDUE)
        return wording.state(stage if dated else row.status, word)

    @display(description="a day late costs", empty_value="nothing")
    def cost_shown(self, row: Deadline) -> str | None:
        """What is lost by filing tomorrow, or the day after it is due."""
        try:
            cost = cost_per_day(row, max(timezone.localdate(), row.due_on))
        except DomainError:  # a pack that cannot be read must not take the page with it
            return "not known"
        if not cost.at_most:
            return None
        amount = wording.money(cost.at_most, row.currency)
        return f"{amount}, only after a notice" if cost.on_notice else amount
