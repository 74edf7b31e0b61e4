"""The pages of workflows.

Start by a form, comparison of versions, aliases, counts by node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.caller import Caller, segment
from tests.api_server import Running, running_service
from tests.ui.boxes import box, having
from tests.ui.shop import node
from tests.waiting import until_now

BOOKING = {
    "name": "booking",
    "description": "Books a room",
    "input_schema": {
        "type": "object",
        "required": ["nights", "room"],
        "properties": {
            "nights": {"type": "integer", "minimum": 1, "description": "How long the guest stays"},
            "room": {"enum": ["small", "large"]},
            "breakfast": {"type": "boolean"},
            # the browser can't read this pattern, so only the server can tell
            "coupon": {"type": "string", "pattern": "(?i)^save[0-9]+$"},
            "guests": {"type": "array", "items": {"type": "string"}},
            "address": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
    "input": {"room": "small"},
    "nodes": [
        node("offer", "echo", config={"nights": "{{ input.nights }}"}),
        node("never", "echo", ("offer",), condition="offer.nights > 99"),
        node("output", "output", ("offer", "never")),
    ],
}


def rooms(*names: str, seconds: int = 30) -> dict[str, Any]:
    return {
        "name": "rooms",
        "nodes": [node(name, "echo", config={"seconds": seconds}) for name in names],
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("workflows")) as running:
        yield running


@pytest.fixture(scope="module")
def caller(service: Running) -> Caller:
    new_caller = Caller(service.address)
    new_caller.store(BOOKING)
    for document in (
        rooms("red", "blue"),
        rooms("red", "green"),
        rooms("red", "green", seconds=60),
    ):
        new_caller.store(document)
    return new_caller


def open_workflow(page: Page, caller: Caller, name: str, query: str = "") -> None:
    page.goto(f"{caller.address}/ui/workflows/{segment(name)}{query}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def begin_start(page: Page, caller: Caller) -> Locator:
    open_workflow(page, caller, "booking")
    page.get_by_role("button", name="Start", exact=True).click()
    return page.get_by_role("dialog", name="Start booking@1")


def input_of_the_execution_shown(page: Page, caller: Caller) -> Any:
    expect(page).to_have_url(re.compile(r"/ui/executions/[\w-]+$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    return caller.shown(f"/executions/{page.url.rpartition('/')[2]}")["input"]


def test_the_form_of_the_schema_starts_an_execution(page: Page, caller: Caller) -> None:
    form = begin_start(page, caller)
    expect(form.get_by_label("room")).to_have_value('"small"')  # what the workflow has as its input
    expect(form).to_contain_text("How long the guest stays · a whole number, at least 1")
    form.get_by_label("nights").fill("3")
    form.get_by_label("room").select_option("large")
    form.get_by_label("breakfast").select_option("true")
    form.get_by_role("group", name="guests").get_by_role("button", name="Add").click()
    form.get_by_label("guests, item 1").fill("Ada")
    form.get_by_role("group", name="address").get_by_label("city").fill("Bern")
    form.get_by_role("button", name="Add a label").click()
    form.get_by_label("Key of label 1").fill("team")
    form.get_by_label("Value of label 1").fill("front desk")
    form.get_by_role("button", name="Start", exact=True).click()
    assert input_of_the_execution_shown(page, caller) == {
        "nights": 3,
        "room": "large",
        "breakfast": True,
        "guests": ["Ada"],
        "address": {"city": "Bern"},
    }
    expect(page.get_by_role("link", name="team: front desk")).to_be_visible()


def test_a_wrong_value_is_refused_at_its_field(page: Page, caller: Caller) -> None:
    form = begin_start(page, caller)
    start = form.get_by_role("button", name="Start", exact=True)
    nights = form.get_by_label("nights")
    start.click()
    expect(nights).to_have_accessible_description(re.compile("Fill this in"))
    expect(nights).to_be_focused()
    for wrong, why in (
        ("many", "This isn't a number"),
        ("1.5", "whole number"),
        ("0", "at least 1"),
    ):
        nights.fill(wrong)
        start.click()
        expect(nights).to_have_accessible_description(re.compile(why))
        expect(nights).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_role("alert")).to_have_text("One field needs a change")
    nights.fill("2")
    start.click()
    assert input_of_the_execution_shown(page, caller) == {"nights": 2, "room": "small"}


def test_what_only_the_server_can_tell_is_shown_at_its_field_too(
    page: Page, caller: Caller
) -> None:
    form = begin_start(page, caller)
    form.get_by_label("nights").fill("2")
    coupon = form.get_by_label("coupon")
    coupon.fill("cheap")
    form.get_by_role("button", name="Start", exact=True).click()
    expect(coupon).to_have_attribute("aria-invalid", "true")
    expect(coupon).to_have_accessible_description(re.compile('"cheap" does not match'))
    expect(coupon).to_be_focused()
    coupon.fill("SAVE10")
    form.get_by_role("button", name="Start", exact=True).click()
    assert input_of_the_execution_shown(page, caller)["coupon"] == "SAVE10"


def test_raw_json_takes_along_what_the_form_has(page: Page, caller: Caller) -> None:
    form = begin_start(page, caller)
    form.get_by_label("nights").fill("4")
    form.get_by_role("button", name="JSON", exact=True).click()
    raw = form.get_by_label("Input")
    expect(raw).to_have_value('{\n  "nights": 4,\n  "room": "small"\n}')
    raw.fill('{"nights": 5,')
    form.get_by_role("button", name="Start", exact=True).click()
    expect(raw).to_have_accessible_description(re.compile("This isn't JSON"))
    raw.fill('{"nights": 5, "room": "castle"}')
    form.get_by_role("button", name="Start", exact=True).click()
    expect(form.get_by_role("alert")).to_contain_text("castle")  # the server's words
    raw.fill('{"nights": 5, "room": "large", "note": [1, null]}')
    form.get_by_role("button", name="Start", exact=True).click()
    assert input_of_the_execution_shown(page, caller) == {
        "nights": 5,
        "room": "large",
        "note": [1, None],
    }


def test_a_workflow_is_found_and_started_from_the_list(page: Page, caller: Caller) -> None:
    page.goto(f"{caller.address}/ui/workflows")
    expect(page.get_by_role("row", name=re.compile("^rooms 3 3"))).to_be_visible()
    page.get_by_role("searchbox", name="Part of a workflow's name").fill("BOOK")
    expect(page.get_by_role("link", name="rooms", exact=True)).to_have_count(0)
    expect(page).to_have_url(re.compile("text=BOOK"))
    page.get_by_role("button", name="Start booking").click()
    expect(page.get_by_role("dialog", name="Start booking@1")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Start booking")).to_be_focused()
    page.get_by_role("searchbox").fill("nothing")
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("link", name="rooms", exact=True)).to_be_visible()


def test_two_versions_are_compared_side_by_side(page: Page, caller: Caller) -> None:
    open_workflow(page, caller, "rooms", "?tab=versions")
    expect(page.get_by_role("heading", name="3 versions")).to_be_visible()
    compare = page.get_by_role("button", name="Compare")
    expect(compare).to_be_disabled()
    page.get_by_label("Compare version 1").check()
    page.get_by_label("Compare version 2").check()
    compare.click()
    sides = page.get_by_role("region", name="Version 1 and version 2 side by side")
    removed, added = sides.locator(".df-text.removed"), sides.locator(".df-text.added")
    expect(removed).to_have_text(['removed:       "id": "blue",'])
    expect(added).to_have_text(['added:       "id": "green",'])
    expect(removed.locator("mark")).to_have_text("blue")  # only what has changed in the line
    expect(page.get_by_role("status").filter(has_text="lines")).to_contain_text("+1 −1")
    page.get_by_role("combobox", name="To").select_option("version 3")
    wider = page.get_by_role("region", name="Version 1 and version 3 side by side")
    expect(wider.locator(".df-text.added")).to_have_count(3)  # the seconds of both nodes too
    expect(page).to_have_url(re.compile("from=1&to=3"))
    page.reload()
    expect(page.get_by_role("combobox", name="To")).to_have_value("3")
    page.get_by_role("button", name="Swap the versions").click()
    expect(page.get_by_role("region", name="Version 3 and version 1 side by side")).to_be_visible()


def test_a_version_with_more_nodes_shows_their_lines_as_added(page: Page, caller: Caller) -> None:
    caller.store({"name": "grows", "nodes": [node("a", "noop")]})
    caller.store({"name": "grows", "nodes": [node("a", "noop"), node("b", "noop")]})
    open_workflow(page, caller, "grows", "?tab=diff")
    sides = page.get_by_role("region", name="Version 1 and version 2 side by side")
    expect(sides.locator(".df-text.added", has_text='"id": "b"')).to_have_count(1)
    expect(sides.locator(".df-text.removed", has_text='"id"')).to_have_count(0)
    expect(sides.locator(".df-none").first).to_be_visible()


def test_an_alias_is_made_moved_and_removed(page: Page, caller: Caller) -> None:
    open_workflow(page, caller, "rooms", "?version=1")
    page.get_by_role("button", name="Aliases").click()
    page.get_by_label("New alias for version 1").fill("latest")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("always means the newest version")
    page.get_by_label("New alias for version 1").fill("stable")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("dialog", name="Add the alias stable?").get_by_role(
        "button", name="Add"
    ).click()
    expect(
        page.get_by_role("dialog", name="Aliases of rooms").get_by_text("version 1", exact=True)
    ).to_be_visible()
    assert caller.shown("/workflows/rooms")["aliases"]["stable"] == {"1": 100}
    page.get_by_role("button", name="Close").click()
    page.get_by_role("combobox", name="Version").select_option("2")
    page.get_by_role("button", name="Aliases").click()
    page.get_by_role("button", name="Move to 2").click()
    move = page.get_by_role("dialog", name="Move stable?")
    expect(move).to_contain_text("means version 1 now, and will mean version 2")
    page.get_by_role("button", name="Move to 2").click()
    expect(
        page.get_by_role("dialog", name="Aliases of rooms").get_by_text("version 2", exact=True)
    ).to_be_visible()
    assert caller.shown("/workflows/rooms")["aliases"]["stable"] == {"2": 100}
    page.get_by_role("button", name="Remove the alias stable").click()
    page.get_by_role("dialog", name="Remove the alias stable?").get_by_role(
        "button", name="Remove"
    ).click()
    expect(page.get_by_role("button", name="Remove the alias stable")).to_have_count(0)
    until_now(
        lambda: "stable" not in caller.shown("/workflows/rooms")["aliases"], "the alias is gone"
    )


def test_each_node_has_its_statistics(page: Page, caller: Caller) -> None:
    steps = [
        node("good", "noop"),
        node(
            "weak",
            "fail",
            ("good",),
            config={"times": 1},
            retry={"max_attempts": 2, "initial_delay": 0},
        ),
        node("bad", "fail", ("weak",), retry={"max_attempts": 1}),
        node("after", "noop", ("bad",)),
    ]
    caller.store({"name": "counted", "nodes": steps})
    for _ in range(2):
        assert caller.ended("counted")["state"] == "FAILED"
    open_workflow(page, caller, "counted", "?tab=statistics")
    expect(page.get_by_text("The last 2 executions: 2 failed")).to_be_visible()
    rows = page.locator("table.wf-stats tbody tr")
    for row, (name, handler, runs, rate, attempts) in enumerate(
        (
            ("good", "noop", "2", "0 %", "2"),
            ("weak", "fail", "2", "0 %", "4"),
            ("bad", "fail", "2", "100 %", "2"),
            ("after", "noop", "0", "–", "0"),
        )
    ):
        cells = rows.nth(row).get_by_role("cell")
        for column, text in ((0, name), (1, handler), (2, runs), (4, rate), (5, attempts)):
            expect(cells.nth(column)).to_have_text(text)
    page.get_by_role("button", name="Failure rate").click()
    expect(rows.first).to_contain_text("bad")
    expect(page.get_by_role("columnheader", name="Failure rate")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(page).to_have_url(re.compile("sort=-failure_rate"))
    caller.ended("counted")
    expect(page.get_by_text("The last 3 executions: 3 failed")).to_be_visible()  # by itself


def test_the_graph_is_drawn_and_a_node_of_it_is_opened(page: Page, caller: Caller) -> None:
    open_workflow(page, caller, "booking")
    expect(page.get_by_text("Books a room")).to_be_visible()
    expect(page.locator(".node-box")).to_have_count(3)
    expect(page.locator(".react-flow__edge")).to_have_count(3)
    box(page, "never").click()
    expect(box(page, "never")).to_have_class(having("selected"))
    expect(page.locator(".json").get_by_text("offer.nights > 99")).to_be_visible()
    page.get_by_role("button", name="Close the node").click()
    expect(page.locator(".json").get_by_text("offer.nights > 99")).to_have_count(0)


def test_the_definition_is_shown_and_searched(page: Page, caller: Caller) -> None:
    open_workflow(page, caller, "booking", "?tab=definition")
    expect(page.get_by_text("Books a room")).to_have_count(2)  # in the head of the page too
    page.get_by_label("Find in booking@1").fill("offer.nights")
    expect(page.get_by_text("1 match")).to_be_visible()
    expect(page.locator(".json").get_by_text("offer.nights > 99")).to_be_visible()


def test_the_last_executions_of_a_version_are_live(page: Page, caller: Caller) -> None:
    caller.store({"name": "seldom", "nodes": [node("a", "noop")]})
    open_workflow(page, caller, "seldom", "?tab=executions")
    expect(page.get_by_text("seldom@1 hasn't been started yet")).to_be_visible()
    name = caller.start("seldom")
    expect(page.locator(f'[data-row="{name}"]')).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("COMPLETED"))).to_have_count(1)


def test_a_name_with_a_slash_and_spaces_opens(page: Page, caller: Caller) -> None:
    name = "team one/ship it & more?"
    caller.store({"name": name, "nodes": [node("a", "noop")]})
    page.goto(f"{caller.address}/ui/workflows")
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(box(page, "a")).to_be_visible()
    page.reload()
    expect(box(page, "a")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    page.get_by_role("link", name=name).click()
    expect(page).to_have_url(
        re.compile(r"/workflows/team%20one%2Fship%20it%20%26%20more%3F\?version=1$")
    )
    expect(box(page, "a")).to_be_visible()


def test_an_unknown_workflow_and_version_lead_on(page: Page, caller: Caller) -> None:
    page.goto(f"{caller.address}/ui/workflows/rooms?version=9")
    page.get_by_role("link", name="Show the latest version of rooms").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("rooms")
    page.goto(f"{caller.address}/ui/workflows/nobody")
    expect(page.get_by_text("there is no workflow")).to_be_visible()
    page.get_by_role("link", name="Show all workflows").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Workflows")
