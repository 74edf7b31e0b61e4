"""Signals over HTTP: stored when they are answered, taken once, refused if nobody can take them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem
from tests.api.gates import GatedService, gated_service
from tests.waiting import until_now


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("signals")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def order(**config: Any) -> dict[str, Any]:
    """A workflow that waits for a payment."""
    paid = {"id": "paid", "handler": "signal", "config": {"name": "paid", **config}}
    ship = {"id": "ship", "handler": "echo", "config": {"amount": "{{ paid.amount }}"}}
    return {"name": "order", "nodes": [paid, ship]}


def is_waiting(api: Caller, path: str, node_id: str) -> bool:
    return bool(api.shown(path)["nodes"][node_id]["state"] == "WAITING")


def waiting(api: Caller, **config: Any) -> str:
    """An execution that waits for its payment."""
    execution_id = api.start(order(**config))
    path = f"/executions/{execution_id}"
    until_now(lambda: api.shown(path)["nodes"]["paid"]["state"] == "WAITING")
    return execution_id


def test_a_signal_that_a_node_waits_for_is_taken_and_the_execution_goes_on(api: Caller) -> None:
    execution_id = waiting(api)
    body = {"payload": {"amount": 7}}
    answer = api.post(f"/executions/{execution_id}/signals/paid", body)
    assert answer.status == 202
    assert answer.body == {"execution_id": execution_id, "number": 1, "state": "taken"}
    ended = api.until_state(execution_id, "COMPLETED")
    assert ended["output"] == {"ship": {"amount": 7}}
    (item,) = api.items(f"/executions/{execution_id}/signals")
    assert (item["number"], item["state"], item["node_id"]) == (1, "taken", "paid")
    assert item["payload"] == {"amount": 7}


def test_a_signal_that_nobody_waits_for_is_kept_and_unused_at_the_end(api: Caller) -> None:
    execution_id = waiting(api)
    answer = api.post(f"/executions/{execution_id}/signals", {"name": "hello"})
    assert (answer.status, answer.body["state"]) == (202, "kept")
    assert api.items(f"/executions/{execution_id}/signals")[0]["state"] == "kept"
    api.post(f"/executions/{execution_id}/cancel")
    api.until_state(execution_id, "CANCELLED")
    (item,) = api.items(f"/executions/{execution_id}/signals", name="hello")
    assert (item["state"], item["node_id"]) == ("unused", None)
    assert api.items(f"/executions/{execution_id}/signals", name="other") == []


def test_nodes_that_wait_come_in_pages(api: Caller) -> None:
    execution_ids = [waiting(api, correlation="paged") for _ in range(3)]
    paged = api.items("/waits", correlation="paged", limit=1)
    assert [item["execution_id"] for item in paged] == execution_ids


def test_the_same_idempotency_key_is_the_same_signal(api: Caller) -> None:
    execution_id = waiting(api)
    path = f"/executions/{execution_id}/signals/hello"
    key = {"Idempotency-Key": "once"}
    numbers = [api.post(path, {"payload": 1}, key).body["number"] for _ in range(2)]
    assert numbers == [1, 1]
    assert_problem(api.post(path, {"payload": 2}, key), 422, "key_reused")
    assert len(api.items(f"/executions/{execution_id}/signals")) == 1


def test_a_payload_that_does_not_fit_is_refused_while_a_node_waits_for_it(api: Caller) -> None:
    schema = {"type": "object", "required": ["amount"]}
    execution_id = waiting(api, schema=schema)
    path = f"/executions/{execution_id}/signals/paid"
    refused = api.post(path, {"payload": {}})
    assert_problem(refused, 422, "invalid_input")
    assert "amount" in refused.body["detail"]
    assert [problem["path"] for problem in refused.body["problems"]] == ["payload"]
    assert api.items(f"/executions/{execution_id}/signals") == []
    assert api.post(path, {"payload": {"amount": 1}}).body["state"] == "taken"


def test_signals_that_nobody_can_take_are_refused(api: Caller) -> None:
    execution_id = waiting(api)
    path = f"/executions/{execution_id}/signals"
    assert_problem(api.post(path, {"name": " x"}), 422, "invalid_input")
    assert_problem(api.post(path, {"payload": 1}), 422)
    assert_problem(api.post(path, {"name": "x", "payload": "y" * 300_000}), 422, "invalid_input")
    assert_problem(api.post("/executions/nobody/signals/paid"), 404, "not_found")
    assert_problem(api.get("/executions/nobody/signals"), 404, "not_found")
    api.post(f"/executions/{execution_id}/cancel")
    api.until_state(execution_id, "CANCELLED")
    assert_problem(api.post(f"{path}/paid"), 409, "conflict")


def test_a_signal_is_in_the_audit_log(api: Caller) -> None:
    execution_id = waiting(api)
    api.post(f"/executions/{execution_id}/signals/hello")
    lines = api.items("/audit", action="send_signal_by_name", object=f"executions/{execution_id}")
    assert lines[0]["detail"] == {"name": "hello", "number": 1}


def test_a_retry_waits_again_and_gets_the_signals_that_were_kept(api: Caller) -> None:
    confirm = {"id": "confirm", "handler": "signal", "config": {"name": "confirmed"}}
    document = order()
    document["nodes"][1]["depends_on"] = ["paid", "confirm"]
    document["nodes"].append(confirm)
    execution_id = api.start(document)
    path = f"/executions/{execution_id}"
    for name in ("paid", "confirm"):
        until_now(partial(is_waiting, api, path, name))
    api.post(f"{path}/signals/confirmed")
    api.post(f"{path}/signals/later")
    api.post(f"{path}/cancel")
    api.until_state(execution_id, "CANCELLED")

    preview = api.post(f"{path}/retry", {"preview": True}).body
    reasons = {run["node_id"]: run["reason"] for run in preview["runs"]}
    assert reasons["paid"] == "waits again for paid"
    assert preview["keeps"] == ["confirm"]

    retried = api.post(f"{path}/retry").body["execution_id"]
    (item,) = api.items(f"/executions/{retried}/signals")
    assert (item["name"], item["state"]) == ("later", "kept")
    api.post(f"/executions/{retried}/signals/paid", {"payload": {"amount": 1}})
    assert api.until_state(retried, "COMPLETED")["output"] == {"ship": {"amount": 1}}


def test_a_signal_by_correlation_finds_who_waits_and_who_will(api: Caller) -> None:
    first = waiting(api, correlation="order-7")
    (item,) = api.items("/waits", name="paid", correlation="order-7")
    assert (item["execution_id"], item["node_id"], item["names"]) == (first, "paid", ["paid"])
    body = {"correlation": "order-7", "payload": {"amount": 1}}
    posted = api.post("/signals/paid", body)
    assert posted.status == 202
    assert [sent["execution_id"] for sent in posted.body["delivered"]] == [first]
    assert posted.body["is_kept"] is False
    assert api.until_state(first, "COMPLETED")["output"] == {"ship": {"amount": 1}}

    early = api.post("/signals/paid", {"correlation": "order-8", "payload": {"amount": 2}})
    assert early.body == {"delivered": [], "is_kept": True}
    second = api.start(order(correlation="order-8"))
    assert api.until_state(second, "COMPLETED")["output"] == {"ship": {"amount": 2}}
    assert api.items("/waits", correlation="order-8") == []
    assert_problem(api.post("/signals/paid", {"payload": 1}), 422)
