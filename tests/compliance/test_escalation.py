"""The escalation ladder: each rung is told once, to the right people, and survives a crash."""

import io
import json
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail
from django.core.checks import run_checks
from django.core.mail.backends.locmem import EmailBackend
from django.core.management import CommandError, call_command
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django_q.models import Schedule

from compliance import digests, escalation, ledger, tasks
from compliance.escalation import Escalated, escalate_deadlines
from compliance.models import (
    Deadline,
    Event,
    LedgerEntry,
    Membership,
    Notice,
    NoticeCopy,
    Portfolio,
)
from tests.desk import staff
from tests.factories import DeadlineFactory, NoticeFactory, PortfolioFactory, UserFactory

pytestmark = pytest.mark.django_db
TODAY = date(2026, 11, 18)


@pytest.fixture
def clock() -> User:
    return UserFactory(username="clock")


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory()


def somebody(name: str, *roles: str, portfolio: Portfolio) -> User:
    user = staff(name, *roles, portfolio=portfolio)
    user.email = f"{name}@example.com"
    user.save()
    return user


@pytest.fixture
def ana(portfolio: Portfolio) -> User:
    return somebody("ana", "Preparer", portfolio=portfolio)


@pytest.fixture
def ben(portfolio: Portfolio) -> User:
    return somebody("ben", "Preparer", portfolio=portfolio)


@pytest.fixture
def olga(portfolio: Portfolio) -> User:
    return somebody("olga", "Compliance officer", portfolio=portfolio)


def due_in(days: int, portfolio: Portfolio, **values: Any) -> Deadline:
    return DeadlineFactory(
        registration__entity__portfolio=portfolio, due_on=TODAY + timedelta(days=days), **values
    )


def run(by: User, after: int = 0) -> Escalated:
    return escalate_deadlines(by=by, today=TODAY + timedelta(days=after))


def told(deadline: Deadline) -> dict[str, set[str]]:
    return {
        notice.rung: {user.username for user in notice.people.all()}
        for notice in Notice.objects.filter(deadline=deadline)
    }


# --- Who is told, and when ----------------------------------------------------------------------


def test_each_rung_is_told_once_as_the_day_comes_near(
    clock: User, portfolio: Portfolio, ana: User, ben: User, olga: User
) -> None:
    deadline = due_in(31, portfolio, owner=ana, backup=ben)
    reached = []

    for after in range(40):
        report = run(clock, after)
        reached += [(31 - after, rung) for rung, count in report.told.items() if count]

    assert reached == [(30, "owner"), (14, "backup"), (7, "officer"), (0, "everyone")]
    assert told(deadline) == {
        "owner": {"ana"},
        "backup": {"ana", "ben"},
        "officer": {"ana", "ben", "olga"},
        "everyone": {"ana", "ben", "olga"},
    }


def test_what_was_never_told_is_told_of_every_rung_it_has_reached(
    clock: User, portfolio: Portfolio, ana: User
) -> None:
    deadline = due_in(10, portfolio, owner=ana)

    run(clock)

    assert set(told(deadline)) == {"owner", "backup"}


def test_a_notice_has_its_ledger_entry_and_its_event(
    clock: User, portfolio: Portfolio, ana: User
) -> None:
    deadline = due_in(20, portfolio, owner=ana)

    run(clock)
    run(clock)

    entry = LedgerEntry.objects.get(type="deadline.told")
    event = Event.objects.get(type="deadline.told")
    data = {"rung": "owner", "days_left": 20, "is_unowned": False, "people": ["ana"]}
    assert (entry.subject, entry.actor) == (f"deadline:{deadline.pk}", "clock")
    assert json.loads(bytes(entry.body))["data"] == data
    assert (event.subject, event.portfolio, event.data) == (entry.subject, portfolio, data)
    assert ledger.verify().broken is None


@pytest.mark.parametrize("status", ["met", "waived", "not_due"])
def test_what_is_not_owed_is_not_told(
    clock: User, portfolio: Portfolio, ana: User, status: str
) -> None:
    settled_on = None if status == "not_due" else TODAY
    due_in(-5, portfolio, owner=ana, status=status, settled_on=settled_on)

    report = run(clock)

    assert sum(report.told.values()) == 0
    assert mail.outbox == []


def test_of_what_nobody_owns_the_officers_are_told(
    clock: User, portfolio: Portfolio, ben: User, olga: User
) -> None:
    deadline = due_in(20, portfolio)

    report = run(clock)

    assert told(deadline) == {"owner": {"olga"}}
    assert (report.unowned, Notice.objects.get().is_unowned) == (1, True)
    assert "Nobody owns it." in mail.outbox[0].body


def test_an_owner_who_left_is_no_owner(
    clock: User, portfolio: Portfolio, ana: User, ben: User, olga: User
) -> None:
    gone = due_in(20, portfolio, owner=ana)
    moved = due_in(20, portfolio, owner=ben)
    User.objects.filter(pk=ana.pk).update(is_active=False)
    Membership.objects.filter(user=ben).delete()

    run(clock)

    assert told(gone) == told(moved) == {"owner": {"olga"}}
    assert [message.to for message in mail.outbox] == [["olga@example.com"]]


def test_an_officer_of_another_portfolio_is_not_told(clock: User, portfolio: Portfolio) -> None:
    somebody("eve", "Compliance officer", portfolio=PortfolioFactory())
    deadline = due_in(-1, portfolio)

    report = run(clock)

    assert told(deadline) == {}
    assert report.nobody_to_tell == 4
    assert mail.outbox == []


def test_with_nobody_to_tell_it_is_told_when_somebody_comes(
    clock: User, portfolio: Portfolio
) -> None:
    deadline = due_in(20, portfolio)
    run(clock)

    somebody("olga", "Compliance officer", portfolio=portfolio)
    run(clock)

    assert told(deadline) == {"owner": {"olga"}}


# --- Exactly once -------------------------------------------------------------------------------


def test_the_database_refuses_a_second_notice_of_a_rung() -> None:
    notice = NoticeFactory()

    with pytest.raises(IntegrityError), transaction.atomic():
        NoticeFactory(deadline=notice.deadline, rung=notice.rung)


class Dies:
    """A database that goes away at the second time that events are written."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        writes_events = sql.startswith('INSERT INTO "compliance_event"')
        self.times += writes_events
        if writes_events and self.times == 2:
            raise OperationalError("the connection is gone")
        return execute(sql, *rest)


def test_a_crash_between_chunks_loses_and_doubles_nothing(
    clock: User, portfolio: Portfolio, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [due_in(20, portfolio, owner=ana) for _ in range(5)]
    monkeypatch.setattr(escalation, "CHUNK", 2)

    with pytest.raises(OperationalError), connection.execute_wrapper(Dies()):
        run(clock)
    after_the_crash = Notice.objects.count(), len(mail.outbox)
    run(clock)

    assert after_the_crash == (2, 0)
    assert [set(told(row)) for row in rows] == [{"owner"}] * 5
    assert LedgerEntry.objects.filter(type="deadline.told").count() == 5
    assert mail.outbox[0].body.count("\n* ") == 5
    assert ledger.verify().broken is None


class Broken(EmailBackend):
    """A mail server that cannot be reached."""

    def send_messages(self, messages: Any) -> int:
        """Refuse."""
        raise ConnectionRefusedError(111, "Connection refused")


def test_what_could_not_be_mailed_is_mailed_by_the_next_run(
    clock: User, portfolio: Portfolio, ana: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    due_in(20, portfolio, owner=ana)
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = f"{__name__}.Broken"

    first = run(clock)
    settings.EMAIL_BACKEND = working
    second = run(clock)
    third = run(clock)

    assert (first.mail.failed, second.mail.sent, third.mail.sent) == (1, 1, 0)
    assert (first.told["owner"], second.told["owner"]) == (1, 0)
    assert len(mail.outbox) == 1
    assert NoticeCopy.objects.get().mailed_at is not None
    assert "could not be mailed" in caplog.text


def test_what_was_settled_before_it_could_be_mailed_is_not_mailed(
    clock: User, portfolio: Portfolio, ana: User
) -> None:
    deadline = due_in(20, portfolio, owner=ana)
    User.objects.filter(pk=ana.pk).update(email="")
    assert run(clock).mail.without_address == 1

    User.objects.filter(pk=ana.pk).update(email="ana@example.com")
    Deadline.objects.filter(pk=deadline.pk).update(status="met", settled_on=TODAY)
    run(clock)

    assert mail.outbox == []


# --- Mail ---------------------------------------------------------------------------------------


def test_a_person_gets_one_mail_with_each_deadline_under_its_highest_rung(
    clock: User, portfolio: Portfolio, ana: User, olga: User, settings: Any
) -> None:
    settings.SITE_URL = "https://goodstanding.example.com"
    near = due_in(-2, portfolio, owner=ana, title="Franchise tax")
    far = due_in(25, portfolio, owner=ana, title="Annual list")

    run(clock)

    to_ana, to_olga = sorted(mail.outbox, key=lambda message: message.to)
    assert to_ana.subject == "2 deadlines need you"
    assert to_olga.subject == "1 deadline needs you"
    assert to_ana.body == (
        "Ana, these deadlines are still owed.\n"
        "\n"
        "Everyone is told\n"
        f"* Mon 16 Nov 2026 · 2 days ago: {near}.\n"
        "\n"
        "The owner is told\n"
        f"* Sun 13 Dec 2026 · in 25 days: {far}.\n"
        "\n"
        "https://goodstanding.example.com/admin/compliance/deadline/?due=30\n"
    )


def test_a_long_list_is_cut_and_says_so(
    clock: User, portfolio: Portfolio, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        due_in(20, portfolio, owner=ana)
    monkeypatch.setattr(digests, "LINES", 2)

    run(clock)

    assert mail.outbox[0].body.count("\n* ") == 3
    assert "* and 3 more" in mail.outbox[0].body


def test_a_deadline_more_costs_no_statement_more(
    clock: User, portfolio: Portfolio, ana: User
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as seen:
            run(clock)
        return len(seen)

    due_in(20, portfolio, owner=ana)
    run(clock)
    due_in(20, portfolio, owner=ana)
    one = statements()
    for _ in range(20):
        due_in(20, portfolio, owner=ana)

    assert statements() == one


# --- The command, the schedule, the settings, the page ------------------------------------------


def test_the_command_rehearses_and_then_tells(portfolio: Portfolio, ana: User) -> None:
    DeadlineFactory(registration__entity__portfolio=portfolio, owner=ana)  # due in 30 days
    out = io.StringIO()

    call_command("escalate_deadlines", "--dry-run", "--json", stdout=out)
    rehearsed = json.loads(out.getvalue())
    before = Notice.objects.count(), len(mail.outbox)
    call_command("escalate_deadlines", stdout=out)

    assert rehearsed["told"] == {"owner": 1, "backup": 0, "officer": 0, "everyone": 0}
    assert before == (0, 0)
    assert "Told 1 notice: owner 1, backup 0" in out.getvalue()
    assert "Mails sent: 1." in out.getvalue()
    assert LedgerEntry.objects.get(type="deadline.told").actor == "escalation"


def test_the_command_fails_where_nobody_could_be_told() -> None:
    DeadlineFactory()

    with pytest.raises(CommandError, match="1 notice had nobody to go to"):
        call_command("escalate_deadlines", stdout=io.StringIO())


def test_every_installation_tells_daily() -> None:
    schedule = Schedule.objects.get(name="tell of deadlines")

    assert (schedule.schedule_type, schedule.repeats) == (Schedule.DAILY, -1)
    assert schedule.func == f"{tasks.__name__}.{tasks.tell_of_deadlines.__name__}"
    assert tasks.tell_of_deadlines()["told"]["owner"] == 0


def test_the_days_can_be_set_and_a_wrong_ladder_does_not_start(
    clock: User, portfolio: Portfolio, ana: User, settings: Any
) -> None:
    settings.ESCALATION_DAYS = [60, 5, 3, 1]
    deadline = due_in(50, portfolio, owner=ana)
    run(clock)
    assert set(told(deadline)) == {"owner"}
    assert run_checks() == []

    for wrong in ([30, 14, 7], [30, 14, 14, 0], [0, 7, 14, 30]):
        settings.ESCALATION_DAYS = wrong
        assert [found.id for found in run_checks()] == ["compliance.E002"]


def test_the_page_of_a_deadline_says_who_was_told(
    client: Client, clock: User, portfolio: Portfolio, ana: User, olga: User
) -> None:
    deadline = due_in(20, portfolio, owner=ana)
    run(clock)
    client.force_login(olga)

    page = client.get(reverse("admin:compliance_deadline_change", args=[deadline.pk]))

    day = timezone.now()
    assert f"Owner on {day:%a} {day.day} {day:%b %Y}: ana" in page.content.decode()


def test_the_officers_are_those_that_setup_roles_makes() -> None:
    call_command("setup_roles", stdout=io.StringIO())

    assert Group.objects.filter(name=escalation.OFFICERS).exists()
