"""People, tokens and the task queue: other libraries' models in our clothes, and guarded."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django_q.admin import FailAdmin, QueueAdmin, ScheduleAdmin, TaskAdmin
from django_q.models import Failure, OrmQ, Schedule, Success
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from compliance.admin_base import ReadOnly, ScopedAdmin, person
from compliance.models import ApiToken

for model in (User, Group, Schedule, Success, Failure, OrmQ):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class SuperuserWrites:
    """Who may write here could make themselves a superuser, so only superusers may."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)


@admin.register(User)
class PersonAdmin(SuperuserWrites, UserAdmin, ModelAdmin):
    """People. They are deactivated, never deleted: the record names them."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "first_name", "last_name", "is_active", "is_staff", "last_login"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


@admin.register(Group)
class RoleAdmin(SuperuserWrites, GroupAdmin, ModelAdmin):
    """Roles: what people may do. `setup_roles` makes the usual ones."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)


class SuperuserLooks(ReadOnly):
    """A schedule runs any dotted path, so nobody writes one here and only superusers look."""

    actions: list[Any] = []

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)


@admin.register(Schedule)
class WakeUpAdmin(SuperuserLooks, ScheduleAdmin, ModelAdmin):
    """What wakes the lanes, and when."""


@admin.register(Success)
class DoneTaskAdmin(SuperuserLooks, TaskAdmin, ModelAdmin):
    """Wake-ups that went well."""


@admin.register(Failure)
class FailedTaskAdmin(SuperuserLooks, FailAdmin, ModelAdmin):
    """Wake-ups that failed; the work itself is in the lanes and is not lost."""


@admin.register(OrmQ)
class QueuedTaskAdmin(SuperuserLooks, QueueAdmin, ModelAdmin):
    """Wake-ups that wait."""


class TokenForm(forms.ModelForm):
    """A new token: for whom, under what name, for what."""

    class Meta:
        model = ApiToken
        fields = ["name", "scopes"]

    def clean_scopes(self) -> list[str]:
        """A list of words."""
        scopes = self.cleaned_data["scopes"]
        if not isinstance(scopes, list) or not all(isinstance(word, str) for word in scopes):
            raise forms.ValidationError('Write the scopes as ["read", "filings.approve_filing"].')
        return scopes


@admin.register(ApiToken)
class ApiTokenAdmin(ScopedAdmin):
    """One's own tokens; a superuser sees everybody's. Shown once, when made; kept as a digest."""

    form = TokenForm
    list_display = ["name", "user", "scopes", "created", "expiry"]
    list_filter = ["created", "expiry"]
    list_select_related = ["user"]
    search_fields = ["name", "user__username"]
    fields = ["name", "user", "scopes", "created", "expiry"]
    add_fieldsets = [(None, {"fields": ["name", "scopes"]})]

    def get_queryset(self, request: HttpRequest) -> Any:
        """One's own."""
        rows = ApiToken.objects.all()
        return rows if request.user.is_superuser else rows.filter(user=person(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A token is revoked and made anew, never widened."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Revoking is deleting."""
        return bool(request.user.has_perm("compliance.delete_apitoken"))

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: Any) -> None:
        """Make it, and show it once."""
        made, token = ApiToken.objects.create(
            person(request), name=obj.name, scopes=form.cleaned_data["scopes"]
        )
        obj.pk, obj.user = made.pk, made.user
        messages.info(request, f"Copy the token now; it is not shown again: {token}")
