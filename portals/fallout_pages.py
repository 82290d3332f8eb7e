"""The review queue's two pages: what waits for a person, and one item with its evidence."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, Max
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from compliance import wording
from compliance.admin_base import person
from compliance.errors import DomainError
from portals import fallout
from portals.handlers import Shown, handler_of
from portals.holds import card_or_none
from portals.models import Intent, IntentPayload, Resolution
from portals.story import story_of

WORK, APPROVE = "portals.work_fallout", "portals.approve_resend"
MOST_ROWS = 200
MOST_BYTES = 65_536
MOST_HEX = 4_096


# --- The queue ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One item as the queue shows it."""

    intent: Intent
    title: str
    url: str
    due: str
    per_day: str
    since: str
    holder: str


@dataclass
class Group:
    """Items that wait for the same cause."""

    cause: str
    words: str
    count: int
    rows: list[Row] = field(default_factory=list)


def waiting(user: User) -> Any:
    """What waits for a person, worst first: what delay costs, then the deadline."""
    return (
        Intent.objects.fallout()
        .visible_to(user)
        .select_related("portal", "claimed_by")
        .order_by("-cost", F("deadline_at").asc(nulls_last=True), "id")
    )


def queue_page(admin: Any, request: HttpRequest) -> HttpResponse:
    """The items by cause, the worst group first."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    user = person(request)
    counts = dict(waiting(user).order_by().values_list("cause").annotate(Count("id")))
    cause = request.GET.get("cause", "")
    rows = waiting(user).filter(cause=cause) if cause else waiting(user)
    groups = _groups(rows.annotate(stopped=Max("attempts__ended_at"))[:MOST_ROWS], counts, user)
    total = sum(counts.values())
    context = {
        **admin.admin_site.each_context(request),
        "title": "Review queue",
        "groups": groups,
        "total": total,
        "shown": sum(len(group.rows) for group in groups),
        "lead": _lead(total, groups),
        "cause": cause,
    }
    return TemplateResponse(request, "admin/portals/fallout.html", context)


def _lead(total: int, groups: list[Group]) -> str:
    if not total:
        return ""
    items = wording.counted(total, "item waits", "items wait")
    worst = groups[0].rows[0] if groups else None
    return f"{items} for a person." + (f" Begin with {worst.title}." if worst else "")


def _groups(rows: Iterable[Any], counts: dict[str, int], user: User) -> list[Group]:
    items = list(rows)
    titles = titles_of(items)
    groups: dict[str, Group] = {}
    for intent in items:
        words = fallout.cause_in_words(intent)
        group = groups.setdefault(
            intent.cause, Group(intent.cause, words, counts.get(intent.cause, 0))
        )
        group.rows.append(_row(intent, titles[intent.pk], user))
    return list(groups.values())


def _row(intent: Any, shown: Shown, user: User) -> Row:
    now = timezone.now()
    return Row(
        intent=intent,
        title=shown.title,
        url=reverse("admin:portals_fallout_item", args=[intent.pk]),
        due=due_in_words(intent),
        per_day=per_day(intent),
        since=wording.age(intent.stopped or intent.created_at, now=now),
        holder=holder_of(intent, user),
    )


def titles_of(intents: Iterable[Intent]) -> dict[int, Shown]:
    """What each intent is about; one question for each kind of work."""
    by_kind: dict[str, list[Intent]] = defaultdict(list)
    for intent in intents:
        by_kind[intent.kind].append(intent)
    found: dict[int, Shown] = {}
    for kind, rows in by_kind.items():
        shown = handler_of(kind).shown([row.subject_id for row in rows])
        for row in rows:
            found[row.pk] = shown.get(row.subject_id, Shown(f"{kind} {row.subject_id}", ""))
    return found


def due_in_words(intent: Intent) -> str:
    """When it is due, on the portal's own clock."""
    if intent.deadline_at is None:
        return "no date"
    card = card_or_none(intent.portal.slug)
    zone = card.zone if card else None  # its folder is gone; then the date is on our clock
    local = timezone.localtime(intent.deadline_at, zone)
    return wording.day_and_distance(local.date(), today=timezone.localdate(timezone=zone))


def per_day(intent: Intent) -> str:
    """What a day of delay costs, to the dollar: lanes keep it in whole cents an hour."""
    return wording.money(Decimal(round(intent.cost * 24 / 100))) if intent.cost else ""


def claim_holds(intent: Intent) -> bool:
    """Whether somebody has it and the claim has not run out."""
    if intent.claimed_by_id is None or intent.claimed_at is None:
        return False
    return timezone.now() - intent.claimed_at <= fallout.CLAIM_LASTS


def holder_of(intent: Intent, user: User) -> str:
    """Who has it."""
    if not claim_holds(intent):
        return "nobody"
    return "you" if intent.claimed_by_id == user.pk else str(intent.claimed_by)


# --- One item -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """A verb as the page offers it: allowed, or greyed with the reason."""

    verb: str
    label: str
    consequence: str
    refusal: str


def item_page(admin: Any, request: HttpRequest, intent_id: int) -> HttpResponse:
    """One item: its story, the evidence, and what may be done."""
    intent = admin.get_queryset(request).filter(pk=intent_id).first()
    if intent is None or not admin.has_view_permission(request):
        raise Http404
    if request.method != "POST":
        return _item(admin, request, intent)
    try:
        done = _act(request, intent)
    except DomainError as error:
        messages.error(request, str(error))
        intent.refresh_from_db()
        return _item(admin, request, intent)  # what was typed is kept
    messages.success(request, done)
    return HttpResponseRedirect(request.path)


def _act(request: HttpRequest, intent: Intent) -> str:
    """Do what was asked, if this person may; a sentence says what happened."""
    verb = request.POST.get("verb", "")
    if verb not in ACTS:
        raise DomainError("Choose one of the buttons.")
    permission, act = ACTS[verb]
    user = person(request)
    if not user.has_perm(permission):
        raise PermissionDenied
    return act(intent, user, request.POST)


def _claim(intent: Intent, user: User, typed: QueryDict) -> str:
    fallout.claim_item(intent, by=user)
    return "You have it for the next four hours."


def _release(intent: Intent, user: User, typed: QueryDict) -> str:
    fallout.release_item(intent, by=user)
    return "It is back in the queue for anybody."


def _adopt(intent: Intent, user: User, typed: QueryDict) -> str:
    number, reason = typed.get("number", ""), typed.get("adopt_reason", "")
    fallout.adopt_item(intent, by=user, number=number, reason=reason)
    return f"Adopted as accepted with number {number}. Nothing was sent."


def _replay(intent: Intent, user: User, typed: QueryDict) -> str:
    asked = fallout.request_replay(intent, by=user, reason=typed.get("replay_reason", ""))
    if asked.was_carried_out:
        return "Back in its lane; it will be sent again."
    return "Asked. It is sent again when a second person has approved."


def _withdraw(intent: Intent, user: User, typed: QueryDict) -> str:
    asked = fallout.request_withdrawal(intent, by=user, reason=typed.get("withdraw_reason", ""))
    if asked.was_carried_out:
        return "Withdrawn. What it was for stays owed."
    return "Asked. It is withdrawn when a second person has approved."


def _approve(intent: Intent, user: User, typed: QueryDict) -> str:
    approved = fallout.approve_resolution(_asked(intent), by=user)
    if approved.verb == Resolution.Verb.WITHDRAW:
        return "Approved. It is withdrawn; what it was for stays owed."
    return "Approved. It is back in its lane with the same key and bytes."


def _refuse(intent: Intent, user: User, typed: QueryDict) -> str:
    fallout.refuse_resolution(_asked(intent), by=user, reason=typed.get("refuse_reason", ""))
    return "Refused. It stays in the queue, and nothing is sent."


def _asked(intent: Intent) -> Resolution:
    found = Resolution.objects.filter(intent=intent, closed_at__isnull=True).first()
    if found is None:
        raise DomainError("Nobody has asked for anything. Reload the page.")
    return found


ACTS: dict[str, tuple[str, Callable[[Intent, User, QueryDict], str]]] = {
    "claim": (WORK, _claim),
    "release": (WORK, _release),
    Resolution.Verb.ADOPT.value: (WORK, _adopt),
    Resolution.Verb.REPLAY.value: (WORK, _replay),
    Resolution.Verb.WITHDRAW.value: (WORK, _withdraw),
    "approve": (APPROVE, _approve),
    "refuse": (APPROVE, _refuse),
}


def _item(admin: Any, request: HttpRequest, intent: Intent) -> HttpResponse:
    user = person(request)
    attempts = list(intent.attempts.all())
    shown = titles_of([intent])[intent.pk]
    card = card_or_none(intent.portal.slug)
    payload = IntentPayload.objects.filter(intent=intent).first()
    asked = Resolution.objects.filter(intent=intent, closed_at__isnull=True).first()
    context = {
        **admin.admin_site.each_context(request),
        "title": "Review item",
        "intent": intent,
        "subject": shown,
        "state": wording.state(intent.state, intent.get_state_display()),
        "cause": fallout.cause_in_words(intent),
        "is_simulated": card is not None and card.simulated,
        "due": due_in_words(intent),
        "per_day": per_day(intent),
        "holder": holder_of(intent, user),
        "works": user.has_perm(WORK),
        "in_fallout": intent.state == Intent.State.FALLOUT,
        "story": story_of(intent, attempts),
        "wanted": _wanted(payload),
        "sent": _sent(payload),
        "attempts": attempts,
        "choices": choices_for(intent, user),
        "asked": asked,
        "approval_refusal": _approval_refusal(asked, user),
        "next": _next_item(intent, user),
        "typed": request.POST,
    }
    return TemplateResponse(request, "admin/portals/fallout_item.html", context)


def choices_for(intent: Intent, user: User) -> list[Choice]:
    """The queue's verbs for this person: the item's own refusals first, then the person's."""
    mine = claim_holds(intent) and intent.claimed_by_id == user.pk
    personal = "" if mine else "Claim the item first, so that no two people work on it."
    if not user.has_perm(WORK):
        personal = "You may look, but not resolve. Ask a compliance officer."
    return [
        Choice(offer.verb, offer.label, offer.consequence, offer.refusal or personal)
        for offer in fallout.offers(intent)
    ]


def _approval_refusal(asked: Resolution | None, user: User) -> str:
    if asked is None:
        return ""
    if not user.has_perm(APPROVE):
        return "Somebody who may approve resends must decide."
    if asked.requested_by_id == user.pk:
        return "You asked for it, so somebody else must decide."
    return ""


def _next_item(intent: Intent, user: User) -> str:
    for other in waiting(user).exclude(pk=intent.pk)[:MOST_ROWS]:
        if not claim_holds(other) or other.claimed_by_id == user.pk:
            return reverse("admin:portals_fallout_item", args=[other.pk])
    return ""


def _wanted(payload: IntentPayload | None) -> str:
    """The document's fields, indented; the text as it is where it is not JSON."""
    if payload is None:
        return ""
    body = bytes(payload.wire_bytes)
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)[:MOST_BYTES]
    except ValueError:
        return _text(body)


def _sent(payload: IntentPayload | None) -> dict[str, Any]:
    body = bytes(payload.wire_bytes) if payload else b""
    return {
        "size": len(body),
        "text": _text(body),
        "hex": hex_dump(body[:MOST_HEX]),
        "is_cut": len(body) > MOST_HEX,
        "attachments": payload.attachments if payload else [],
    }


def _text(body: bytes) -> str:
    return body[:MOST_BYTES].decode("utf-8", errors="backslashreplace")


def hex_dump(body: bytes) -> str:
    """Bytes as hexadecimal, sixteen to a line, with their place and their letters."""
    lines = []
    for start in range(0, len(body), 16):
        part = body[start : start + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:06x}  {part.hex(' '):<47}  {letters}")
    return "\n".join(lines)
