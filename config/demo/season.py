"""A small filing season: what is due is prepared, approved, sent, read and counted."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from urllib.request import Request, urlopen

from django.contrib.auth.models import User
from django.utils import timezone
from rich.table import Table

from compliance.errors import NotAllowed
from compliance.models import Deadline, Registration
from compliance.services import meet_deadlines
from compliance.sync import sync_deadlines
from filings.management.commands.file_due import open_deadlines
from filings.models import Filing, StatusCheck
from filings.services import file_due, request_checks
from grants.models import GrantSubmission
from grants.services import approve_submission
from portals.models import Intent

# What a season brings, without the CAPTCHA that would stop a lane until a person comes.
WEATHER = {
    "drop_before": 0.015, "drop_after": 0.04, "5xx_before": 0.015, "5xx_after": 0.03,
    "delay": 0.05, "429": 0.02, "truncated": 0.02, "login_page": 0.01, "202_later": 0.05,
}  # fmt: skip
OVERDUE = "Beacon House"
STANDING_OF = {"DEL": "delinquent", "ODD": "pending_review", "GONE": "not_listed"}


@dataclass
class Line:
    """One jurisdiction, or one funder, of the summary."""

    due: int = 0
    filed: int = 0
    accepted: int = 0
    rejected: int = 0
    fallout: int = 0
    fees: Decimal = Decimal(0)
    requests: int = 0
    violations: int = 0
    duplicates: int = 0


@dataclass
class Summary:
    """How the season ended, and what did not end as it should."""

    lines: dict[str, Line] = field(default_factory=dict)
    standings: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def open_season() -> None:
    """Everything that is due and open is prepared by Dana, approved by Omar, and queued."""
    dana, omar = (User.objects.get(username=name) for name in ("dana", "omar"))
    today = timezone.localdate()
    sync_deadlines(through=today + timedelta(days=540), by=dana)
    forget_the_past(today, by=dana)
    name = f"Season {today.year}"
    due = file_due(season_deadlines(), name=name, prepared_by=dana, approved_by=omar)
    for subject, problems in [*due.blocked, *due.refused]:
        raise NotAllowed(f"The demo's own data lacks something: {subject}: {problems}")
    request_checks(list(Registration.objects.select_related("entity")), by=dana)
    for submission in GrantSubmission.objects.filter(status="draft"):
        approve_submission(submission, by=omar)


def forget_the_past(today: date, *, by: User) -> None:
    """What was due before today was filed elsewhere, but for one entity that is overdue."""
    past = Deadline.objects.unmet().filter(due_on__lt=today)
    filed = past.exclude(registration__entity__name__startswith=OVERDUE)
    meet_deadlines(list(filed), on=today, by=by, reason="filed before the demo")


def season_deadlines() -> list[Deadline]:
    """What can be filed today, through a portal, and is due within a year."""
    return [row for row in open_deadlines(366) if row.portal]


def is_over() -> bool:
    """Nothing is on its way any more; what waits for a person waits."""
    return not Intent.objects.live().exclude(state="fallout").exists()


def wait_until_over(
    seconds: float, *, check: Callable[[], None], told: Callable[[int, int], None]
) -> bool:
    """Watch the season until it is over, or for so long."""
    deadline = time.monotonic() + seconds
    total = Intent.objects.count()
    while time.monotonic() < deadline:
        check()
        on_their_way = Intent.objects.live().exclude(state="fallout").count()
        told(total - on_their_way, total)
        if on_their_way == 0:
            return True
        time.sleep(0.5)
    return False


def set_weather(base_url: str) -> None:
    """Tell the simulator what goes wrong from now on."""
    body = json.dumps({"probabilities": WEATHER}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{base_url}/_weather", data=body, headers=headers)  # noqa: S310 - localhost
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - localhost
        answer.read()


def oracle(base_url: str) -> dict[str, Any]:
    """What every portal accepted and counted, by its own clock."""
    with urlopen(f"{base_url}/_oracle", timeout=10) as answer:  # noqa: S310 - localhost
        told: dict[str, Any] = json.loads(answer.read())
    return told


def summarise(base_url: str) -> Summary:
    """Compare what we say with what the portals say, and both with what was to be expected."""
    summary = Summary()
    portals = oracle(base_url)
    for filing in Filing.objects.select_related("deadline__registration__entity"):
        line = summary.lines.setdefault(filing.deadline.registration.jurisdiction, Line())
        _count(line, filing.status, filing.fee)
        _judge(summary, filing)
    for submission in GrantSubmission.objects.select_related("opportunity__funder", "entity"):
        funder = submission.opportunity.funder
        line = summary.lines.setdefault(funder.name, Line())
        _count(line, submission.status, Decimal(0))
        if submission.status != GrantSubmission.Status.ACCEPTED:
            summary.wrong.append(f"{submission} is {submission.status}, not accepted.")
        _see_portal(summary, line, portals[funder.portal], funder.portal)
    for portal in ("us-de", "us-ca", "us-ny"):
        line = summary.lines.setdefault(portal.upper(), Line())
        _see_portal(summary, line, portals[portal], portal)
    _judge_standings(summary)
    if not any(line.accepted for line in summary.lines.values()):
        summary.wrong.append("Nothing was accepted at all.")
    return summary


def table(summary: Summary) -> Table:
    """The summary as people read it."""
    shown = Table(
        title="The season",
        title_justify="left",
        caption="requests, limit violations, filings held twice: as the portals counted",
        caption_justify="left",
    )
    shown.add_column("Jurisdiction")
    for name in ("due", "filed", "accepted", "rejected", "fallout", "fees", "requests",
                 "violations", "twice"):  # fmt: skip
        shown.add_column(name, justify="right")
    for name, line in sorted(summary.lines.items()):
        shown.add_row(
            name, str(line.due), str(line.filed), str(line.accepted), str(line.rejected),
            str(line.fallout), f"${line.fees:,.2f}", str(line.requests), str(line.violations),
            str(line.duplicates),
        )  # fmt: skip
    return shown


def _count(line: Line, status: str, fee: Decimal) -> None:
    line.due += 1
    line.filed += status not in ("draft", "withdrawn", "fallout")
    line.accepted += status == "accepted"
    line.rejected += status == "rejected"
    line.fallout += status == "fallout"
    line.fees += fee if status == "accepted" else 0


def _judge(summary: Summary, filing: Filing) -> None:
    """Each filing has one right end, and its number says which."""
    number = filing.deadline.registration.file_number
    expected = "accepted"
    if number.startswith("REJ"):
        expected = "rejected"
    elif number.startswith("HAND"):
        expected = "fallout"
    if filing.status != expected:
        summary.wrong.append(f"{filing} is {filing.status}, not {expected}. {filing.cause}")


def _see_portal(summary: Summary, line: Line, seen: dict[str, Any], portal: str) -> None:
    line.requests = seen["requests"]
    line.violations = sum(seen["violations"].values())
    line.duplicates = seen["duplicates"]
    if line.violations:
        summary.wrong.append(f"{portal} counted {line.violations} violations of its limits.")
    if line.duplicates:
        summary.wrong.append(f"{portal} holds {line.duplicates} filings twice.")
    if seen["acceptances"] != line.accepted:
        summary.wrong.append(
            f"{portal} accepted {seen['acceptances']}, and we know of {line.accepted}."
        )


def _judge_standings(summary: Summary) -> None:
    for check in StatusCheck.objects.select_related("registration__entity"):
        prefix = check.registration.file_number.split("-")[0]
        expected = STANDING_OF.get(prefix, "active")
        summary.standings[check.standing] += 1
        if check.standing != expected:
            summary.wrong.append(f"{check}: {check.standing}, not {expected}. {check.detail}")
