"""The compatible routes of the contract, each with every prefix.

Clients of the public implementations rely on this.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from penstock.api import compat_views as views
from tests.api.compat_app import ONCE, PREFIXES, Client, node, serving

PLURAL = ("", "/api", "/v1")
"""Where `/workflows/{id}` is ours; `/api/v1/workflows` is the main API."""
CHAIN = (
    node("input", handler="input"),
    node("user", "input", config={"id": "{{ input.user_id ?? 0 }}"}),
    node("output", "user", handler="output", config={"found": "{{ user.id }}"}),
)
GATED = (node("first"), node("slow", "first", handler="gated"), node("last", "slow"))


def names(body: dict[str, Any]) -> set[str]:
    return {body["execution_id"], body["id"], body["workflow_id"]}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_workflow_is_stored_triggered_watched_and_read(tmp_path, prefix):
    async def story() -> None:
        async with serving(tmp_path) as client:
            document = {"name": "chain", "dag": {"nodes": CHAIN}}
            answer = await client.call("POST", f"{prefix}/workflow", document)
            assert answer.status == 201
            assert set(answer.body) == set(views.Submitted.__struct_encode_fields__)
            name = answer.body["execution_id"]
            assert names(answer.body) == {name}
            assert (answer.body["name"], answer.body["status"]) == ("chain", "PENDING")
            assert answer.body["workflow_definition_id"] == "chain@1"
            assert answer.body["created_at"].endswith("Z")
            assert answer.body["message"]

            waiting = await client.get(f"{prefix}/workflow/{name}")
            assert (waiting["status"], waiting["progress"]["percentage"]) == ("PENDING", 0)
            results = await client.get(f"{prefix}/workflow/{name}/results")
            assert (results["completed"], results["results"], results["result"]) == (
                False,
                {},
                None,
            )

            started = await client.call(
                "POST", f"{prefix}/workflow/trigger/{name}", {"params": {"user_id": 7}}
            )
            assert started.status == 200
            assert set(started.body) == set(views.Triggered.__struct_encode_fields__)
            assert names(started.body) == {name}
            assert started.body["status"] == "RUNNING"

            await client.reach(name, "COMPLETED")
            await _check_status(await client.get(f"{prefix}/workflow/{name}"), name)
            _check_results(await client.get(f"{prefix}/workflow/{name}/results"), name)

    asyncio.run(story())


async def _check_status(status: dict[str, Any], name: str) -> None:
    assert set(status) == set(views.Status.__struct_encode_fields__)
    assert names(status) == {name}
    assert status["name"] == "chain"
    assert status["status"] == status["state"] == "COMPLETED"
    assert (
        status["node_states"]
        == status["node_statuses"]
        == dict.fromkeys(("input", "user", "output"), "COMPLETED")
    )
    assert status["progress"] == {"total": 3, "completed": 3, "failed": 0, "percentage": 100}
    assert status["error"] is None
    assert status["created_at"] <= status["started_at"] <= status["completed_at"]
    user = status["nodes"]["user"]
    assert set(user) == set(views.CompatNode.__struct_encode_fields__)
    assert (user["state"], user["output"], user["error"], user["attempt"]) == (
        "COMPLETED",
        {"id": 7},
        None,
        1,
    )
    assert user["started_at"] <= user["completed_at"]
    msgspec.convert(status, views.Status)


def _check_results(results: dict[str, Any], name: str) -> None:
    assert set(results) == set(views.CompatResults.__struct_encode_fields__)
    assert names(results) == {name}
    outputs = {"input": {"user_id": 7}, "user": {"id": 7}, "output": {"found": 7}}
    assert results["results"] == results["outputs"] == outputs
    assert results["result"] == results["output_data"] == {"found": 7}
    assert (results["status"], results["completed"]) == ("COMPLETED", True)
    msgspec.convert(results, views.CompatResults)


@pytest.mark.parametrize("prefix", PLURAL)
def test_the_plural_does_the_same(tmp_path, prefix):
    async def story() -> None:
        async with serving(tmp_path) as client:
            answer = await client.call(
                "POST", f"{prefix}/workflows", {"name": "chain", "nodes": CHAIN}
            )
            assert answer.status == 201
            name = answer.body["execution_id"]
            assert (await client.call("POST", f"{prefix}/workflows/{name}/trigger")).status == 200
            await client.reach(name, "COMPLETED")
            for path in ("", "/results"):
                singular = await client.get(f"{prefix}/workflow/{name}{path}")
                assert await client.get(f"{prefix}/workflows/{name}{path}") == singular

    asyncio.run(story())


def test_below_the_main_api_the_plural_has_trigger_and_results(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(*CHAIN)
            assert (await client.call("POST", f"/api/v1/workflows/{name}/trigger")).status == 200
            await client.reach(name, "COMPLETED")
            assert (await client.get(f"/api/v1/workflows/{name}/results"))["completed"]
            assert (await client.call("GET", f"/api/v1/workflows/{name}")).status == 404
            assert (await client.call("POST", "/api/v1/workflows", {"nodes": CHAIN})).status == 404

    asyncio.run(story())


def test_an_execution_without_an_output_node_has_its_sinks_as_result(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            done = await client.run(
                node("a"), node("b", "a", config={"x": 1}), node("c", "a", config={"y": 2})
            )
            results = await client.get(f"/workflow/{done['id']}/results")
            assert results["result"] == {"b": {"x": 1}, "c": {"y": 2}}

    asyncio.run(story())


def test_a_skipped_node_counts_as_done(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            done = await client.run(
                node("a", config={"go": False}), node("b", "a", condition="a.go")
            )
            assert done["node_states"] == {"a": "COMPLETED", "b": "SKIPPED"}
            assert done["progress"] == {"total": 2, "completed": 1, "failed": 0, "percentage": 100}

    asyncio.run(story())


def test_what_there_is_can_be_read_while_it_runs(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(*GATED)
            await client.trigger(name)
            status = await client.reach(name, "RUNNING")
            while status["node_states"]["first"] != "COMPLETED":
                status = await client.reach(name, "RUNNING")
            assert status["progress"] == {
                "total": 3,
                "completed": 1,
                "failed": 0,
                "percentage": 33.3,
            }
            results = await client.get(f"/workflow/{name}/results")
            assert (results["completed"], results["results"]) == (False, {"first": {}})
            client.gate.set()
            await client.reach(name, "COMPLETED")

    asyncio.run(story())


INPUT = {"user_id": 7}
SHAPES: dict[str, tuple[Any, Any]] = {
    "no body": (None, {}),
    "empty object": ({}, {}),
    "null": (b"null", {}),
    "params": ({"params": INPUT}, INPUT),
    "input_params": ({"input_params": INPUT}, INPUT),
    "input": ({"input": INPUT}, INPUT),
    "all of them": (
        {"input": {"a": 1, "b": 1}, "params": {"a": 2}, "input_params": None},
        {"a": 2, "b": 1},
    ),
    "null params": ({"params": None}, {}),
    "other fields beside": ({"params": INPUT, "triggered_by": "cron"}, INPUT),
    "the input itself": (INPUT, INPUT),
    "node_params of no node": (
        {"node_params": {"user_id": 7, "lang": "en"}},
        {"user_id": 7, "lang": "en"},
    ),
    "node_params of no node, with objects": (
        {"node_params": {"customer": {"id": 7}}},
        {"customer": {"id": 7}},
    ),
    "a node's name beside other names": (
        {"echo": {"x": 1}, "lang": "en"},
        {"echo": {"x": 1}, "lang": "en"},
    ),
    "a node's name without an object": ({"echo": 7}, {"echo": 7}),
    "node_params that aren't objects": ({"node_params": {"echo": 7}}, {"echo": 7}),
    "params win over node_params": (
        {"node_params": {"a": 1, "b": 1}, "params": {"a": 2}},
        {"a": 2, "b": 1},
    ),
    "every JSON type": (
        {"params": {"x": [None, 1.5, "é", {"y": []}]}},
        {"x": [None, 1.5, "é", {"y": []}]},
    ),
    "templates are text": ({"params": {"x": "{{ echo }}"}}, {"x": "{{ echo }}"}),
}


@pytest.mark.parametrize(("body", "given"), SHAPES.values(), ids=SHAPES)
def test_the_input_is_found_in_any_shape_of_body(tmp_path, body, given):
    async def story() -> None:
        async with serving(tmp_path) as client:
            done = await client.run(
                node("input", handler="input"), node("echo", "input"), body=body
            )
            assert done["status"] == "COMPLETED"
            assert done["nodes"]["input"]["output"] == given
            assert done["nodes"]["echo"]["output"] == {}

    asyncio.run(story())


def test_node_params_of_nodes_are_their_config(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            nodes = (
                node("input", handler="input"),
                node("a", "input", config={"x": "{{ input.n }}", "y": 1}),
                node("b"),
            )
            body = {"node_params": {"a": {"y": 2, "z": "{{ b }}"}, "b": {}}, "params": {"n": 5}}
            done = await client.run(*nodes, body=body)
            assert done["nodes"]["a"]["output"] == {"x": 5, "y": 2, "z": "{{ b }}"}
            assert done["nodes"]["input"]["output"] == {"n": 5}

    asyncio.run(story())


def test_a_body_of_nothing_but_nodes_and_objects_is_their_config(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            nodes = (
                node("input", handler="input"),
                node("a", "input", config={"x": 1, "y": 1}),
                node("b"),
            )
            done = await client.run(*nodes, body={"a": {"y": 2}, "b": {"z": 3}})
            assert done["nodes"]["a"]["output"] == {"x": 1, "y": 2}
            assert done["nodes"]["b"]["output"] == {"z": 3}
            assert done["nodes"]["input"]["output"] == {}

    asyncio.run(story())


MISTYPED: dict[str, tuple[dict[str, Any], str]] = {
    "one of two": (
        {"first": {"x": 2}, "secnod": {"x": 3}},
        "'secnod' isn't a node; did you mean 'second'?",
    ),
    "the only one": ({"frist": {"x": 2}}, "'frist' isn't a node; did you mean 'first'?"),
    "like nothing": ({"first": {"x": 2}, "zzz": {}}, "'zzz' isn't a node"),
    "no object": (
        {"first": {"x": 2}, "second": 7},
        "'second' must be an object, the config of that node",
    ),
    "beside a value": ({"first": {"x": 2}, "lang": "en"}, "'lang' isn't a node"),
}


@pytest.mark.parametrize(("params", "reason"), MISTYPED.values(), ids=MISTYPED)
def test_a_mistyped_node_in_node_params_is_refused_and_starts_nothing(tmp_path, params, reason):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(
                node("first", config={"x": 1}), node("second", config={"x": 1})
            )
            answer = await client.trigger(name, {"node_params": params})
            assert answer.status == 400
            assert answer.body["problems"][0]["message"] == f"node_params: {reason}"
            assert (await client.get(f"/workflow/{name}"))["status"] == "PENDING"

    asyncio.run(story())


def test_node_params_of_an_input_node_are_its_defaults(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            body = {"node_params": {"input": {"n": 1, "m": 1}}, "input": {"n": 5}}
            done = await client.run(node("input", handler="input"), body=body)
            assert done["nodes"]["input"]["output"] == {"n": 5, "m": 1}

    asyncio.run(story())


def test_the_input_has_to_fit_when_it_is_triggered_not_before(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            schema = {"type": "object", "required": ["user_id"]}
            name = await client.submit(*CHAIN, input_schema=schema, input={"lang": "en"})
            for body in (None, {}, {"params": {"lang": "de"}}):
                refused = await client.trigger(name, body)
                assert (refused.status, refused.body["code"]) == (400, "invalid_input")
            assert (await client.get(f"/workflow/{name}"))["status"] == "PENDING"
            assert (await client.trigger(name, {"params": {"user_id": 3}})).status == 200
            done = await client.reach(name, "COMPLETED")
            assert done["nodes"]["input"]["output"] == {"lang": "en", "user_id": 3}

    asyncio.run(story())


def test_of_many_triggers_at_once_one_starts_it(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(*CHAIN)
            answers = await asyncio.gather(
                *(client.trigger(name, {"params": {"user_id": i}}) for i in range(20))
            )
            assert sorted(answer.status for answer in answers) == [200] + [409] * 19
            [winner] = [i for i, answer in enumerate(answers) if answer.status == 200]
            done = await client.reach(name, "COMPLETED")
            assert done["nodes"]["user"]["output"] == {"id": winner}

    asyncio.run(story())


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "COMPLETED", "CANCELLED"])
def test_a_second_trigger_is_refused(tmp_path, state):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(*GATED)
            await client.trigger(name)
            await client.reach(name, "RUNNING")
            await _bring_to(client, name, state)
            for path in (f"/workflow/trigger/{name}", f"/api/v1/workflows/{name}/trigger"):
                again = await client.call("POST", path, {"params": {"x": 1}})
                assert (again.status, again.body["code"]) == (409, "conflict")
                assert state in again.body["detail"]

    asyncio.run(story())


async def _bring_to(client: Client, name: str, state: str) -> None:
    if state == "COMPLETED":
        client.gate.set()
    elif state == "CANCELLED":
        await client.service.executions.request_control(name, "cancel")
    elif state == "PAUSED":
        await client.service.executions.request_control(name, "pause")
    await client.reach(name, state)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("triggered", [True, False])
def test_delete_cancels(tmp_path, prefix, triggered):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(*GATED)
            if triggered:
                await client.trigger(name)
                await client.reach(name, "RUNNING")
            deleted = await client.call("DELETE", f"{prefix}/workflow/{name}")
            assert deleted.status == 200
            assert set(deleted.body) == set(views.Cancelled.__struct_encode_fields__)
            assert (names(deleted.body), deleted.body["status"]) == ({name}, "CANCELLED")
            status = await client.reach(name)
            assert status["status"] == "CANCELLED"
            assert status["progress"]["percentage"] < 100
            assert (await client.call("DELETE", f"{prefix}/workflow/{name}")).status == 409

    asyncio.run(story())


@pytest.mark.parametrize("prefix", PREFIXES)
def test_health_of_version_1(tmp_path, prefix):
    async def story() -> None:
        async with serving(tmp_path) as client:
            assert (await client.call("GET", f"{prefix}/health")).status == (
                200 if prefix == "/v1" else 404
            )

    asyncio.run(story())


def test_a_failed_attempt_shows_why(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            client.broken.add("b")
            done = await client.run(
                node("a"), node("b", "a", handler="fragile", **ONCE), node("c", "b")
            )
            assert (done["status"], done["node_states"]["b"]) == ("FAILED", "FAILED")
            assert "b is broken" in done["error"]
            assert "b is broken" in done["nodes"]["b"]["error"]
            assert (done["progress"]["failed"], done["progress"]["completed"]) == (1, 1)
            results = await client.get(f"/workflow/{done['id']}/results")
            assert (results["completed"], results["results"]) == (False, {"a": {}})
            assert "b is broken" in results["error"]

    asyncio.run(story())
