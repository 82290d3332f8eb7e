"""Filings with check, approve and withdraw; registrations and deadlines with what starts there."""

import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm

from compliance import wording
from compliance.admin import DeadlineAdmin, RegistrationAdmin
from compliance.admin_base import (
    AnswersForm,
    ForMyApproval,
    ReadOnly,
    ReasonForm,
    RefusalsTold,
    ScopedAdmin,
    ScopedRelatedFilter,
    TrackedAdmin,
    go_to,
    person,
)
from compliance.models import Deadline, Registration
from filings import services
from filings.amendments import amendments_page
from filings.approval_sheet import Selection, is_simulated, portal_title, selection_of
from filings.models import Batch, Filing, StatusCheck
from filings.payloads import freeze

Status = Filing.Status
# Which buttons make sense at which status; the services decide again.
BUTTONS: dict[str, tuple[str, ...]] = {
    Status.DRAFT: ("check", "approve", "withdraw"),
    Status.PENDING: ("withdraw",),
}


class ApprovalForm(BaseDialogForm):
    """Shows what is about to be approved: the fee, the portal, the bytes."""

    form_before_template = "admin/filings/approve_dialog.html"

    def get_before_template_context(
        self, request: HttpRequest, object_id: int | str | None = None
    ) -> dict[str, Any]:
        """What will be sent, of a filing that this user may see."""
        page: Any = admin.site.get_model_admin(Filing)
        filing = page.found(request, object_id)
        return {
            "filing": filing,
            "fee": wording.money(filing.fee, filing.deadline.currency),
            "due": wording.day_and_distance(filing.deadline.due_on, today=timezone.localdate()),
            "portal": portal_title(filing.portal),
            "is_simulated": is_simulated(filing.portal),
            "document": pretty(freeze(filing)),
            "problems": services.check_filing(filing) if filing.status == Status.DRAFT else [],
        }


def unfiled(deadlines: QuerySet[Any]) -> QuerySet[Any]:
    """Owed, and without a filing that is under way."""
    ended = [Status.REJECTED, Status.WITHDRAWN]
    live = Filing.objects.filter(deadline=OuterRef("pk")).exclude(status__in=ended)
    return deadlines.filter(~Exists(live), status=Deadline.Status.OWED)


def pretty(body: bytes) -> str:
    """A frozen document, indented for reading."""
    return json.dumps(json.loads(body), indent=2, ensure_ascii=False)


@admin.register(Filing)
class FilingAdmin(TrackedAdmin):
    """Every filing, from draft to accepted."""

    form = AnswersForm
    list_display = [
        "title",
        "status_shown",
        "due_shown",
        "fee_shown",
        "portal_shown",
        "prepared_by",
    ]
    list_filter = [
        ForMyApproval,
        "status",
        "portal",
        "deadline__registration__jurisdiction",
        ("portfolio", ScopedRelatedFilter),
        ("batch", ScopedRelatedFilter),
    ]
    search_fields = [
        "deadline__registration__entity__name",
        "deadline__registration__file_number",
        "confirmation_number",
        "deadline__title",
    ]
    readonly_fields = [
        "subject", "status_shown", "due_shown", "fee_shown", "portal_shown", "form", "problems",
        "answers_shown", "prepared_by", "approved_by", "approved_at", "confirmation_number",
        "reasons_shown", "cause", "payload_sha256", "revision", "batch", "created_at",
        "settled_at", "review",
    ]  # fmt: skip
    actions = ["approve_selected"]
    actions_detail = ["check_draft", "approve", "withdraw"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """With all that the pages and the checks read."""
        rows = super().get_queryset(request)
        return rows.select_related(
            "deadline__registration__entity", "prepared_by", "approved_by", "batch"
        ).prefetch_related(
            "deadline__registration__entity__officers",
            "deadline__registration__entity__addresses",
        )

    def get_fieldsets(self, request: HttpRequest, obj: Filing | None = None) -> Any:
        """A draft shows what to do; later it shows what was done."""
        draft = obj is not None and obj.status == Status.DRAFT
        edits = draft and self.has_change_permission(request, obj)
        head = ["subject", "status_shown", "due_shown", "fee_shown", "portal_shown", "form"]
        answers = ["answers" if edits else "answers_shown"]
        outcome = ["confirmation_number", "reasons_shown", "cause", "review", "settled_at"]
        return [
            (None, {"fields": head if draft else [*head, *outcome]}),
            ("Answers", {"fields": ["problems", *answers] if draft else answers}),
            (
                "On the record",
                {
                    "fields": [
                        ("prepared_by", "created_at"),
                        ("approved_by", "approved_at"),
                        ("batch", "revision"),
                        "payload_sha256",
                    ]
                },
            ),
        ]

    # --- Who may ---------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A filing is opened from its deadline."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Filing | None = None) -> bool:
        """Who prepares edits drafts; nobody edits anything else."""
        draft = obj is None or obj.status == Status.DRAFT
        return draft and request.user.has_perm("filings.prepare_filing")

    def has_check_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Whoever sees it may ask what is wrong with it."""
        return bool(self.has_view_permission(request))

    def has_approve_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """The second pair of eyes."""
        return request.user.has_perm("filings.approve_filing")

    def has_withdraw_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may take one back."""
        return request.user.has_perm("filings.withdraw_filing")

    def get_actions_detail(self, request: HttpRequest, object_id: int) -> Any:
        """Only the buttons that make sense now."""
        offered = BUTTONS.get(self.found(request, object_id).status, ())
        every = super().get_actions_detail(request, object_id)
        return [button for button in every if button.path in offered]

    # --- Moves -----------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Filing, form: Any, change: Any) -> None:
        """An edit is a move like any other; whoever edits is the preparer from then on."""
        services.edit_filing(obj, answers=form.cleaned_data["answers"], by=person(request))

    @action(description="Check", url_path="check", permissions=["check"])
    def check_draft(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say what stands in the way; changes nothing."""
        problems = services.check_filing(self.found(request, object_id))
        for problem in problems:
            messages.warning(request, problem)
        if not problems:
            messages.success(request, "Nothing stands in the way: it can be approved.")
        return HttpResponseRedirect(reverse("admin:filings_filing_change", args=[object_id]))

    @action(
        description="Approve",
        permissions=["approve"],
        dialog={
            "title": "Approve this filing",
            "description": "",
            "form_class": ApprovalForm,
            "form_submit_text": "Approve and queue it",
        },
    )
    def approve(self, request: HttpRequest, form: ApprovalForm, object_id: str) -> HttpResponse:
        """Release a draft to its lane."""
        filing = self.found(request, object_id)
        with RefusalsTold(request):
            services.approve_filing(filing, by=person(request))
            messages.success(
                request,
                f"Approved. It waits for {portal_title(filing.portal)}; until it is sent it can "
                "be withdrawn.",
            )
        return go_to(reverse("admin:filings_filing_change", args=[object_id]))

    @action(
        description="Withdraw",
        permissions=["withdraw"],
        dialog={
            "title": "Withdraw this filing",
            "description": "Nothing is sent. The deadline stays owed; a new filing can be opened.",
            "form_class": ReasonForm,
            "form_submit_text": "Withdraw this filing",
        },
    )
    def withdraw(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        """Take it back before anything of it has left."""
        filing = self.found(request, object_id)
        with RefusalsTold(request):
            services.withdraw_filing(
                filing, by=person(request), reason=form.cleaned_data["reason"]
            )
            messages.success(request, "Withdrawn. The deadline is still owed.")
        return go_to(reverse("admin:filings_filing_change", args=[object_id]))

    @admin.action(description="Approve selected", permissions=["approve"])
    def approve_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Show the sum of it, then release all of it or none."""
        chosen = selection_of(list(queryset), person(request))
        if "digest" in request.POST:
            return self._approve_many(request, chosen)
        return self._confirmation(request, chosen)

    def _approve_many(self, request: HttpRequest, chosen: Selection) -> HttpResponse | None:
        if request.POST["digest"] != chosen.digest:
            messages.error(
                request, "Something changed since you looked. Look again, then approve."
            )
            return self._confirmation(request, chosen)
        if request.POST.get("typed", "").replace(",", "").strip() != str(len(chosen.ready)):
            messages.error(request, f"Type the number of filings: {len(chosen.ready)}.")
            return self._confirmation(request, chosen)
        with RefusalsTold(request):
            services.approve_filings(chosen.ready, by=person(request))
            messages.success(
                request,
                f"Approved {wording.counted(len(chosen.ready), 'filing')}, "
                f"{wording.money(chosen.fees)} in fees. They wait for their portals.",
            )
        return None

    def _confirmation(self, request: HttpRequest, chosen: Selection) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "Approve filings",
            "opts": self.opts,
            "chosen": chosen,
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "ids": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
        }
        return TemplateResponse(request, "admin/filings/approve_selected.html", context)

    # --- What is shown ---------------------------------------------------------------------

    @display(description="filing", ordering="deadline__registration__entity__name", header=True)
    def title(self, row: Filing) -> list[str]:
        """What, and whose."""
        deadline = row.deadline
        return [f"{deadline.title} {deadline.period}", str(deadline.registration)]

    @display(description="filing")
    def subject(self, row: Filing) -> SafeString:
        """What, and whose, with the way to its deadline."""
        url = reverse("admin:compliance_deadline_change", args=[row.deadline_id])
        return format_html('<a href="{}">{}</a>', url, row)

    @display(description="status", ordering="status")
    def status_shown(self, row: Filing) -> SafeString:
        """Shape and word."""
        return wording.state(row.status, row.get_status_display())

    @display(description="due", ordering="deadline__due_on")
    def due_shown(self, row: Filing) -> str:
        """When, and how far away that is."""
        return wording.day_and_distance(row.deadline.due_on, today=timezone.localdate())

    @display(description="fee", ordering="fee")
    def fee_shown(self, row: Filing) -> SafeString:
        """How much, with the law behind it."""
        amount = wording.money(row.fee, row.deadline.currency)
        return format_html('<span title="{}">{}</span>', row.deadline.citation, amount)

    @display(description="portal", ordering="portal")
    def portal_shown(self, row: Filing) -> SafeString:
        """Where it goes, and whether that is only rehearsed."""
        badge = format_html(' <span class="gs-badge">{}</span>', "simulated")
        return format_html(
            "{}{}", portal_title(row.portal), badge if is_simulated(row.portal) else ""
        )

    @display(description="in the way")
    def problems(self, row: Filing) -> SafeString:
        """What stands in the way of approving it."""
        found = services.check_filing(row)
        if not found:
            return format_html("{}", "Nothing. It can be approved.")
        items = format_html_join("", "<li>{}</li>", ((sentence,) for sentence in found))
        return format_html('<ul class="gs-list">{}</ul>', items)

    @display(description="answers")
    def answers_shown(self, row: Filing) -> SafeString:
        """The form's fields."""
        text = json.dumps(row.answers, indent=2, ensure_ascii=False)
        return format_html('<pre class="gs-pre">{}</pre>', text)

    @display(description="refused because", empty_value="none")
    def reasons_shown(self, row: Filing) -> str | None:
        """What the portal said."""
        return "; ".join(str(reason) for reason in row.reasons) or None

    @display(description="review queue", empty_value="none")
    def review(self, row: Filing) -> SafeString | None:
        """Where a person settles it."""
        if row.status != Status.FALLOUT:
            return None
        url = reverse("admin:portals_fallout")
        return format_html('<a href="{}">It waits in the review queue</a>', url)


@admin.register(Batch)
class BatchAdmin(ReadOnly, TrackedAdmin):
    """Filings that were prepared and approved together."""

    list_display = ["name", "portfolio", "prepared_by", "approved_by", "created_at", "rows"]
    list_filter = [("portfolio", ScopedRelatedFilter)]
    list_select_related = ["portfolio", "prepared_by", "approved_by"]
    search_fields = ["name"]

    @display(description="filings")
    def rows(self, row: Batch) -> SafeString:
        """A link to its rows."""
        url = reverse("admin:filings_filing_changelist")
        return format_html('<a href="{}?batch__id__exact={}">Show filings</a>', url, row.pk)


@admin.register(StatusCheck)
class StatusCheckAdmin(ReadOnly, ScopedAdmin):
    """Every look at a registry."""

    list_display = [
        "registration",
        "standing_shown",
        "words",
        "requested_at",
        "ended_at",
        "detail",
    ]
    list_filter = ["standing", "portal", "error_category"]
    list_select_related = ["registration__entity"]
    search_fields = ["registration__entity__name", "registration__file_number", "words"]

    @display(description="standing", ordering="standing")
    def standing_shown(self, row: StatusCheck) -> SafeString:
        """Shape and word."""
        return wording.state(row.standing, row.get_standing_display())


@admin.register(Registration)
class AskableRegistrationAdmin(RegistrationAdmin):
    """Registrations, with the question to the registry."""

    actions_detail = ["ask_registry", *RegistrationAdmin.actions_detail]

    def has_ask_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may ask registries."""
        return request.user.has_perm("filings.request_check")

    @action(
        description="Ask the registry",
        permissions=["ask"],
        dialog={
            "title": "Ask the registry",
            "description": "Reads the standing from the state's portal. Changes nothing there.",
            "form_class": BaseDialogForm,
            "form_submit_text": "Ask now",
        },
    )
    def ask_registry(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        """Queue a look; asking again gives the look under way."""
        with RefusalsTold(request):
            services.request_check(self.found(request, object_id), by=person(request))
            messages.success(request, "Asked. The answer shows here when it has come.")
        return go_to(reverse("admin:compliance_registration_change", args=[object_id]))


class UnfiledFilter(admin.SimpleListFilter):
    """Deadlines that nobody has begun to meet."""

    title = "filing"
    parameter_name = "filing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """One question."""
        return [("none", "Not begun")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Owed, without a filing that is under way."""
        return unfiled(queryset) if self.value() == "none" else queryset


@admin.register(Deadline)
class FileableDeadlineAdmin(DeadlineAdmin):
    """Deadlines, with the start of a filing."""

    actions_detail = ["open_filing", *DeadlineAdmin.actions_detail]
    list_filter = [UnfiledFilter, *DeadlineAdmin.list_filter]

    def get_urls(self) -> Any:
        """With the page of what amended law would do."""

        def amendments(request: HttpRequest) -> HttpResponse:
            return amendments_page(self, request)

        view = self.admin_site.admin_view(amendments)
        return [path("amendments/", view, name="filings_amendments"), *super().get_urls()]

    def has_prepare_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who prepares filings."""
        return request.user.has_perm("filings.prepare_filing")

    @action(
        description="Open a filing",
        permissions=["prepare"],
        dialog={
            "title": "Open a filing",
            "description": "Makes a draft from what we know of the entity. Nothing is sent.",
            "form_class": BaseDialogForm,
            "form_submit_text": "Open a draft",
        },
    )
    def open_filing(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        """A draft for this deadline; the one there is, if there is one."""
        with RefusalsTold(request):
            filing = services.open_filing(self.found(request, object_id), by=person(request))
            return go_to(reverse("admin:filings_filing_change", args=[filing.pk]))
        return go_to(reverse("admin:compliance_deadline_change", args=[object_id]))
