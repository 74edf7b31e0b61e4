"""Handling an event: the way into the core.

`handle` calls the function that is registered for the event (`on_execution`, `on_task`,
`on_control`, `on_timer`), then follows every consequence: children of nodes that settled are
considered, ready nodes are started. What was decided is collected in `execution.commands`.
"""

from __future__ import annotations

from collections.abc import Mapping

# imported so that they register their functions
from penstock.engine import (  # noqa: F401
    deadlines,
    on_control,
    on_execution,
    on_task,
    on_timer,
    reused_outputs,
)
from penstock.engine.commands import COMMIT_WEIGHT, Commands
from penstock.engine.ending import finish
from penstock.engine.event_handlers import EVENT_HANDLERS
from penstock.engine.events import AnyEvent
from penstock.engine.failing import upstream_failed
from penstock.engine.preparing import Prepared
from penstock.engine.readiness import CLEANUP_RULES, Verdict
from penstock.engine.reasons import Reason
from penstock.engine.settling import skip
from penstock.engine.starting import start
from penstock.engine.state import INLINE_BYTES_MAX, NO_COMMANDS, Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState

PREPARE_AGAIN_SECONDS = 5.0
"""While a node's preparation is under way a timer is set.

If the owner dies, the next one has the node prepared again.
"""


def handle(execution: Execution, event: AnyEvent, now: float) -> Commands:
    """Let `event` have its effect. Events that come too late change nothing."""
    if execution.commands is NO_COMMANDS:
        execution.commands = Commands(execution.record.execution_id)
    commands = execution.commands
    if execution.record.state in EXECUTION_ENDS:
        return commands
    execution.now = now
    execution.inline_bytes = INLINE_BYTES_MAX
    commands.has_more = False
    EVENT_HANDLERS[type(event)](execution, event)
    follow_consequences(execution)
    return commands


def provide(execution: Execution, values: Mapping[str, bytes]) -> None:
    """Hand in outputs that were `wanted`; handle `Continued` next."""
    execution.loaded.update(values)
    execution.wanted.clear()
    execution.ready.extendleft(reversed(execution.blocked))
    execution.blocked.clear()


def provide_prepared(execution: Execution, prepared: Mapping[str, Prepared]) -> None:
    """Hand in what was computed elsewhere, by node id; handle `Continued` next.

    It is dropped if the node has ended meanwhile.
    """
    for node_id, result in prepared.items():
        number = execution.numbers[node_id]
        execution.prepared[node_id] = result
        if number in execution.preparing:
            execution.preparing.discard(number)
            execution.ready.append(number)


def follow_consequences(execution: Execution) -> None:
    """Consider and start nodes, as far as one commit goes.

    With worklists and without recursion: a DAG may be 10,000 deep.
    """
    commands = execution.commands
    considered = execution.considered
    ready = execution.ready
    record = execution.record
    if execution.reused and record.state is not ExecutionState.PENDING:
        reused_outputs.record(execution, COMMIT_WEIGHT)
    while considered or (ready and record.state is ExecutionState.RUNNING):
        if commands.weight >= COMMIT_WEIGHT or len(commands.tasks) >= COMMIT_WEIGHT:
            deadlines.continue_later(execution)
            break
        if considered:
            consider(execution, considered.popleft())
        else:
            start(execution, ready.popleft())
    if execution.values:
        execution.values.clear()
    if execution.loaded and not execution.wanted:
        execution.loaded.clear()
    if execution.preparing:
        deadlines.wake(execution, execution.now + PREPARE_AGAIN_SECONDS)
    if not execution.unfinished_nodes and record.state not in EXECUTION_ENDS:
        finish(execution, ExecutionState.FAILED if record.error else ExecutionState.COMPLETED)
    elif execution.deadlines:
        deadlines.wake(execution, execution.deadlines[0][0])


def consider(execution: Execution, number: int) -> None:
    """Start, skip or leave a node after one of its parents has settled."""
    node = execution.nodes[number]
    if number in execution.readied or node.node_id in execution.runs:
        return
    verdict = execution.tally.verdict(node, number)
    # first: what the node asks for then also counts while failing fast
    if verdict is Verdict.SKIP_FAILED:
        upstream_failed(execution, number)
    elif execution.record.failing and node.rule not in CLEANUP_RULES:
        skip(execution, number, Reason.EXECUTION_FAILED)
    elif verdict is Verdict.START:
        execution.readied.add(number)
        execution.ready.append(number)
    elif verdict is Verdict.SKIP:
        skip(execution, number, Reason.BRANCH_NOT_TAKEN)
