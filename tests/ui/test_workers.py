"""Workers and queues: who is alive, what each runs, what waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.shop import SLOW, Shop, node
from tests.waiting import until_now


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def service(tmp_path: Any, shop: Shop) -> Iterator[Running]:
    with running_service(tmp_path, shop.registry, worker_concurrency=1) as running:
        yield running


@pytest.fixture
def caller(service: Running) -> Caller:
    return Caller(service.address)


def open_workers(page: Page, caller: Caller) -> None:
    page.goto(f"{caller.address}/ui/workers")
    expect(page.get_by_role("heading", level=1)).to_have_text("Workers")


def queue(page: Page, name: str) -> Locator:
    return page.get_by_role("row", name=re.compile(rf"^{name} "))


def counts(caller: Caller) -> dict[str, tuple[int, int]]:
    """By queue: what waits and what runs."""
    return {
        queue["queue"]: (queue["waiting"], queue["running"]) for queue in caller.items("/queues")
    }


def test_a_worker_shows_what_it_runs_and_the_way_there(
    page: Page, caller: Caller, service: Running, shop: Shop
) -> None:
    name = caller.start(SLOW)
    until_now(lambda: shop.began == ["first"])
    worker = caller.items("/workers")[0]
    open_workers(page, caller)
    card = (
        page.get_by_role("list", name="Workers")
        .get_by_role("listitem")
        .filter(has_text=worker["worker_id"])
    )
    expect(card.first).to_contain_text("runs 1")
    task = card.get_by_role("list", name=f"Tasks of {worker['worker_id']}").get_by_role("listitem")
    expect(task).to_have_count(1)
    expect(task).to_contain_text(re.compile(r"slow › first\s*step\s*\d"))
    service.call(shop.let("first"))
    expect(task).to_contain_text("slow › second")  # by itself
    task.get_by_role("link", name="slow › second").click()
    expect(page).to_have_url(f"{caller.address}/ui/executions/{name}?node=second")
    expect(page.get_by_role("complementary", name="Node second")).to_contain_text("RUNNING")
    service.call(shop.let("second"))
    caller.until_state(name, "COMPLETED")
    open_workers(page, caller)
    expect(card.first).to_contain_text("idle")
    expect(task).to_have_count(0)


def test_what_waits_in_a_queue_is_counted(
    page: Page, caller: Caller, service: Running, shop: Shop
) -> None:
    caller.store({"name": "one", "nodes": [node("only", config={"waits": True})]})
    names = [caller.start("one") for _ in range(3)]
    until_now(lambda: counts(caller) == {"step": (2, 1)}, "one runs, two wait")
    open_workers(page, caller)
    expect(queue(page, "step").get_by_role("cell")).to_have_text(["step", "2", "1", "1"])
    service.call(shop.let("only"))
    for name in names:
        caller.until_state(name, "COMPLETED")
    expect(page.locator(".workers-waiting")).to_have_count(0)  # by itself


def test_orchestrators_and_their_partitions_are_shown(page: Page, caller: Caller) -> None:
    owner = caller.items("/orchestrators")[0]
    open_workers(page, caller)
    row = page.get_by_role("row", name=re.compile(re.escape(owner["name"])))
    expect(row).to_be_visible()
    owned = len(owner["partitions"])
    expect(page.get_by_text(f"{owned} partition{'' if owned == 1 else 's'} owned")).to_be_visible()


def test_a_queue_that_nobody_serves_says_what_to_start(
    page: Page, caller: Caller, service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert service.engine is not None
    # else it takes every queue there is
    monkeypatch.setattr(service.engine.worker, "serve", lambda queues: None)
    caller.start({"name": "gpu", "nodes": [node("a", "noop", queue="gpu")]})
    until_now(lambda: counts(caller).get("gpu") == (1, 0))
    open_workers(page, caller)
    expect(queue(page, "gpu").get_by_role("cell")).to_have_text(["gpu", "1", "0", "0"])
    expect(
        page.get_by_text("No worker serves gpu. Start one: penstock worker --queues gpu")
    ).to_be_visible()


def test_a_handler_that_no_worker_of_the_queue_has_is_said_there_and_on_the_node(
    page: Page, caller: Caller
) -> None:
    caller.store(
        {"name": "later", "nodes": [node("a", "painted_later", queue="shared")]},
        allow_unknown_handlers=True,
    )
    name = caller.start("later")
    text = "no live worker of the queue 'shared' has the handler 'painted_later'"
    open_workers(page, caller)
    expect(page.get_by_text(text)).to_be_visible()
    page.goto(f"{caller.address}/ui/executions/{name}?node=a")
    expect(page.get_by_role("complementary", name="Node a")).to_contain_text(text, ignore_case=True)
