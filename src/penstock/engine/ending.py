"""How an execution ends: early, or with its last node.

What ends it early (a cancel, its timeout, a `terminate` node) leaves its clean-up nodes: those run
first, once, within a time limit of their own. What has ended it first decides how it ends; nothing
that comes during the clean-up changes that.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify
from typing import TYPE_CHECKING

from penstock.engine import catching, deadlines, failures, reused_outputs
from penstock.engine.commands import ControlChild, Ending, NodeRun, Stop
from penstock.engine.events import TaskError
from penstock.engine.items import Region, close_item
from penstock.engine.parents import end_of, tell_parent
from penstock.engine.readiness import Outcome, is_cleanup
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import open_run, run_of_item, settle
from penstock.engine.states import NODE_ENDS, ExecutionState, NodeState
from penstock.engine.transitions import move_execution, move_item, move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def stop_everything(
    execution: Execution,
    reason: str,
    pending: NodeState = NodeState.SKIPPED,
    *,
    counts_failures: bool = True,
) -> None:
    """End every node that hasn't ended, whatever its rule: nothing starts any more.

    `counts_failures`: those that could still have been handled are the execution's then.
    """
    if execution.reused:
        # these nodes have completed, whatever becomes of this execution: the next retry reuses
        # their outputs too
        reused_outputs.record(execution)
    execution.ready.clear()
    execution.blocked.clear()
    execution.considered.clear()
    execution.wanted.clear()
    execution.unprepared.clear()
    execution.preparing.clear()
    execution.prepared.clear()
    execution.lookups.clear()
    execution.found.clear()
    failed_openly = catching.open_failures(execution)
    if execution.regions:
        _stop_items(execution, reason, pending)
        execution.ended_items.clear()
        execution.ended_regions.clear()
        execution.filling.clear()
    for number in range(execution.static_count):
        run = execution.runs.get(execution.node(number).node_id)
        if run is None:
            move_node(execution, open_run(execution, number), pending, reason)
        elif run.state not in NODE_ENDS:
            stop_task(execution, run)
            move_node(execution, run, NodeState.CANCELLED, reason)
    if counts_failures:
        catching.give_up(execution, failed_openly)


def _stop_items(execution: Execution, reason: str, pending: NodeState) -> None:
    """End the nodes of all open items, and these items."""
    outermost = [region for region in execution.regions.values() if region.outer is None]
    for region in outermost:
        _stop_region(execution, region, reason, pending)


def _stop_region(execution: Execution, region: Region, reason: str, pending: NodeState) -> None:
    """End the nodes of a region's open items, and these items, at any depth.

    Items that never began need no lines. The node of the region itself is the caller's.
    """
    for item in list(region.open.values()):
        for number in range(item.base, item.own_number):
            inner = execution.regions.get(number)
            if inner is not None:
                _stop_region(execution, inner, reason, pending)
            run = execution.runs.get(execution.node(number).node_id)
            if run is None:
                move_node(execution, open_run(execution, number), pending, reason)
            elif run.state not in NODE_ENDS:
                stop_task(execution, run)
                move_node(execution, run, NodeState.CANCELLED, reason)
        if not region.plan.is_single:
            move_item(execution, run_of_item(execution, item), NodeState.CANCELLED, reason)
        close_item(execution, item)
    del execution.regions[region.number]


def stop_task(execution: Execution, run: NodeRun) -> None:
    """Tell whoever works for the node, a worker or a child, that nobody waits for it."""
    if run.state in (NodeState.QUEUED, NodeState.RUNNING):
        record = execution.record
        execution.commands.stops.append(
            Stop(record.execution_id, run.node_id, record.generation, run.attempt)
        )
    elif run.state is NodeState.WAITING and run.more is not None and run.more.child is not None:
        child = execution.node_of(run).child
        if child is None or child.on_parent_end == "cancel":
            cancel = ControlChild(run.more.child, "cancel", Reason.PARENT_ENDED)
            execution.commands.sends.append(cancel)


def set_execution_error(execution: Execution, error: TaskError) -> None:
    """The execution as a whole failed, not one of its nodes."""
    execution.record.error = failures.cut(error)
    execution.record.error_node_id = None


def end_early(
    execution: Execution, state: ExecutionState, reason: str, node_id: str | None = None
) -> None:
    """End every node but those for clean-up; the execution ends when these have.

    Without any, it ends at once.
    """
    record = execution.record
    ending = Ending(state, reason, execution.now, node_id)
    has_begun = record.state is not ExecutionState.PENDING
    if not (has_begun and _has_cleanup(execution)):
        if node_id is not None:
            record.ending = ending
        counts_failures = state is not ExecutionState.COMPLETED
        pending = ending.state_of_pending
        stop_everything(execution, reason, pending, counts_failures=counts_failures)
        finish_by(execution, ending)
        return

    record.ending = ending
    execution.commands.record = record
    if execution.reused:
        reused_outputs.record(execution)
    _end_all_but_cleanup(execution, ending)
    _time_cleanup(execution)


def _has_cleanup(execution: Execution) -> bool:
    """Whether nodes for clean-up run, or may still start."""
    for number in range(execution.static_count):
        node = execution.node(number)
        run = execution.runs.get(node.node_id)
        if is_cleanup(node) and (run is None or run.state not in NODE_ENDS):
            return True
    return False


def _end_all_but_cleanup(execution: Execution, ending: Ending) -> None:
    for number in drop_ready(execution):
        node_id = execution.node(number).node_id
        execution.prepared.pop(node_id, None)
        execution.unprepared.pop(node_id, None)
    for number in execution.in_order():
        node = execution.node(number)
        run = execution.runs.get(node.node_id)
        if is_cleanup(node):
            continue
        if run is None:
            end_pending(execution, number, ending)
        elif run.state not in NODE_ENDS:
            region = execution.regions.get(number)
            if region is not None:
                _stop_region(execution, region, ending.reason, ending.state_of_pending)
            stop_task(execution, run)
            move_node(execution, run, NodeState.CANCELLED, ending.reason)
            settle(execution, number, Outcome.SKIP)
    # items of a map that cleans up go on
    inside = [number for number in execution.considered if number >= execution.static_count]
    execution.considered.clear()
    execution.considered.extend(inside)
    execution.considered.extend(
        number
        for number in execution.in_order()
        if execution.node(number).node_id not in execution.runs
    )


def _time_cleanup(execution: Execution) -> None:
    """Put the time limit of the clean-up in the place of the execution's."""
    ahead = [deadline for deadline in execution.deadlines if deadline[3] != "execution"]
    heapify(ahead)
    execution.deadlines[:] = ahead
    deadlines.arm_execution(execution)


def end_pending(execution: Execution, number: int, ending: Ending) -> None:
    """End a node that hasn't begun, because the execution is ended early."""
    move_node(execution, open_run(execution, number), ending.state_of_pending, ending.reason)
    settle(execution, number, Outcome.SKIP)


def drop_ready(execution: Execution) -> list[int]:
    """Take nodes that must not start any more off the lists of those that were about to.

    Those inside of items are stopped, or go on, with their map or loop.
    """

    def is_dropped(number: int) -> bool:
        if number >= execution.static_count or number in execution.regions:
            return False
        return not is_cleanup(execution.node(number))

    dropped: list[int] = []
    waiting: deque[int] | list[int]
    for waiting in (execution.ready, execution.blocked):
        remaining = [number for number in waiting if not is_dropped(number)]
        dropped += [number for number in waiting if is_dropped(number)]
        waiting.clear()
        waiting.extend(remaining)
    for number in sorted(execution.preparing):
        if is_dropped(number):
            execution.preparing.discard(number)
            dropped.append(number)
    return dropped


def time_out(execution: Execution) -> None:
    """The execution has run out of time."""
    seconds = execution.plan.timeout_seconds or 0.0
    message = f"the execution didn't end within {seconds:g} s"
    set_execution_error(execution, TaskError(ErrorCategory.TIMEOUT, message))
    execution.commands.record = execution.record
    end_early(execution, ExecutionState.FAILED, Reason.EXECUTION_TIMEOUT)


def time_out_cleanup(execution: Execution, ending: Ending) -> None:
    """The clean-up of an execution that is ended early has run out of time."""
    if execution.record.error is None:
        seconds = execution.plan.cleanup_timeout_seconds
        message = f"the clean-up didn't end within {seconds:g} s"
        set_execution_error(execution, TaskError(ErrorCategory.TIMEOUT, message))
    stop_everything(execution, Reason.CLEANUP_TIMEOUT, ending.state_of_pending)
    finish_by(execution, ending)


def finish_by(execution: Execution, ending: Ending | None) -> None:
    """End the execution, every node of which has ended, as `ending` says or as its nodes did."""
    if ending is not None and ending.state is ExecutionState.CANCELLED:
        finish(execution, ExecutionState.CANCELLED, ending.reason)
    elif execution.record.error is not None:
        finish(execution, ExecutionState.FAILED)
    else:
        finish(execution, ExecutionState.COMPLETED, None if ending is None else ending.reason)


def finish(execution: Execution, state: ExecutionState, reason: str | None = None) -> None:
    """End the execution; without a `reason`, its error is the reason."""
    record = execution.record
    record.finished_at = execution.now
    if reason is None and record.error is not None:
        reason = record.error.category
    move_execution(execution, state, reason)
    execution.deadlines.clear()
    execution.commands.finished = True
    execution.commands.final_runs = execution.runs
    if record.parent is not None:
        tell_parent(execution.commands, end_of(record, execution.outputs, execution.plan))
