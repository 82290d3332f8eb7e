"""The pages in a real browser: they show what matters, complain of nothing and stay at home."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from filings.models import Filing
from portals.models import Intent
from tests.desk import fallen, staff
from tests.factories import (
    DeadlineFactory,
    EntityFactory,
    FilingFactory,
    PortfolioFactory,
    RegistrationFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

RESULTS = Path("test-results")
SMALLEST = 20_000  # bytes of a screenshot that shows a page and not an error
PASSWORD = "for-the-browser"


@dataclass
class Visit:
    """A page, and all that it complained of or reached for."""

    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a page of ours."""
        self.page.goto(f"{self.home}{path}")

    def picture(self, name: str) -> int:
        """Keep a screenshot; how many bytes it has."""
        RESULTS.mkdir(exist_ok=True)
        return len(self.page.screenshot(path=RESULTS / f"{name}.png", full_page=True))


@pytest.fixture
def dana(live_server: LiveServer) -> User:
    """An approver and compliance officer with a day's work before her."""
    portfolio = PortfolioFactory(name="Harbor Hotels")
    user = staff("dana", "Approver", "Compliance officer", portfolio=portfolio)
    user.set_password(PASSWORD)
    user.save()
    for days in (-3, 5, 40):
        entity = EntityFactory(portfolio=portfolio)
        registration = RegistrationFactory(entity=entity)
        due_on = timezone.localdate() + timedelta(days=days)
        FilingFactory(deadline=DeadlineFactory(registration=registration, due_on=due_on))
    fallen(Filing.objects.earliest("id"))
    return user


@pytest.fixture
def visit(context: BrowserContext, live_server: LiveServer, dana: User) -> Iterator[Visit]:
    """Dana, logged in; at the end nothing has gone wrong unseen."""
    page = context.new_page()
    seen = Visit(page, live_server.url)
    page.on("console", lambda said: _note(seen.complaints, said.text, said.type == "error"))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on(
        "request", lambda asked: _note(seen.strangers, asked.url, _is_strange(asked.url, seen))
    )
    seen.open("/admin/login/?next=/admin/")
    page.fill("#id_username", "dana")
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    expect(page.get_by_role("heading", name="Needs me")).to_be_visible()
    yield seen
    assert seen.complaints == []
    assert seen.strangers == []


def _note(where: list[str], what: str, matters: bool) -> None:
    if matters:
        where.append(what)


def _is_strange(url: str, seen: Visit) -> bool:
    return not url.startswith((seen.home, "data:", "blob:"))


def test_the_dashboard_begins_with_what_waits(visit: Visit) -> None:
    page = visit.page

    expect(page.get_by_text("2 filings wait for your approval;").first).to_be_visible()
    for heading in ("Needs me", "Due", "Season", "Standing", "Lane weather"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="1 Overdue")).to_be_visible()
    expect(page.get_by_text("simulated").first).to_be_visible()
    assert page.title().strip().startswith("Today")
    assert visit.picture("dashboard") > SMALLEST


def test_an_item_is_claimed_from_the_queue_with_the_keyboard(visit: Visit) -> None:
    visit.open("/admin/portals/intent/fallout/")
    page = visit.page
    expect(page.get_by_text("The portal did not answer; it may have it")).to_be_visible()
    assert visit.picture("fallout-queue") > SMALLEST

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_text("You have it for the next four hours.")).to_be_visible()

    page.get_by_text("What came back", exact=True).click()
    expect(page.get_by_text("<script>alert('from the portal')</script>")).to_be_visible()
    assert visit.picture("fallout-item") > SMALLEST
    assert Intent.objects.get().claimed_by == User.objects.get(username="dana")


def test_a_filing_is_approved_in_a_dialog_that_holds_the_focus(visit: Visit) -> None:
    draft = Filing.objects.filter(status="draft").earliest("id")
    visit.open(f"/admin/filings/filing/{draft.pk}/change/")
    page = visit.page

    page.get_by_text("Approve", exact=True).click()
    dialog = page.get_by_role("dialog", name="Approve this filing")
    expect(dialog.get_by_text("This will be sent, byte for byte:")).to_be_visible()
    expect(dialog).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#modal-content') !== null")
    dialog.get_by_role("button", name="Approve and queue it").click()

    expect(page.get_by_text("Approved. It waits for Delaware")).to_be_visible()
    draft.refresh_from_db()
    assert draft.status == "pending"


def test_nothing_sticks_out_on_a_narrow_screen(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 420, "height": 900})
    item = Intent.objects.get()

    for path in ("", "portals/intent/fallout/", f"portals/intent/{item.pk}/fallout/"):
        visit.open(f"/admin/{path}")
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 420, path
