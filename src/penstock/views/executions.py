"""Views of executions: one shape for Python, `--json` and HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, NodeRun, Transition
from penstock.engine.events import TaskError
from penstock.engine.states import NodeState

NOTHING: Mapping[str, Any] = {}
UNDECODED_BYTES = 256 * 1024


def time_text(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def undecoded(data: bytes) -> Any:
    """A value for an answer that is encoded as JSON again.

    A large value stays the text that it is: decoding 60 MB takes seconds, in which a loop does
    nothing else.
    """
    return msgspec.Raw(data) if len(data) > UNDECODED_BYTES else msgspec.json.decode(data)


def execution_view(  # noqa: PLR0913 -- what there is to show
    record: ExecutionRecord,
    runs: Mapping[str, NodeRun],
    outputs: Mapping[str, bytes],
    plan: Plan,
    *,
    waits: Mapping[str, tuple[str, str]] = NOTHING,
    value_of: Callable[[bytes], Any] = msgspec.json.decode,
) -> dict[str, Any]:
    """An execution with its nodes.

    `waits` says, by node, why nobody takes its task: as a reason and as text.
    """
    values = {node_id: value_of(data) for node_id, data in outputs.items()}
    node_ids = [node.node_id for node in plan.nodes]
    node_ids += [node.node_id for node in record.added]
    nodes = {}
    for node_id in node_ids:
        nodes[node_id] = node_view(runs.get(node_id), values.get(node_id), waits.get(node_id))
    return {**bare_view(record, values, plan, value_of), "nodes": nodes}


def bare_view(
    record: ExecutionRecord,
    values: Mapping[str, Any],
    plan: Plan,
    value_of: Callable[[bytes], Any] = msgspec.json.decode,
) -> dict[str, Any]:
    """An execution without its nodes. `values` needs the outputs of the plan's result nodes."""
    return {
        "execution_id": record.execution_id,
        "workflow": record.workflow,
        "version": record.version,
        "state": str(record.state),
        "input": value_of(record.input),
        "output": _output(values, plan),
        "error": error_view(record.error, record.error_node_id),
        "labels": record.labels,
        "created_at": time_text(record.created_at),
        "started_at": time_text(record.started_at),
        "finished_at": time_text(record.finished_at),
    }


def node_view(
    run: NodeRun | None, output: Any, wait: tuple[str, str] | None = None
) -> dict[str, Any]:
    run = run or NodeRun("", NodeState.PENDING)
    reason, reason_text = wait or (run.reason, None)
    return {
        "state": str(run.state),
        "attempt": run.attempt,
        "output": output,
        "error": error_view(last_error(run)),
        "reason": reason,
        "reason_text": reason_text,
        "worker_id": run.worker_id,
        "queued_at": time_text(run.queued_at),
        "started_at": time_text(run.started_at),
        "finished_at": time_text(run.finished_at),
    }


def last_error(run: NodeRun) -> TaskError | None:
    """The last error of a node that has failed or waits for its next attempt.

    A node that has gone on after an error has none any more.
    """
    if run.failures and run.state in (NodeState.FAILED, NodeState.RETRYING):
        return run.failures[-1].error
    return None


def error_view(error: TaskError | None, node_id: str | None = None) -> dict[str, Any] | None:
    if error is None:
        return None
    fields: dict[str, Any] = msgspec.to_builtins(error)
    view = {key: value for key, value in fields.items() if value is not None}
    if node_id:
        view["node_id"] = node_id
    return view


def history_view(history: Iterable[Transition]) -> list[dict[str, Any]]:
    return [
        {
            "seq": line.seq,
            "at": time_text(line.at),
            "node_id": line.node_id or None,
            "from": str(line.before),
            "to": str(line.after),
            "attempt": line.attempt,
            "reason": line.reason,
        }
        for line in history
    ]


def _output(values: Mapping[str, Any], plan: Plan) -> Any:
    if plan.single_result:
        return values.get(plan.result_nodes[0])
    return {node_id: values[node_id] for node_id in plan.result_nodes if node_id in values}
