"""What the first page shows: what needs this person, by when, and how everything stands.

Every number is of the user's own portfolios, and a link to its rows. The number of queries does
not grow with the number of rows.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Max, Min, Q, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from compliance import wording
from compliance.admin import stale_standing
from compliance.admin_base import person
from compliance.models import Deadline, Registration
from filings.admin import unfiled
from filings.models import Batch, Filing
from grants.models import GrantSubmission
from portals.fallout import cause_in_words
from portals.holds import card_or_none, weather
from portals.models import Intent, Lane, Resolution

SPANS = (7, 30, 90)
SOON = 30
TROUBLE = (Filing.Status.IN_DOUBT, Filing.Status.FALLOUT, Filing.Status.REJECTED)
MOST_LANES = 12


@dataclass(frozen=True)
class Line:
    """A sentence that leads to its rows."""

    words: str
    url: str
    note: str = ""


@dataclass(frozen=True)
class Number:
    """A number that leads to its rows."""

    label: str | SafeString
    count: int
    url: str


@dataclass(frozen=True)
class Progress:
    """How far a season has come in one jurisdiction."""

    jurisdiction: str
    accepted: int
    total: int
    trouble: int
    url: str

    @property
    def percent(self) -> int:
        """Accepted, of a hundred."""
        return self.accepted * 100 // self.total if self.total else 0


@dataclass(frozen=True)
class Weather:
    """One lane."""

    title: str
    state: SafeString
    is_simulated: bool
    waiting: int
    url: str
    rows_url: str


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Put the user's own day on the index."""
    user, today = person(request), timezone.localdate()
    needs = [
        *approvals(user, today),
        *resends(user),
        *fallout(user),
        *stopped_lanes(user),
        *unbegun(user, today),
        *own_drafts(user),
    ]
    context.update(
        title="Today",
        lead=lead_of(needs, user),
        needs=needs,
        due=due(user, today),
        seasons=seasons(user),
        standings=standings(user),
        lanes=lanes(user),
    )
    return context


def lead_of(needs: list[Line], user: User) -> str:
    """The one sentence that comes first."""
    if needs:
        return needs[0].words
    if Registration.objects.visible_to(user).exists():
        return "Nothing waits for you."
    return "There is nothing here yet. Begin with an entity and where it is registered."


def link(name: str, **query: Any) -> str:
    """A list, filtered."""
    url = reverse(f"admin:{name}")
    return f"{url}?{urlencode(query)}" if query else url


# --- What needs me --------------------------------------------------------------------------


def approvals(user: User, today: date) -> list[Line]:
    """Drafts that others prepared and that this person may approve."""
    lines = []
    if user.has_perm("filings.approve_filing"):
        drafts = Filing.objects.visible_to(user).filter(status=Filing.Status.DRAFT)
        found = drafts.exclude(prepared_by=user).aggregate(
            count=Count("id"), first=Min("deadline__due_on"), fees=Sum("fee")
        )
        if found["count"]:
            waits = wording.counted(found["count"], "filing waits", "filings wait")
            verb = "is" if found["first"] >= today else "was"
            first = f"the first {verb} due {wording.day(found['first'])}"
            words = f"{waits} for your approval; {first}."
            url = link("filings_filing_changelist", waits="me")
            lines.append(Line(words, url, f"{wording.money(found['fees'])} in fees"))
    if user.has_perm("grants.approve_grant"):
        lines += _grant_approvals(user)
    return lines


def _grant_approvals(user: User) -> list[Line]:
    drafts = GrantSubmission.objects.visible_to(user).filter(status=GrantSubmission.Status.DRAFT)
    found = drafts.exclude(prepared_by=user).aggregate(
        count=Count("id"), first=Min("opportunity__closes_at")
    )
    if not found["count"]:
        return []
    waits = wording.counted(found["count"], "grant application waits", "grant applications wait")
    words = f"{waits} for your approval; the first closes {wording.day(found['first'])}."
    url = link("grants_grantsubmission_changelist", waits="me")
    return [Line(words, url)]


def resends(user: User) -> list[Line]:
    """Requests of others to send something again."""
    if not user.has_perm("portals.approve_resend"):
        return []
    mine = Intent.objects.fallout().visible_to(user)
    asked = Resolution.objects.filter(intent__in=mine, closed_at__isnull=True)
    ids = list(asked.exclude(requested_by=user).values_list("intent_id", flat=True)[:100])
    if not ids:
        return []
    waits = wording.counted(len(ids), "request to send again waits", "requests to send again wait")
    return [
        Line(f"{waits} for your decision.", reverse("admin:portals_fallout_item", args=ids[:1]))
    ]


def fallout(user: User) -> list[Line]:
    """The review queue by cause, the most expensive first."""
    if not user.has_perm("portals.work_fallout"):
        return []
    causes = (
        Intent.objects.fallout()
        .visible_to(user)
        .order_by()
        .values("cause")
        .annotate(count=Count("id"), worst=Max("cost"), mine=Count("id", Q(claimed_by=user)))
        .order_by("-worst", "-count")
    )
    return [_fallout_line(row) for row in causes]


def _fallout_line(row: dict[str, Any]) -> Line:
    words = cause_in_words(Intent(cause=row["cause"]))
    waits = wording.counted(row["count"], "item waits", "items wait")
    url = link("portals_fallout", cause=row["cause"])
    note = f"{row['mine']:,} of them yours" if row["mine"] else ""
    return Line(f"{waits} in the review queue: {words}.", url, note)


def stopped_lanes(user: User) -> list[Line]:
    """Lanes that only a person can resume."""
    if not user.has_perm("portals.change_lane"):
        return []
    stopped = Lane.objects.filter(needs_person=True, portal__is_enabled=True)
    return [
        Line(
            f"{lane.portal} needs a person.",
            reverse("admin:portals_lane_change", args=[lane.pk]),
            lane.pause_cause,
        )
        for lane in stopped.select_related("portal")
    ]


def unbegun(user: User, today: date) -> list[Line]:
    """Deadlines, past or of the next weeks, that nobody has begun to meet."""
    if not user.has_perm("filings.prepare_filing"):
        return []
    soon = today + timedelta(days=SOON)
    found = unfiled(Deadline.objects.visible_to(user).filter(due_on__lte=soon)).aggregate(
        late=Count("id", Q(due_on__lt=today)),
        count=Count("id", Q(due_on__gte=today)),
        oldest=Min("due_on"),
        first=Min("due_on", filter=Q(due_on__gte=today)),
    )
    page, lines = "compliance_deadline_changelist", []
    if found["late"]:
        have = wording.counted(found["late"], "overdue deadline has", "overdue deadlines have")
        words = f"{have} no filing yet; the first was due {wording.day(found['oldest'])}."
        lines.append(Line(words, link(page, filing="none", due="overdue")))
    if found["count"]:
        have = wording.counted(found["count"], "deadline has", "deadlines have")
        words = f"{have} no filing yet; the first is due {wording.day(found['first'])}."
        lines.append(Line(words, link(page, filing="none", due=SOON)))
    return lines


def own_drafts(user: User) -> list[Line]:
    """What this person prepared and nobody has approved."""
    if not user.has_perm("filings.prepare_filing"):
        return []
    drafts = Filing.objects.visible_to(user).filter(status="draft", prepared_by=user)
    count = drafts.count()
    if not count:
        return []
    waits = wording.counted(count, "draft of yours waits", "drafts of yours wait")
    url = link("filings_filing_changelist", status__exact="draft", prepared_by=user.pk)
    return [Line(f"{waits} for somebody's approval.", url)]


# --- What is due ----------------------------------------------------------------------------


def due(user: User, today: date) -> list[Number]:
    """Owed deadlines: past, and within the spans from today."""
    if not user.has_perm("compliance.view_deadline"):
        return []
    within = {
        f"in_{days}": Count("id", Q(due_on__range=(today, today + timedelta(days=days))))
        for days in SPANS
    }
    found = (
        Deadline.objects.visible_to(user)
        .filter(status=Deadline.Status.OWED)
        .aggregate(overdue=Count("id", Q(due_on__lt=today)), **within)
    )
    page = "compliance_deadline_changelist"
    overdue = Number(
        wording.state("overdue" if found["overdue"] else "met", "Overdue"),
        found["overdue"],
        link(page, due="overdue"),
    )
    spans = [Number(f"In {n} days", found[f"in_{n}"], link(page, due=n)) for n in SPANS]
    return [overdue, *spans]


def seasons(user: User) -> list[Progress]:
    """How far the latest batch of each portfolio has come, by jurisdiction."""
    if not user.has_perm("filings.view_filing"):
        return []
    batches = Batch.objects.visible_to(user).order_by().values("portfolio")
    latest = [row["last"] for row in batches.annotate(last=Max("id"))]
    chosen = ",".join(map(str, latest))
    place = "deadline__registration__jurisdiction"
    rows = (
        Filing.objects.visible_to(user)
        .filter(batch__in=latest)
        .order_by()
        .values(place)
        .annotate(
            total=Count("id"),
            accepted=Count("id", Q(status=Filing.Status.ACCEPTED)),
            trouble=Count("id", Q(status__in=TROUBLE)),
        )
        .order_by(place)
    )
    return [
        Progress(
            row[place],
            row["accepted"],
            row["total"],
            row["trouble"],
            link("filings_filing_changelist", batch__in=chosen, **{place: row[place]}),
        )
        for row in rows
    ]


# --- How everything stands ------------------------------------------------------------------


def standings(user: User) -> list[Number]:
    """Registrations by standing; what is too old to be believed is counted as stale alone."""
    if not user.has_perm("compliance.view_registration"):
        return []
    rows = Registration.objects.visible_to(user).filter(ended_on__isnull=True).order_by()
    page = "compliance_registration_changelist"
    here = {"ended_on__isempty": 1}  # still registered
    stale = stale_standing()
    fresh = dict(rows.exclude(stale).values_list("standing").annotate(Count("id")))
    old = rows.filter(stale).count()
    numbers = [
        Number(
            wording.state(code, str(word)),
            fresh[code],
            link(page, standing__exact=code, evidence="current", **here),
        )
        for code, word in Registration.Standing.choices
        if code in fresh
    ]
    if old:
        url = link(page, evidence="stale", **here)
        numbers.append(Number(wording.state("stale", "Stale"), old, url))
    return numbers


def lanes(user: User) -> list[Weather]:
    """The lanes that matter now: stopped ones first, then those where our work waits."""
    if not user.has_perm("portals.view_lane"):
        return []
    queued = Intent.objects.visible_to(user).filter(state=Intent.State.READY).order_by()
    waiting = dict(queued.values_list("portal_id").annotate(Count("id")))
    rows = sorted(
        Lane.objects.select_related("portal"),
        key=lambda lane: (
            weather(lane)[0] == "open", -waiting.get(lane.portal_id, 0), lane.portal.title
        ),
    )  # fmt: skip
    return [_weather(lane, waiting.get(lane.portal_id, 0)) for lane in rows[:MOST_LANES]]


def _weather(lane: Lane, waiting: int) -> Weather:
    card = card_or_none(lane.portal.slug)
    return Weather(
        title=lane.portal.title,
        state=wording.state(*weather(lane)),
        is_simulated=card is not None and card.simulated,
        waiting=waiting,
        url=reverse("admin:portals_lane_change", args=[lane.pk]),
        rows_url=link(
            "portals_intent_changelist", portal__id__exact=lane.portal_id, state__exact="ready"
        ),
    )
