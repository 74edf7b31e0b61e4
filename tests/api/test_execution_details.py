"""The document and all logs of an execution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.service import execution_logs
from tests.api.caller import Caller, assert_problem
from tests.api_server import Running, running_service
from tests.ui.shop import ORDER, SLOW, Shop
from tests.waiting import until_now


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> Iterator[Running]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PENSTOCK_SECRET_BANK", "canary")
    with running_service(tmp_path_factory.mktemp("details"), shop.registry) as running:
        yield running
    patch.undo()


@pytest.fixture
def api(service: Running) -> Caller:
    return Caller(service.address)


def logged(api: Caller, execution_id: str, **query: Any) -> list[tuple[str, int, str]]:
    items = api.items(f"/executions/{execution_id}/logs", **query)
    return [
        (item["node_id"], item["attempt"], item["text"].strip().splitlines()[-1]) for item in items
    ]


@pytest.fixture
def paid(shop: Shop) -> Iterator[None]:
    """Payments succeed: a failed one stops the nodes that run beside it, maybe before they log."""
    shop.broken = False
    yield
    shop.broken = True


@pytest.mark.usefixtures("paid")
def test_all_logs_come_in_the_order_in_which_nodes_began(api: Caller) -> None:
    execution_id = api.ended(ORDER, input={"amount": 7})["execution_id"]
    logs = logged(api, execution_id)
    assert {node_id for node_id, _, _ in logs} == {"cart", "stock", "pay", "ship"}
    assert logs[0][0] == "cart"
    assert logs[-1][0] == "ship"
    assert logs[0][2].endswith("cart begins")
    assert logged(api, execution_id, limit=1) == logs


@pytest.mark.usefixtures("paid")
def test_a_page_of_logs_ends_after_so_many_bytes(
    api: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id = api.ended(ORDER, input={"amount": 7})["execution_id"]
    monkeypatch.setattr(execution_logs, "PAGE_BYTES", 1)
    page = api.shown(f"/executions/{execution_id}/logs")
    assert len(page["items"]) == 1
    assert page["next_cursor"] is not None
    assert len(logged(api, execution_id)) == 4


def test_the_log_of_a_running_attempt_is_there_and_marked(
    api: Caller, service: Running, shop: Shop
) -> None:
    execution_id = api.start(SLOW)

    def live() -> list[dict[str, Any]]:
        items = api.items(f"/executions/{execution_id}/logs")
        return [item for item in items if item["live"]]

    (item,) = until_now(live, "the running node has a log")
    assert item["node_id"] == "first"
    assert item["text"].strip().endswith("first begins")
    service.call(shop.let("first", "second"))
    api.until_state(execution_id, "COMPLETED")
    assert [node_id for node_id, _, _ in logged(api, execution_id)] == ["first", "second", "third"]
    assert live() == []


def test_the_document_of_an_execution_is_shown_also_of_an_inline_one(api: Caller) -> None:
    inline = {"name": "once", "nodes": [{"id": "a", "handler": "echo", "config": {"n": 1.5}}]}
    execution_id = api.ended(inline)["execution_id"]
    answer = api.shown(f"/executions/{execution_id}/definition")
    assert answer["definition"] == inline
    assert (answer["workflow"], answer["stored"]) == ("once", False)

    kept = {**inline, "name": "kept"}
    api.store(kept)
    execution_id = api.ended("kept")["execution_id"]
    assert api.shown(f"/executions/{execution_id}/definition")["stored"] is True
    assert api.delete("/workflows/kept").status == 204
    answer = api.shown(f"/executions/{execution_id}/definition")
    assert answer["stored"] is False
    assert answer["definition"] == kept


def test_an_unknown_execution_is_said_so(api: Caller) -> None:
    assert_problem(api.get("/executions/nobody/logs"), 404, "not_found")
    assert_problem(api.get("/executions/nobody/definition"), 404, "not_found")
