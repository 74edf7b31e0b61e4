"""Outcomes: how nodes and executions have ended, as templates and conditions see it.

An error is an object with `category`, `message`, `type`, `status_code` and, of an execution,
`node_id`; null where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.definition.error_patterns import status_code
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState, NodeState

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def outcome_of(execution: Execution, node_id: str) -> dict[str, Any]:
    """The state of a node, and the error with which it has failed or is tried again."""
    run = execution.runs.get(node_id)
    if run is None:
        return {"state": str(NodeState.PENDING), "error": None}
    error = None
    if run.failures and run.state in (NodeState.FAILED, NodeState.RETRYING):
        error = run.failures[-1].error
    return {"state": str(run.state), "error": _shown(error)}


def end_of(execution: Execution) -> dict[str, Any]:
    """How the execution ends, as far as is known: COMPLETED, unless something has failed."""
    record = execution.record
    ending = record.ending
    state = ExecutionState.COMPLETED
    if ending is not None and ending.state is ExecutionState.CANCELLED:
        state = ExecutionState.CANCELLED
    elif record.error is not None:
        state = ExecutionState.FAILED
    error = _shown(record.error)
    if error is not None:
        error["node_id"] = record.error_node_id
    return {"state": str(state), "error": error}


def _shown(error: TaskError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {
        "category": error.category,
        "message": error.message,
        "type": error.type,
        "status_code": status_code(error),
    }
