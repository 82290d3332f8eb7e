"""Entities, registrations, deadlines and the record, as people see them.

Registrations and deadlines are registered in filings/admin.py, which adds what can be done there.
"""

import json
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextInputWidget

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
from compliance.admin_facts import FactsOnPage
from compliance.errors import DomainError
from compliance.exposure import cost_per_day
from compliance.models import (
    Address,
    Deadline,
    Entity,
    Event,
    LedgerEntry,
    LedgerHead,
    Membership,
    Officer,
    Portfolio,
    Registration,
    ShareClass,
)
from compliance.services import waive_deadline
from compliance.worksheets import owes_franchise_tax, shown, worksheet_of


def stale_standing() -> Q:
    """Registrations whose evidence is older than its portal's limit; few limits exist."""
    now = timezone.now()
    limits = Registration.objects.order_by().values_list("standing_fresh_hours", flat=True)
    stale = Q(pk__in=[])
    for hours in set(limits.distinct()):
        read_before = now - timedelta(hours=hours)
        stale |= Q(standing_fresh_hours=hours, standing_read_at__lt=read_before)
    return stale


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


class MembershipInline(KeptInline):
    """Who may see a portfolio. Taking somebody out is a deletion, kept in the history."""

    model = Membership
    autocomplete_fields = ["user"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """As Django decides: people leave."""
        return request.user.has_perm("compliance.delete_membership")


@admin.register(Portfolio)
class PortfolioAdmin(TrackedAdmin):
    """Clients and business units."""

    list_display = ["name", "slug"]
    search_fields = ["name", "slug"]
    prepopulated_fields = {"slug": ["name"]}
    inlines = [MembershipInline]


@admin.register(Membership)
class MembershipAdmin(TrackedAdmin):
    """Who is in which portfolio."""

    list_display = ["user", "portfolio"]
    list_filter = [("portfolio", ScopedRelatedFilter)]
    search_fields = ["user__username", "user__last_name", "portfolio__name"]
    autocomplete_fields = ["user", "portfolio"]
    list_select_related = ["user", "portfolio"]
    portfolio_path = "portfolio"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """People leave; the history keeps that they were there."""
        return request.user.has_perm("compliance.delete_membership")


class EntityForm(forms.ModelForm):
    """An entity; its tax id can be entered but never read back."""

    new_tax_id = forms.CharField(
        required=False,
        label="Enter tax id",
        help_text="EIN, as 12-3456789. Leave empty to keep the one there is.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        validators=[RegexValidator(r"^\d{2}-?\d{7}$", "Write the EIN as 12-3456789.")],
    )

    def save(self, commit: bool = True) -> Entity:  # noqa: FBT001, FBT002 - Django's signature
        """Take over the tax id if one was entered."""
        if entered := self.cleaned_data.get("new_tax_id"):
            self.instance.tax_id = entered
        saved: Entity = super().save(commit)
        return saved


class OfficerInline(KeptInline):
    """The people who run an entity."""

    model = Officer
    fields = ["name", "title", "address", "since", "until"]


class AddressInline(KeptInline):
    """Where an entity is to be found."""

    model = Address
    fields = ["use", "street", "city", "region", "postal_code", "country"]


class ShareClassInline(KeptInline):
    """An entity's stock."""

    model = ShareClass
    fields = ["name", "authorized", "issued", "par_value"]


class RegistrationInline(KeptInline):
    """Where an entity is registered, and how it stands there."""

    model = Registration
    fields = ["jurisdiction", "is_foreign", "file_number", "registered_on", "standing_shown"]
    readonly_fields = ["standing_shown"]

    @display(description="standing")
    def standing_shown(self, row: Registration) -> SafeString:
        """Shape and word."""
        return shown_standing(row)


@admin.register(Entity)
class EntityAdmin(TrackedAdmin):
    """Corporations, LLCs, nonprofits, partnerships."""

    form = EntityForm
    list_display = ["name", "kind", "home_jurisdiction", "portfolio", "external_id"]
    list_filter = ["kind", "home_jurisdiction", ("portfolio", ScopedRelatedFilter)]
    list_select_related = ["portfolio"]
    search_fields = ["name", "external_id", "registrations__file_number"]
    inlines = [RegistrationInline, OfficerInline, AddressInline, ShareClassInline]
    actions_detail = ["franchise_tax"]
    readonly_fields = ["tax_id_shown"]
    fieldsets = [
        (None, {"fields": ["portfolio", "name", "kind", "home_jurisdiction", "formed_on"]}),
        (
            "For the law",
            {
                "fields": [
                    ("fiscal_year_end_month", "fiscal_year_end_day"),
                    "gross_assets",
                    "external_id",
                    "tax_id_shown",
                    "new_tax_id",
                ]
            },
        ),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may only look is offered nothing to enter."""
        sets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj) or obj is None:
            return sets
        return [
            (title, {**options, "fields": [f for f in options["fields"] if f != "new_tax_id"]})
            for title, options in sets
        ]

    def get_actions_detail(self, request: HttpRequest, object_id: int) -> Any:
        """The worksheet is offered where it says something."""
        entity = self.get_object(request, str(object_id))
        offered = entity is not None and owes_franchise_tax(entity)
        return super().get_actions_detail(request, object_id) if offered else []

    @action(description="Franchise tax", url_path="franchise-tax", permissions=["view"])
    def franchise_tax(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Both methods of Delaware's franchise tax, step by step; changes nothing."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        entity = self.found(request, object_id)
        url = reverse("admin:compliance_entity_change", args=[entity.pk])
        with RefusalsTold(request):
            context = {
                **self.admin_site.each_context(request),
                **shown(worksheet_of(entity), year=timezone.localdate().year),
                "title": f"Franchise tax of {entity}",
                "entity": entity,
                "entity_url": url,
            }
            return TemplateResponse(request, "admin/compliance/franchise_tax.html", context)
        return HttpResponseRedirect(url)

    @display(description="tax id")
    def tax_id_shown(self, row: Entity) -> str:
        """The last two digits, enough to recognise it."""
        return f"••-•••••{row.tax_id[-2:]}" if row.tax_id else "Not entered"


@admin.register(Officer)
class OfficerAdmin(TrackedAdmin):
    """Everybody who runs an entity."""

    list_display = ["name", "title", "entity", "since", "until"]
    list_filter = ["title"]
    list_select_related = ["entity"]
    search_fields = ["name", "title", "entity__name"]
    autocomplete_fields = ["entity"]


@admin.register(Address)
class AddressAdmin(TrackedAdmin):
    """Every address of every entity."""

    list_display = ["entity", "use", "street", "city", "region"]
    list_filter = ["use", "region"]
    list_select_related = ["entity"]
    search_fields = ["entity__name", "street", "city", "postal_code"]
    autocomplete_fields = ["entity"]


@admin.register(ShareClass)
class ShareClassAdmin(TrackedAdmin):
    """Every class of stock."""

    list_display = ["entity", "name", "authorized", "issued", "par_value"]
    list_filter = ["name"]
    list_select_related = ["entity"]
    search_fields = ["entity__name", "name"]
    autocomplete_fields = ["entity"]


def shown_standing(row: Registration) -> SafeString:
    """A standing with its shape; too old, it shows as stale."""
    word = row.get_standing_display()
    if row.standing_is_stale:
        return wording.state("stale", f"{word}, stale")
    return wording.state(row.standing, word)


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


class DeadlineAdmin(ReadOnly, TrackedAdmin):
    """What is owed, to whom and when. Computed from the law; settled by moves alone."""

    list_display = [
        "title_shown", "jurisdiction", "due_shown", "fee_shown", "status_shown", "cost_shown",
    ]  # fmt: skip
    list_display_links = ["title_shown"]
    list_filter = [
        DueFilter,
        "status",
        "registration__jurisdiction",
        "duty",
        "confidence",
        ("registration__entity__portfolio", ScopedRelatedFilter),
    ]
    list_select_related = ["registration__entity"]
    search_fields = ["title", "period", "registration__entity__name", "registration__file_number"]
    date_hierarchy = "due_on"
    actions_detail = ["waive"]
    readonly_fields = ["status_shown", "due_shown", "fee_shown", "cost_shown"]
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
        ("Who", {"fields": ["owner", "backup"]}),
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


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnly, ScopedAdmin):
    """The record. Nobody writes here; the database refuses it too."""

    list_display = ["seq", "at", "type", "actor", "subject"]
    list_filter = ["type", ("portfolio", ScopedRelatedFilter)]
    search_fields = ["subject", "actor", "type", "digest"]
    show_full_result_count = False
    fields = ["seq", "at", "type", "actor", "subject", "portfolio", "body_shown", "prev", "digest"]

    @display(description="entry")
    def body_shown(self, row: LedgerEntry) -> SafeString:
        """The canonical bytes, indented for reading."""
        pretty = json.dumps(json.loads(bytes(row.body)), indent=2, ensure_ascii=False)
        return format_html('<pre class="gs-pre">{}</pre>', pretty)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All of it."""
        return self.fields


@admin.register(LedgerHead)
class LedgerHeadAdmin(ReadOnly, ScopedAdmin):
    """The end of the chain, to compare with what was kept elsewhere."""

    list_display = ["size", "digest"]


@admin.register(Event)
class EventAdmin(ReadOnly, ScopedAdmin):
    """What happened, and whether it was told."""

    list_display = ["at", "type", "subject", "handled_at"]
    list_filter = ["type", ("handled_at", admin.EmptyFieldListFilter)]
    search_fields = ["subject", "type"]
    show_full_result_count = False
