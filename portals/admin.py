"""Portals, lanes, intents and credentials, as people see them, and the way to the review queue."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminPasswordWidget

from compliance import wording
from compliance.admin_base import (
    KeptInline,
    ReadOnly,
    ReasonForm,
    RefusalsTold,
    ScopedAdmin,
    ScopedRelatedFilter,
    TrackedAdmin,
    go_to,
    person,
)
from compliance.models import Portfolio
from portals import fallout_pages
from portals.fallout import cause_in_words
from portals.holds import card_or_none, resume_lane, weather
from portals.intents import portal_row
from portals.models import Attempt, Credential, Intent, Lane, LimitBlock, Portal, Resolution
from portals.registry import cards


@admin.register(Portal)
class PortalAdmin(TrackedAdmin):
    """What each card says, and the one thing an operator decides: whether it is used."""

    list_display = ["title", "slug", "jurisdiction", "is_enabled", "simulated"]
    list_filter = ["is_enabled", "jurisdiction"]
    search_fields = ["title", "slug", "jurisdiction"]
    fields = ["title", "slug", "jurisdiction", "is_enabled", "card"]
    readonly_fields = ["title", "slug", "jurisdiction", "card"]
    actions_list = ["read_cards"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A portal comes with its folder."""
        return False

    def has_read_cards_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Operators."""
        return request.user.has_perm("portals.change_portal")

    @action(
        description="Read the cards",
        permissions=["read_cards"],
        dialog={
            "title": "Read the cards",
            "description": "Lists every portal that has a folder, so that it can get credentials.",
            "form_class": BaseDialogForm,
            "form_submit_text": "Read them",
        },
    )
    def read_cards(self, request: HttpRequest, form: Any) -> HttpResponse:
        """A row for each card."""
        with RefusalsTold(request):
            for card in cards().values():
                portal_row(card.slug, card.title, card.jurisdiction)
            messages.success(request, f"{wording.counted(len(cards()), 'portal')} listed.")
        return go_to(reverse("admin:portals_portal_changelist"))

    @display(description="proven", empty_value="no card")
    def simulated(self, row: Portal) -> SafeString | None:
        """Whether our code was ever proven against the real portal."""
        card = card_or_none(row.slug)
        if card is None:
            return None
        words = "simulated" if card.simulated else "real"
        return format_html('<span class="gs-badge">{}</span>', words)

    @display(description="card", empty_value="Its folder is gone.")
    def card(self, row: Portal) -> SafeString | None:
        """What the card declares."""
        card = card_or_none(row.slug)
        if card is None:
            return None
        return format_html('<pre class="gs-pre">{}</pre>', card.model_dump_json(indent=2))


@admin.register(Lane)
class LaneAdmin(ReadOnly, ScopedAdmin):
    """Each portal's queue at work."""

    list_display = ["portal", "weather_shown", "owner", "lease_until", "epoch"]
    list_filter = ["needs_person", "portal__jurisdiction"]
    list_select_related = ["portal"]
    search_fields = ["portal__title", "portal__slug", "owner"]
    actions_detail = ["resume"]

    def has_resume_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Operators."""
        return request.user.has_perm("portals.change_lane")

    @action(
        description="Resume",
        permissions=["resume"],
        dialog={
            "title": "Resume this lane",
            "description": "It goes on sending at the portal's speed. First see that the cause "
            "is gone: a CAPTCHA answered, a block lifted.",
            "form_class": ReasonForm,
            "form_submit_text": "Resume this lane",
        },
    )
    def resume(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        """Let it work again."""
        lane = self.found(request, object_id)
        with RefusalsTold(request):
            resume_lane(lane, by=person(request), reason=form.cleaned_data["reason"])
            messages.success(request, f"{lane.portal} is open again.")
        return go_to(reverse("admin:portals_lane_change", args=[object_id]))

    @display(description="weather")
    def weather_shown(self, row: Lane) -> SafeString:
        """Shape and words."""
        return wording.state(*weather(row))


class AttemptInline(ReadOnly, KeptInline):
    """The tries at an intent."""

    model = Attempt
    fields = ["no", "purpose", "outcome", "armed_at", "ended_at", "rule", "detail"]


@admin.register(Intent)
class IntentAdmin(ReadOnly, ScopedAdmin):
    """Everything that is to be done at a portal, and the review queue over it."""

    list_display = ["kind", "subject_id", "portal", "state_shown", "cause_shown", "number"]
    list_filter = [
        "state",
        "kind",
        "portal",
        "rank",
        "cause",
        ("portfolio", ScopedRelatedFilter),
    ]
    list_select_related = ["portal", "portfolio"]
    search_fields = ["idempotency_key", "number", "trace_id", "detail", "=subject_id"]
    show_full_result_count = False
    inlines = [AttemptInline]
    actions_detail = ["see_story"]

    def get_urls(self) -> Any:
        """The review queue and its items, before the page of an intent."""

        def queue(request: HttpRequest) -> HttpResponse:
            return fallout_pages.queue_page(self, request)

        def item(request: HttpRequest, intent_id: int) -> HttpResponse:
            return fallout_pages.item_page(self, request, intent_id)

        wrap = self.admin_site.admin_view
        return [
            path("fallout/", wrap(queue), name="portals_fallout"),
            path("<int:intent_id>/fallout/", wrap(item), name="portals_fallout_item"),
            *super().get_urls(),
        ]

    @action(description="See its story")
    def see_story(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The page with everything about it; changes nothing."""
        row = self.found(request, object_id)
        return HttpResponseRedirect(reverse("admin:portals_fallout_item", args=[row.pk]))

    @display(description="state", ordering="state")
    def state_shown(self, row: Intent) -> SafeString:
        """Shape and word."""
        return wording.state(row.state, row.get_state_display())

    @display(description="cause", ordering="cause", empty_value="none")
    def cause_shown(self, row: Intent) -> str | None:
        """Why it is where it is."""
        return cause_in_words(row) or None


@admin.register(Attempt)
class AttemptAdmin(ReadOnly, ScopedAdmin):
    """Every try, with what was sent and what came back."""

    list_display = ["intent", "no", "purpose", "outcome", "armed_at", "ended_at", "rule"]
    list_filter = ["outcome", "purpose", "category", "intent__portal"]
    list_select_related = ["intent"]
    search_fields = ["rule", "detail", "intent__idempotency_key", "intent__number"]
    show_full_result_count = False
    portfolio_path = "intent__portfolio"


@admin.register(Resolution)
class ResolutionAdmin(ReadOnly, TrackedAdmin):
    """What people decided in the review queue."""

    list_display = ["intent", "verb", "requested_by", "approved_by", "requested_at", "closed_at"]
    list_filter = ["verb", "was_carried_out"]
    list_select_related = ["intent", "requested_by", "approved_by"]
    search_fields = ["reason", "number", "requested_by__username"]
    portfolio_path = "intent__portfolio"


class CredentialForm(forms.ModelForm):
    """A credential; its secret can be entered but never read back."""

    new_secret = forms.CharField(
        required=False,
        label="Enter secret",
        help_text="Encrypted, and shown to nobody. Leave empty to keep the one there is.",
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )

    class Meta:
        model = Credential
        fields = ["portal", "portfolio", "username", "expires_on"]

    def save(self, commit: bool = True) -> Credential:  # noqa: FBT001, FBT002 - Django's signature
        """Take over the secret if one was entered."""
        if entered := self.cleaned_data.get("new_secret"):
            self.instance.secret = entered
        saved: Credential = super().save(commit)
        return saved


@admin.register(Credential)
class CredentialAdmin(TrackedAdmin):
    """What we log in with. Whoever may change portals' credentials may also remove one."""

    form = CredentialForm
    list_display = ["portal", "portfolio", "username", "expires_on", "has_secret"]
    list_filter = ["portal", ("portfolio", ScopedRelatedFilter)]
    list_select_related = ["portal", "portfolio"]
    search_fields = ["portal__title", "portal__slug", "username"]
    readonly_fields = ["has_secret"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """Those for all portfolios too: operators keep them."""
        if request.user.is_superuser:
            return Credential.objects.all()
        mine = Q(portfolio__isnull=True) | Q(portfolio__in=Portfolio.ids_of(person(request)))
        return Credential.objects.filter(mine)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Who may only look is offered nothing to enter."""
        shown = ["portal", "portfolio", "username", "expires_on", "has_secret"]
        edits = obj is None or self.has_change_permission(request, obj)
        return [*shown, "new_secret"] if edits else shown

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A secret that is no longer needed should go."""
        return request.user.has_perm("portals.delete_credential")

    @display(description="secret", boolean=True)
    def has_secret(self, row: Credential) -> bool:
        """Whether there is one."""
        return bool(row.secret)


@admin.register(LimitBlock)
class LimitBlockAdmin(ReadOnly, ScopedAdmin):
    """Requests counted against limits that outlive a process."""

    list_display = ["lane", "requests", "seconds", "closed_at"]
    list_filter = ["lane"]
    list_select_related = ["lane__portal"]
    search_fields = ["lane__portal__slug"]
