"""A made-up portfolio whose due dates lie around today, with a few troubles on purpose.

The troubles are in the file numbers, which the portal simulator knows: REJ is refused, HAND was
filed by somebody else, DEL is delinquent, ODD has words nobody knows, GONE is not listed.
"""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from django.contrib.auth.models import Group, User
from django.core.files.base import ContentFile
from django.utils import timezone

from compliance.history import acting_as, remember
from compliance.models import (
    Address,
    Entity,
    Membership,
    Officer,
    Portfolio,
    Registration,
    ShareClass,
)
from grants.models import Funder, GrantSubmission, Opportunity
from grants.services import attach_file, edit_submission, open_submission
from portals.intents import portal_row
from portals.models import Credential
from portals.registry import card_of

PASSWORD = "goodstanding"  # noqa: S105 - demo users only, printed on start
REHEARSAL = "rehearsal"  # what the simulator takes as a name and as a secret
PEOPLE = {
    "dana": ("Dana Reyes", "Preparer"),
    "omar": ("Omar Haddad", "Approver"),
    "ruth": ("Ruth Lindqvist", "Compliance officer"),
    "ada": ("Ada Okafor", "Auditor"),
    "otto": ("Otto Brandt", "Operator"),
}
HOTELS, DEVICES, CHARITY = "harbor-hotels", "meridian-devices", "open-shelf"
PORTFOLIOS = {
    HOTELS: "Harbor Hotels Group",
    DEVICES: "Meridian Devices",
    CHARITY: "Open Shelf Literacy",
}
HOTEL_NAMES = [
    "Anchor",
    "Beacon",
    "Compass",
    "Driftwood",
    "Estuary",
    "Foghorn",
    "Galleon",
    "Halyard",
]
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PORTALS = ("us-de", "us-ca", "us-ny", "bright-futures")
AGENT = "Harbor Registered Agents, Inc."


@dataclass(frozen=True)
class Made:
    """One entity of the demo, and where it is registered under which number."""

    portfolio: str
    name: str
    kind: str
    home: str
    places: dict[str, str]  # jurisdiction → file number


def entities() -> Iterator[Made]:
    """Twenty-one entities of three groups."""
    for number, name in enumerate(HOTEL_NAMES, start=1):
        places = {"US-DE": f"{5_100_000 + number}"}
        if number % 2:
            places["US-CA"] = f"2019{4_000_000 + number}"
        if number == 4:
            places["US-NY"] = "HAND-4400123"
        yield Made(HOTELS, f"{name} House LLC", Entity.Kind.LLC, "US-DE", places)
    parents = [
        ("Meridian Devices, Inc.", {"US-DE": "6200001", "US-CA": "C3300001", "US-NY": "5500001"}),
        ("Meridian Imaging, Inc.", {"US-DE": "6200002", "US-CA": "C3300002"}),
        ("Meridian Implants, Inc.", {"US-DE": "6200003", "US-NY": "5500003"}),
        ("Meridian Catheters, Inc.", {"US-DE": "DEL-6200004", "US-CA": "REJ-3300004"}),
        ("Meridian Optics, Inc.", {"US-DE": "6200005", "US-NY": "ODD-5500005"}),
        ("Meridian Robotics, Inc.", {"US-DE": "6200006", "US-CA": "C3300006"}),
        ("Meridian Sutures, Inc.", {"US-DE": "GONE-6200007"}),
    ]
    for name, places in parents:
        yield Made(DEVICES, name, Entity.Kind.CORPORATION, "US-DE", places)
    for number, town in enumerate(["Oakland", "Fresno", "Albany", "Buffalo", "Dover", "Newark"]):
        home = {"Albany": "US-NY", "Buffalo": "US-NY", "Dover": "US-DE"}.get(town, "US-CA")
        places = {home: f"{7_700_000 + number}"}
        yield Made(CHARITY, f"Open Shelf {town}", Entity.Kind.NONPROFIT, home, places)


def seed(today: date) -> None:
    """Make the people, the entities and one grant application."""
    people = {name: _person(name, *who) for name, who in PEOPLE.items()}
    _person("admin", "Alex Kim", "", superuser=True)
    with acting_as(people["dana"]):
        for slug, title in PORTFOLIOS.items():
            portfolio = Portfolio(slug=slug, name=title)
            portfolio.save()
            for user in people.values():
                Membership(portfolio=portfolio, user=user).save()
        for made in entities():
            _entity(made, today)
    with acting_as(people["otto"]):
        for slug in PORTALS:
            card = card_of(slug)
            portal = portal_row(card.slug, card.title, card.jurisdiction)
            Credential(portal=portal, username=REHEARSAL, secret=REHEARSAL).save()
    _grant(people["dana"])


def _person(username: str, name: str, group: str, *, superuser: bool = False) -> User:
    first, last = name.split(" ")
    user = User.objects.create_user(
        username, password=PASSWORD, first_name=first, last_name=last, is_staff=True,
        is_superuser=superuser,
    )  # fmt: skip
    if group:
        user.groups.add(Group.objects.get(name=group))
    return user


def _entity(made: Made, today: date) -> None:
    entity = Entity(
        portfolio=Portfolio.objects.get(slug=made.portfolio),
        external_id=made.name.split(",")[0].lower().replace(" ", "-"),
        name=made.name,
        kind=made.kind,
        home_jurisdiction=made.home,
        formed_on=_due_soon(made.home, made.kind, today),
        tax_id="88-1234567",
    )
    entity.save()
    title = "Manager" if made.kind == Entity.Kind.LLC else "President"
    Officer(entity=entity, name="Dana Reyes", title=title).save()
    for use in (Address.Use.PRINCIPAL, Address.Use.PROCESS):
        Address(
            entity=entity, use=use, street="12 Harbor Street", city="Wilmington", region="DE",
            postal_code="19801",
        ).save()  # fmt: skip
    if made.kind == Entity.Kind.CORPORATION:
        ShareClass(entity=entity, authorized=5000, issued=1000, par_value="0.01").save()
    rows = [
        Registration(
            entity=entity,
            jurisdiction=place,
            is_foreign=place != made.home,
            file_number=number,
            registered_on=_due_soon(place, made.kind, today),
            registered_agent=AGENT,
        )
        for place, number in made.places.items()
    ]
    Registration.objects.bulk_create(rows)
    remember(rows, created=True, reason="demo")


def _due_soon(jurisdiction: str, kind: str, today: date) -> date:
    """A date in the past whose anniversary makes the next report due in the coming weeks.

    New York asks every second year in the anniversary month; California's nonprofits and LLCs
    every second year too.
    """
    if jurisdiction == "US-CA":
        soon = today + timedelta(days=35)
        return date(soon.year - 4, soon.month, 12)
    return date(today.year - 6, today.month, 3)


def _grant(by: User) -> GrantSubmission:
    funder = Funder(
        slug="bright-futures", name="Bright Futures Foundation", portal="bright-futures"
    )
    funder.save()
    opportunity = Opportunity(
        funder=funder,
        number="BF-2026-07",
        title="Reading rooms for small towns",
        closes_at=timezone.now() + timedelta(days=9),
    )
    opportunity.save()
    entity = Entity.objects.get(name="Open Shelf Oakland")
    submission = edit_submission(
        open_submission(opportunity, entity, by=by), answers=_application(), by=by
    )
    attach_file(
        submission, name="budget.xlsx", file=ContentFile(_workbook()), content_type=WORKBOOK, by=by
    )
    return submission


def _application() -> dict[str, object]:
    return {
        "project_title": "Reading rooms for six small towns",
        "summary": "Six rooms, open every afternoon, with books that may be kept.",
        "amount_requested_cents": 4_800_000,
        "project_starts_on": (timezone.localdate() + timedelta(days=90)).isoformat(),
        "focus_area": "education",
        "organization_name": "Open Shelf Oakland",
        "contact_name": "Dana Reyes",
        "contact_email": "dana@open-shelf.example",
    }


def _workbook() -> bytes:
    """The smallest thing that is a workbook: a zip with its table of contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as workbook:
        workbook.writestr("[Content_Types].xml", "<Types/>")
        workbook.writestr("xl/workbook.xml", "<workbook/>" * 2000)
    return buffer.getvalue()
