"""What clients and documents of the public implementations of this system rely on, as a table.

The documents are our own, in the shapes that those have: their handlers, their config keys, their
ways of leaving things out. With `--mock` each has to be accepted and to end in the state that its
author would expect.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from penstock.errors import InvalidWorkflow
from penstock.service.submissions import StartRequest
from penstock.worker.handlers.simple import echo
from penstock.worker.registry import Handler
from tests.api.compat_app import ONCE, Answer, Client, node, serving

HTTP, LLM = "call_external_service", "llm_service"


class Case(NamedTuple):
    nodes: tuple[dict[str, Any], ...]
    state: str = "COMPLETED"
    outputs: dict[str, Any] | None = None
    """Some of the outputs, or parts of them."""
    body: Any = None


def http(name: str, *parents: str, **config: Any) -> dict[str, Any]:
    return node(name, *parents, handler=HTTP, config=config, **ONCE)


DOCUMENTS = {
    "no url at all": Case((node("long", handler=HTTP),)),
    "an address that only a stand-in has": Case((http("a", url="mock://customers/7"),)),
    "keys that we don't know": Case(
        (http("a", url="http://x.test", simulate_failure=True, priority=3),)
    ),
    "an LLM without a prompt": Case((node("a", handler="llm", config={"max_length": 5}),)),
    "a host that fails": Case((http("a", url="http://fail-me.test/x"),), "FAILED"),
    "a wait with another name": Case(
        (node("a", handler="delay", config={"seconds": 0, "message": "x"}),)
    ),
    "noop's status in a prompt": Case(
        (
            node("b", handler="noop"),
            node("d", "b", handler="llm", config={"prompt": "B={{ b.status }}"}),
        ),
        outputs={"b": {"status": "ok"}, "d": {"response": "Mock LLM response to: B=ok"}},
    ),
    "transform without a config": Case(
        (
            node("a", handler="input"),
            node("b", "a", handler="transform"),
            node("c", "b", handler="output"),
        ),
        outputs={"b": {"result": {"a": {"n": 1}}}},
        body={"input": {"n": 1}},
    ),
    "transform with an input": Case(
        (
            http("fetch", url="http://x.test/data"),
            node("up", "fetch", handler="transform", config={"input": "{{ fetch.data.text }}"}),
            node(
                "loud",
                "up",
                handler="transform",
                config={"input": "{{ up.result }}", "transform_type": "uppercase"},
            ),
        ),
        outputs={"up": {"result": "mock text"}, "loud": {"result": "MOCK TEXT"}},
    ),
    "transform with keys of others": Case(
        (
            node("a"),
            node("b", "a", handler="transform", config={"prompt": "x", "nested": {"y": "{{ a }}"}}),
        ),
        outputs={"b": {"result": {"a": {}}}},
    ),
    "validate without a config": Case(
        (node("a", config={"x": 1}), node("v", "a", handler="validate")),
        outputs={"v": {"valid": True, "errors": []}},
    ),
    "validate by names and by schema": Case(
        (
            node("a", config={"x": 1}),
            node("n", "a", handler="validate", config={"input": "{{ a }}", "required": ["x", "y"]}),
            node(
                "s",
                "a",
                handler="validate",
                config={"data": "{{ a }}", "schema": {"required": ["x"]}},
            ),
            node("then", "n", condition="n.valid"),
        ),
        outputs={"n": {"valid": False, "errors": ["'y' is missing"]}, "s": {"valid": True}},
    ),
    "compute": Case(
        (
            node("a", handler="compute", config={"operation": "add", "a": 2, "b": 3}),
            node(
                "m",
                "a",
                handler="compute",
                config={"operation": "multiply", "a": "{{ a.result }}", "b": 4},
            ),
            node("e", "m", handler="compute", config={"expression": "m.result + 1.0"}),
            node(
                "t",
                "m",
                handler="compute",
                config={"operation": "divide", "a": "x{{ m.result }}", "b": 1},
                **ONCE,
            ),
        ),
        "FAILED",
        outputs={"a": {"result": 5}, "m": {"result": 20}},
    ),
    "compute by zero": Case(
        (node("a", handler="compute", config={"operation": "divide", "a": 1, "b": 0}, **ONCE),),
        "FAILED",
    ),
    "aggregate of what is given": Case(
        (
            node(
                "sum",
                handler="aggregate",
                config={"inputs": [1, None, "2.5"], "aggregate_type": "sum"},
            ),
            node(
                "text",
                handler="aggregate",
                config={"inputs": ["a", 1, None], "aggregate_type": "concat"},
            ),
            node("list", handler="aggregate", config={"inputs": [1, {"x": 2}]}),
        ),
        outputs={
            "sum": {"result": 3.5, "count": 3},
            "text": {"result": "a1"},
            "list": {"result": [1, {"x": 2}]},
        },
    ),
    "aggregate of the branches before it": Case(
        (
            node("root", handler="noop"),
            node("b", "root", config={"x": 1}),
            node("c", "root", config={"y": 2}),
            node("all", "b", "c", handler="aggregate", config={}),
            node("one", "b", "c", handler="aggregate", config={"aggregate_type": "merge"}),
        ),
        outputs={
            "all": {"result": [{"x": 1}, {"y": 2}], "count": 2},
            "one": {"result": {"x": 1, "y": 2}},
        },
    ),
    "branches by a decision": Case(
        (
            node("start", handler="input", config={"data": "no"}),
            node(
                "yes",
                "start",
                handler="decision",
                config={"value_a": "{{ start.data }}", "operator": "==", "value_b": "yes"},
            ),
            node(
                "t",
                "yes",
                handler=HTTP,
                config={"url": "http://x.test/t"},
                condition="{{ yes.result }} == True",
            ),
            node(
                "f",
                "yes",
                handler=HTTP,
                config={"url": "http://x.test/f"},
                condition="{{ yes.result }} == False",
            ),
        ),
        outputs={"f": {"mock": True}},
    ),
    "keys of others in small handlers": Case(
        (
            node("s", handler="sleep", config={"seconds": 0, "unit": "s"}),
            node("f", handler="noop", config={"x": 1}),
        )
    ),
}


@pytest.mark.parametrize("case", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_of_theirs_ends_as_its_author_expects(tmp_path, case):
    async def story() -> None:
        async with serving(tmp_path, mock_services=True) as client:
            done = await client.run(*case.nodes, body=case.body)
            assert done["status"] == case.state, done["error"]
            outputs = (await client.get(f"/workflow/{done['id']}/results"))["outputs"]
            for name, expected in (case.outputs or {}).items():
                assert {key: outputs[name][key] for key in expected} == expected

    asyncio.run(story())


def test_an_unknown_key_is_a_warning_in_the_log_of_the_node(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            nodes = (
                node(
                    "s", handler="sleep", config={"seconds": 0, "unit": "s", "zone": "utc"}, **ONCE
                ),
            )
            done = await client.run(*nodes)
            assert done["status"] == "COMPLETED", done["error"]
            [log] = await client.service.executions.logs(done["id"], "s")
            assert "no key 'unit'" in str(log)
            assert "1 more" in str(log)

    asyncio.run(story())


def test_a_retry_is_as_lenient_as_what_it_retries(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            client.broken.add("a")
            nodes = (
                node("a", handler="fragile", **ONCE),
                node("s", "a", handler="sleep", config={"seconds": 0, "unit": "s"}),
            )
            failed = await client.run(*nodes)
            client.broken.clear()
            await client.trigger(failed["id"])
            assert (await client.reach(failed["id"], "COMPLETED"))["retried_as"]

    asyncio.run(story())


@pytest.mark.parametrize("mock", [False, True])
def test_the_main_api_refuses_an_unknown_key_unless_services_are_mocked(tmp_path, mock):
    async def story() -> None:
        async with serving(tmp_path, mock_services=mock) as client:
            document = {
                "name": "x",
                "nodes": [node("s", handler="sleep", config={"second": 0}, **ONCE)],
            }
            request = StartRequest(workflow=document)
            if not mock:
                with pytest.raises(InvalidWorkflow, match="did you mean 'seconds'"):
                    await client.service.submissions.submit(request)
                return
            submitted = await client.service.submissions.submit(request)
            done = await client.reach(submitted.execution_id)
            assert done["status"] == "COMPLETED"

    asyncio.run(story())


def test_a_handler_of_ones_own_wins_over_ours_of_that_name(tmp_path):
    async def story() -> None:
        async with serving(tmp_path, own=[Handler("validate", echo)]) as client:
            done = await client.run(node("v", handler="validate", config={"mine": 1}))
            assert done["nodes"]["v"]["output"] == {"mine": 1}

    asyncio.run(story())


async def _failed(client: Client) -> dict[str, Any]:
    client.broken.add("b")
    return await client.run(node("a"), node("b", "a", handler="fragile", **ONCE))


def test_answers_have_the_names_that_their_clients_read(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            execution_id = await client.submit(node("a", config={"x": 1}))
            triggered = (await client.trigger(execution_id)).body
            assert triggered["instance_id"] == execution_id
            assert triggered["message"] == "Workflow triggered"
            done = await client.reach(execution_id)
            assert done["instance_id"] == execution_id
            assert done["workflow_name"] == "flow"
            assert done["nodes"]["a"]["node_id"] == "a"
            assert done["nodes"]["a"]["worker_id"]
            results = await client.get(f"/workflows/{done['instance_id']}/results")
            assert (results["message"], results["instance_id"]) == (
                "Workflow completed",
                execution_id,
            )
            failed = await _failed(client)
            assert (
                "b is broken" in (await client.get(f"/workflow/{failed['id']}/results"))["message"]
            )

    asyncio.run(story())


def test_a_cancellation_says_so(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            execution_id = await client.submit(node("a"))
            deleted = await client.call("DELETE", f"/workflow/{execution_id}")
            assert (deleted.status, "cancelled" in deleted.body["message"]) == (200, True)

    asyncio.run(story())


def test_dead_letters_are_entries_with_a_task_id(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            assert (await client.get("/admin/dlq"))["entries"] == []
            failed = await _failed(client)
            listed = await client.get("/admin/dlq")
            [entry] = listed["entries"]
            assert listed["count"] == 1
            assert list(entry)[:3] == [
                "id",
                "task_id",
                "execution_id",
            ]  # found by scripts with a pattern over the text
            assert (entry["task_id"], entry["execution_id"]) == (f"{failed['id']}:b", failed["id"])
            assert (entry["node_id"], entry["handler"], entry["retry_count"]) == ("b", "fragile", 0)
            assert "b is broken" in entry["error_message"]
            assert entry["original_timestamp"] <= entry["failed_at"]
            client.broken.clear()
            retried = (await client.call("POST", f"/admin/dlq/{entry['id']}/retry")).body
            assert (retried["status"], retried["task_id"]) == ("success", entry["task_id"])
            await client.reach(failed["id"], "COMPLETED")
            await _failed(client)
            entry = (await client.get("/admin/dlq"))["entries"][0]
            assert (await client.call("DELETE", f"/admin/dlq/{entry['id']}")).body[
                "status"
            ] == "success"

    asyncio.run(story())


def _document(*nodes: Any) -> dict[str, Any]:
    return {"name": "flow", "dag": {"nodes": list(nodes)}}


CYCLE = _document(node("a", "b"), node("b", "a"))
ERRORS: dict[str, tuple[str, str, Any, int, str, str]] = {
    "cycle": ("POST", "/workflow", CYCLE, 400, "workflow_validation_failed", "CYCLIC_DEPENDENCY"),
    "twice the same id": (
        "POST",
        "/workflow",
        _document(node("a"), node("a")),
        400,
        "workflow_validation_failed",
        "DUPLICATE_NODE_ID",
    ),
    "ghost": (
        "POST",
        "/workflow",
        _document(node("a", "x")),
        400,
        "workflow_validation_failed",
        "INVALID_NODE_REFERENCE",
    ),
    "empty": (
        "POST",
        "/workflow",
        _document(),
        400,
        "workflow_validation_failed",
        "EMPTY_WORKFLOW",
    ),
    "status of nobody": (
        "GET",
        "/workflow/nope",
        None,
        404,
        "execution_not_found",
        "EXECUTION_NOT_FOUND",
    ),
    "cancel of nobody": (
        "DELETE",
        "/workflow/nope",
        None,
        404,
        "execution_not_found",
        "EXECUTION_NOT_FOUND",
    ),
    "dead letter of nobody": (
        "POST",
        "/admin/dlq/nope/retry",
        None,
        404,
        "dead_letter_not_found",
        "DEAD_LETTER_NOT_FOUND",
    ),
    "no JSON": ("POST", "/workflow", b"{", 400, "not_json", "NOT_JSON"),
}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "outer", "inner"), ERRORS.values(), ids=ERRORS
)
def test_an_error_has_an_error_code(tmp_path, method, path, body, status, outer, inner):
    async def story() -> None:
        async with serving(tmp_path) as client:
            answer: Answer = await client.call(method, path, body)
            assert answer.status == status
            assert answer.body["error_code"] == outer
            assert answer.body["error"]["error_code"] == inner
            assert (
                answer.body["error"]["message"] == answer.body["message"] == answer.body["detail"]
            )
            assert answer.body["errors"] == answer.body.get("problems", [])

    asyncio.run(story())


def test_a_refused_document_is_told_in_their_words(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            detail = (await client.call("POST", "/workflow", CYCLE)).body["detail"]
            assert "didn't pass validation" in detail
            assert "cycle" in detail.lower()

    asyncio.run(story())


def test_health_says_healthy(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            health = await client.get("/v1/health")
            assert (health["status"], health["healthy"], health["ok"]) == ("healthy", True, True)
            assert set(health["dependencies"].values()) == {"healthy"}

    asyncio.run(story())


def test_stand_ins_take_as_long_as_they_are_told(tmp_path):
    async def story() -> None:
        async with serving(tmp_path, mock_services=True, mock_seconds=60) as client:
            for name in (HTTP, LLM):
                execution_id = await client.submit(node("slow", handler=name, config={}))
                await client.trigger(execution_id)
                await client.reach(execution_id, "RUNNING")
                assert (await client.call("DELETE", f"/workflow/{execution_id}")).status == 200
                assert (await client.reach(execution_id))["status"] == "CANCELLED"
            timed = await client.run(node("slow", handler=HTTP), timeout_seconds=0.1)
            assert timed["status"] == "FAILED"

    asyncio.run(story())
