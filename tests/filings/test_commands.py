import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command

from filings.models import Batch, Filing, StatusCheck
from portals.models import Intent
from portals.simulator.running import Running
from tests.factories import DeadlineFactory, MembershipFactory, RegistrationFactory, UserFactory

pytestmark = pytest.mark.django_db


def run(*arguments: str, **options: Any) -> dict[str, Any]:
    """The last line of a command that was asked for JSON."""
    out = StringIO()
    call_command(*arguments, "--json", stdout=out, **options)
    told: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return told


@pytest.fixture
def dana() -> User:
    user: User = UserFactory(username="dana")
    return user


@pytest.fixture
def omar() -> User:
    user: User = UserFactory(username="omar")
    user.user_permissions.add(Permission.objects.get(codename="approve_filing"))
    return user


def due_for(user: User) -> None:
    """One deadline in a portfolio of the user, and one in another's."""
    mine = DeadlineFactory()
    MembershipFactory(portfolio=mine.registration.entity.portfolio, user=user)
    DeadlineFactory()


def test_what_is_due_is_approved_as_a_batch_by_the_people_named(dana: User, omar: User) -> None:
    due_for(dana)

    told = run("file_due", "--within-days=60", "--prepared-by=dana", "--approved-by=omar")

    filing = Filing.objects.get()
    assert told == {"approved": 1, "blocked": 0, "refused": 0, "by_hand": 0, "fees": "50.00"}
    assert (filing.prepared_by, filing.approved_by) == (dana, omar)
    assert list(
        filing.history.order_by("history_id").values_list("history_user__username", flat=True)
    ) == ["dana", "omar"]
    assert Batch.objects.get().name == "Due within 60 days"


def test_a_dry_run_writes_nothing(dana: User) -> None:
    due_for(dana)

    told = run("file_due", "--within-days=60", "--dry-run")

    assert told == {"due": 2}
    assert not Filing.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--jurisdiction=US-ZZ", "--dry-run"], "US-ZZ"),
        (["--prepared-by=nobody"], "There is no active user “nobody”"),
        ([], "Say who prepares"),
        (["--prepared-by=dana", "--approved-by=dana"], "may not approve filings"),
    ],
)
def test_file_due_refuses_in_a_sentence(arguments: list[str], sentence: str, dana: User) -> None:
    due_for(dana)

    with pytest.raises(CommandError, match=sentence):
        call_command("file_due", "--within-days=60", *arguments)

    assert not Intent.objects.exists()


def test_nobody_approves_what_they_prepared(omar: User) -> None:
    due_for(omar)

    with pytest.raises(CommandError, match="somebody else"):
        call_command("file_due", "--within-days=60", "--prepared-by=omar", "--approved-by=omar")

    assert not Intent.objects.exists()


def test_what_lacks_something_is_named_and_fails_the_command(dana: User, omar: User) -> None:
    deadline = DeadlineFactory()
    MembershipFactory(portfolio=deadline.registration.entity.portfolio, user=dana)
    deadline.registration.entity.officers.all().delete()
    told = StringIO()

    with pytest.raises(CommandError, match="1 filings lack something"):
        call_command(
            "file_due", "--within-days=60", "--prepared-by=dana", "--approved-by=omar", stderr=told
        )

    assert "officers is missing" in told.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_sweep_waits_for_its_answers(simulator: Running) -> None:
    for number in ("7001", "DEL-1"):
        RegistrationFactory(file_number=number)

    told = run("sweep_status", "--jurisdiction=US-DE", "--wait")

    assert told == {"asked": 2, "answered": 2, "standings": {"active": 1, "delinquent": 1}}
    assert StatusCheck.objects.first().requested_by.username == "sweeper"  # type: ignore[union-attr]


def test_a_sweep_refuses_a_jurisdiction_that_it_does_not_know() -> None:
    with pytest.raises(CommandError, match="US-ZZ"):
        call_command("sweep_status", "--jurisdiction=US-ZZ")


@pytest.mark.django_db(transaction=True)
def test_run_lanes_ends_when_nothing_is_left(simulator: Running) -> None:
    assert run("run_lanes", "--until-idle", "--portal=us-de") == {"settled": 0, "lanes": []}


def test_run_lanes_refuses_a_portal_that_it_does_not_know() -> None:
    with pytest.raises(CommandError, match="There is no portal “us-zz”"):
        call_command("run_lanes", "--until-idle", "--portal=us-zz")
