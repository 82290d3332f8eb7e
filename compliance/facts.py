"""What is true of one registration alone: traits that bind duties, events that start them."""

from collections.abc import Iterable
from datetime import date

from django.contrib.auth.models import User
from django.utils import timezone

from compliance import ledger
from compliance.deadlines import target_of
from compliance.errors import Malformed, NotAllowed, NotFound
from compliance.franchise_tax_payment import INSTALMENT_CITE, owes_instalments
from compliance.history import remember, update_tracked
from compliance.models import Registration, RegistrationEvent
from compliance.rules import pack_folders, pack_of
from compliance.wording import money
from compliance.worksheets import HOME, owes_franchise_tax, worksheet_of

Name = RegistrationEvent.Name
# These may be known beforehand; the others are told once they have happened.
PLANNED = (Name.PERIOD_END, Name.POP_END)
INSTALMENTS = "de-franchise-tax-5000"


def known_traits(registration: Registration) -> dict[str, str]:
    """The traits that decide a duty of this kind of entity there, each in words."""
    if registration.jurisdiction not in pack_folders():
        return {}
    pack = pack_of(registration.jurisdiction)
    target = target_of(registration.entity.kind, is_foreign=registration.is_foreign)
    asked = {duty.only_if for duty in pack.duty if duty.only_if and target in duty.targets}
    return {trait: words for trait, words in pack.traits.items() if trait in asked}


def set_traits(registration: Registration, *, traits: Iterable[str], by: User) -> Registration:
    """Say which traits hold; the next synchronisation makes the deadlines that follow."""
    wanted = sorted(set(traits))
    with ledger.recording(by=by):
        row = _locked(registration)
        _refuse_unknown(wanted, known_traits(row), row)
        came_from = list(row.traits)
        if came_from == wanted:
            return row
        update_tracked([row], reason="Traits set", traits=wanted)
        _record(row, "registration.traits", by, came_from=came_from, to=wanted)
        return row


def record_event(
    registration: Registration,
    *,
    name: str,
    happened_on: date,
    by: User,
    today: date | None = None,
) -> RegistrationEvent:
    """Note that something happened; telling it again gives the one there is."""
    with ledger.recording(by=by):
        row = _locked(registration)
        _refuse_event(row, name, happened_on, today or timezone.localdate())
        told = RegistrationEvent.objects.holding().filter(registration=row)
        there: RegistrationEvent | None = told.filter(name=name, happened_on=happened_on).first()
        if there is not None:
            return there
        made = RegistrationEvent(registration=row, name=name, happened_on=happened_on)
        RegistrationEvent.objects.bulk_create([made])
        remember([made], reason="Event recorded", created=True)
        _record_event(made, "registration.event", by)
        return made


def retract_event(event: RegistrationEvent, *, by: User, reason: str) -> RegistrationEvent:
    """Take back an event that was told by mistake. What became due by it waits for a person."""
    if not reason.strip():
        raise NotAllowed("Say in a sentence why it is taken back; the reason goes on the ledger.")
    with ledger.recording(by=by):
        _locked(event.registration)
        rows = RegistrationEvent.objects.select_related("registration__entity")
        row: RegistrationEvent = rows.get(pk=event.pk)
        if row.retracted_at is not None:
            raise NotAllowed(f"“{row}” was taken back already. Reload the page.")
        update_tracked([row], reason=reason[:100], retracted_at=timezone.now())
        _record_event(row, "registration.event_retracted", by, reason=reason)
        return row


def event_of(registration: Registration, key: int) -> RegistrationEvent:
    """An event of this registration, by its id."""
    found: RegistrationEvent | None = registration.events.filter(pk=key).first()
    if found is None:
        raise NotFound(f"{registration} has no event {key}. Look at its facts for those it has.")
    return found


def hints_of(registration: Registration) -> list[str]:
    """What the figures on file suggest about its traits; a person decides."""
    entity = registration.entity
    at_home = registration.jurisdiction == HOME and not registration.is_foreign
    if not (at_home and owes_franchise_tax(entity)) or not entity.share_classes.exists():
        return []
    tax, holds = worksheet_of(entity).tax, INSTALMENTS in registration.traits
    if owes_instalments(tax) == holds:
        return []
    comes_to = f"By the shares on file the franchise tax comes to {money(tax)}"
    if holds:
        return [f"{comes_to}, below $5,000: no instalments ({INSTALMENT_CITE}). Untick it?"]
    return [
        f"{comes_to}. From $5,000 on it is paid in instalments on June 1, September 1 and "
        f"December 1 ({INSTALMENT_CITE}). If that was last year's tax, tick the trait below."
    ]


def _refuse_unknown(wanted: list[str], known: dict[str, str], row: Registration) -> None:
    unknown = [trait for trait in wanted if trait not in known]
    if unknown:
        raise Malformed(f"“{unknown[0]:.60}” decides no duty of {row}. {traits_in_words(known)}")


def traits_in_words(known: dict[str, str]) -> str:
    """The traits that can be told, for a message or a help text."""
    if not known:
        return "No trait is asked there: leave it empty."
    told = "; ".join(f"{trait} ({words})" for trait, words in known.items())
    return f"Known are: {told}."


def _refuse_event(row: Registration, name: str, happened_on: date, today: date) -> None:
    if name not in Name.values:
        known = ", ".join(Name.values)
        raise Malformed(f"“{name:.60}” is no event that a duty counts from. Write one of {known}.")
    refuse_day(name, happened_on, formed_on=row.entity.formed_on, today=today)


def refuse_day(name: str, happened_on: date, *, formed_on: date, today: date) -> None:
    """An event happens after the entity was formed, and is told once it has happened."""
    if happened_on < formed_on:
        raise NotAllowed(
            f"{happened_on} is before the entity was formed, on {formed_on}. Correct the date."
        )
    if happened_on > today and name not in PLANNED:
        raise NotAllowed(
            f"{happened_on} is yet to come. Tell “{Name(name).label}” once it has happened."
        )


def _locked(registration: Registration) -> Registration:
    rows = Registration.objects.select_for_update(of=("self",)).select_related("entity")
    row: Registration = rows.get(pk=registration.pk)
    return row


def _record(row: Registration, type: str, by: User, **data: object) -> None:
    ledger.record(
        type=type,
        subject=f"registration:{row.pk}",
        actor=by.username,
        portfolio_id=row.entity.portfolio_id,
        **data,
    )


def _record_event(event: RegistrationEvent, type: str, by: User, **data: object) -> None:
    day = event.happened_on.isoformat()
    _record(event.registration, type, by, event=event.pk, name=event.name, on=day, **data)
