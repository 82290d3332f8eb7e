"""What the law as installed would do to what is owed, before anybody applies it."""

from collections.abc import Collection
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.utils import timezone

from compliance import rules, wording
from compliance.admin_base import RefusalsTold, person
from compliance.amendments import Applied, Revision, preview_amendment
from compliance.models import Deadline
from compliance.wording import counted, money
from filings.models import Filing

MOST_SHOWN = 50
SHOWN = {"due_on": "Due", "opens_on": "Opens", "fee": "Fee", "penalty": "Penalty", "form": "Form"}


def being_filed(deadlines: Collection[int]) -> Collection[int]:
    """Those of the deadlines, by id, that have a live filing."""
    live = Filing.objects.filter(deadline_id__in=deadlines, status__in=Filing.LIVE)
    return set(live.values_list("deadline_id", flat=True))


def sentence(done: Applied, *, is_rehearsal: bool) -> str:
    """What was done, or would be, for a person."""
    start = "Would bring" if is_rehearsal else "Brought"
    side = "less" if done.more < 0 else "more"
    told = (
        f"{start} {counted(done.deadlines, 'deadline')} of {done.jurisdiction} up to its pack: "
        f"{counted(done.moved, 'due date')} moved, {counted(done.fees_changed, 'fee')} changed, "
        f"{money(abs(done.more), done.currency)} {side}."
    )
    if done.held:
        told += f" Due already or being filed, so that their dates stay: {done.held:,}."
    if done.unknown:
        told += f" Not asked by this pack of these facts, left for a person: {done.unknown:,}."
    return told


def amended_jurisdictions(deadlines: Any) -> list[str]:
    """Where something is owed by another version of the law than the one installed."""
    installed = {code: pack.sha256 for code, pack in rules.packs().items()}
    owed_by = deadlines.unmet().order_by().values_list("registration__jurisdiction", "pack_sha256")
    amended = {code for code, sha256 in owed_by.distinct() if installed.get(code) != sha256}
    return sorted(amended & installed.keys())


def amendments_page(admin: Any, request: HttpRequest) -> HttpResponse:
    """The amended jurisdictions and, for the one that is asked for, what applying would do."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    if not admin.has_view_permission(request):
        raise PermissionDenied
    seen = Deadline.objects.visible_to(person(request))
    codes = amended_jurisdictions(seen)
    code = request.GET.get("jurisdiction", "").upper()
    context = {
        **admin.admin_site.each_context(request),
        "title": "Amendments of the law",
        "codes": codes,
        "code": code,
    }
    if code in codes:
        with RefusalsTold(request):
            context |= _previewed(code, seen)
    return TemplateResponse(request, "admin/filings/amendments.html", context)


def _previewed(code: str, seen: Any) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []

    def keep(revision: Revision) -> None:
        changed = [name for name in revision.changed if name in SHOWN]
        if changed and len(rows) < MOST_SHOWN:
            rows.append({"deadline": revision.row, "changes": [*_told(revision, changed)]})

    today = timezone.localdate()
    done = preview_amendment(code, busy=being_filed, today=today, among=seen, on_revision=keep)
    return {"sentence": sentence(done, is_rehearsal=True), "rows": rows, "most": MOST_SHOWN}


def _told(revision: Revision, changed: list[str]) -> list[str]:
    told = []
    for name in changed:
        before, after = revision.before[name], getattr(revision.row, name)
        if name == "fee":
            currency = revision.row.currency
            before, after = (
                "not known" if fee is None else wording.money(fee, currency)
                for fee in (before, after)
            )
        told.append(f"{SHOWN[name]}: {before or 'none'} → {after or 'none'}")
    return told
