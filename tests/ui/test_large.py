"""Graphs that no screen can hold. No time is asserted here: benchmarks/page.py measures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from benchmarks.workloads import fan, layers
from tests.api.caller import Caller
from tests.api_server import Running, running_service

MOST_BOXES = 400
FIRST_LOAD_BYTES = 300_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("large")) as running:
        yield running


@pytest.fixture(scope="module")
def large(service: Running) -> str:
    made = Caller(service.address).post("/executions", {"definition": layers(100, 100)}, wait=60)
    assert made.body["state"] == "COMPLETED"
    return f"{service.address}/ui/executions/{made.body['execution_id']}"


def boxes(page: Page) -> int:
    return page.locator(".node-box, .group-box").count()


def test_ten_thousand_nodes_begin_as_a_few_groups_that_open(page: Page, large: str) -> None:
    page.goto(large)
    expect(page.get_by_text("10,000 nodes, grouped by level")).to_be_visible()
    expect(page.locator(".group-box").first).to_contain_text("500 nodes")
    assert boxes(page) <= 20
    page.locator(".group-box").first.click()
    expect(page.locator(".group-box").first).to_contain_text("100 nodes")
    page.locator(".group-box").first.click()
    expect(page.locator(".node-box").first).to_be_visible()
    assert 0 < boxes(page) <= MOST_BOXES
    page.get_by_role("button", name="Close all groups").click()
    expect(page.locator(".node-box")).to_have_count(0)


def test_a_node_of_ten_thousand_is_found_by_its_address_and_in_the_list(page: Page, large: str) -> None:
    page.goto(f"{large}?node=n57.3")
    chosen = page.locator(".node-box.selected")
    expect(chosen).to_contain_text("n57.3")
    expect(chosen).to_be_in_viewport()
    expect(page.get_by_role("complementary", name="Node n57.3")).to_contain_text("COMPLETED")
    page.get_by_role("tab", name="Nodes").click()
    page.get_by_role("searchbox", name="Find a node or handler").fill("n99.99")
    expect(page.locator(".node-row")).to_have_count(1)


def test_only_the_rows_that_are_seen_are_drawn(page: Page, large: str) -> None:
    page.goto(f"{large}?tab=time")
    expect(page.locator(".time-row").first).to_be_visible()
    assert page.locator(".time-row").count() < 100
    page.get_by_role("tab", name="Nodes").click()
    expect(page.locator(".node-row").first).to_be_visible()
    assert page.locator(".node-row").count() < 100


def test_a_live_run_of_a_thousand_nodes_is_counted_to_the_end(page: Page, service: Running) -> None:
    document = fan(1000)
    for node in document["nodes"]:
        if node["id"].startswith("n"):
            node.update(handler="sleep", config={"seconds": 0.02})
    made = Caller(service.address).start(document)
    page.goto(f"{service.address}/ui/executions/{made}?tab=nodes")
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED", timeout=60_000)
    expect(page.get_by_role("button", name=re.compile("^COMPLETED 1002$"))).to_be_visible()


def test_the_first_load_is_small(page: Page, service: Running) -> None:
    """All that a fresh browser loads for an execution's page, as it goes over the wire; elk comes later."""
    loaded: dict[str, int] = {}

    def note(response: Response) -> None:
        if "/ui/" in response.url and response.ok:
            assert response.headers.get("content-encoding") == "gzip" or response.url.endswith(".svg"), response.url
            loaded[response.url.rpartition("/")[2]] = int(response.headers["content-length"])

    page.on("response", note)
    made = Caller(service.address).post("/executions", {"definition": layers(3, 3)}, wait=20)
    page.goto(f"{service.address}/ui/executions/{made.body['execution_id']}")
    expect(page.locator(".node-box")).to_have_count(9)
    page.wait_for_load_state("networkidle")
    without_elk = {name: size for name, size in loaded.items() if not name.startswith("elk")}
    assert any(name.startswith("GraphView") for name in without_elk)
    assert sum(without_elk.values()) <= FIRST_LOAD_BYTES, without_elk
