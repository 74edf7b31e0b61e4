"""Maps and loops in the UI: one box with counts, a grid of items, and the graph of an item."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.waiting import until_now

ONCE = {"max_attempts": 1}


class Gate:
    """Handlers: `check` fails for the items in `refused`; `pass` waits for permits."""

    def __init__(self) -> None:
        self.refused: set[int] = set()
        self._permits = asyncio.Semaphore(0)
        self.registry = Registry([Handler("check", self._check), Handler("pass", self._pass)])

    async def _check(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.log.info("checks item %s", ctx.index)
        if ctx.index in self.refused:
            raise Terminal(f"item {ctx.index} is refused")
        return {"checked": ctx.item, **config}

    async def _pass(self, _config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await self._permits.acquire()
        return {"passed": ctx.index}

    async def permit(self, count: int) -> None:
        """To be called on the service's loop."""
        for _ in range(count):
            self._permits.release()


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any, gate: Gate) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("items"), gate.registry) as running:
        yield running


@pytest.fixture
def api(service: Running) -> Caller:
    return Caller(service.address)


def each(count: int, nodes: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    node = {"id": "each", "for_each": list(range(count)), "nodes": nodes, **fields}
    return {"name": "map", "nodes": [{"on_item_failure": "continue", **node}]}


CHECKED = [
    {"id": "check", "handler": "check", "retry": ONCE},
    {"id": "tell", "handler": "echo", "config": {"was": "{{ check.checked }}"}},
]


def open_node(page: Page, api: Caller, execution_id: str, node_id: str) -> Locator:
    page.goto(f"{api.address}/ui/executions/{execution_id}?node={node_id}")
    return panel_of(page, node_id)


def panel_of(page: Page, node_id: str) -> Locator:
    return page.get_by_role("complementary", name=f"Node {node_id}", exact=True)


def grid(page: Page) -> Locator:
    return page.get_by_role("listbox")


def active_item(page: Page) -> Locator:
    """The item that a screen reader is told of."""
    return page.get_by_role("option")


def chip(panel: Locator, state: str) -> Locator:
    return panel.get_by_role("button", name=re.compile(f"^{state} "))


def open_item(panel: Locator, index: int) -> None:
    panel.get_by_label(re.compile("Go to")).fill(str(index))
    panel.get_by_role("button", name="Open", exact=True).click()


def test_the_grid_of_a_map_follows_it_without_a_request_for_each_item(
    page: Page, service: Running, api: Caller, gate: Gate
) -> None:
    gate.refused = set()
    document = each(10_000, [{"id": "pass", "handler": "pass"}], max_parallel=40)
    execution_id = api.start(document)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    panel = open_node(page, api, execution_id, "each")
    expect(grid(page)).to_be_visible()
    expect(chip(panel, "PENDING")).to_contain_text("9,960")
    service.call(gate.permit(500))
    expect(box(page, "each")).to_contain_text("500 of 10,000")
    expect(panel).to_contain_text("500 of 10,000 · 40 open")
    expect(chip(panel, "COMPLETED")).to_contain_text("500")
    expect(chip(panel, "PENDING")).to_contain_text("9,460")
    bar = box(page, "each").get_by_role("img", name="500 of 10,000")
    expect(bar).to_have_attribute("title", "500 completed, 40 open")
    assert len([url for url in requests if "each" in url]) < 40
    assert page.locator(".item-grid canvas").count() == 1
    assert page.locator(".item-grid *").count() < 50, "no element for each item"
    api.post(f"/executions/{execution_id}/cancel")
    api.until_state(execution_id, "CANCELLED")
    expect(chip(panel, "CANCELLED")).to_contain_text("40")


def test_a_square_opens_the_graph_of_its_item(
    page: Page, service: Running, api: Caller, gate: Gate
) -> None:
    gate.refused = {7}
    execution_id = api.ended(each(40, CHECKED))["execution_id"]
    page.goto(f"{api.address}/ui/executions/{execution_id}")
    expect(page.locator(".node-box")).to_have_count(1)
    expect(box(page, "each")).to_contain_text("40 of 40, 1 failed")
    box(page, "each").click()
    panel = panel_of(page, "each")
    chip(panel, "FAILED").click()
    expect(active_item(page)).to_have_text("each[7] · FAILED")
    grid(page).click(position={"x": 8, "y": 8})
    item = page.get_by_role("region", name="each[7]")
    expect(item.locator(".node-box")).to_have_count(2)
    expect(panel).to_be_visible()  # the grid stays, for the next item
    box(page, "check").click()
    inner = panel_of(page, "each[7].check")
    expect(inner.get_by_role("region", name="Error")).to_contain_text("item 7 is refused")
    inner.get_by_role("tab", name="Logs").click()
    expect(inner).to_contain_text("checks item 7")
    item.get_by_role("button", name="The next item").click()
    box(page, "tell").click()
    panel_of(page, "each[8].tell").get_by_role("tab", name="Output").click()
    expect(panel_of(page, "each[8].tell")).to_contain_text("was")
    page.reload()
    expect(page.get_by_role("region", name="each[8]").locator(".node-box")).to_have_count(2)
    page.get_by_role("button", name="All nodes").click()
    expect(box(page, "each")).to_be_visible()


def test_the_grid_is_used_by_keys_and_read_to_those_who_do_not_see_it(
    page: Page, service: Running, api: Caller, gate: Gate
) -> None:
    gate.refused = {1}
    execution_id = api.ended(each(40, CHECKED))["execution_id"]
    panel = open_node(page, api, execution_id, "each")
    expect(grid(page)).to_have_attribute("aria-label", "Items of each")
    grid(page).focus()
    expect(active_item(page)).to_have_text("each[0] · COMPLETED")
    page.keyboard.press("ArrowRight")
    expect(active_item(page)).to_have_text("each[1] · FAILED")
    expect(active_item(page)).to_have_attribute("aria-posinset", "2")
    expect(active_item(page)).to_have_attribute("aria-setsize", "40")
    assert grid(page).get_attribute("aria-activedescendant") == active_item(page).get_attribute(
        "id"
    )
    page.keyboard.press("End")
    expect(active_item(page)).to_have_text("each[39] · COMPLETED")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="each[39]")).to_be_visible()
    expect(active_item(page)).to_have_attribute("aria-selected", "true")
    open_item(panel, 40)
    expect(panel.get_by_role("alert")).to_have_text("Give a number from 0 to 39")


def test_rounds_of_a_loop_are_shown_the_latest_first_with_the_pause(
    page: Page, service: Running, api: Caller, gate: Gate
) -> None:
    repeat = {"until": "round == 2", "max_rounds": 9, "every_seconds": 3600}
    loop = {"id": "loop", "repeat": repeat, "nodes": [{"id": "look", "handler": "noop"}]}
    execution_id = api.start({"name": "poll", "nodes": [loop]})
    panel = open_node(page, api, execution_id, "loop")
    expect(panel.get_by_role("tab", name="Rounds")).to_be_visible()
    expect(panel).to_contain_text(re.compile(r"Round 2 begins in .*59 min"))
    expect(box(page, "loop")).to_contain_text(re.compile(r"59 min .* · 1 round"))
    grid(page).click(position={"x": 8, "y": 8})
    expect(page.get_by_role("region", name="loop[1]").locator(".node-box")).to_have_count(1)
    done = api.ended(
        {"name": "quick", "nodes": [{**loop, "repeat": {"until": "round == 3", "max_rounds": 9}}]}
    )
    open_node(page, api, done["execution_id"], "loop")
    expect(active_item(page)).to_have_text("loop[3] · COMPLETED")
    expect(box(page, "loop")).to_contain_text("3 rounds")


def test_a_map_inside_of_an_item_has_a_grid_of_its_own(
    page: Page, service: Running, api: Caller, gate: Gate
) -> None:
    gate.refused = set()
    inner = {"id": "inner", "for_each": [1, 2, 3], "nodes": CHECKED}
    execution_id = api.ended(each(2, [inner]))["execution_id"]
    page.goto(f"{api.address}/ui/executions/{execution_id}?under=each%5B1%5D")
    box(page, "inner").click()
    panel = panel_of(page, "each[1].inner")
    expect(chip(panel, "COMPLETED")).to_contain_text("3")
    open_item(panel, 2)
    item = page.get_by_role("region", name="each[1].inner[2]")
    expect(item.locator(".node-box")).to_have_count(2)
    item.get_by_role("button", name="inner", exact=True).click()
    expect(panel).to_be_visible()
    expect(page.get_by_role("region", name="each[1]", exact=True)).to_be_visible()


def test_a_retry_previews_the_items_that_run_and_runs_only_them(
    page: Page, service: Running, api: Caller, gate: Gate
) -> None:
    gate.refused = {3, 5}
    execution_id = api.ended(each(1200, CHECKED))["execution_id"]
    gate.refused = set()
    page.goto(f"{api.address}/ui/executions/{execution_id}")
    page.get_by_role("button", name="Retry", exact=True).click()
    details = page.get_by_role("list", name="What runs in detail")
    expect(details).to_contain_text("each 2 of 1,200 items run: each[3], each[5]")
    page.get_by_label("Items").select_option("all")
    expect(details).to_have_count(0)
    page.get_by_label("Items").select_option("failed")
    expect(details).to_contain_text("2 of 1,200 items run")
    # one item again, from a node inside of it
    page.goto(f"{api.address}/ui/executions/{execution_id}?node=each[9].tell")
    page.get_by_role("button", name="Retry from this node").click()
    expect(page.get_by_label("Also rerun from this node")).to_have_value("each[9].tell")
    expect(details).to_contain_text("3 of 1,200 items run: each[3], each[5], each[9]")
    page.get_by_label("Also rerun from this node").select_option("")
    expect(details).to_contain_text("2 of 1,200 items run")
    page.get_by_role("button", name="Run 1 nodes").click()
    expect(page).not_to_have_url(re.compile(execution_id))
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    expect(box(page, "each")).to_contain_text("1,200 of 1,200")
    retried = page.url.rpartition("/")[2]
    ran = [
        line["node_id"]
        for line in api.items(f"/executions/{retried}/history")
        if line["to"] == "QUEUED"
    ]
    until_now(lambda: api.shown(f"/executions/{retried}")["state"] == "COMPLETED")
    assert sorted(ran) == ["each[3].check", "each[3].tell", "each[5].check", "each[5].tell"]
