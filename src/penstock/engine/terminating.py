"""`terminate`: a node that ends the execution early, with a state and an output.

It decides for the whole execution: nodes that haven't ended are stopped or skipped, those for
clean-up run, and what failed before counts no more if the state is COMPLETED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.engine import failures
from penstock.engine.commands import NodeRun
from penstock.engine.data import Termination
from penstock.engine.ending import end_early
from penstock.engine.events import TaskError
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import complete
from penstock.engine.states import ExecutionState

if TYPE_CHECKING:
    from penstock.engine.state import Execution


class _Decided(Termination):
    output: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Decided)


def terminate(execution: Execution, number: int, run: NodeRun, decided: bytes) -> None:
    """Complete the node, and end the execution as it says."""
    termination = _decoder.decode(decided)
    has_output = not isinstance(termination.output, msgspec.UnsetType)
    output = b"null"
    if not isinstance(termination.output, msgspec.UnsetType):
        output = bytes(termination.output)
    complete(execution, number, run, output, Reason.TERMINATED)

    record = execution.record
    if record.ending is not None:
        return
    state = ExecutionState(termination.state)
    record.error = None
    record.error_node_id = None
    if state is ExecutionState.FAILED:
        message = termination.message or f"the node {run.node_id!r} ended the execution"
        record.error = failures.cut(TaskError(ErrorCategory.TERMINATED, message))
        record.error_node_id = run.node_id
    execution.commands.record = record
    end_early(execution, state, Reason.TERMINATED, run.node_id if has_output else None)
