"""The review queue: what waits for a person, what that person may do, and what it would do."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from compliance import ledger
from compliance.errors import NotAllowed
from portals.intents import move_by_hand
from portals.models import Intent, Resolution
from portals.protocol import Move, State
from portals.registry import card_of
from portals.waking import wake

CLAIM_LASTS = timedelta(hours=4)

CAUSES = {
    "filed_elsewhere": "Somebody already filed it",
    "in_doubt": "The portal did not answer; it may have it",
    "no_verdict": "The portal does not say what became of it",
    "content_differs": "The portal holds other content than we sent",
    "arrived_without_number": "The portal has it, but we lack its number",
    "repeat_expired": "It may have arrived, and it is too late to repeat it",
    "refused_after_doubt": "The portal refused a repeat; the first may have been accepted",
    "duplicate_not_found": "The portal calls it a duplicate, but does not find it",
    "no_look_up": "The portal has it and cannot be asked",
    "changed": "The portal no longer looks as we know it",
    "unavailable": "The portal could not be reached",
}

# After these nothing of ours can be at the portal, so that one person may decide alone.
NOTHING_ARRIVED = frozenset({"changed", "unavailable", "filed_elsewhere"})


# After these the portal has it, so that sending it again would file twice.
HELD_THERE = frozenset(
    {"content_differs", "arrived_without_number", "refused_after_doubt", "no_look_up"}
)


@dataclass(frozen=True)
class Offer:
    """A verb, what it would do, and why it is not allowed if it is not."""

    verb: str
    label: str
    consequence: str
    refusal: str = ""

    @property
    def is_allowed(self) -> bool:
        """Whether it may be chosen now."""
        return not self.refusal


def cause_in_words(intent: Intent) -> str:
    """Why it waits, as people say it."""
    return CAUSES.get(intent.cause, intent.cause.replace("_", " ").capitalize())


def offers(intent: Intent) -> list[Offer]:
    """Every verb of the queue for this item, allowed or greyed with the reason."""
    title = intent.portal.title
    closed = "" if intent.state == State.FALLOUT else "It is not in fallout."
    asked = Resolution.objects.filter(intent=intent, closed_at__isnull=True).first()
    waiting = (
        f"{asked.requested_by} asked for “{asked.get_verb_display()}”; that waits."
        if asked
        else ""
    )
    second = needs_second_person(intent)
    return [
        Offer(
            Resolution.Verb.ADOPT,
            "Adopt as accepted",
            f"Records the number that {title} gave. Nothing is sent. Cannot be undone.",
            closed or waiting,
        ),
        Offer(
            Resolution.Verb.REPLAY,
            "Send again",
            f"Sends the same bytes with the same key to {title} once more, after a second person "
            "has approved."
            if second
            else f"Queues it for {title} again; nothing of it has arrived there.",
            closed or waiting or _replay_refusal(intent),
        ),
        Offer(
            Resolution.Verb.WITHDRAW,
            "Withdraw",
            "Ends it without sending. What it was for stays owed, and can be opened anew."
            + (" A second person must agree, because it may have arrived." if second else ""),
            closed or waiting,
        ),
    ]


def needs_second_person(intent: Intent) -> bool:
    """To send again, or to give up, what may have arrived is never one person's decision."""
    return intent.sends > 0 or intent.cause not in NOTHING_ARRIVED


def claim_item(intent: Intent, *, by: User) -> Intent:
    """Take an item, so that no two people work on it. A claim lasts four hours."""
    with ledger.recording(by=by):
        row = _locked(intent)
        if row.claimed_by_id not in (None, by.pk) and not _claim_is_over(row):
            raise NotAllowed(f"{row.claimed_by} has it since {row.claimed_at:%H:%M}. Ask them.")
        return _claim(row, by, by.username)


def release_item(intent: Intent, *, by: User) -> Intent:
    """Give an item back to the queue."""
    with ledger.recording(by=by):
        row = _locked(intent)
        _refuse_unless_claimed(row, by)
        return _claim(row, None, by.username)


def adopt_item(intent: Intent, *, by: User, number: str, reason: str) -> Intent:
    """The portal has accepted it, and a person has the number to show."""
    if not number.strip():
        raise NotAllowed("Enter the confirmation number that the portal gave.")
    with ledger.recording(by=by):
        row = _ready_to_resolve(intent, by, reason)
        _close(row, Resolution.Verb.ADOPT, by, reason, number)
        move = Move(State.ACCEPTED, "adopted", reason, number=number.strip())
        return move_by_hand(row, move, actor=by.username)


def request_withdrawal(intent: Intent, *, by: User, reason: str) -> Resolution:
    """Ask to give it up: at once if nothing can have arrived, else a second person decides."""
    return _request(intent, Resolution.Verb.WITHDRAW, by, reason)


def request_replay(intent: Intent, *, by: User, reason: str) -> Resolution:
    """Ask to send it again: at once if nothing can have arrived, else a second person decides."""
    return _request(intent, Resolution.Verb.REPLAY, by, reason)


def approve_resolution(resolution: Resolution, *, by: User) -> Resolution:
    """The second person agrees, and it is done."""
    with ledger.recording(by=by):
        row = _open_request(resolution)
        if row.requested_by_id == by.pk:
            raise NotAllowed(
                f"{by.username} asked for it, so somebody else must approve it.", code="four_eyes"
            )
        row.approved_by = by
        _carry_out(row, by)
        return row


def refuse_resolution(resolution: Resolution, *, by: User, reason: str) -> Resolution:
    """It is not done; the item stays in the queue."""
    if not reason.strip():
        raise NotAllowed("Say in a sentence why not; the reason goes on the ledger.")
    with ledger.recording(by=by):
        row = _open_request(resolution)
        row.closed_at = timezone.now()
        row.save()
        _record(row.intent, f"fallout.{row.verb}_refused", by, reason=reason)
        return row


def _request(intent: Intent, verb: Resolution.Verb, by: User, reason: str) -> Resolution:
    with ledger.recording(by=by):
        row = _ready_to_resolve(intent, by, reason)
        if verb == Resolution.Verb.REPLAY and (refusal := _replay_refusal(row)):
            raise NotAllowed(refusal)
        resolution = Resolution(intent=row, verb=verb, reason=reason, requested_by=by)
        resolution.save()
        _record(row, f"fallout.{verb}_requested", by, reason=reason)
        if not needs_second_person(row):
            _carry_out(resolution, by)
        return resolution


def _open_request(resolution: Resolution) -> Resolution:
    """Locked after its intent, in the order in which the lanes lock."""
    Intent.objects.select_for_update().get(pk=resolution.intent_id)
    row = Resolution.objects.select_for_update().get(pk=resolution.pk)
    if row.closed_at is not None:
        raise NotAllowed("This request is closed already.")
    return row


def _carry_out(resolution: Resolution, by: User) -> None:
    resolution.closed_at = timezone.now()
    resolution.was_carried_out = True
    resolution.save()
    row = resolution.intent
    if resolution.verb == Resolution.Verb.WITHDRAW:
        move = Move(State.WITHDRAWN, "withdrawn", resolution.reason)
    else:
        # That it may have arrived stays on it: the lane looks once more before it sends, and
        # nobody can take it for something that never left.
        values = {"not_before": timezone.now(), "tries": 0, "absences": 0, "claimed_by": None}
        if card_of(row.portal.slug).doubt_class != "A":
            values["resend_by"] = None  # two people have decided; no window is kept any more
        move = Move(State.READY, "replayed", resolution.reason, values=values)
    move_by_hand(row, move, actor=by.username)
    wake(row.portal_id)


def _replay_refusal(intent: Intent) -> str:
    if intent.cause == "filed_elsewhere":
        return "The portal shows a filing for this period: sending ours would file twice."
    if intent.cause in HELD_THERE:
        return "The portal has it: sending it again would file twice."
    return ""


def _ready_to_resolve(intent: Intent, by: User, reason: str) -> Intent:
    if not reason.strip():
        raise NotAllowed("Say in a sentence what you know and how; it goes on the ledger.")
    row = _locked(intent)
    _refuse_unless_claimed(row, by)
    if Resolution.objects.filter(intent=row, closed_at__isnull=True).exists():
        raise NotAllowed("Somebody asked for something already; approve or refuse that first.")
    return row


def _refuse_unless_claimed(row: Intent, by: User) -> None:
    if row.claimed_by_id != by.pk or _claim_is_over(row):
        raise NotAllowed("Claim the item first, so that no two people work on it.")


def _claim_is_over(row: Intent) -> bool:
    return row.claimed_at is None or timezone.now() - row.claimed_at > CLAIM_LASTS


def _claim(row: Intent, user: User | None, actor: str) -> Intent:
    row.claimed_by, row.claimed_at = user, timezone.now() if user else None
    Intent.objects.filter(pk=row.pk).update(claimed_by=user, claimed_at=row.claimed_at)
    ledger.record(
        type="fallout.claimed" if user else "fallout.released",
        subject=f"intent:{row.pk}",
        actor=actor,
        portfolio_id=row.portfolio_id,
    )
    return row


def _close(row: Intent, verb: str, by: User, reason: str, number: str = "") -> None:
    Resolution(
        intent=row, verb=verb, reason=reason, number=number, requested_by=by,
        closed_at=timezone.now(), was_carried_out=True,
    ).save()  # fmt: skip
    _record(row, f"fallout.{verb}", by, reason=reason, number=number)


def _record(row: Intent, type: str, by: User, **data: str) -> None:
    ledger.record(
        type=type,
        subject=f"intent:{row.pk}",
        actor=by.username,
        portfolio_id=row.portfolio_id,
        **{name: value for name, value in data.items() if value},
    )


def _locked(intent: Intent) -> Intent:
    row: Intent = (
        Intent.objects.select_for_update(of=("self",)).select_related("portal").get(pk=intent.pk)
    )
    if row.state != State.FALLOUT:
        raise NotAllowed(f"It is {row.get_state_display().lower()}, not in the review queue.")
    return row
