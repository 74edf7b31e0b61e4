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
    """For the table's handlers, conditions and attempts; a definition that is gone leaves ids and handlers."""
    try:
        found = await client.workflow(result.workflow, result.version)
        return compile_document(found["definition"], allow_unknown_handlers=True, checked=True).plan
    except (NotFound, InvalidWorkflow):
        nodes = (await handle.graph())["nodes"]
        listed = [{"id": node["id"], "handler": node["handler"] or "unknown"} for node in nodes]
        return compile_document(
            {"name": result.workflow, "nodes": listed}, allow_unknown_handlers=True
        ).plan


async def run_of(handle: Execution, node_id: str) -> NodeRun:
    """One node with all its failed attempts."""
    node = await handle.node(node_id)
    failures = [
        AttemptFailure(it["attempt"], stamp(it["at"]) or 0.0, error_of(it["error"]))
        for it in node["attempts"]
        if it["error"]
    ]
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
    """With what the report says about failed nodes, and with `logs` the logs of all."""
    failed = [node_id for node_id, node in result.nodes.items() if node["state"] == "FAILED"][
        :FAILED_SHOWN
    ]
    runs = {node_id: await run_of(handle, node_id) for node_id in failed}
    told = [
        (node_id, attempt, text)
        for node_id in (result.nodes if logs else failed)
        for attempt, text in (await handle.logs(node_id)).items()
    ]
    return Ending(
        result, Stored(_record(result.view), runs, {}, 0, [], told), interrupted, timed_out=False
    )


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
    known = {name: error.get(name) for name in ("type", "detail", "traceback")}
    return TaskError(error.get("category", ""), error.get("message", ""), **known)


def stamp(at: str | None) -> float | None:
    return None if at is None else datetime.fromisoformat(at).timestamp()
