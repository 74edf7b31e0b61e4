"""An execution on a server in the shapes that the screens and the report know."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.cli.report import FAILED_SHOWN
from penstock.cli.session import Ending
from penstock.definition.plan import Plan, compile_document
from penstock.engine.commands import AttemptFailure, ExecutionRecord, NodeRun
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import InvalidWorkflow, NotFound
from penstock.stores.base import Stored

if TYPE_CHECKING:
    from penstock.client import Client, Execution
    from penstock.runtime import Result


async def plan_of(client: Client, handle: Execution, result: Result) -> Plan:
    """The plan of an execution; if its definition was deleted, only ids and handlers."""
    try:
        stored = await client.workflow(result.workflow, result.version)
        definition = stored["definition"]
        return compile_document(
            definition, allow_unknown_handlers=True, checked=True, stored=True
        ).plan
    except (NotFound, InvalidWorkflow):
        nodes = (await handle.graph())["nodes"]
        listed = [{"id": node["id"], "handler": node["handler"] or "unknown"} for node in nodes]
        document = {"name": result.workflow, "nodes": listed}
        return compile_document(document, allow_unknown_handlers=True, stored=True).plan


async def run_of(handle: Execution, node_id: str) -> NodeRun:
    """One node with all its failed attempts."""
    node = await handle.node(node_id)
    failures: list[AttemptFailure] = []
    for attempt in node["attempts"]:
        if attempt["error"]:
            at = stamp(attempt["at"]) or 0.0
            failures.append(AttemptFailure(attempt["attempt"], at, error_of(attempt["error"])))
    return NodeRun(
        node_id,
        NodeState(node["state"]),
        attempt=node["attempt"],
        due_at=stamp(node.get("due_at")),
        failures=failures,
        failures_dropped=node.get("errors_dropped", 0),
    )


async def ending_of(
    handle: Execution, result: Result, *, logs: bool = False, interrupted: bool = False
) -> Ending:
    """How an execution ended, with details and logs of failed nodes; `logs`: of all nodes."""
    failed = [node_id for node_id, node in result.nodes.items() if node["state"] == "FAILED"]
    failed = failed[:FAILED_SHOWN]
    runs = {node_id: await run_of(handle, node_id) for node_id in failed}

    attempt_logs: list[tuple[str, int, str]] = []
    for node_id in result.nodes if logs else failed:
        texts = await handle.logs(node_id)
        attempt_logs += [(node_id, attempt, text) for attempt, text in texts.items()]

    stored = Stored(_record(result.view), runs, {}, 0, [], attempt_logs)
    return Ending(result, stored, interrupted, timed_out=False)


def _record(view: Mapping[str, Any]) -> ExecutionRecord:
    return ExecutionRecord(
        view["execution_id"],
        view["workflow"],
        view["version"],
        ExecutionState(view["state"]),
        b"null",
        stamp(view["created_at"]) or 0.0,
        started_at=stamp(view["started_at"]),
        finished_at=stamp(view["finished_at"]),
    )


def error_of(error: Mapping[str, Any]) -> TaskError:
    fields = {name: error.get(name) for name in ("type", "detail", "traceback")}
    return TaskError(error.get("category", ""), error.get("message", ""), **fields)


def stamp(at: str | None) -> float | None:
    return None if at is None else datetime.fromisoformat(at).timestamp()
