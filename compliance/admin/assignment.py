"""Who sees to deadlines: a dialog for one, a page for many."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.decorators import action
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminSelectWidget

from compliance import wording
from compliance.admin_base import RefusalsTold, go_to, person
from compliance.models import Deadline, people_of
from compliance.services import assign_deadlines


def named(user: User | None) -> str:
    """A person as the pages name them."""
    if user is None:
        return "nobody"
    full = user.get_full_name()
    return f"{full} ({user.username})" if full else user.username


class PersonField(forms.ModelChoiceField):
    """One of the people who may see what is assigned."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            User.objects.none(), required=False, empty_label="Nobody",
            widget=UnfoldAdminSelectWidget(), **options,
        )  # fmt: skip

    def label_from_instance(self, obj: User) -> str:
        """With the full name where there is one."""
        return named(obj)


class PeopleForm(forms.Form):
    """An owner and a backup, who are two people."""

    owner = PersonField(label="Owner", help_text="Sees to it, and is told first.")
    backup = PersonField(label="Backup", help_text="Stands in for the owner.")

    def offer(self, portfolios: set[int]) -> None:
        """Only who may see all that is assigned can be chosen."""
        for name in ("owner", "backup"):
            field = self.fields[name]
            assert isinstance(field, PersonField)  # noqa: S101 - tells mypy what stands above
            field.queryset = people_of(portfolios)

    def clean(self) -> dict[str, Any]:
        """Nobody stands in for themselves."""
        data = super().clean() or self.cleaned_data
        if data.get("owner") and data.get("owner") == data.get("backup"):
            self.add_error("backup", "Nobody stands in for themselves. Name somebody else.")
        return data


class AssignForm(PeopleForm, BaseDialogForm):
    """The people of one deadline, with those it has chosen already."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        page: Any = admin.site.get_model_admin(Deadline)
        deadline = page.found(self.request, self.object_id)
        self.offer({deadline.registration.entity.portfolio_id})
        self.initial.update(owner=deadline.owner_id, backup=deadline.backup_id)


class Assignable:
    """The moves that name who sees to deadlines."""

    admin_site: Any
    opts: Any
    found: Any

    def has_assign_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Who may say who sees to a deadline."""
        return request.user.has_perm("compliance.assign_deadline")

    @action(
        description="Assign",
        permissions=["assign"],
        dialog={
            "title": "Assign this deadline",
            "description": "Both are told as the due date comes near. Only people who may see "
            "its portfolio can be chosen.",
            "form_class": AssignForm,
            "form_submit_text": "Assign this deadline",
        },
    )
    def assign(self, request: HttpRequest, form: AssignForm, object_id: str) -> HttpResponse:
        """Name who sees to it, and who stands in."""
        deadline = self.found(request, object_id)
        with RefusalsTold(request):
            self._assign(request, [deadline], form)
        return go_to(reverse("admin:compliance_deadline_change", args=[object_id]))

    @admin.action(description="Assign selected", permissions=["assign"])
    def assign_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Show how far it reaches, then name the same people for all that are owed."""
        owed = queryset.unmet()
        form = PeopleForm(request.POST if "confirmed" in request.POST else None)
        path = "registration__entity__portfolio"
        form.offer(set(owed.order_by().values_list(path, flat=True).distinct()))
        if form.is_valid():
            with RefusalsTold(request):
                self._assign(request, owed.select_related(None).only("pk").iterator(), form)
            return None
        return self._confirmation(request, queryset.count(), owed.count(), form)

    def _assign(self, request: HttpRequest, deadlines: Any, form: PeopleForm) -> None:
        owner, backup = form.cleaned_data["owner"], form.cleaned_data["backup"]
        done = assign_deadlines(deadlines, owner=owner, backup=backup, by=person(request))
        if not done:
            messages.warning(request, "Nothing was assigned: only what is still owed can be.")
            return
        reach = wording.counted(len(done), "deadline")
        messages.success(
            request, f"Assigned {reach}. Owner: {named(owner)}. Backup: {named(backup)}."
        )

    def _confirmation(
        self, request: HttpRequest, chosen: int, owed: int, form: PeopleForm
    ) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "Assign deadlines",
            "opts": self.opts,
            "form": form,
            "owed": owed,
            "label": f"Assign {wording.counted(owed, 'deadline')}",
            "settled": chosen - owed,
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "ids": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
        }
        return TemplateResponse(request, "admin/compliance/assign_selected.html", context)
