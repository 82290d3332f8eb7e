"""Funders, opportunities and our applications to them, with check, approve and withdraw."""

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminSelectWidget

from compliance import wording
from compliance.admin_base import (
    AnswersForm,
    ForMyApproval,
    KeptInline,
    ReadOnly,
    ReasonForm,
    RefusalsTold,
    ScopedRelatedFilter,
    TrackedAdmin,
    go_to,
    person,
)
from compliance.models import Entity
from grants import services
from grants.models import Attachment, Funder, GrantSubmission, Opportunity
from portals.holds import card_or_none

Status = GrantSubmission.Status
BUTTONS: dict[str, tuple[str, ...]] = {
    Status.DRAFT: ("check", "approve", "withdraw"),
    Status.PENDING: ("withdraw",),
}


@admin.register(Funder)
class FunderAdmin(TrackedAdmin):
    """Who gives."""

    list_display = ["name", "slug", "portal"]
    list_filter = ["portal"]
    search_fields = ["name", "slug"]


class ApplicantForm(BaseDialogForm):
    """Asks who applies."""

    entity = forms.ModelChoiceField(
        Entity.objects.none(), label="Who applies", widget=UnfoldAdminSelectWidget
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["entity"].queryset = Entity.objects.visible_to(self.request.user)


@admin.register(Opportunity)
class OpportunityAdmin(TrackedAdmin):
    """What funders offer, and until when."""

    list_display = ["title", "number", "funder", "closes_shown"]
    list_filter = ["funder", "closes_at"]
    list_select_related = ["funder"]
    search_fields = ["title", "number", "funder__name"]
    actions_detail = ["open_submission"]

    def has_prepare_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who prepares applications."""
        return request.user.has_perm("grants.prepare_grant")

    @action(
        description="Open an application",
        permissions=["prepare"],
        dialog={
            "title": "Open an application",
            "description": "Makes a draft from what we know of the applicant. Nothing is sent.",
            "form_class": ApplicantForm,
            "form_submit_text": "Open a draft",
        },
    )
    def open_submission(
        self, request: HttpRequest, form: ApplicantForm, object_id: str
    ) -> HttpResponse:
        """A draft; the one there is, if there is one."""
        opportunity = self.found(request, object_id)
        with RefusalsTold(request):
            made = services.open_submission(
                opportunity, form.cleaned_data["entity"], by=person(request)
            )
            return go_to(reverse("admin:grants_grantsubmission_change", args=[made.pk]))
        return go_to(reverse("admin:grants_opportunity_change", args=[object_id]))

    @display(description="closes", ordering="closes_at")
    def closes_shown(self, row: Opportunity) -> str:
        """When, and how far away that is."""
        today = timezone.localdate()
        return wording.day_and_distance(timezone.localdate(row.closes_at), today=today)


class AttachmentInline(ReadOnly, KeptInline):
    """The files that go with an application."""

    model = Attachment
    fields = ["name", "content_type", "size", "sha256"]


class GrantApprovalForm(BaseDialogForm):
    """Shows what is about to be approved."""

    form_before_template = "admin/grants/approve_dialog.html"

    def get_before_template_context(
        self, request: HttpRequest, object_id: int | str | None = None
    ) -> dict[str, Any]:
        """What will be sent, of a submission that this user may see."""
        page: Any = admin.site.get_model_admin(GrantSubmission)
        row = page.found(request, object_id)
        card = card_or_none(row.opportunity.funder.portal)
        return {
            "row": row,
            "portal": card.title if card else row.opportunity.funder.portal,
            "is_simulated": card is not None and card.simulated,
            "closes": wording.moment(row.opportunity.closes_at),
            "answers": json.dumps(row.answers, indent=2, ensure_ascii=False),
            "attachments": row.attachments.order_by("name"),
            "problems": services.check_submission(row) if row.status == Status.DRAFT else [],
        }


@admin.register(GrantSubmission)
class GrantSubmissionAdmin(TrackedAdmin):
    """Every application, from draft to accepted."""

    form = AnswersForm
    list_display = ["title", "status_shown", "closes_shown", "prepared_by", "tracking_number"]
    list_filter = [
        ForMyApproval,
        "status",
        "opportunity__funder",
        ("portfolio", ScopedRelatedFilter),
    ]
    search_fields = ["entity__name", "opportunity__title", "opportunity__number"]
    inlines = [AttachmentInline]
    readonly_fields = [
        "subject", "status_shown", "closes_shown", "problems", "answers_shown", "prepared_by",
        "approved_by", "approved_at", "tracking_number", "reasons_shown", "cause",
        "payload_sha256", "revision", "created_at", "settled_at",
    ]  # fmt: skip
    actions_detail = ["check_draft", "approve", "withdraw"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """With all that the pages and the checks read."""
        rows = super().get_queryset(request)
        return rows.select_related("opportunity__funder", "entity", "prepared_by", "approved_by")

    def get_fieldsets(self, request: HttpRequest, obj: GrantSubmission | None = None) -> Any:
        """A draft shows what to do; later it shows what was done."""
        draft = obj is not None and obj.status == Status.DRAFT
        edits = draft and self.has_change_permission(request, obj)
        head = ["subject", "status_shown", "closes_shown"]
        outcome = ["tracking_number", "reasons_shown", "cause", "settled_at"]
        answers = ["answers" if edits else "answers_shown"]
        record = [("prepared_by", "created_at"), ("approved_by", "approved_at"), "payload_sha256"]
        return [
            (None, {"fields": head if draft else [*head, *outcome]}),
            ("Answers", {"fields": ["problems", *answers] if draft else answers}),
            ("On the record", {"fields": record}),
        ]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An application is opened from its opportunity."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: GrantSubmission | None = None
    ) -> bool:
        """Who prepares edits drafts; nobody edits anything else."""
        draft = obj is None or obj.status == Status.DRAFT
        return draft and request.user.has_perm("grants.prepare_grant")

    def has_check_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Whoever sees it may ask what is wrong with it."""
        return bool(self.has_view_permission(request))

    def has_approve_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """The second pair of eyes."""
        return request.user.has_perm("grants.approve_grant")

    def has_withdraw_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may take one back."""
        return request.user.has_perm("grants.withdraw_grant")

    def get_actions_detail(self, request: HttpRequest, object_id: int) -> Any:
        """Only the buttons that make sense now."""
        offered = BUTTONS.get(self.found(request, object_id).status, ())
        every = super().get_actions_detail(request, object_id)
        return [button for button in every if button.path in offered]

    def save_model(
        self, request: HttpRequest, obj: GrantSubmission, form: Any, change: Any
    ) -> None:
        """An edit is a move like any other; whoever edits is the preparer from then on."""
        services.edit_submission(obj, answers=form.cleaned_data["answers"], by=person(request))

    @action(description="Check", url_path="check", permissions=["check"])
    def check_draft(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say what stands in the way; changes nothing."""
        problems = services.check_submission(self.found(request, object_id))
        for problem in problems:
            messages.warning(request, problem.sentence)
        if not problems:
            messages.success(request, "Nothing stands in the way: it can be approved.")
        return HttpResponseRedirect(
            reverse("admin:grants_grantsubmission_change", args=[object_id])
        )

    @action(
        description="Approve",
        permissions=["approve"],
        dialog={
            "title": "Approve this application",
            "description": "",
            "form_class": GrantApprovalForm,
            "form_submit_text": "Approve and queue it",
        },
    )
    def approve(
        self, request: HttpRequest, form: GrantApprovalForm, object_id: str
    ) -> HttpResponse:
        """Release a draft to its lane."""
        row = self.found(request, object_id)
        with RefusalsTold(request):
            services.approve_submission(row, by=person(request))
            messages.success(request, "Approved. Until it is sent it can be withdrawn.")
        return go_to(reverse("admin:grants_grantsubmission_change", args=[object_id]))

    @action(
        description="Withdraw",
        permissions=["withdraw"],
        dialog={
            "title": "Withdraw this application",
            "description": "Nothing is sent. A new application can be opened.",
            "form_class": ReasonForm,
            "form_submit_text": "Withdraw this application",
        },
    )
    def withdraw(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        """Take it back before anything of it has left."""
        row = self.found(request, object_id)
        with RefusalsTold(request):
            services.withdraw_submission(
                row, by=person(request), reason=form.cleaned_data["reason"]
            )
            messages.success(request, "Withdrawn.")
        return go_to(reverse("admin:grants_grantsubmission_change", args=[object_id]))

    @display(description="application", ordering="entity__name", header=True)
    def title(self, row: GrantSubmission) -> list[str]:
        """Who applies, and for what."""
        return [str(row.entity), str(row.opportunity)]

    @display(description="application")
    def subject(self, row: GrantSubmission) -> str:
        """Who applies, and for what."""
        return str(row)

    @display(description="status", ordering="status")
    def status_shown(self, row: GrantSubmission) -> SafeString:
        """Shape and word."""
        return wording.state(row.status, row.get_status_display())

    @display(description="closes", ordering="opportunity__closes_at")
    def closes_shown(self, row: GrantSubmission) -> str:
        """When, and how far away that is."""
        today = timezone.localdate()
        return wording.day_and_distance(timezone.localdate(row.opportunity.closes_at), today=today)

    @display(description="in the way")
    def problems(self, row: GrantSubmission) -> SafeString:
        """What stands in the way of approving it."""
        found = services.check_submission(row)
        if not found:
            return format_html("{}", "Nothing. It can be approved.")
        items = format_html_join("", "<li>{}</li>", ((problem.sentence,) for problem in found))
        return format_html('<ul class="gs-list">{}</ul>', items)

    @display(description="answers")
    def answers_shown(self, row: GrantSubmission) -> SafeString:
        """The form's fields."""
        text = json.dumps(row.answers, indent=2, ensure_ascii=False)
        return format_html('<pre class="gs-pre">{}</pre>', text)

    @display(description="refused because", empty_value="none")
    def reasons_shown(self, row: GrantSubmission) -> str | None:
        """What the funder said."""
        return "; ".join(str(reason) for reason in row.reasons) or None


@admin.register(Attachment)
class AttachmentAdmin(TrackedAdmin):
    """Files of applications: added here to a draft, and known by their digest."""

    list_display = ["name", "submission", "content_type", "size", "sha256"]
    list_filter = ["content_type"]
    list_select_related = ["submission__entity", "submission__opportunity"]
    search_fields = ["name", "sha256", "submission__entity__name"]
    fields = ["submission", "name", "content_type", "size", "sha256"]
    add_fieldsets = [(None, {"fields": ["submission", "name", "file"]})]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who prepares applications."""
        return request.user.has_perm("grants.prepare_grant")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A file is put in the place of another, never changed."""
        return False

    def save_model(self, request: HttpRequest, obj: Attachment, form: Any, change: Any) -> None:
        """Stream the file to its place and note its digest."""
        upload = form.cleaned_data["file"]
        made = services.attach_file(
            obj.submission,
            name=obj.name,
            file=upload,
            content_type=upload.content_type or "application/octet-stream",
            by=person(request),
        )
        obj.pk = made.pk

    def has_delete_permission(self, request: HttpRequest, obj: Attachment | None = None) -> bool:
        """A file can be taken away while its application is a draft."""
        draft = obj is not None and obj.submission.status == Status.DRAFT
        return draft and request.user.has_perm("grants.prepare_grant")

    def delete_model(self, request: HttpRequest, obj: Attachment) -> None:
        """Take it away, on the record."""
        services.detach_file(obj.submission, name=obj.name, by=person(request))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Says why when somebody approved the draft meanwhile."""
        with RefusalsTold(request):
            page: HttpResponse = super().delete_view(request, object_id, extra_context)
            return page
        return HttpResponseRedirect(reverse("admin:grants_attachment_changelist"))
