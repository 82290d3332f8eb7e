"""What every admin page shares: its portfolio's rows, no deletions, refusals as sentences."""

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import models
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from simple_history.admin import SimpleHistoryAdmin
from simple_history.models import DeletedObject
from simple_history.template_utils import HistoricalRecordContextHelper
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextareaWidget

from compliance.errors import DomainError
from compliance.models import Portfolio, ScopedQuerySet


def visible(rows: Any, user: Any, portfolio_path: str = "") -> Any:
    """The rows that a user may see; rows of no portfolio are everybody's."""
    if isinstance(rows, ScopedQuerySet):
        return rows.visible_to(user)
    if portfolio_path and not user.is_superuser:
        return rows.filter(**{f"{portfolio_path}__in": Portfolio.ids_of(user)})
    return rows


class RefusalsTold:
    """What cannot be done becomes sentences on the next page."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        """Refusals are told; anything else is a mistake of ours and goes on."""
        if not isinstance(error, DomainError):
            return False
        for sentence in error.problems or (str(error),):
            messages.error(self.request, sentence)
        return True


def go_to(url: str) -> HttpResponse:
    """Leave a dialog for a page."""
    return HttpResponse(headers={"HX-Redirect": url})


def person(request: HttpRequest) -> User:
    """Who is logged in; the admin lets nobody else in."""
    if not isinstance(request.user, User):
        raise Http404
    return request.user


class ReasonForm(BaseDialogForm):  # type: ignore[misc]
    """Asks why, for the ledger."""

    reason = forms.CharField(
        label="Why",
        help_text="A sentence; it goes on the ledger.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )


class Indented(json.JSONEncoder):
    """JSON that a person can edit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "indent": 2, "ensure_ascii": False})


class AnswersForm(forms.ModelForm):  # type: ignore[type-arg]
    """The answers of a draft."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields.get("answers")
        if isinstance(field, forms.JSONField):
            field.encoder = Indented
            field.help_text = "The form's fields. Check the draft after a change."

    def clean_answers(self) -> dict[str, Any]:
        """A form has named fields."""
        answers = self.cleaned_data["answers"] or {}
        if not isinstance(answers, dict):
            raise forms.ValidationError('Write the fields as {"name": "value", …}.')
        return answers


class ScopedAdmin(ModelAdmin):  # type: ignore[misc]
    """Shows the rows of the user's portfolios, and deletes nothing."""

    list_per_page = 25
    warn_unsaved_form = True
    portfolio_path = ""

    def get_queryset(self, request: HttpRequest) -> Any:
        """Nobody sees another portfolio's rows."""
        return visible(super().get_queryset(request), request.user, self.portfolio_path)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Nobody can point at another portfolio's rows."""
        rows = kwargs.get("queryset", db_field.remote_field.model._default_manager.all())
        kwargs["queryset"] = visible(rows, request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows that carry history stay."""
        return False

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """A save that a service refuses changes nothing and says why."""
        with RefusalsTold(request):
            return super().changeform_view(request, object_id, form_url, extra_context)
        return HttpResponseRedirect(request.path)

    def found(self, request: HttpRequest, object_id: Any) -> Any:
        """The row, if this user may see it."""
        row = self.get_object(request, str(object_id))
        if row is None:
            raise Http404
        return row


class ChangesInWords(HistoricalRecordContextHelper):  # type: ignore[misc]
    """Shows what was empty before as nothing; the library would call it a deleted row."""

    def prepare_delta_change_value(self, change: Any, value: Any) -> Any:
        """The value as people read it."""
        if isinstance(value, DeletedObject) and value.pk is None:
            return ""
        return "" if value is None else super().prepare_delta_change_value(change, value)


class TrackedAdmin(SimpleHistoryAdmin, ScopedAdmin):  # type: ignore[misc]
    """Adds the page of changes. Going back to an older version is not offered."""

    def get_historical_record_context_helper(
        self, request: HttpRequest, historical_record: Any
    ) -> ChangesInWords:
        """Our words for changes."""
        return ChangesInWords(self.model, historical_record)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The changes of a row that this user may see; the library would show any row's."""
        self.found(request, object_id)
        page: HttpResponse = super().history_view(request, object_id, extra_context)
        return page

    def history_form_view(
        self,
        request: HttpRequest,
        object_id: str,
        version_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """An older version, to read; the library would save what is posted here."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        self.found(request, object_id)
        page: HttpResponse = super().history_form_view(
            request, object_id, version_id, extra_context
        )
        return page


class ReadOnly:
    """Rows that only the program writes."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds one by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits one."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody removes one."""
        return False


class KeptInline(TabularInline):  # type: ignore[misc]
    """Rows beneath another; they end by a date or a change, never by deletion."""

    extra = 0
    tab = True
    show_change_link = True

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows that carry history stay."""
        return False


class ScopedRelatedFilter(admin.RelatedFieldListFilter):
    """A filter that names only what the user may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """The related rows of the user's portfolios."""
        rows: models.QuerySet[Any] = visible(
            field.remote_field.model._default_manager.all(), request.user
        )
        return [(str(row.pk), str(row)) for row in rows]


class ForMyApproval(admin.SimpleListFilter):
    """Drafts that somebody else prepared, and that this person can approve."""

    title = "waiting"
    parameter_name = "waits"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """One question."""
        return [("me", "For my approval")]

    def queryset(
        self, request: HttpRequest, queryset: models.QuerySet[Any]
    ) -> models.QuerySet[Any]:
        """Not one's own: those take another person."""
        if self.value() != "me":
            return queryset
        return queryset.filter(status="draft").exclude(prepared_by=person(request))
