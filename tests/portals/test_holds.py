"""A lane that stopped says why, and goes on only when a person says so."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from compliance.errors import NotAllowed
from compliance.models import LedgerEntry
from portals.holds import resume_lane, weather
from portals.models import Lane
from tests.desk import staff
from tests.factories import PortalFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    return Lane.objects.create(
        portal=PortalFactory(), needs_person=True, pause_cause="The portal asks for a CAPTCHA."
    )


def test_an_operator_resumes_a_lane_and_the_ledger_keeps_why(client: Client, lane: Lane) -> None:
    client.force_login(staff("omar", "Operator"))
    url = reverse("admin:portals_lane_resume", args=[lane.pk])

    client.post(url, {"_form_submitted": "True", "reason": "I answered the CAPTCHA."})

    lane.refresh_from_db()
    entry = LedgerEntry.objects.get(type="lane.resumed")
    assert weather(lane) == ("open", "Open")
    assert (entry.actor, entry.subject) == ("omar", f"lane:{lane.pk}")
    assert b"I answered the CAPTCHA." in bytes(entry.body)


def test_who_is_no_operator_cannot_resume_a_lane(client: Client, lane: Lane) -> None:
    client.force_login(staff("olga", "Compliance officer"))
    url = reverse("admin:portals_lane_resume", args=[lane.pk])

    answer = client.post(url, {"_form_submitted": "True", "reason": "Please."})

    lane.refresh_from_db()
    assert answer.status_code == 403
    assert lane.needs_person


def test_a_lane_is_not_resumed_without_a_reason(lane: Lane) -> None:
    with pytest.raises(NotAllowed, match="why it may go on"):
        resume_lane(lane, by=UserFactory(), reason=" ")


def test_an_open_lane_has_nothing_to_resume() -> None:
    lane = Lane.objects.create(portal=PortalFactory())

    with pytest.raises(NotAllowed, match="not paused"):
        resume_lane(lane, by=UserFactory(), reason="To be sure.")


def test_the_weather_is_what_matters_most(lane: Lane) -> None:
    lane.paused_until = timezone.now() + timedelta(minutes=5)
    stopped = weather(lane)[0]
    lane.needs_person = False
    paused = weather(lane)[0]
    lane.paused_until = timezone.now() - timedelta(minutes=5)
    over = weather(lane)[0]
    lane.portal.is_enabled = False

    assert (stopped, paused, over, weather(lane)[0]) == ("needs_person", "paused", "open", "off")
