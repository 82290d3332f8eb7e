"""Where a deadline stands on a day, who must know, and whose deadlines there are at all."""

import json
from datetime import date, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from compliance import ledger
from compliance.calendars import working_days_before
from compliance.errors import Malformed, NotAllowed
from compliance.models import Deadline, LedgerEntry, Registration, escalation_level
from compliance.services import (
    assign_deadlines,
    meet_deadlines,
    set_management,
    waive_deadline,
)
from compliance.sync import sync_deadlines
from tests.factories import (
    DeadlineFactory,
    MembershipFactory,
    RegistrationFactory,
    UserFactory,
)

TODAY = date(2026, 11, 18)
THROUGH = date(2028, 5, 18)


@pytest.fixture
def clerk() -> User:
    return UserFactory(username="clerk")


def told(type: str) -> list[dict[str, object]]:
    found = LedgerEntry.objects.filter(type=type).order_by("seq")
    return [json.loads(bytes(entry.body)) for entry in found]


# --- Stages and the ladder ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "stage"),
    [(-400, "overdue"), (-1, "overdue"), (0, "due_soon"), (30, "due_soon"), (31, "open")],
)
def test_the_stage_follows_from_the_days_left(days: int, stage: str) -> None:
    deadline = Deadline(status="owed", due_on=TODAY + timedelta(days=days))

    assert deadline.stage(TODAY) == stage


def test_what_cannot_be_filed_yet_is_upcoming_until_it_is_due_soon() -> None:
    deadline = Deadline(status="owed", due_on=date(2027, 3, 31), opens_on=date(2027, 3, 10))

    assert deadline.stage(date(2027, 2, 28)) == "upcoming"
    assert deadline.stage(date(2027, 3, 1)) == "due_soon"
    deadline.opens_on = date(2027, 2, 28)
    assert deadline.stage(date(2027, 2, 28)) == "open"


@pytest.mark.parametrize("status", ["met", "waived", "not_due"])
def test_a_settled_or_paused_deadline_is_never_overdue(status: str) -> None:
    deadline = Deadline(status=status, due_on=TODAY - timedelta(days=1))

    assert deadline.stage(TODAY) == status
    assert escalation_level(deadline, TODAY) == ""


@pytest.mark.parametrize(
    ("days", "level"),
    [
        (31, ""), (30, "owner"), (15, "owner"), (14, "backup"), (8, "backup"), (7, "officer"),
        (1, "officer"), (0, "everyone"), (-90, "everyone"),
    ],
)  # fmt: skip
def test_the_ladder_is_climbed_as_the_day_comes_near(days: int, level: str) -> None:
    deadline = Deadline(status="owed", due_on=TODAY + timedelta(days=days))

    assert escalation_level(deadline, TODAY) == level


# --- Targets ------------------------------------------------------------------------------------


def test_working_days_are_counted_back_over_weekends_and_holidays() -> None:
    assert working_days_before(date(2027, 3, 1), 1, "US") == date(2027, 2, 26)
    # Presidents' Day is on February 15.
    assert working_days_before(date(2027, 3, 1), 10, "US") == date(2027, 2, 12)
    assert working_days_before(date(2027, 2, 28), 0, "US") == date(2027, 2, 28)


@pytest.mark.django_db
def test_a_new_deadline_has_a_target_ten_working_days_ahead(clerk: User) -> None:
    RegistrationFactory()

    sync_deadlines(through=date(2027, 3, 1), by=clerk, today=TODAY)

    made = Deadline.objects.get(due_on=date(2027, 3, 1))
    assert made.target_on == date(2027, 2, 12)


@pytest.mark.django_db
def test_the_lead_is_a_setting_and_never_reaches_before_the_opening(
    clerk: User, settings: object
) -> None:
    settings.DEADLINE_LEAD_DAYS = 40  # type: ignore[attr-defined]
    RegistrationFactory(
        jurisdiction="US-NY", registered_on=date(2019, 3, 14), entity__home_jurisdiction="US-NY"
    )

    sync_deadlines(through=date(2027, 3, 31), by=clerk, today=TODAY)

    made = Deadline.objects.get(due_on=date(2027, 3, 31))
    assert made.opens_on == made.target_on == date(2027, 3, 1)


# --- Management ---------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("management", ["dormant", "exempt", "let_lapse", "not_managed"])
def test_only_what_is_managed_gets_deadlines(clerk: User, management: str) -> None:
    managed = RegistrationFactory()
    RegistrationFactory(management=management)

    counts = sync_deadlines(through=THROUGH, by=clerk, today=TODAY)

    assert set(Deadline.objects.values_list("registration", flat=True)) == {managed.pk}
    assert (counts.registrations, counts.not_managed) == (2, 1)


@pytest.mark.django_db
def test_deadlines_to_come_go_when_nobody_manages_and_come_back(clerk: User) -> None:
    registration = RegistrationFactory()
    overdue = DeadlineFactory(registration=registration, period="2026", due_on=date(2026, 3, 1))
    ahead = DeadlineFactory(registration=registration, period="2027", due_on=date(2027, 3, 1))
    other = DeadlineFactory(due_on=date(2027, 3, 1))

    stopped = set_management(
        registration, "dormant", by=clerk, reason="No business this year", today=TODAY
    )

    assert stopped.management == "dormant"
    for row, status in ((overdue, "owed"), (ahead, "not_due"), (other, "owed")):
        row.refresh_from_db()
        assert (row.status, row.settled_on) == (status, None)
    assert told("deadline.not_due")[0]["subject"] == f"deadline:{ahead.pk}"

    set_management(registration, "managed", by=clerk, reason="Trading again", today=TODAY)

    ahead.refresh_from_db()
    assert (ahead.status, ahead.settled_on) == ("owed", None)
    assert [row.history_change_reason for row in ahead.history.all()[:2]] == [
        "Trading again",
        "No business this year",
    ]
    assert [entry["data"] for entry in told("registration.management")] == [
        {"came_from": "managed", "to": "dormant", "reason": "No business this year"},
        {"came_from": "dormant", "to": "managed", "reason": "Trading again"},
    ]
    assert ledger.verify().broken is None


@pytest.mark.django_db
def test_what_fell_due_while_we_were_away_comes_back_overdue(clerk: User) -> None:
    deadline = DeadlineFactory(due_on=date(2027, 3, 1))
    set_management(deadline.registration, "not_managed", by=clerk, reason="Left", today=TODAY)

    later = date(2027, 6, 1)
    set_management(deadline.registration, "managed", by=clerk, reason="Came back", today=later)

    deadline.refresh_from_db()
    assert deadline.stage(later) == "overdue"


@pytest.mark.django_db
def test_from_dormant_to_exempt_moves_no_deadline(clerk: User) -> None:
    deadline = DeadlineFactory(due_on=date(2027, 3, 1))
    set_management(deadline.registration, "dormant", by=clerk, reason="Quiet", today=TODAY)

    set_management(deadline.registration, "exempt", by=clerk, reason="Ruled exempt", today=TODAY)

    assert len(told("deadline.not_due")) == 1
    assert told("deadline.owed") == []


@pytest.mark.django_db
def test_asking_for_what_is_already_so_leaves_no_trace(clerk: User) -> None:
    registration = RegistrationFactory()

    same = set_management(registration, "managed", by=clerk, reason="Once more")

    assert same == registration
    assert told("registration.management") == []


@pytest.mark.django_db
def test_management_changes_only_to_a_known_word_and_for_a_reason(clerk: User) -> None:
    registration = RegistrationFactory()

    with pytest.raises(Malformed, match="“asleep” is no way to manage a registration"):
        set_management(registration, "asleep", by=clerk, reason="Tired")
    with pytest.raises(NotAllowed, match="Say in a sentence why"):
        set_management(registration, "dormant", by=clerk, reason=" ")

    registration.refresh_from_db()
    assert registration.management == Registration.Management.MANAGED


@pytest.mark.django_db
def test_a_paused_deadline_can_still_be_met_or_waived(clerk: User) -> None:
    registration = RegistrationFactory()
    filed = DeadlineFactory(registration=registration, period="2027", due_on=date(2027, 3, 1))
    moot = DeadlineFactory(registration=registration, period="2028", due_on=date(2028, 3, 1))
    set_management(registration, "let_lapse", by=clerk, reason="Sold", today=TODAY)

    meet_deadlines([filed], on=TODAY, by=clerk, reason="Was under way")
    waive_deadline(moot, on=TODAY, by=clerk, reason="Dissolved before")
    set_management(registration, "managed", by=clerk, reason="Bought back", today=TODAY)

    filed.refresh_from_db()
    moot.refresh_from_db()
    assert (filed.status, moot.status) == ("met", "waived")


@pytest.mark.django_db
def test_the_database_knows_what_is_settled() -> None:
    deadline = DeadlineFactory()

    for values in (
        {"status": "not_due", "settled_on": TODAY},
        {"status": "met", "settled_on": None},
        {"target_on": deadline.due_on + timedelta(days=1)},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Deadline.objects.filter(pk=deadline.pk).update(**values)


# --- People -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_owner_and_a_backup_are_named_on_the_record(clerk: User) -> None:
    owner, backup = UserFactory(username="ana"), UserFactory(username="ben")
    owed = DeadlineFactory(period="2027")
    met = DeadlineFactory(period="2026")
    meet_deadlines([met], on=TODAY, by=clerk, reason="Paid")

    for portfolio in (owed.registration.entity.portfolio, met.registration.entity.portfolio):
        for person in (owner, backup):
            MembershipFactory(portfolio=portfolio, user=person)

    assigned = assign_deadlines([owed, met], owner=owner, backup=backup, by=clerk)

    assert assigned == [owed]
    owed.refresh_from_db()
    assert (owed.owner, owed.backup) == (owner, backup)
    assert [entry["data"] for entry in told("deadline.assigned")] == [
        {"owner": "ana", "backup": "ben"}
    ]


@pytest.mark.django_db
def test_nobody_stands_in_for_themselves(clerk: User) -> None:
    deadline = DeadlineFactory()

    with pytest.raises(NotAllowed, match="clerk cannot stand in for themselves"):
        assign_deadlines([deadline], owner=clerk, backup=clerk, by=clerk)
    with pytest.raises(IntegrityError), transaction.atomic():
        Deadline.objects.filter(pk=deadline.pk).update(owner=clerk, backup=clerk)


@pytest.mark.django_db
def test_whoever_sees_to_a_deadline_is_not_deleted(clerk: User) -> None:
    deadline = DeadlineFactory()
    owner = MembershipFactory(portfolio=deadline.registration.entity.portfolio).user
    assign_deadlines([deadline], owner=owner, backup=None, by=clerk)

    with pytest.raises(ProtectedError):
        owner.delete()


@pytest.mark.django_db
def test_only_who_can_see_all_of_them_is_named(clerk: User) -> None:
    seen, unseen = DeadlineFactory(), DeadlineFactory()
    member = MembershipFactory(portfolio=seen.registration.entity.portfolio).user

    with pytest.raises(NotAllowed, match="cannot see all of these deadlines"):
        assign_deadlines([seen, unseen], owner=member, backup=None, by=clerk)

    seen.refresh_from_db()
    assert seen.owner is None
    assert told("deadline.assigned") == []


@pytest.mark.django_db
def test_the_question_for_a_stage_agrees_with_the_stage_of_each_row() -> None:
    for status in Deadline.Status.values:
        for due in (-400, -1, 0, 30, 31, 300):
            for opens in (None, -500, due - 20):
                due_on = TODAY + timedelta(days=due)
                DeadlineFactory(
                    status=status,
                    settled_on=TODAY if status in ("met", "waived") else None,
                    due_on=due_on,
                    opens_on=None if opens is None else TODAY + timedelta(days=opens),
                )

    rows = Deadline.objects.all()
    for stage in Deadline.Stage.values:
        expected = {row.pk for row in rows if row.stage(TODAY) == stage}
        assert expected, stage
        found = Deadline.objects.at_stage(stage, today=TODAY)
        assert set(found.values_list("pk", flat=True)) == expected, stage
