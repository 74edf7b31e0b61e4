"""Handling an event: the way into the core.

`handle` calls the function that is registered for the event (`on_execution`, `on_task`,
`on_control`, `on_timer`), then follows every consequence: children of nodes that settled are
considered, ready nodes are started. What was decided is collected in `execution.commands`.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.definition.plan import CLEANUP_RULES

# imported so that they register their functions
from penstock.engine import (  # noqa: F401
    catching,
    deadlines,
    on_child,
    on_control,
    on_execution,
    on_signal,
    on_task,
    on_timer,
    regions,
    reused_outputs,
)
from penstock.engine.children import Found
from penstock.engine.commands import COMMIT_WEIGHT, Commands
from penstock.engine.ending import end_pending, finish_by
from penstock.engine.event_handlers import EVENT_HANDLERS
from penstock.engine.events import AnyEvent
from penstock.engine.failing import review_catches, upstream_failed
from penstock.engine.preparing import Prepared
from penstock.engine.readiness import Verdict
from penstock.engine.reasons import Reason
from penstock.engine.settling import skip
from penstock.engine.starting import start
from penstock.engine.state import INLINE_BYTES_MAX, NO_COMMANDS, Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState

# looked up here, once: see `settling`
RUNNING = ExecutionState.RUNNING
START = Verdict.START
SKIP_FAILED = Verdict.SKIP_FAILED
PREPARE_AGAIN_SECONDS = 5.0
"""While a node's preparation is under way a timer is set.

If the owner dies, the next one has the node prepared again.
"""


def handle(execution: Execution, event: AnyEvent, now: float) -> Commands:
    """Let `event` have its effect. Events that come too late change nothing."""
    commands = _commands(execution)
    if execution.record.state in EXECUTION_ENDS:
        return commands
    execution.now = now
    execution.inline_bytes = INLINE_BYTES_MAX
    commands.has_more = False
    EVENT_HANDLERS[type(event)](execution, event)
    follow_consequences(execution)
    return commands


def postpone(execution: Execution, at: float) -> None:
    """Let the stored timer, which is due, fire again later: nothing is done about it now."""
    commands = _commands(execution)
    execution.wake_at = at
    commands.timer_changed = True
    commands.wake_at = at


def _commands(execution: Execution) -> Commands:
    """What is decided for the next commit."""
    if execution.commands is NO_COMMANDS:
        execution.commands = Commands(execution.record.execution_id)
    return execution.commands


def provide(execution: Execution, values: Mapping[str, bytes]) -> None:
    """Hand in outputs that were `wanted`; handle `Continued` next."""
    execution.loaded.update(values)
    execution.wanted.clear()
    blocked = execution.blocked
    execution.blocked = []
    # what ends needs no place among those that start: a pause doesn't hold it up
    starting = [number for number in blocked if not regions.go_on(execution, number)]
    execution.ready.extendleft(reversed(starting))


def provide_prepared(execution: Execution, prepared: Mapping[str, Prepared]) -> None:
    """Hand in what was computed elsewhere, by node id; handle `Continued` next.

    It is dropped if the node has ended meanwhile.
    """
    for node_id, result in prepared.items():
        if not execution.has_node(node_id):
            continue  # its item has ended
        number = execution.number_of(node_id)
        execution.prepared[node_id] = result
        if number in execution.preparing:
            execution.preparing.discard(number)
            if not regions.go_on(execution, number):
                execution.ready.append(number)


def provide_found(execution: Execution, found: Mapping[str, Found]) -> None:
    """Hand in what was looked up for children, by node id; handle `Continued` next.

    It is dropped if the node has ended meanwhile.
    """
    for node_id, answer in found.items():
        if not execution.has_node(node_id):
            continue  # its item has ended
        number = execution.number_of(node_id)
        if number in execution.preparing:
            execution.preparing.discard(number)
            execution.found[node_id] = answer
            execution.ready.append(number)


def follow_consequences(execution: Execution) -> None:
    """Everything that follows from an event, as far as one commit goes."""
    record = execution.record
    has_reused = execution.reused or execution.kept_items
    if has_reused and record.state is not ExecutionState.PENDING:
        reused_outputs.record(execution, COMMIT_WEIGHT)
    _consider_and_start(execution)
    if execution.firing_until is not None:
        _fire_due(execution)
    if execution.values:
        execution.values.clear()
    if execution.loaded and not execution.wanted:
        execution.loaded.clear()
    if execution.preparing:
        deadlines.wake(execution, execution.now + PREPARE_AGAIN_SECONDS)
    if not execution.unfinished_nodes and record.state not in EXECUTION_ENDS:
        finish_by(execution, record.ending)
    elif execution.deadlines:
        deadlines.wake(execution, execution.deadlines[0][0])


def _fire_due(execution: Execution) -> None:
    """Fire the deadlines that are due, each with everything that follows from it.

    The rest waits if the commit is full, and has no effect if all nodes have ended before it.
    """
    while execution.unfinished_nodes and not execution.commands.has_more:
        on_timer.fire_next(execution)
        if execution.firing_until is None:
            return
        _consider_and_start(execution)


def _consider_and_start(execution: Execution) -> None:
    """Consider and start nodes, as far as one commit goes.

    With worklists and without recursion: a DAG may be 10,000 deep.
    """
    commands = execution.commands
    record = execution.record
    history = commands.history
    considered = execution.considered
    ready = execution.ready
    if execution.ended_catchers:
        review_catches(execution)
    while (
        considered
        or (ready and record.state is RUNNING)
        or (execution.regions and _has_region_step(execution))
    ):
        is_full = len(history) + (commands.size >> 10) >= COMMIT_WEIGHT
        if is_full or len(commands.tasks) >= COMMIT_WEIGHT:
            deadlines.continue_later(execution)
            break
        if considered:
            consider(execution, considered.popleft())
        elif not (execution.regions and _take_region_step(execution)):
            start(execution, ready.popleft())
        if execution.ended_catchers:
            review_catches(execution)


def _has_region_step(execution: Execution) -> bool:
    if execution.ended_items or execution.ended_regions:
        return True
    return bool(execution.filling) and execution.record.state is RUNNING


def _take_region_step(execution: Execution) -> bool:
    """End an item or a region; open one when nothing else is ready. False if nodes come first."""
    if execution.ended_items:
        regions.end_item(execution, execution.ended_items.popleft())
    elif execution.ended_regions:
        regions.end_region(execution, execution.ended_regions.popleft())
    elif execution.ready:
        return False
    else:
        regions.fill(execution, execution.filling.popleft())
    return True


def consider(execution: Execution, number: int) -> None:
    """Start, skip or leave a node after one of its parents has settled."""
    is_static = number < execution.static_count
    if not is_static and number not in execution.item_nodes:
        return  # its item has ended
    node = execution.nodes[number] if is_static else execution.item_nodes[number]
    if number in execution.readied or node.node_id in execution.runs:
        return
    if not is_static:
        item = execution.items[number]
        verdict = item.tally.verdict(node, number - item.base)
        failing = item.failing
    else:
        if node.catches:
            verdict = catching.verdict(execution, node, number)
        else:
            verdict = execution.tally.verdict(node, number)
        failing = execution.record.failing
    # first: what the node asks for then also counts while failing fast
    if verdict is SKIP_FAILED:
        upstream_failed(execution, number)
    elif failing and node.rule not in CLEANUP_RULES:
        skip(execution, number, Reason.EXECUTION_FAILED)
    elif verdict is START:
        execution.readied.add(number)
        execution.ready.append(number)
    elif verdict is Verdict.SKIP and execution.record.ending is not None and is_static:
        end_pending(execution, number, execution.record.ending)
    elif verdict is Verdict.SKIP:
        skip(execution, number, Reason.BRANCH_NOT_TAKEN)
