"""How people narrow the list of deadlines: by nearness, by stage, to their own."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from compliance.admin_base import person
from compliance.models import Deadline


class DueFilter(admin.SimpleListFilter):
    """By how near the due date is; what is settled is left out."""

    title = "due"
    parameter_name = "due"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The same spans as on the dashboard."""
        return [("overdue", "Overdue"), *((str(n), f"In {n} days") for n in (7, 30, 90))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Owed, and in the span."""
        today = timezone.localdate()
        owed = queryset.filter(status=Deadline.Status.OWED)
        match self.value():
            case None:
                return queryset
            case "overdue":
                return owed.filter(due_on__lt=today)
            case days if days.isdecimal() and len(days) < 5:
                return owed.filter(due_on__range=(today, today + timedelta(days=int(days))))
            case _:
                return queryset.none()


class StageFilter(admin.SimpleListFilter):
    """By where a deadline stands today."""

    title = "stage"
    parameter_name = "stage"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Every stage."""
        return [(stage.value, str(stage.label)) for stage in Deadline.Stage]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """At that stage; a word that is none finds nothing."""
        stage = self.value()
        if stage is None:
            return queryset
        return queryset.at_stage(stage, today=timezone.localdate())


class MineFilter(admin.SimpleListFilter):
    """What I own or stand in for, and what nobody sees to."""

    title = "who"
    parameter_name = "who"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Mine, or nobody's."""
        return [("me", "Mine"), ("nobody", "Nobody's")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Owner or backup is the person who looks."""
        match self.value():
            case "me":
                return queryset.seen_to_by(person(request))
            case "nobody":
                return queryset.filter(owner=None, backup=None)
            case _:
                return queryset
