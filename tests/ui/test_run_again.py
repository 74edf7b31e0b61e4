"""Run again with the same input; retry only where something can be retried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.ui.shop import ORDER, Shop, node


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any, shop: Shop) -> Iterator[Running]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PENSTOCK_SECRET_BANK", "canary")
    with running_service(tmp_path_factory.mktemp("again"), shop.registry) as running:
        yield running
    patch.undo()


@pytest.fixture
def api(service: Running) -> Caller:
    return Caller(service.address)


def heading(page: Page) -> Any:
    return page.get_by_role("heading", level=1)


def test_an_execution_is_run_again_with_its_input_in_the_form(
    page: Page, service: Running, api: Caller, shop: Shop
) -> None:
    shop.broken = False
    api.store(ORDER)
    first = api.ended("order", input={"amount": 5, "size": "large"}, labels={"shop": "Lyon"})
    page.goto(f"{service.address}/ui/executions/{first['execution_id']}")
    expect(page.get_by_role("button", name="Retry", exact=True)).to_have_count(0)  # it completed
    page.get_by_role("button", name="Run again").click()
    dialog = page.get_by_role("dialog", name="Run order@1 again")
    expect(dialog.get_by_label("amount")).to_have_value("5")
    expect(dialog.get_by_label("size")).to_have_value(re.compile("large"))
    dialog.get_by_label("amount").fill("6")
    dialog.get_by_role("button", name="Start").click()
    expect(page).not_to_have_url(re.compile(first["execution_id"]))
    expect(heading(page)).to_contain_text("COMPLETED")
    again = page.url.rpartition("/")[2]
    second = api.shown(f"/executions/{again}")
    assert second["input"] == {"amount": 6, "size": "large"}
    assert second["labels"] == {"shop": "Lyon"}
    assert second["retry_of"] is None
    shop.broken = True


def test_an_inline_document_is_run_again_as_it_was(
    page: Page, service: Running, api: Caller
) -> None:
    inline = {"name": "once", "nodes": [node("a", "echo", config={"n": "{{ input.n }}"})]}
    first = api.ended(inline, input={"n": 1})
    page.goto(f"{service.address}/ui/executions/{first['execution_id']}")
    page.get_by_role("button", name="Run again").click()
    dialog = page.get_by_role("dialog", name="Run once@1 again")
    expect(dialog.get_by_label("Input")).to_have_value(re.compile('"n": 1'))
    dialog.get_by_label("Input").fill('{"n": 2}')
    dialog.get_by_role("button", name="Start").click()
    expect(page).not_to_have_url(re.compile(first["execution_id"]))
    expect(heading(page)).to_contain_text("COMPLETED")
    assert api.get("/workflows/once").status == 404


def test_a_retry_is_offered_once_and_only_for_what_failed(
    page: Page, service: Running, api: Caller, shop: Shop
) -> None:
    shop.broken = True
    failed = api.ended(ORDER, input={"amount": 5})["execution_id"]
    retry = page.get_by_role("button", name="Retry", exact=True)
    page.goto(f"{service.address}/ui/executions/{failed}")
    expect(retry).to_be_visible()
    shop.broken = False
    again = api.post(f"/executions/{failed}/retry").body["execution_id"]
    api.until_state(again, "COMPLETED")
    page.reload()
    expect(page.get_by_role("link", name="retried as a later execution")).to_be_visible()
    expect(retry).to_have_count(0)
    page.goto(f"{service.address}/ui/executions/{again}")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    expect(retry).to_have_count(0)
    # a node of what completed can be run again, with what comes after it
    box(page, "ship").click()
    page.get_by_role("button", name="Retry from this node").click()
    expect(page.get_by_role("button", name=re.compile(r"^Run \d nodes$"))).to_be_visible()
    shop.broken = True


def test_an_optional_node_that_failed_can_be_retried(
    page: Page, service: Running, api: Caller
) -> None:
    nodes = [node("a", "noop"), node("b", "fail", ("a",), optional=True)]
    ended = api.ended({"name": "half", "nodes": nodes})
    assert ended["state"] == "COMPLETED"
    page.goto(f"{service.address}/ui/executions/{ended['execution_id']}")
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
