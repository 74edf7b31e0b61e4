"""Maps over HTTP: counts, pages of nodes, items as they end, and a retry of those that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.blocking import SyncClient
from penstock.views.times import parse_moment
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.api.caller import Caller
from tests.api_server import running_service
from tests.waiting import until_now

ONCE = {"max_attempts": 1}
ONE_OF_THREE = {
    "runs": 1,
    "keeps": 2,
    "sample": ["each[1]"],
    "decided_again": False,
    "new": 0,
    "gone": 0,
}
"""In the preview of a retry: of a map of three, the second failed."""


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


def test_the_graph_of_an_item_has_the_nodes_inside_of_it(api: Caller, shop: Shop) -> None:
    shop.broke = {"bo"}
    nodes = [
        {"id": "one", "handler": "pay", "retry": ONCE},
        {"id": "two", "handler": "echo", "dependencies": ["one"]},
    ]
    each = {"id": "each", "for_each": [{"name": "al"}, {"name": "bo"}], "nodes": nodes}
    single = {"id": "single", "for_each": [1], "handler": "echo", "config": {"n": 1}}
    document = {"name": "graphs", "on_failure": "continue", "nodes": [each, single]}
    execution_id = api.ended(document)["execution_id"]
    path = f"/executions/{execution_id}/graph"
    graph = api.shown(f"{path}?under=each%5B1%5D")
    assert [(node["id"], node["state"], node["level"]) for node in graph["nodes"]] == [
        ("each[1].one", "FAILED", 0),
        ("each[1].two", "SKIPPED", 1),
    ]
    assert graph["edges"] == [{"from": "each[1].one", "to": "each[1].two"}]
    assert graph["nodes"][0]["error"] == "RuntimeError: bo is broke"
    (item,) = api.shown(f"{path}?under=single%5B0%5D")["nodes"]
    assert (item["id"], item["handler"], item["state"]) == ("single[0]", "echo", "COMPLETED")
    for address in ("each", "each%5B1%5D.one", "nobody%5B1%5D"):
        assert api.get(f"{path}?under={address}").status == 404, address


def test_a_map_and_a_loop_tell_the_states_of_all_items_in_one_text(api: Caller, shop: Shop) -> None:
    shop.broke = {"bo"}
    ask = {"id": "ask", "handler": "signal", "config": {"name": "go"}, "condition": "index == 2"}
    pay = {"id": "pay", "handler": "pay", "retry": ONCE, "condition": "index != 3"}
    people = [{"name": name} for name in ("al", "bo", "cy", "di")]
    each = {"id": "each", "for_each": people, "on_item_failure": "continue", "nodes": [ask, pay]}
    until = {"until": "round == 2", "max_rounds": 3, "every_seconds": 1e-3}
    loop = {"id": "loop", "handler": "noop", "repeat": until}
    execution_id = api.start({"name": "letters", "nodes": [each, loop]})
    path = f"/executions/{execution_id}/nodes"
    until_now(lambda: states_of(api, f"{path}/each") == "CFWS")
    until_now(lambda: states_of(api, f"{path}/loop") == "CC")
    assert "item_states" not in api.shown(f"{path}/each")
    assert api.shown(f"{path}/each")["items"]["open"] == 1
    api.post(f"/executions/{execution_id}/signals/go")
    api.until_state(execution_id, "FAILED")
    assert states_of(api, f"{path}/each") == "CFCS"


def states_of(api: Caller, path: str) -> str | None:
    """None if the map hasn't begun."""
    states: str | None = api.shown(f"{path}?item_states=true").get("item_states")
    return states


def test_the_graph_says_when_a_node_goes_on_by_itself(api: Caller) -> None:
    nodes = [
        {"id": "nap", "handler": "wait", "config": {"seconds": 7200}},
        {
            "id": "poll",
            "handler": "noop",
            "repeat": {"until": "false", "max_rounds": 9, "every_seconds": 3600},
        },
        {"id": "each", "for_each": [1], "handler": "wait", "config": {"seconds": 3600}},
    ]
    execution_id = api.start({"name": "clocks", "nodes": nodes})
    path = f"/executions/{execution_id}/graph"

    def node(node_id: str) -> dict[str, Any]:
        return next(view for view in api.shown(path)["nodes"] if view["id"] == node_id)

    until_now(lambda: node("nap")["until"] is not None and node("poll")["until"] is not None)
    nap = node("nap")
    assert parse_moment(nap["until"]) == pytest.approx(parse_moment(nap["started_at"]) + 7200)
    assert node("each")["until"] is None
    until_now(lambda: api.shown(f"{path}?under=each%5B0%5D")["nodes"][0]["until"] is not None)
    (round_1,) = api.shown(f"{path}?under=poll%5B1%5D")["nodes"]
    finished_at = parse_moment(round_1["finished_at"])
    assert parse_moment(node("poll")["until"]) == pytest.approx(finished_at + 3600, abs=0.01)


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
            "items": ONE_OF_THREE,
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


def test_a_retry_may_run_all_items_or_only_those_that_failed(api: Caller, shop: Shop) -> None:
    shop.broke = {"bo"}
    execution_id = started(api, bill(["al", "bo", "cy"], on_item_failure="continue"))
    api.until_state(execution_id, "FAILED")

    def planned(**fields: Any) -> Any:
        answer = api.post(f"/executions/{execution_id}/retry", {"preview": True, **fields})
        [run] = answer.body["runs"]
        return run.get("items")

    assert planned(items="failed") == ONE_OF_THREE
    assert planned(**{"from": "each", "items": "failed"}) == ONE_OF_THREE
    assert planned(**{"from": "each"}) is None
    assert planned(items="all") is None
    refused = api.post(f"/executions/{execution_id}/retry", {"items": "some"})
    assert refused.status == 422

    shop.broke = set()
    shop.keys.clear()
    retry = api.post(f"/executions/{execution_id}/retry?items=all")
    api.until_state(retry.body["execution_id"], "COMPLETED")
    assert sorted(name for name, _ in shop.keys) == ["al", "bo", "cy"]


def test_a_preview_says_which_items_a_newer_versions_list_adds_and_lacks(
    api: Caller, shop: Shop
) -> None:
    shop.broke = {"bo"}

    def definition(*names: str) -> dict[str, Any]:
        return {
            "name": "growing",
            "nodes": [
                {
                    "id": "each",
                    "for_each": [{"name": name} for name in names],
                    "key": "{{ item.name }}",
                    "handler": "pay",
                    "retry": ONCE,
                    "on_item_failure": "continue",
                }
            ],
        }

    api.post("/workflows", definition("al", "bo", "cy", "di"))
    execution_id = started(api, {"workflow": "growing"})
    api.until_state(execution_id, "FAILED")
    api.post("/workflows", definition("eve", "bo", "al", "flo", "cy"))

    def planned(version: str) -> Any:
        path = f"/executions/{execution_id}/retry"
        [run] = api.post(path, version=version, preview=True).body["runs"]
        return run["items"]

    assert (planned("same")["new"], planned("same")["gone"]) == (0, 0)
    latest = planned("latest")
    assert latest == {**ONE_OF_THREE, "new": 2, "gone": 1}

    shop.broke = set()
    shop.keys.clear()
    retry = api.post(f"/executions/{execution_id}/retry", {"version": "latest"})
    view = api.until_state(retry.body["execution_id"], "COMPLETED")
    assert sorted(name for name, _ in shop.keys) == ["bo", "eve", "flo"]
    assert [item["paid"] for item in view["output"]["each"]] == ["eve", "bo", "al", "flo", "cy"]
