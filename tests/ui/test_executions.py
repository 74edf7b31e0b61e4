"""The list of executions.

Filtered by its address, live, used with keys, and many controlled at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.caller import Caller, failing
from tests.api_server import Running, running_service
from tests.ui.shop import Shop, node
from tests.waiting import until_now

QUICK = {"name": "quick", "nodes": [node("a", "noop")]}
STUCK = {"name": "stuck", "nodes": [node("a", config={"waits": True})]}
BROKEN = failing("broken")


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("executions"), Shop().registry) as running:
        yield running


@pytest.fixture(scope="module")
def caller(service: Running) -> Caller:
    return Caller(service.address)


@pytest.fixture(scope="module")
def started_ids(caller: Caller) -> dict[str, str]:
    """One of each kind, the oldest first."""
    later = {**QUICK, "nodes": [*QUICK["nodes"], node("b", "noop")]}
    names = {
        "billing": caller.ended(QUICK, labels={"team": "billing", "tier": 1}),
        "newer": caller.ended(later, labels={"team": "billing"}),
        "broken": caller.ended(BROKEN),
    }
    return {kind: str(started["execution_id"]) for kind, started in names.items()}


def listed(page: Page) -> Locator:
    return page.locator("[data-row]")


def expect_listed(page: Page, *names: str) -> None:
    """Exactly these, the newest first."""
    expect(page.locator("table[aria-busy=false]")).to_be_visible()
    expect(listed(page)).to_have_count(len(names))
    assert [link.get_attribute("data-row") for link in listed(page).all()] == list(names)


def open_list(page: Page, caller: Caller, query: str = "") -> None:
    page.goto(f"{caller.address}/ui/executions{query}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Executions")


def expect_query(page: Page, **wanted: str | list[str]) -> None:
    """The address has these filters and no others."""
    expected = {
        name: value if isinstance(value, list) else [value] for name, value in wanted.items()
    }
    until_now(
        lambda: parse_qs(urlsplit(page.evaluate("location.href")).query) == expected,
        f"{page.url} is {expected}",
    )


def test_states_and_labels_are_filters_of_the_address(
    page: Page, caller: Caller, started_ids: dict[str, str]
) -> None:
    open_list(page, caller, "?workflow=quick")
    expect_listed(page, started_ids["newer"], started_ids["billing"])
    page.get_by_role("button", name="team:billing").first.click()
    expect_query(page, workflow="quick", label="team:billing")
    page.get_by_label("Labels").fill("tier:1")
    page.get_by_label("Labels").press("Enter")
    expect_query(page, workflow="quick", label=["team:billing", "tier:1"])
    expect_listed(page, started_ids["billing"])
    page.get_by_role("button", name="Remove the filter team:billing").click()
    page.get_by_role("button", name="FAILED", exact=True).click()
    expect_query(page, workflow="quick", label="tier:1", state="FAILED")
    expect(page.get_by_text("No execution matches these filters")).to_be_visible()
    page.go_back()
    expect_query(page, workflow="quick", label="tier:1")
    expect_listed(page, started_ids["billing"])
    expect(page.get_by_role("button", name="FAILED", exact=True)).to_have_attribute(
        "aria-pressed", "false"
    )


def test_what_is_typed_goes_into_the_address_and_stays(
    page: Page, caller: Caller, started_ids: dict[str, str]
) -> None:
    open_list(page, caller)
    page.get_by_label("Workflow", exact=True).fill("quick")
    expect_query(page, workflow="quick")
    page.get_by_label("Version", exact=True).fill("2")
    expect_query(page, workflow="quick", version="2")
    expect_listed(page, started_ids["newer"])
    page.reload()
    expect_listed(page, started_ids["newer"])
    expect(page.get_by_label("Workflow", exact=True)).to_have_value("quick")
    expect(page.get_by_label("Version", exact=True)).to_have_value("2")
    page.get_by_role("button", name="Clear filters").click()
    expect_query(page)
    expect(page.get_by_label("Workflow", exact=True)).to_have_value("")
    page.get_by_role("searchbox").fill(started_ids["broken"][-8:])
    expect_query(page, text=started_ids["broken"][-8:])
    expect_listed(page, started_ids["broken"])


def test_times_of_the_filters_are_the_viewers(
    page: Page, caller: Caller, started_ids: dict[str, str]
) -> None:
    open_list(page, caller, "?text=quick")
    page.get_by_label("Since").fill("2030-01-01T01:30")
    expect_query(page, text="quick", since="2030-01-01T00:30:00.000Z")  # Berlin is an hour ahead
    expect(page.get_by_text("No execution matches these filters")).to_be_visible()
    page.get_by_label("Since").fill("2020-07-01T02:30")
    page.get_by_label("Until").fill("2030-01-01T00:00")
    expect_query(
        page, text="quick", since="2020-07-01T00:30:00.000Z", until="2029-12-31T23:00:00.000Z"
    )
    expect_listed(page, started_ids["newer"], started_ids["billing"])
    page.reload()
    expect(page.get_by_label("Since")).to_have_value("2020-07-01T02:30")


def test_filters_that_match_nothing_can_be_cleared(
    page: Page, caller: Caller, started_ids: dict[str, str]
) -> None:
    open_list(page, caller, "?state=PAUSED&workflow=nobody")
    expect(page.get_by_text("No execution matches these filters")).to_be_visible()
    page.locator(".empty").get_by_role("button", name="Clear filters").click()
    expect(page.locator(f'[data-row="{started_ids["broken"]}"]')).to_be_visible()
    expect_query(page)


def test_a_new_execution_appears_and_changes_by_itself(
    page: Page, caller: Caller, service: Running
) -> None:
    open_list(page, caller, "?workflow=live")
    expect(page.get_by_text("No execution matches these filters")).to_be_visible()
    name = caller.start({**STUCK, "name": "live"})
    expect(page.locator(f'[data-row="{name}"]')).to_be_visible()
    row = page.get_by_role("row", name=re.compile("live@1"))
    expect(row).to_contain_text("RUNNING")
    caller.post(f"/executions/{name}/cancel")
    expect(row).to_contain_text("CANCELLED")


def test_a_row_that_is_looked_at_does_not_move(page: Page, caller: Caller) -> None:
    document = {**QUICK, "name": "still"}
    first = str(caller.ended(document)["execution_id"])
    open_list(page, caller, "?workflow=still")
    page.locator(f'[data-row="{first}"]').focus()
    second = str(caller.ended(document)["execution_id"])
    new = page.get_by_role("button", name="1 new")
    expect(new).to_be_visible()
    expect_listed(page, first)
    new.click()
    expect_listed(page, second, first)


def test_the_list_is_walked_by_keys(
    page: Page, caller: Caller, started_ids: dict[str, str]
) -> None:
    open_list(page, caller, "?workflow=quick")
    expect_listed(page, started_ids["newer"], started_ids["billing"])
    first, second = listed(page).first, listed(page).last
    for key, focused in (
        ("j", first),
        ("j", second),
        ("k", first),
        ("ArrowDown", second),
        ("j", second),
    ):
        page.keyboard.press(key)
        expect(focused).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_label(f"Select execution {started_ids['billing']}")).to_be_checked()
    expect(page.get_by_role("region", name="Selected executions")).to_contain_text("1 selected")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Selected executions")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text(
        "select or deselect the row"
    )
    page.keyboard.press("j")  # belongs to nobody while the dialog is open
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(second).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{caller.address}/ui/executions/{started_ids['billing']}")
    page.go_back()
    expect_listed(page, started_ids["newer"], started_ids["billing"])


def test_the_search_is_reached_and_left_by_keys(
    page: Page, caller: Caller, started_ids: dict[str, str]
) -> None:
    open_list(page, caller, "?workflow=quick")
    expect_listed(page, started_ids["newer"], started_ids["billing"])
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    page.keyboard.type("jkx?/")  # letters, not commands
    expect(search).to_have_value("jkx?/")
    expect_query(page, workflow="quick", text="jkx?/")
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect_query(page, workflow="quick")
    page.keyboard.press("Escape")
    expect(search).not_to_be_focused()
    expect_listed(page, started_ids["newer"], started_ids["billing"])
    page.keyboard.press("j")
    expect(listed(page).first).to_be_focused()


def test_several_are_cancelled_at_once(page: Page, caller: Caller) -> None:
    document = {**STUCK, "name": "many stuck"}
    running = [caller.start(document) for _ in range(3)]
    for name in running:
        caller.until_state(name, "RUNNING")
    caller.post(f"/executions/{running[0]}/cancel")
    caller.until_state(running[0], "CANCELLED")
    open_list(page, caller, "?text=many%20stuck")
    page.get_by_label("Select all loaded executions").check()
    bar = page.get_by_role("region", name="Selected executions")
    expect(bar).to_contain_text("3 selected")
    bar.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog", name="Cancel 2 executions?")
    expect(dialog).to_contain_text("1 execution of your selection has already ended")
    dialog.get_by_role("button", name="Cancel 2 executions").click()
    expect(page.get_by_text("2 executions cancelled")).to_be_visible()
    expect(page.locator("tbody .badge", has_text="CANCELLED")).to_have_count(3)
    assert {caller.state(name) for name in running} == {"CANCELLED"}
    expect(bar).to_have_count(0)


def test_several_are_retried_at_once_after_a_preview(page: Page, caller: Caller) -> None:
    document = failing("many broken")
    broken = [str(caller.ended(document)["execution_id"]) for _ in range(2)]
    running = caller.start({**STUCK, "name": "many broken not yet"})
    caller.until_state(running, "RUNNING")
    open_list(page, caller, "?text=many%20broken")
    page.get_by_label(f"Select execution {running}").click()
    page.get_by_label(f"Select execution {broken[0]}").click(modifiers=["Shift"])  # all in between
    page.get_by_role("region", name="Selected executions").get_by_role(
        "button", name="Retry"
    ).click()
    dialog = page.get_by_role("dialog", name="Retry 2 executions?")
    expect(dialog).to_contain_text("4 nodes would run")
    expect(dialog).to_contain_text("2 nodes, 1 reused")
    expect(dialog).to_contain_text("Can't be retried")
    assert len(caller.items("/executions", workflow="many broken")) == 2, "a preview makes nothing"
    dialog.get_by_role("button", name="Retry 2 executions").click()
    expect(page.get_by_text("2 executions retried")).to_be_visible()
    expect(listed(page)).to_have_count(5)
    retries = [
        execution["retry_of"]
        for execution in caller.items("/executions", workflow="many broken")
        if execution["retry_of"]
    ]
    assert sorted(retries) == sorted(broken)


def test_older_ones_are_loaded_when_asked_for(page: Page, caller: Caller) -> None:
    caller.store({**QUICK, "name": "plenty"})
    caller.post("/executions/batch", {"executions": [{"workflow": "plenty"}] * 60})
    until_now(lambda: len(caller.items("/executions", workflow="plenty", state="COMPLETED")) == 60)
    open_list(page, caller, "?workflow=plenty")
    expect(page.get_by_text("50 loaded")).to_be_visible()
    expect(listed(page)).to_have_count(50)
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("60 in total")).to_be_visible()
    shown_ids = [link.get_attribute("data-row") for link in listed(page).all()]
    assert shown_ids == [
        execution["execution_id"] for execution in caller.items("/executions", workflow="plenty")
    ]
    expect(page.get_by_role("button", name="Load more")).to_have_count(0)


def test_where_nothing_was_started_the_page_says_how_to(page: Page, tmp_path: Any) -> None:
    with running_service(tmp_path) as running:
        page.goto(f"{running.address}/ui/executions")
        expect(page.get_by_text("No execution has been started yet")).to_be_visible()
        page.get_by_role("link", name="a workflow's page").click()
        expect(page.get_by_text("No workflow has been stored yet")).to_be_visible()
        page.goto("about:blank")  # its streams end before the service does
