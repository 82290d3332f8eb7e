"""What stops a lane, in words, and what a person does about it."""

from django.contrib.auth.models import User
from django.utils import timezone

from compliance import ledger
from compliance.errors import DomainError, NotAllowed
from portals.cards import Card
from portals.models import Lane
from portals.registry import card_of
from portals.waking import wake


def card_or_none(slug: str) -> Card | None:
    """A portal's card, if its folder is still there."""
    try:
        return card_of(slug)
    except DomainError:
        return None


def weather(lane: Lane) -> tuple[str, str]:
    """How a lane is, as a state and in words."""
    paused = lane.paused_until is not None and lane.paused_until > timezone.now()
    if not lane.portal.is_enabled:
        return "off", "Off: an operator has switched it off"
    if lane.needs_person:
        return "needs_person", f"Needs a person: {lane.pause_cause or 'no cause given'}"
    if paused and lane.paused_until:
        return "paused", f"Paused until {lane.paused_until:%H:%M} UTC: {lane.pause_cause}"
    return "open", "Open"


def resume_lane(lane: Lane, *, by: User, reason: str) -> Lane:
    """Let a lane work again that a portal or a person had stopped; its limits stay in force."""
    if not reason.strip():
        raise NotAllowed("Say in a sentence why it may go on; the reason goes on the ledger.")
    with ledger.recording():
        row = Lane.objects.select_for_update().get(pk=lane.pk)
        if not row.needs_person and row.paused_until is None:
            raise NotAllowed("The lane is not paused; there is nothing to resume.")
        ledger.record(
            type="lane.resumed",
            subject=f"lane:{row.pk}",
            actor=by.username,
            cause=row.pause_cause,
            reason=reason,
        )
        row.needs_person, row.paused_until, row.pause_cause = False, None, ""
        row.save(update_fields=["needs_person", "paused_until", "pause_cause"])
        wake(row.portal_id)
        return row
