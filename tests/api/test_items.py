"""Maps over HTTP: counts, pages of nodes, items as they end, and a retry of those that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.blocking import SyncClient
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.api.caller import Caller
from tests.api_server import running_service

ONCE = {"max_attempts": 1}


class Shop:
    """A service whose handler `pay` fails for the items that are `broke`."""

    def __init__(self) -> None:
        self.broke: set[str] = set()
        self.keys: list[tuple[str, str]] = []
        """Names and idempotency keys, in the order of calls."""

    def pay(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        name = ctx.item["name"]
        self.keys.append((name, ctx.idempotency_key.partition(":")[2]))
        if name in self.broke:
            raise RuntimeError(f"{name} is broke")
        return {"paid": name, "index": ctx.index, "config": config}


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> Iterator[Caller]:
    registry = Registry([Handler("pay", shop.pay)])
    with running_service(tmp_path_factory.mktemp("items"), registry) as service:
        yield Caller(service.address)


def bill(names: list[str], **fields: Any) -> dict[str, Any]:
    """A payment for each name, by single nodes."""
    each = {
        "id": "each",
        "for_each": "{{ input.people }}",
        "key": "{{ item.name }}",
        "handler": "pay",
        "retry": ONCE,
        "config": {"to": "{{ item.name }}"},
        **fields,
    }
    people = [{"name": name} for name in names]
    return {"definition": {"name": "bill", "nodes": [each]}, "input": {"people": people}}


def started(api: Caller, request: dict[str, Any]) -> str:
    answer = api.post("/executions", request)
    assert answer.status == 201, answer
    return str(answer.body["execution_id"])


def test_an_execution_shows_a_map_as_one_node_with_counts(api: Caller, shop: Shop) -> None:
    shop.broke = {"bo"}
    execution_id = started(api, bill(["al", "bo", "cy"], on_item_failure="continue"))
    view = api.until_state(execution_id, "FAILED")
    assert list(view["nodes"]) == ["each"]
    each = view["nodes"]["each"]
    assert each["items"] == {
        "total": 3, "open": 0, "completed": 2, "failed": 1, "skipped": 0, "cancelled": 0,
    }  # fmt: skip
    assert each["error"]["category"] == "items"
    nodes = api.items(f"/executions/{execution_id}/nodes", under="each", limit=2)
    assert [(node["node_id"], node["state"]) for node in nodes] == [
        ("each[0]", "COMPLETED"),
        ("each[1]", "FAILED"),
        ("each[2]", "COMPLETED"),
    ]
    [failed] = api.items(f"/executions/{execution_id}/nodes", under="each", state="FAILED")
    assert failed["error"]["message"] == "RuntimeError: bo is broke"
    assert [node["node_id"] for node in api.items(f"/executions/{execution_id}/nodes")] == ["each"]


def test_a_node_inside_of_an_item_can_be_looked_at(api: Caller, shop: Shop) -> None:
    shop.broke = set()
    nodes = [
        {"id": "one", "handler": "pay", "config": {"to": "{{ item.name }}"}},
        {"id": "two", "handler": "echo", "config": {"was": "{{ one.paid }}"}},
    ]
    each = {"id": "each", "for_each": [{"name": "al"}], "nodes": nodes}
    view = api.ended({"name": "inside", "nodes": [each]})
    execution_id = view["execution_id"]
    assert view["output"] == {"each": [{"was": "al"}]}
    node = api.shown(f"/executions/{execution_id}/nodes/each%5B0%5D.two")
    assert node["node_id"] == "each[0].two"
    assert node["dependencies"] == ["each[0].one"]
    assert node["output"] == {"was": "al"}
    assert (node["resolved_config"], node["unresolved"]) == ({"was": "al"}, None)
    first = api.shown(f"/executions/{execution_id}/nodes/each%5B0%5D.one")
    assert first["resolved_config"] == {"to": "al"}
    assert api.get(f"/executions/{execution_id}/nodes/each%5B0%5D.three").status == 404


def test_items_come_as_lines_in_the_order_of_their_ends(api: Caller, shop: Shop) -> None:
    shop.broke = set()
    execution_id = started(api, bill(["al", "bo"], max_parallel=1))
    with SyncClient(api.address) as client:
        lines = list(client.execution(execution_id).items("each", follow=True))
        assert [(line["index"], line["key"], line["state"]) for line in lines] == [
            (0, "al", "COMPLETED"),
            (1, "bo", "COMPLETED"),
        ]
        assert lines[1]["output"]["paid"] == "bo"
        assert list(client.execution(execution_id).items("each")) == lines
        under = client.execution(execution_id).nodes(under="each")
        assert [node["node_id"] for node in under] == ["each[0]", "each[1]"]
    target = f"/api/v1/executions/{execution_id}/nodes/each/items?after={lines[0]['seq']}"
    answer = api.send("GET", target)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert json.loads(answer.body)["index"] == 1
    assert api.get(f"/executions/{execution_id}/nodes/none/items").status == 404


def test_a_retry_runs_the_items_that_failed_and_keeps_the_others(api: Caller, shop: Shop) -> None:
    shop.broke = {"bo"}
    execution_id = started(api, bill(["al", "bo", "cy"], on_item_failure="continue"))
    api.until_state(execution_id, "FAILED")
    preview = api.post(f"/executions/{execution_id}/retry", {"preview": True})
    assert preview.body["runs"] == [
        {
            "node_id": "each",
            "reason": "1 of 3 items have to run",
            "items": {"runs": 1, "keeps": 2, "sample": ["each[1]"], "decided_again": False},
        }
    ]
    shop.broke = set()
    shop.keys.clear()
    retry = api.post(f"/executions/{execution_id}/retry")
    view = api.until_state(retry.body["execution_id"], "COMPLETED")
    assert shop.keys == [("bo", "each#bo")]
    assert [item["paid"] for item in view["output"]["each"]] == ["al", "bo", "cy"]


def test_a_retry_may_name_an_item(api: Caller, shop: Shop) -> None:
    shop.broke = set()
    execution_id = started(api, bill(["al", "bo"]))
    api.until_state(execution_id, "COMPLETED")
    shop.keys.clear()
    refused = api.post(f"/executions/{execution_id}/retry", {"from": "each[0].none"})
    assert refused.status == 404
    retry = api.post(f"/executions/{execution_id}/retry", {"from": "each[1]"})
    view = api.until_state(retry.body["execution_id"], "COMPLETED")
    assert [name for name, _ in shop.keys] == ["bo"]
    assert len(view["output"]["each"]) == 2
