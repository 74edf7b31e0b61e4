"""Everybody can use it: axe finds nothing serious, the main way goes by keyboard, no page scrolls sideways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.shop import ORDER, SLOW, Shop

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
  .filter((each) => ['serious', 'critical'].includes(each.impact))
  .map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')}`)"""

NOTHING: list[Callable[[Page], object]] = []


def press(name: str) -> Callable[[Page], object]:
    return lambda page: page.get_by_role("button", name=name).first.click()


def expand(page: Page) -> None:
    page.locator("main button[aria-expanded=false]").first.click()


def see(selector: str) -> Callable[[Page], object]:
    return lambda page: page.locator(selector).first.wait_for()


PAGES: dict[str, list[Callable[[Page], object]]] = {
    "/": [see(".bars")],
    "/executions": [see("main table")],
    "/executions?state=CANCELLED&text=nothing": [see(".empty")],
    "/executions/{failed}": [see(".node-box")],
    "/executions/{failed}?node=pay": [see(".node-box"), see(".attempts")],
    "/executions/{failed}?retry=yes": [see(".node-box.again")],
    "/executions/{failed}?tab=time": [see(".time-row")],
    "/executions/{failed}?tab=nodes": [see(".node-row")],
    "/executions/{failed}?tab=history": [see("tbody tr")],
    "/executions/{failed}?tab=values": [see(".json")],
    "/executions/{running}": [see(".node-box.state-running"), press("Cancel"), see("dialog[open]")],
    "/executions/unknown": [see(".error-box")],
    "/workflows": [see("main table, main li")],
    "/workflows/order": [see(".node-box")],
    "/workflows/order?tab=versions": [see("tbody tr")],
    "/workflows/order?tab=diff": [see("main table, main pre, main .card")],
    "/workflows/order?tab=statistics": [see("tbody tr")],
    "/workflows/order?tab=definition": [see(".json")],
    "/workflows/order?tab=executions": [see("main table")],
    "/workflows/slow": [see(".node-box"), press("Start"), see("dialog[open]")],
    "/dead-letters": [expand],
    "/workers": [see("main table")],
    "/no-such-page": [see(".empty")],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("everybody"), Shop().registry) as running:
        yield running


@pytest.fixture(scope="module")
def ids(service: Running) -> dict[str, str]:
    caller = Caller(service.address)
    for document in (ORDER, SLOW, {**ORDER, "description": "the second"}):
        caller.store(document)
    failed = caller.ended("order", input={"amount": 5}, labels={"team": "shop"})
    return {"failed": failed["execution_id"], "running": caller.start("slow")}


@pytest.fixture(scope="module")
def everywhere(browser: Browser) -> Iterator[Page]:
    """The policy lets no foreign script in: axe is let in by the browser."""
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_in_light_and_dark(
    everywhere: Page, service: Running, ids: dict[str, str], path: str
) -> None:
    page = everywhere
    page.emulate_media(color_scheme="light")
    page.goto(f"{service.address}/ui{path.format(**ids)}")
    for step in PAGES[path]:
        step(page)
    expect(page.locator(".loading")).to_have_count(0)
    page.evaluate(AXE)
    assert page.evaluate(RUN_AXE) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(RUN_AXE) == []


def test_no_page_scrolls_sideways_on_a_narrow_screen(page: Page, service: Running, ids: dict[str, str]) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    for path, steps in PAGES.items():
        page.goto(f"{service.address}/ui{path.format(**ids)}")
        for step in steps:
            step(page)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= room, path


def test_the_cause_of_a_failure_is_found_by_keyboard_alone(page: Page, service: Running, ids: dict[str, str]) -> None:
    def tab_to(what: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            words = page.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel || ''")
            if words.strip().startswith(what):
                return
        raise AssertionError(f"no way to {what!r} with the Tab key")

    page.goto(f"{service.address}/ui/executions?state=FAILED")
    expect(page.locator("main table")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("FAILED")
    tab_to("Open the node")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Node pay")
    expect(panel).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator(".node-box")).to_have_count(6)
    tab_to("gift")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Node gift")).to_be_visible()


def test_times_are_in_the_viewers_zone_with_utc_beside(page: Page, service: Running, ids: dict[str, str]) -> None:
    page.goto(f"{service.address}/ui/executions/{ids['failed']}?tab=history")
    time = page.locator("tbody time").first
    title = time.get_attribute("title") or ""
    assert "CET" in title or "GMT+1" in title or "CEST" in title or "GMT+2" in title, title
    assert title.endswith("UTC")
