"""An execution whose hot store has lost its data goes on from its last checkpoint, in a new generation.

So what workers still do for the old one has no effect. What was handed out is handed out again, with the same attempt:
the loss is nobody's failure. A node that ran goes back by the table (RUNNING, RETRYING, QUEUED); one that was queued
stays so. The tasks themselves follow when the execution is loaded and continued, as for tasks that were returned.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.engine.commands import RETURNED, ExecutionRecord, NodeRun, Transition
from penstock.engine.states import NodeState, check_node

REBUILT = "rebuilt"
"""The reason of a node that ran in a generation whose data is lost."""


def begin_generation(
    record: ExecutionRecord, runs: Iterable[NodeRun], last_seq: int, generation: int, now: float
) -> list[Transition]:
    """Changes the records; answers the history lines that go with it."""
    record.generation = generation
    lines: list[Transition] = []
    for run in runs:
        if run.state is NodeState.RUNNING:
            for after in (NodeState.RETRYING, NodeState.QUEUED):
                check_node(run.node_id, run.state, after)
                seq = last_seq + len(lines) + 1
                lines.append(
                    Transition(seq, now, run.node_id, run.state, after, run.attempt, REBUILT)
                )
                run.state = after
        elif run.state is not NodeState.QUEUED:
            continue
        run.reason, run.queued_at, run.started_at, run.worker_id = RETURNED, now, None, None
    return lines
