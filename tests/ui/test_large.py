"""Large executions: few boxes at a time, every node within reach, and little to load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box, having
from tests.ui.shop import Shop, node

FIRST_BOXES = 20
BOXES_MAX = 400
ROWS_MAX = 100
FILES_BYTES_MAX = 300 * 1024


def layers(name: str, depth: int, width: int, first: str = "noop") -> dict[str, Any]:
    """Each node has two parents in the layer before."""
    nodes = [
        node(
            f"n{d}.{w}",
            "noop" if d else first,
            (f"n{d - 1}.{w}", f"n{d - 1}.{(w + 1) % width}") if d else (),
            config={} if d or first == "noop" else {"waits": True},
        )
        for d in range(depth)
        for w in range(width)
    ]
    return {"name": name, "nodes": nodes}


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any, shop: Shop) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("large"), shop.registry) as running:
        yield running


@pytest.fixture(scope="module")
def caller(service: Running) -> Caller:
    return Caller(service.address)


@pytest.fixture(scope="module")
def large(caller: Caller) -> str:
    """10,000 nodes that have run."""
    answer = caller.post("/executions", {"definition": layers("large", 100, 100)}, wait=60)
    assert answer.body["state"] == "COMPLETED"
    return str(answer.body["execution_id"])


def open_execution(page: Page, caller: Caller, name: str, query: str = "") -> None:
    page.goto(f"{caller.address}/ui/executions/{name}{query}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")


def boxes(page: Page) -> Locator:
    return page.locator(".node-box, .group-box")


def test_it_begins_as_a_few_groups(page: Page, caller: Caller, large: str) -> None:
    open_execution(page, caller, large)
    expect(page.get_by_text("10,000 nodes, grouped by level.")).to_be_visible()
    expect(page.locator(".group-box").first).to_contain_text("Levels 1–5")
    expect(page.locator(".group-box").first).to_contain_text("500 nodes")
    expect(page.locator(".node-box")).to_have_count(0)
    assert 0 < boxes(page).count() <= FIRST_BOXES


def test_groups_open_down_to_a_node_and_never_all_at_once(
    page: Page, caller: Caller, large: str
) -> None:
    open_execution(page, caller, large)
    expect(page.locator(".group-box").first).to_be_visible()
    seen = []
    for _ in range(6):  # levels 1 to 5, and then each of them that is in sight
        groups = page.locator(".react-flow__node", has=page.locator(".group-box"))
        if groups.count() == 0:
            break
        opened = page.locator(
            f'.react-flow__node[data-id="{groups.first.get_attribute("data-id")}"]'
        )
        opened.focus()
        page.keyboard.press("Enter")
        expect(opened).to_have_count(0)
        seen.append(boxes(page).count())
    assert max(seen) <= BOXES_MAX, seen
    first = page.locator(".node-box").first
    name = first.locator(".node-name").inner_text()
    first.click()
    expect(page.get_by_role("complementary", name=f"Node {name}", exact=True)).to_contain_text(
        "COMPLETED"
    )
    page.get_by_role("button", name="Close all groups").click()
    expect(page.locator(".node-box")).to_have_count(0)
    assert boxes(page).count() <= FIRST_BOXES


def test_the_address_brings_a_node_to_light(page: Page, caller: Caller, large: str) -> None:
    open_execution(page, caller, large, "?node=n57.3")
    expect(box(page, "n57.3")).to_have_class(having("selected"))
    expect(box(page, "n57.3")).to_be_in_viewport()
    expect(page.get_by_role("complementary", name="Node n57.3")).to_contain_text("n56.3, n56.4")
    assert boxes(page).count() <= BOXES_MAX


def test_a_node_is_found_by_its_name(page: Page, caller: Caller, large: str) -> None:
    open_execution(page, caller, large, "?tab=nodes")
    expect(page.get_by_role("button", name=re.compile(r"COMPLETED\s*10000"))).to_be_visible()
    assert page.locator(".node-row").count() <= ROWS_MAX
    page.get_by_role("searchbox", name="Find a node or handler").fill("n57.3")
    expect(page.locator(".node-row")).to_have_count(11)  # n57.30 to n57.39 too
    page.locator(".node-row", has=page.get_by_text("n57.3", exact=True)).click()
    expect(page.get_by_role("complementary", name="Node n57.3")).to_contain_text("noop")
    expect(page).to_have_url(re.compile("node=n57.3"))


def test_the_time_line_draws_what_is_looked_at(page: Page, caller: Caller, large: str) -> None:
    open_execution(page, caller, large, "?tab=time")
    expect(page.locator(".time-row").first).to_be_visible()
    assert page.locator(".time-row").count() <= ROWS_MAX
    page.get_by_role("region", name="Time line").evaluate(
        "each => each.scrollTo(0, each.scrollHeight)"
    )
    expect(page.locator(".time-row", has_text=re.compile("^n99"))).not_to_have_count(0)
    assert page.locator(".time-row").count() <= ROWS_MAX


def test_a_live_run_of_a_thousand_ends_with_the_right_counts(
    page: Page, caller: Caller, service: Running, shop: Shop
) -> None:
    name = caller.start(layers("thousand", 100, 10, first="step"))
    page.goto(f"{caller.address}/ui/executions/{name}?tab=nodes")
    expect(page.get_by_role("button", name=re.compile(r"RUNNING\s*10$"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile(r"PENDING\s*990$"))).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    service.call(shop.let(*(f"n0.{w}" for w in range(10))))
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    expect(page.get_by_role("button", name=re.compile(r"COMPLETED\s*1000$"))).to_be_visible()
    expect(page.locator(".chip")).to_have_count(1)
    page.get_by_role("tab", name="Graph").click()
    expect(page.get_by_role("img", name="50 completed")).to_have_count(20)


def test_the_first_load_is_small(page: Page, caller: Caller, large: str) -> None:
    finished: dict[str, int] = {}
    page.on(
        "requestfinished",
        lambda request: finished.update({request.url: request.sizes()["responseBodySize"]}),
    )
    open_execution(page, caller, large)
    expect(page.locator(".group-box").first).to_be_visible()
    files = {url: size for url, size in finished.items() if "/ui/" in url and "elk" not in url}
    assert any("GraphView" in url for url in files)
    assert sum(files.values()) <= FILES_BYTES_MAX, files
