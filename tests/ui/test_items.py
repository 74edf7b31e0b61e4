"""A map in the UI: one box with its counts, its items as squares, an item's nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.ui.shop import Shop

BODY = [
    {"id": "check", "handler": "fail", "condition": "item == 7", "retry": {"max_attempts": 1}},
    {"id": "tell", "handler": "noop", "trigger_rule": "none_failed", "depends_on": ["check"]},
]
MAP = {
    "name": "map",
    "nodes": [
        {"id": "each", "for_each": list(range(40)), "on_item_failure": "continue", "nodes": BODY}
    ],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("items"), Shop().registry) as running:
        yield running


def test_a_map_is_one_box_with_its_items_behind_it(page: Page, service: Running) -> None:
    execution_id = Caller(service.address).ended(MAP)["execution_id"]
    page.goto(f"{service.address}/ui/executions/{execution_id}")
    expect(page.locator(".node-box")).to_have_count(1)
    expect(box(page, "each")).to_contain_text("40 of 40, 1 failed")
    box(page, "each").click()
    panel = page.get_by_role("complementary", name="Node each", exact=True)
    panel.get_by_role("tab", name="Items").click()
    expect(panel.locator(".item-square")).to_have_count(40)
    panel.get_by_label("Only failed").check()
    expect(panel.locator(".item-square")).to_have_count(1)
    panel.get_by_role("button", name="each[7] FAILED").click()
    expect(panel.get_by_role("region", name="each[7]")).to_contain_text("each[7].check")
