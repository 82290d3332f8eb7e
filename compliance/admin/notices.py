"""Notices, to read: who was told of which deadline, when, and by which rung of the ladder."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from compliance import wording
from compliance.admin_base import ReadOnly, ScopedAdmin, ScopedRelatedFilter
from compliance.models import Notice


def sentence(notice: Notice) -> str:
    """One rung as the deadline's page tells it."""
    people = ", ".join(user.username for user in notice.people.all())
    nobody = "; nobody owned it" if notice.is_unowned else ""
    return f"{notice.get_rung_display()} on {wording.day(notice.at.date())}: {people}{nobody}"


@admin.register(Notice)
class NoticeAdmin(ReadOnly, ScopedAdmin):
    """Who was told of what. Written by the escalation alone."""

    list_display = ["deadline", "rung", "told_shown", "days_left", "is_unowned", "at"]
    list_filter = [
        "rung",
        "is_unowned",
        ("deadline__registration__entity__portfolio", ScopedRelatedFilter),
    ]
    list_select_related = ["deadline__registration__entity"]
    search_fields = [
        "deadline__title", "deadline__registration__entity__name", "people__username",
    ]  # fmt: skip
    fields = ["deadline_shown", "rung", "days_left", "is_unowned", "at", "copies_shown"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """With those who were told."""
        return super().get_queryset(request).prefetch_related("people")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All of it."""
        return self.fields

    @display(description="told")
    def told_shown(self, row: Notice) -> str:
        """User names."""
        return ", ".join(user.username for user in row.people.all())

    @display(description="deadline")
    def deadline_shown(self, row: Notice) -> SafeString:
        """The way to it."""
        url = reverse("admin:compliance_deadline_change", args=[row.deadline_id])
        return format_html('<a href="{}">{}</a>', url, row.deadline)

    @display(description="told")
    def copies_shown(self, row: Notice) -> SafeString:
        """Everybody who got it, and whether it was mailed."""
        copies = row.copies.select_related("user").order_by("user__username")
        told = (
            (copy.user, wording.moment(copy.mailed_at) if copy.mailed_at else "not mailed yet")
            for copy in copies
        )
        items = format_html_join("", "<li>{}: {}</li>", told)
        return format_html('<ul class="gs-list">{}</ul>', items)
