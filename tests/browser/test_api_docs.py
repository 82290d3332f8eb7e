"""The API's documentation works in a real browser, under our policy and without a network."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.config.routes import PERMISSION_OF


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_docs_page_shows_every_operation_and_asks_nobody_else(
    page: Page, live_server: LiveServer
) -> None:
    complaints: list[str] = []
    elsewhere: list[str] = []
    page.on("console", lambda line: complaints.append(f"{line.type}: {line.text}"))
    page.on("request", lambda request: elsewhere.append(request.url))

    page.goto(f"{live_server.url}/api/docs/")

    expect(page.locator(".opblock")).to_have_count(len(PERMISSION_OF))
    assert complaints == []
    assert [url for url in elsewhere if not url.startswith((live_server.url, "data:"))] == []
