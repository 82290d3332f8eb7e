"""The facts of a registration on its page: traits to tick, events to add and to take back."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from compliance import facts
from compliance.admin_base import (
    KeptInline,
    ReadOnly,
    ReasonForm,
    RefusalsTold,
    ScopedRelatedFilter,
    TrackedAdmin,
    go_to,
    person,
)
from compliance.models import Registration, RegistrationEvent

CHANGE = "compliance.change_registration"


class TraitsForm(forms.ModelForm):
    """A registration, with the traits that decide its conditional duties as boxes to tick."""

    traits_held = forms.MultipleChoiceField(
        required=False,
        label="What holds for it",
        help_text="Each brings duties of its own, with the next synchronisation of deadlines.",
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields.get("traits_held")
        if isinstance(field, forms.MultipleChoiceField) and self.instance.pk:
            field.choices = list(facts.known_traits(self.instance).items())
            field.initial = list(self.instance.traits)


class EventInline(KeptInline):
    """What happened, each on its day; one told by mistake is taken back on its own page."""

    model = RegistrationEvent
    fields = ["name", "happened_on", "retracted_at"]
    readonly_fields = ["retracted_at"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may change the registration."""
        return request.user.has_perm(CHANGE)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What was told stays as it was told."""
        return False


class FactsOnPage:
    """What a registration's page shows and saves of its facts, through the services."""

    form = TraitsForm
    inlines = [EventInline]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """With what is only shown."""
        return [*super().get_readonly_fields(request, obj), "hints_shown", "traits_shown"]  # type: ignore[misc]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Facts are told of a registration that is there, where its law asks for some."""
        sets = super().get_fieldsets(request, obj)  # type: ignore[misc]
        if obj is None or not facts.known_traits(obj):
            return sets
        may = self.has_change_permission(request, obj)  # type: ignore[attr-defined]
        fields = ["hints_shown", "traits_held" if may else "traits_shown"]
        return [*sets, ("What decides its duties", {"fields": fields})]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """The row, then its traits, which go on the ledger."""
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        if change and "traits_held" in form.cleaned_data:
            facts.set_traits(obj, traits=form.cleaned_data["traits_held"], by=person(request))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: Any) -> None:
        """New events go on the ledger."""
        if formset.model is not RegistrationEvent:
            super().save_formset(request, form, formset, change)  # type: ignore[misc]
            return
        for event in formset.save(commit=False):
            facts.record_event(
                form.instance, name=event.name, happened_on=event.happened_on, by=person(request)
            )

    @display(description="from what is on file")
    def hints_shown(self, row: Registration) -> str:
        """What the figures suggest; nothing is set by itself."""
        return " ".join(facts.hints_of(row)) or "Nothing speaks against what is ticked."

    @display(description="what holds for it")
    def traits_shown(self, row: Registration) -> SafeString | str:
        """In words, for who may only look."""
        held = [words for trait, words in facts.known_traits(row).items() if trait in row.traits]
        return format_html_join("; ", "{}", [(words,) for words in held]) or "None of its traits"


@admin.register(RegistrationEvent)
class RegistrationEventAdmin(ReadOnly, TrackedAdmin):
    """Everything that happened to registrations; told on their pages, taken back here."""

    list_display = ["registration", "name", "happened_on", "retracted_at"]
    list_display_links = ["registration"]
    list_filter = [
        "name",
        ("retracted_at", admin.EmptyFieldListFilter),
        ("registration__entity__portfolio", ScopedRelatedFilter),
    ]
    list_select_related = ["registration__entity"]
    search_fields = ["registration__entity__name", "registration__file_number"]
    fields = ["registration", "name", "happened_on", "retracted_at"]
    actions_detail = ["retract"]

    def has_retract_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may change the registration."""
        return request.user.has_perm(CHANGE)

    @action(
        description="Take back",
        permissions=["retract"],
        dialog={
            "title": "Take this event back",
            "description": "For one told by mistake. Deadlines that it brought stay until a "
            "person waives them.",
            "form_class": ReasonForm,
            "form_submit_text": "Take it back",
        },
    )
    def retract(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        """Note that it did not happen."""
        event = self.found(request, object_id)
        with RefusalsTold(request):
            facts.retract_event(event, by=person(request), reason=form.cleaned_data["reason"])
            messages.success(request, f"Taken back: {event}.")
        return go_to(reverse("admin:compliance_registration_change", args=[event.registration_id]))
