"""Makes the usual roles, each with what it takes to do that work and no more."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.core.management.base import BaseCommand
from django.db import transaction
from django.db.models import Q

# What people work on, by app; tokens, users and secrets are not among it.
WORK = {
    "compliance": (
        "portfolio", "entity", "officer", "address", "shareclass", "registration", "deadline",
        "notice", "ledgerentry", "ledgerhead", "event", "registrationevent",
    ),
    "portals": ("portal", "lane", "limitblock", "intent", "attempt", "resolution"),
    "filings": ("filing", "batch", "statuscheck"),
    "grants": ("funder", "opportunity", "grantsubmission", "attachment"),
}  # fmt: skip
ENTITIES = ("entity", "officer", "address", "shareclass", "registration")

LOOK = [f"{app}.view_{model}" for app, models in WORK.items() for model in models]
KEEP_ENTITIES = [f"compliance.{verb}_{model}" for model in ENTITIES for verb in ("add", "change")]
PREPARE = ["filings.prepare_filing", "filings.request_check", "grants.prepare_grant"]
OWN_TOKENS = [f"compliance.{verb}_apitoken" for verb in ("view", "add", "delete")]
CREDENTIALS = [f"portals.{verb}_credential" for verb in ("view", "add", "change", "delete")]

ROLES: dict[str, list[str]] = {
    "Preparer": [
        *LOOK,
        *KEEP_ENTITIES,
        *PREPARE,
        "grants.add_opportunity",
        "grants.change_opportunity",
    ],
    "Approver": [
        *LOOK,
        "filings.approve_filing",
        "grants.approve_grant",
        "portals.approve_resend",
    ],
    "Compliance officer": [
        *LOOK,
        "portals.work_fallout",
        "filings.withdraw_filing",
        "grants.withdraw_grant",
        "filings.request_check",
        "compliance.change_deadline",
        "compliance.assign_deadline",
        "compliance.manage_registration",
    ],
    "Auditor": LOOK,
    "Operator": [*LOOK, "portals.change_portal", "portals.change_lane", *CREDENTIALS],
    "Integrator": [*LOOK, *PREPARE, *OWN_TOKENS],
}


def permissions_named(names: Iterable[str]) -> list[Permission]:
    """The permissions of those names; a name that does not exist is a mistake of ours."""
    wanted = Q(pk__in=[])
    for name in names:
        app, codename = name.split(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    found = list(Permission.objects.filter(wanted).select_related("content_type"))
    known = {f"{row.content_type.app_label}.{row.codename}" for row in found}
    if missing := set(names) - known:
        raise LookupError(f"No such permission: {', '.join(sorted(missing))}. Run migrate first.")
    return found


def setup_roles() -> list[str]:
    """Give each role exactly its permissions; asking again changes nothing."""
    with transaction.atomic():
        for name, names in ROLES.items():
            group, _ = Group.objects.get_or_create(name=name)
            group.permissions.set(permissions_named(names))
    return list(ROLES)


class Command(BaseCommand):
    help = "Makes the groups that people are put in: Preparer, Approver and the others."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"Ready: {', '.join(setup_roles())}.")
