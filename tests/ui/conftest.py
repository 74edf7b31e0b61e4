"""A browser for the tests of a module, and a browser page for each test.

The page reports everything that goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.ui.chromium import FLAGS, find_chromium

PATIENCE_MS = 20_000
EXPECTED = (
    "the server responded with a status of",
    "net::ERR_",
    "Failed to load resource",
    "Failed to fetch dynamically imported module",  # it was left before it had loaded
)
"""The browser's own words for an answer that isn't 200: the page has to deal with those."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield chromium
        chromium.close()


def fresh_context(browser: Browser) -> BrowserContext:
    """Nothing moves unless something happens: two cores draw for three processes."""
    new_context = browser.new_context(
        viewport={"width": 1440, "height": 900},
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    new_context.set_default_timeout(PATIENCE_MS)
    return new_context


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for all tests of a module: what the page is made of is loaded and compiled once."""
    with fresh_context(browser) as new_context:
        yield new_context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Whatever the page or its CSP complains about fails the test."""
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(
            expected in message.text for expected in EXPECTED
        ):
            complaints.append(message.text)

    new_page = context.new_page()
    new_page.on("console", hear)
    new_page.on("pageerror", lambda error: complaints.append(str(error)))
    yield new_page
    new_page.close()
    assert complaints == []
