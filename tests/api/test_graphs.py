"""Graphs over HTTP, of a version and of an execution.

An execution's graph says how far it is and from where to follow its events.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api.caller import PATIENCE_SECONDS, Caller, assert_problem, document, failing
from tests.api.gates import GatedService, gated, gated_service

GRAPH_NODE = {
    "id",
    "handler",
    "state",
    "reason",
    "level",
    "attempt",
    "queued_at",
    "started_at",
    "finished_at",
    "error",
    "condition",
    "optional",
    "until",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("graphs")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def graph_of(api: Caller, execution_id: str) -> dict[str, Any]:
    graph: dict[str, Any] = api.shown(f"/executions/{execution_id}/graph")
    return graph


def events_after(api: Caller, execution_id: str, seq: int) -> list[dict[str, Any]]:
    """The lines of an execution's stream of events, read to its end."""
    connection = http.client.HTTPConnection(urlsplit(api.address).netloc, timeout=PATIENCE_SECONDS)
    connection.request("GET", f"/api/v1/executions/{execution_id}/events?after={seq}")
    text = connection.getresponse().read().decode()
    connection.close()
    events = [
        json.loads(line.removeprefix("data: "))
        for line in text.splitlines()
        if line.startswith("data: ")
    ]
    return [line for line in events if "seq" in line]


def test_every_node_shows_how_far_it_has_come(api: Caller) -> None:
    written = failing("come", message="no luck")
    written["nodes"].append(
        {"id": "extra", "handler": "noop", "dependencies": ["a"], "optional": True}
    )
    ended = api.ended(written)
    graph = graph_of(api, ended["execution_id"])
    assert graph.keys() == {"execution_id", "state", "seq", "nodes", "edges"}
    assert (graph["execution_id"], graph["state"]) == (ended["execution_id"], "FAILED")
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert all(node.keys() == GRAPH_NODE for node in graph["nodes"])
    times = ("queued_at", "started_at", "finished_at")
    for name in ("a", "bad"):
        assert [nodes[name][field] for field in times] == [
            ended["nodes"][name][field] for field in times
        ]
        assert all(nodes[name][field] for field in times)
    assert (nodes["bad"]["attempt"], nodes["bad"]["error"]) == (1, "no luck")
    assert (nodes["a"]["attempt"], nodes["a"]["error"], nodes["a"]["optional"]) == (1, None, False)
    assert (nodes["after"]["attempt"], nodes["after"]["queued_at"], nodes["after"]["level"]) == (
        0,
        None,
        2,
    )
    assert nodes["extra"]["optional"]


@pytest.mark.parametrize(
    ("length", "shown"), [(300, "x" * 300), (301, "x" * 299 + "…"), (20_000, "x" * 299 + "…")]
)
def test_a_long_error_is_cut_where_the_graph_shows_it(api: Caller, length: int, shown: str) -> None:
    execution_id = api.ended(failing("long-error", message="x" * length))["execution_id"]
    assert {node["id"]: node["error"] for node in graph_of(api, execution_id)["nodes"]}[
        "bad"
    ] == shown


def test_an_error_that_was_overcome_is_not_shown(api: Caller) -> None:
    retry = {"max_attempts": 3, "initial_delay_seconds": 0.01, "jitter_seconds": 0}
    node = {"id": "tries", "handler": "tell", "config": {"until": 2}, "retry": retry}
    execution_id = api.ended({"name": "overcome", "nodes": [node]})["execution_id"]
    (shown_node,) = graph_of(api, execution_id)["nodes"]
    assert (shown_node["state"], shown_node["attempt"], shown_node["error"]) == (
        "COMPLETED",
        2,
        None,
    )


def test_a_graph_and_the_events_after_it_have_every_change_exactly_once(
    server: GatedService,
) -> None:
    api, gates = server.api, [f"g{number}" for number in range(6)]
    execution_id = api.start(gated("carried-on", *gates))
    taken: list[dict[str, Any]] = []
    for gate in gates:
        server.gates.until_asked(f"carried-on {gate}")
        taken.append(graph_of(api, execution_id))
        server.gates.open(f"carried-on {gate}")
    api.until_state(execution_id, "COMPLETED")
    history = api.items(f"/executions/{execution_id}/history")
    assert len({graph["seq"] for graph in taken}) > 3, "they were taken at different times"
    for graph in [*taken, graph_of(api, execution_id)]:
        states = {node["id"]: node["state"] for node in graph["nodes"]} | {None: graph["state"]}
        assert states == replayed(gates, history[: graph["seq"]])
        later = [line["seq"] for line in events_after(api, execution_id, graph["seq"])]
        assert later == list(range(graph["seq"] + 1, len(history) + 1))


def replayed(nodes: list[str], history: list[dict[str, Any]]) -> dict[str | None, str]:
    """The states after these lines."""
    states: dict[str | None, str] = {None: "PENDING", **dict.fromkeys(nodes, "PENDING")}
    for line in history:
        assert states[line["node_id"]] == line["from"]
        states[line["node_id"]] = line["to"]
    return states


def test_the_graph_of_a_version_has_what_decides_over_each_node(api: Caller) -> None:
    written = document("drawn", {"a": "", "b": "a", "c": "a b"})
    written["nodes"][1] |= {"condition": "a.n > 1", "optional": True}
    written["nodes"][2] |= {"trigger_rule": "all_done"}
    api.store(written)
    assert api.shown("/workflows/drawn/graph") == {
        "name": "drawn",
        "version": 1,
        "nodes": [
            {
                "id": "a",
                "handler": "echo",
                "level": 0,
                "condition": None,
                "trigger_rule": "all_success",
                "optional": False,
            },
            {
                "id": "b",
                "handler": "echo",
                "level": 1,
                "condition": "a.n > 1",
                "trigger_rule": "all_success",
                "optional": True,
            },
            {
                "id": "c",
                "handler": "echo",
                "level": 2,
                "condition": None,
                "trigger_rule": "all_done",
                "optional": False,
            },
        ],
        "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}, {"from": "b", "to": "c"}],
    }


def test_the_graph_of_a_version_is_found_by_number_and_by_alias(api: Caller) -> None:
    api.store(document("drawings", {"a": ""}))
    api.store(document("drawings", {"a": "", "b": ""}))
    api.put("/workflows/drawings/aliases/stable", {"version": 1})
    newest = api.shown("/workflows/drawings/graph")
    assert (newest["version"], len(newest["nodes"])) == (2, 2)
    for path, query in (
        ("drawings", {"version": 1}),
        ("drawings", {"version": "stable"}),
        ("drawings@stable", {}),
    ):
        graph = api.shown(f"/workflows/{path}/graph", **query)
        assert (graph["name"], graph["version"], len(graph["nodes"])) == ("drawings", 1, 1)
    assert_problem(api.get("/workflows/drawings/graph", version=9), 404, "not_found")
    assert_problem(api.get("/workflows/nobody/graph"), 404, "not_found")


def test_an_execution_without_its_nodes_is_otherwise_the_same(api: Caller) -> None:
    written = document("bare", {"a": "", "b": "a", "c": "a"})
    written["nodes"][1]["config"] = {"got": "{{ a }}"}
    for execution in (api.ended(written, input={"n": 1}), api.ended(failing("bare-failed"))):
        path = f"/executions/{execution['execution_id']}"
        assert api.shown(path, nodes=True) == execution
        assert api.shown(path, nodes=False) == {
            key: value for key, value in execution.items() if key != "nodes"
        }
    assert_problem(api.get("/executions/nobody", nodes=False), 404, "not_found")
    assert_problem(api.get("/executions/nobody", nodes="perhaps"), 422, "invalid_request")


def test_a_retried_execution_says_what_it_goes_on_as(api: Caller) -> None:
    first = api.ended(failing("chain"))
    assert (first["retry_of"], first["retried_as"]) == (None, None)
    second = api.post(f"/executions/{first['execution_id']}/retry").body["execution_id"]
    api.until_state(second, "FAILED")
    third = api.post(f"/executions/{second}/retry").body["execution_id"]
    chain = [first["execution_id"], second, third]
    for nodes in (True, False):
        executions = [
            api.shown(f"/executions/{execution_id}", nodes=nodes) for execution_id in chain
        ]
        assert [execution["retried_as"] for execution in executions] == [second, third, None]
    retries = {
        execution_id: [
            row["execution_id"] for row in api.items("/executions", retry_of=execution_id)
        ]
        for execution_id in chain
    }
    assert retries == {chain[0]: [second], second: [third], third: []}
    assert api.items("/executions", retry_of="nobody") == []
    assert api.items("/executions", retry_of=chain[0], state="CANCELLED") == []
