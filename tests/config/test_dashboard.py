"""The first page: the user's own day, every number a link to exactly its rows."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from compliance import wording
from compliance.models import Portfolio
from config.dashboard import dashboard
from filings.models import Filing
from portals.models import Lane
from tests.desk import fallen, staff
from tests.factories import (
    BatchFactory,
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    PortfolioFactory,
    RegistrationFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


@pytest.fixture
def ann(portfolio: Portfolio) -> User:
    return staff("ann", "Approver", "Compliance officer", portfolio=portfolio)


def seen_by(user: User) -> dict[str, Any]:
    """What the index is given for this user."""
    request = RequestFactory().get("/admin/")
    request.user = user
    return dashboard(request, {})


def deadline_in(portfolio: Portfolio, days: int = 30, **values: Any) -> Any:
    registration = RegistrationFactory(entity=EntityFactory(portfolio=portfolio))
    due_on = timezone.localdate() + timedelta(days=days)
    return DeadlineFactory(registration=registration, due_on=due_on, **values)


def rows_behind(client: Client, url: str) -> int:
    """How many rows the list behind a link has."""
    page = client.get(url)
    assert page.status_code == 200, url
    return int(page.context["cl"].result_count)


def test_the_first_sentence_says_what_waits_and_until_when(
    ann: User, portfolio: Portfolio
) -> None:
    for days in (12, 40):
        FilingFactory(deadline=deadline_in(portfolio, days, fee=Decimal(100)))

    seen = seen_by(ann)

    first = wording.day(timezone.localdate() + timedelta(days=12))
    assert seen["lead"] == f"2 filings wait for your approval; the first is due {first}."
    assert seen["needs"][0].note == "$200 in fees"


def test_one_does_not_wait_for_oneself(ann: User, portfolio: Portfolio, client: Client) -> None:
    FilingFactory(deadline=deadline_in(portfolio), prepared_by=ann)
    FilingFactory(deadline=deadline_in(portfolio))
    client.force_login(ann)

    line = seen_by(ann)["needs"][0]

    assert line.words.startswith("1 filing waits for your approval")
    assert rows_behind(client, line.url) == 1


def test_another_portfolio_counts_nowhere(ann: User) -> None:
    other = PortfolioFactory()
    fallen(FilingFactory(deadline=deadline_in(other)))
    FilingFactory(deadline=deadline_in(other, days=-3), batch=BatchFactory(portfolio=other))

    seen = seen_by(ann)

    assert seen["needs"] == []
    assert [number.count for number in seen["due"]] == [0, 0, 0, 0]
    assert seen["seasons"] == []
    assert seen["standings"] == []
    assert [lane.waiting for lane in seen["lanes"]] == [0]
    assert seen["lead"].startswith("There is nothing here yet.")


def test_each_number_of_what_is_due_leads_to_its_rows(
    ann: User, portfolio: Portfolio, client: Client
) -> None:
    for days in (-1, 0, 7, 8, 30, 90, 91):
        deadline_in(portfolio, days)
    client.force_login(ann)

    due = seen_by(ann)["due"]

    assert [number.count for number in due] == [1, 2, 4, 5]
    assert [rows_behind(client, number.url) for number in due] == [1, 2, 4, 5]


def test_standing_counts_what_is_old_as_stale_and_leads_to_its_rows(
    ann: User, portfolio: Portfolio, client: Client
) -> None:
    now = timezone.now()
    for standing, hours, limit in [
        ("active", 1, 72), ("active", 80, 72), ("active", 80, 100), ("delinquent", 2, 1),
        ("unknown", None, 72),
    ]:  # fmt: skip
        RegistrationFactory(
            entity=EntityFactory(portfolio=portfolio),
            standing=standing,
            standing_fresh_hours=limit,
            standing_read_at=None if hours is None else now - timedelta(hours=hours),
        )
    client.force_login(ann)

    numbers = seen_by(ann)["standings"]

    assert [number.count for number in numbers] == [2, 1, 2]
    assert [shape in str(number.label) for shape, number in zip("●○◌", numbers, strict=True)] == [
        True, True, True,
    ]  # fmt: skip
    assert [rows_behind(client, number.url) for number in numbers] == [2, 1, 2]


def test_a_season_shows_the_latest_batch_by_jurisdiction(
    ann: User, portfolio: Portfolio, client: Client
) -> None:
    older, latest = BatchFactory(portfolio=portfolio), BatchFactory(portfolio=portfolio)
    FilingFactory(deadline=deadline_in(portfolio), batch=older)
    rows = [FilingFactory(deadline=deadline_in(portfolio), batch=latest) for _ in range(3)]
    Filing.objects.filter(pk=rows[0].pk).update(
        status="accepted", confirmation_number="7", approved_by=ann, payload_sha256="0" * 64
    )
    client.force_login(ann)

    (season,) = seen_by(ann)["seasons"]

    assert (season.jurisdiction, season.accepted, season.total) == ("US-DE", 1, 3)
    assert season.percent == 33
    assert rows_behind(client, season.url) == 3


def test_lanes_say_how_they_are(ann: User, portfolio: Portfolio, client: Client) -> None:
    fallen(FilingFactory(deadline=deadline_in(portfolio)))
    lane = Lane.objects.get()
    words = [str(seen_by(ann)["lanes"][0].state)]

    lane.paused_until = timezone.now() + timedelta(minutes=5)
    lane.pause_cause = "Retry-After"
    lane.save()
    words.append(str(seen_by(ann)["lanes"][0].state))
    lane.needs_person = True
    lane.save()
    words.append(str(seen_by(ann)["lanes"][0].state))
    client.force_login(ann)
    page = client.get(reverse("admin:index")).content.decode()

    assert "Open" in words[0]
    assert "Paused until" in words[1]
    assert "Needs a person" in words[2]
    assert "simulated" in page


def test_fallout_is_told_by_its_cause(ann: User, portfolio: Portfolio, client: Client) -> None:
    for cause in ("in_doubt", "in_doubt", "filed_elsewhere"):
        fallen(FilingFactory(deadline=deadline_in(portfolio)), cause=cause)

    words = [line.words for line in seen_by(ann)["needs"]]

    assert words == [
        "2 items wait in the review queue: The portal did not answer; it may have it.",
        "1 item waits in the review queue: Somebody already filed it.",
    ]


def test_a_preparer_is_told_what_is_not_begun_and_what_waits(
    portfolio: Portfolio, client: Client
) -> None:
    pia = staff("pia", "Preparer", portfolio=portfolio)
    for days in (-2, 4, 20, 60):
        deadline_in(portfolio, days)
    FilingFactory(deadline=deadline_in(portfolio, 10), prepared_by=pia)
    FilingFactory(deadline=deadline_in(portfolio, 10))
    client.force_login(pia)

    needs = seen_by(pia)["needs"]

    late = wording.day(timezone.localdate() - timedelta(days=2))
    first = wording.day(timezone.localdate() + timedelta(days=4))
    assert [line.words for line in needs] == [
        f"1 overdue deadline has no filing yet; the first was due {late}.",
        f"2 deadlines have no filing yet; the first is due {first}.",
        "1 draft of yours waits for somebody's approval.",
    ]
    assert [rows_behind(client, line.url) for line in needs] == [1, 2, 1]


def test_an_operator_is_told_which_lane_needs_a_person(portfolio: Portfolio) -> None:
    omar = staff("omar", "Operator", portfolio=portfolio)
    fallen(FilingFactory(deadline=deadline_in(portfolio)))
    Lane.objects.update(needs_person=True, pause_cause="The portal asks for a CAPTCHA.")

    (line,) = seen_by(omar)["needs"]

    assert line.words == "Delaware Division of Corporations needs a person."
    assert line.note == "The portal asks for a CAPTCHA."


def test_the_page_takes_as_many_queries_for_many_rows_as_for_few(
    ann: User, portfolio: Portfolio, client: Client
) -> None:
    client.force_login(ann)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert client.get(reverse("admin:index")).status_code == 200
        return len(caught)

    fallen(FilingFactory(deadline=deadline_in(portfolio)))
    FilingFactory(deadline=deadline_in(portfolio), batch=BatchFactory(portfolio=portfolio))
    few = queries()
    for _ in range(5):
        fallen(FilingFactory(deadline=deadline_in(portfolio)))
        FilingFactory(deadline=deadline_in(portfolio), batch=BatchFactory(portfolio=portfolio))

    assert queries() == few
    assert few <= 25


def test_who_may_see_nothing_is_told_nothing(portfolio: Portfolio, client: Client) -> None:
    FilingFactory(deadline=deadline_in(portfolio, -3))
    client.force_login(staff("new", portfolio=portfolio))

    page = client.get(reverse("admin:index"))

    assert page.status_code == 200
    assert page.context["needs"] == page.context["due"] == page.context["lanes"] == []
