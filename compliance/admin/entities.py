"""Portfolios, entities, and the people, places and shares that belong to them."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import RegexValidator
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextInputWidget

from compliance.admin.registrations import shown_standing
from compliance.admin_base import (
    KeptInline,
    RefusalsTold,
    ScopedRelatedFilter,
    TrackedAdmin,
)
from compliance.models import (
    Address,
    Entity,
    Membership,
    Officer,
    Portfolio,
    Registration,
    ShareClass,
)
from compliance.worksheets import owes_franchise_tax, shown, worksheet_of


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
