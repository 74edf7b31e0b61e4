"""The page of an execution: live, to the cause of a failure in one click, and to its mending."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from penstock.worker.registry import Registry
from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box, having
from tests.ui.shop import ORDER, SLOW, Shop


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def service(tmp_path: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("BANK", "canary-of-the-bank")
    monkeypatch.setenv("PENSTOCK_SECRET_BANK", "canary-of-the-bank")
    with running_service(tmp_path, shop.registry) as running:
        yield running


def start(
    service: Running,
    document: dict[str, Any],
    input_value: dict[str, Any] | None = None,
    wait: int = 0,
) -> str:
    caller = Caller(service.address)
    assert caller.post("/workflows", document).status in {200, 201}
    body = {"workflow": document["name"], "input": input_value or {}}
    answer = (
        caller.post("/executions", body, wait=wait) if wait else caller.post("/executions", body)
    )
    assert answer.status == 201, answer
    return str(answer.body["execution_id"])


def test_a_live_run_is_watched_to_its_end(page: Page, service: Running, shop: Shop) -> None:
    name = start(service, SLOW)
    page.goto(f"{service.address}/ui/executions/{name}")
    expect(box(page, "first")).to_have_class(having("state-running"))
    expect(box(page, "second")).to_have_class(having("state-pending"))
    service.call(shop.let("first"))
    expect(box(page, "first")).to_have_class(having("state-completed"))
    expect(box(page, "second")).to_have_class(having("state-running"))
    service.call(shop.let("second"))
    expect(box(page, "third")).to_have_class(having("state-completed"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    page.get_by_role("tab", name="Time line").click()
    expect(page.locator(".time-row")).to_have_count(3)
    page.get_by_role("tab", name="History").click()
    expect(page.locator("tbody tr").last).to_contain_text("COMPLETED")
    page.get_by_role("tab", name="Input and result").click()
    expect(page.get_by_text("third").first).to_be_visible()


def test_the_tokens_of_language_models_are_beside_the_duration(page: Page, tmp_path: Any) -> None:
    ask = {"prompt": "one two three", "model": "m"}
    nodes = [{"id": name, "handler": "llm_service", "config": ask} for name in ("a", "b")]
    with running_service(tmp_path, Registry(), mock_services=True) as service:
        name = start(service, {"name": "asks", "nodes": nodes}, wait=20)
        page.goto(f"{service.address}/ui/executions/{name}")
        tokens = page.get_by_text("20 tokens")
        expect(tokens).to_have_attribute("title", "6 in prompts, 14 in answers")


def test_the_cause_of_a_failure_is_one_click_away(page: Page, service: Running) -> None:
    name = start(service, ORDER, {"amount": 1299}, wait=20)
    page.goto(f"{service.address}/ui/executions/{name}")
    cause = page.locator(".cause")
    expect(cause).to_contain_text("pay failed")
    expect(cause).to_contain_text("the bank refused the card")
    cause.get_by_role("button", name="Open the node").click()
    panel = page.get_by_role("complementary", name="Node pay")
    expect(panel).to_contain_text("the bank refused the card")
    expect(page).to_have_url(re.compile("node=pay"))
    panel.get_by_role("tab", name="Config").click()
    expect(panel).to_contain_text("1299")
    expect(panel).to_contain_text("Bearer {{ secrets.BANK }}")
    panel.get_by_role("tab", name="Logs").click()
    expect(panel).to_contain_text("asks the bank for 1299")
    assert "canary-of-the-bank" not in page.content()


def test_a_skipped_branch_says_why(page: Page, service: Running, shop: Shop) -> None:
    shop.broken = False
    name = start(service, ORDER, {"amount": 5}, wait=20)
    page.goto(f"{service.address}/ui/executions/{name}")
    box(page, "gift").click()
    expect(page.get_by_role("complementary", name="Node gift")).to_contain_text(
        "Condition is false: cart.items > 5"
    )
    expect(box(page, "gift")).to_have_class(having("state-skipped"))


def test_an_output_is_searched_copied_and_downloaded(
    page: Page, service: Running, shop: Shop
) -> None:
    shop.broken = False
    name = start(service, ORDER, {"amount": 77}, wait=20)
    page.goto(f"{service.address}/ui/executions/{name}?node=pay")
    panel = page.get_by_role("complementary", name="Node pay")
    panel.get_by_role("tab", name="Output").click()
    panel.get_by_role("searchbox").fill("77")
    expect(panel.get_by_text("1 match")).to_be_visible()
    panel.get_by_role("button", name="Copy output of pay").click()
    assert page.evaluate("navigator.clipboard.readText()") == '{\n  "paid": 77\n}'
    with page.expect_download() as download:
        panel.get_by_role("button", name="Download output of pay").click()
    assert download.value.suggested_filename == "output_of_pay.json"


def test_a_retry_is_drawn_before_it_is_made(page: Page, service: Running, shop: Shop) -> None:
    name = start(service, ORDER, {"amount": 100}, wait=20)
    page.goto(f"{service.address}/ui/executions/{name}")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("nodes run again in a new execution")).to_be_visible()
    expect(box(page, "pay")).to_have_class(having("again"))
    expect(box(page, "cart")).to_have_class(having("reused"))
    shop.broken = False
    shop.began.clear()
    page.get_by_role("button", name=re.compile(r"^Run \d nodes$")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    assert "cart" not in shop.began, "what completed is reused"
    page.get_by_role("link", name="retry of an earlier execution").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("FAILED")
    expect(page.get_by_role("link", name="retried as a later execution")).to_be_visible()


def test_a_retry_can_begin_at_a_node(page: Page, service: Running, shop: Shop) -> None:
    shop.broken = False
    name = start(service, ORDER, {"amount": 100}, wait=20)
    page.goto(f"{service.address}/ui/executions/{name}?retry=yes")
    page.get_by_label("Also rerun from this node").select_option("stock")
    expect(box(page, "stock")).to_have_class(having("again"))
    expect(box(page, "ship")).to_have_class(having("again"))
    expect(box(page, "pay")).to_have_class(having("reused"))


def test_a_running_execution_is_paused_resumed_and_cancelled(
    page: Page, service: Running, shop: Shop
) -> None:
    name = start(service, SLOW)
    page.goto(f"{service.address}/ui/executions/{name}")
    heading = page.get_by_role("heading", level=1)
    page.get_by_role("button", name="Pause").click()
    expect(heading).to_contain_text("PAUSED")
    page.get_by_role("button", name="Resume").click()
    expect(heading).to_contain_text("RUNNING")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the execution").click()
    expect(heading).to_contain_text("CANCELLED")
    expect(box(page, "first")).to_have_class(having("state-cancelled"))


def test_an_unknown_execution_says_so(page: Page, service: Running) -> None:
    page.goto(f"{service.address}/ui/executions/nothing-like-it")
    expect(page.get_by_role("alert")).to_contain_text("there is no execution 'nothing-like-it'")


def test_a_node_that_the_execution_gains_while_it_runs_appears(
    page: Page, service: Running, shop: Shop
) -> None:
    name = start(service, {**SLOW, "name": "gains"})

    def before_the_second_node(route: Route) -> None:
        """The graph as the server would have had it before the execution gained its later nodes."""
        answer = route.fetch()
        graph = answer.json()
        graph["nodes"] = [
            graph_node for graph_node in graph["nodes"] if graph_node["id"] == "first"
        ]
        graph["edges"] = []
        route.fulfill(response=answer, json=graph)

    page.route("**/graph", before_the_second_node, times=1)
    page.goto(f"{service.address}/ui/executions/{name}")
    expect(box(page, "first")).to_have_class(having("state-running"))
    expect(page.locator(".node-box")).to_have_count(1)
    service.call(shop.let("first"))
    expect(box(page, "second")).to_have_class(having("state-running"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("RUNNING")
    # no event names it: the graph was read again
    expect(box(page, "third")).to_have_class(having("state-pending"))
    expect(page.locator(".react-flow__edge")).to_have_count(2)
    service.call(shop.let("second"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    expect(page.locator(".node-box.state-completed")).to_have_count(3)
