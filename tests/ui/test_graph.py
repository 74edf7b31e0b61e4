"""A graph that can be read: its size, its place, its conditions, and no jump."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.ui.shop import ORDER, Shop, node
from tests.waiting import until_now

LONG = {
    "name": "long",
    "nodes": [
        node(f"n{number}", "noop", (f"n{number - 1}",) if number else ()) for number in range(14)
    ]
    + [node("bad", "fail", ("n13",)), node("after", "noop", ("bad",))],
}
TEXT_PX_MIN = 11
TEXT_SIZES = """() => {
    const box = document.querySelector('.node-box');
    const zoom = box.getBoundingClientRect().width / box.offsetWidth;
    return [...document.querySelectorAll('.node-name, .node-handler, .edge-condition')]
        .map(each => parseFloat(getComputedStyle(each).fontSize) * zoom);
}"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PENSTOCK_SECRET_BANK", "canary")
    with running_service(tmp_path_factory.mktemp("graph"), Shop().registry) as running:
        yield running
    patch.undo()


@pytest.fixture(scope="module")
def failed(service: Running) -> str:
    return str(Caller(service.address).ended(ORDER, input={"amount": 5})["execution_id"])


@pytest.fixture(scope="module")
def long(service: Running) -> str:
    return str(Caller(service.address).ended(LONG)["execution_id"])


def rectangle(locator: Locator) -> tuple[float, float, float, float]:
    """Left, top, right and bottom."""
    bounds = locator.bounding_box()
    assert bounds is not None
    x, y, width, height = (bounds[side] for side in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def inside(inner: Locator, outer: Locator) -> bool:
    left, top, right, bottom = rectangle(inner)
    frame = rectangle(outer)
    return frame[0] <= left and frame[1] <= top and right <= frame[2] and bottom <= frame[3]


@pytest.mark.parametrize("name", ["failed", "long"])
def test_the_text_is_large_enough_and_the_window_is_used(
    page: Page, service: Running, name: str, request: pytest.FixtureRequest
) -> None:
    page.goto(f"{service.address}/ui/executions/{request.getfixturevalue(name)}")
    expect(page.locator(".node-box").first).to_be_visible()
    until_now(
        lambda: min(page.evaluate(TEXT_SIZES)) >= TEXT_PX_MIN,
        "no text is smaller than 11 px",
        seconds=5,
    )
    _, _, _, bottom = rectangle(page.locator(".graph"))
    assert 900 - 80 < bottom <= 900


def test_a_graph_is_fitted_again_when_the_panel_opens(page: Page, service: Running) -> None:
    names = ("one", "two", "three")
    nodes = [node("one", "noop"), node("two", "noop", ("one",)), node("three", "noop", ("two",))]
    ended = Caller(service.address).ended({"name": "short", "nodes": nodes})
    page.goto(f"{service.address}/ui/executions/{ended['execution_id']}")
    frame = page.locator(".graph")
    expect(box(page, "three")).to_be_visible()

    def all_inside() -> bool:
        return all(inside(box(page, name), frame) for name in names)

    until_now(all_inside, "the whole graph is in the frame", seconds=5)
    box(page, "three").click()
    expect(page.get_by_role("complementary", name="Node three")).to_be_visible()
    until_now(all_inside, "it still is, beside the panel", seconds=5)


def test_the_chosen_node_stays_in_view_when_the_panel_takes_its_place(
    page: Page, service: Running, failed: str
) -> None:
    page.goto(f"{service.address}/ui/executions/{failed}")
    box(page, "output").click()
    expect(page.get_by_role("complementary", name="Node output")).to_be_visible()
    until_now(
        lambda: inside(box(page, "output"), page.locator(".graph")),
        "the chosen node is in the frame",
        seconds=5,
    )


def test_the_failed_node_is_in_view_on_a_phone(page: Page, service: Running, long: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{service.address}/ui/executions/{long}")
    expect(box(page, "bad")).to_be_visible()
    until_now(
        lambda: inside(box(page, "bad"), page.locator(".graph")),
        "the failed node is in the frame",
        seconds=5,
    )
    page.set_viewport_size({"width": 1440, "height": 900})


def test_a_condition_stands_on_its_edge(page: Page, service: Running, failed: str) -> None:
    for path in (f"/executions/{failed}", "/workflows/order"):
        if path == "/workflows/order":
            Caller(service.address).store(ORDER)
        page.goto(f"{service.address}/ui{path}")
        condition = page.locator(".edge-condition")
        expect(condition).to_have_text("cart.items > 5")
        expect(condition).to_have_attribute("title", "Runs only if cart.items > 5")
        assert inside(condition, page.locator(".graph"))


def test_nothing_is_drawn_before_it_has_its_place(
    page: Page, service: Running, failed: str
) -> None:
    held: list[Route] = []
    page.route("**/elk-worker*", lambda route: held.append(route))  # noqa: PLW0108 -- a method has no room for Playwright's mark
    page.goto(f"{service.address}/ui/executions/{failed}")
    expect(page.locator(".graph .loading")).to_be_visible()
    expect(page.locator(".node-box")).to_have_count(0)
    until_now(lambda: held, "elk is asked for", seconds=5)
    for route in held:
        route.continue_()
    expect(box(page, "pay")).to_be_visible()
    places = [rectangle(box(page, name)) for name in ("cart", "pay", "ship")]
    page.unroute("**/elk-worker*")
    expect(page.locator(".graph .loading")).to_have_count(0)
    assert [rectangle(box(page, name)) for name in ("cart", "pay", "ship")] == places


def test_a_graph_is_shown_in_columns_if_the_layout_never_comes(
    page: Page, service: Running, failed: str
) -> None:
    page.route("**/elk-worker*", lambda route: None)
    page.goto(f"{service.address}/ui/executions/{failed}")
    expect(box(page, "pay")).to_be_visible()
    page.unroute("**/elk-worker*")


def test_the_clock_of_the_history_has_24_hours_and_names_its_zone_once(
    page: Page, service: Running, failed: str
) -> None:
    page.add_init_script(
        "const original = Date.prototype.toLocaleTimeString;"
        "Date.prototype.toLocaleTimeString = function (_, options) {"
        " return original.call(this, 'en-US', options) };"
    )
    page.goto(f"{service.address}/ui/executions/{failed}?tab=history")
    first = page.locator("tbody time").first
    expect(first).to_have_text(re.compile(r"^\d\d:\d\d:\d\d\.\d{3}$"))
    expect(page.get_by_role("columnheader", name="Time")).to_have_text(
        re.compile(r"^Time \((CET|CEST|GMT\+[12])\)$")
    )
