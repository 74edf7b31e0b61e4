"""Catching: a node that handles the failures of others, so that they don't fail the execution.

A failure is *open* while a node that catches it may still complete, *handled* when one has, and
*unhandled* when none can any more. A catcher that fails passes the question on: what it was to
handle is handled if its own failure is. An open failure has no effect but on the nodes that come
after it; one that isn't handled has the effect that every failure has without catchers.

Nothing of this is stored: it follows from the records of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import structs

from penstock.definition.error_patterns import matches
from penstock.definition.plan import PlanNode
from penstock.engine import failures
from penstock.engine.commands import DeadLetter, NodeRun
from penstock.engine.events import TaskError
from penstock.engine.readiness import Verdict
from penstock.engine.reasons import ErrorCategory
from penstock.engine.states import NODE_ENDS, NodeState

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def verdict(execution: Execution, node: PlanNode, number: int) -> Verdict:
    """A catcher starts when a failure that it catches has come and its other parents have ended."""
    unsettled = 0
    is_caught = False
    for caught, patterns in node.catches:
        run = execution.runs.get(execution.node(caught).node_id)
        if run is None or run.state not in NODE_ENDS:
            unsettled += 1
        elif _is_meant(run, patterns):
            is_caught = True
    if is_caught:
        others_left = execution.tally.unsettled[number] - unsettled
        return Verdict.WAIT if others_left else Verdict.START
    return Verdict.WAIT if unsettled else Verdict.SKIP


def _is_meant(run: NodeRun, patterns: tuple[str, ...]) -> bool:
    if run.state is not NodeState.FAILED:
        return False
    return not patterns or matches(patterns, run.failures[-1].error)


def may_be_handled(execution: Execution, number: int) -> bool:
    """Whether the failure of a node is open or handled."""
    stack = [number]
    seen = {number}
    while stack:
        failed = stack.pop()
        failed_run = execution.runs[execution.node(failed).node_id]
        for catcher, patterns in execution.node(failed).catchers:
            if catcher in seen or not _is_meant(failed_run, patterns):
                continue
            node = execution.node(catcher)
            run = execution.runs.get(node.node_id)
            if run is None or run.state not in NODE_ENDS or run.state is NodeState.COMPLETED:
                return True
            if run.state is NodeState.FAILED and not node.optional:
                stack.append(catcher)
                seen.add(catcher)
    return False


def caught_by(execution: Execution, catchers: Iterable[int]) -> list[int]:
    """Failures that these catchers were to handle and that nobody may handle any more.

    The one that is to be the execution's error comes first.
    """
    caught: set[int] = set()
    for catcher in catchers:
        for number, patterns in execution.node(catcher).catches:
            node = execution.node(number)
            run = execution.runs.get(node.node_id)
            if run is None or node.optional or number in execution.unhandled:
                continue
            if _is_meant(run, patterns) and not may_be_handled(execution, number):
                caught.add(number)
    return sorted(caught, key=lambda number: _precedence(execution, number))


def open_failures(execution: Execution) -> list[int]:
    """Failures that are open or handled."""
    numbers: list[int] = []
    for number in range(execution.static_count):
        node = execution.node(number)
        run = execution.runs.get(node.node_id)
        if not node.catchers or node.optional or run is None or run.state is not NodeState.FAILED:
            continue
        if may_be_handled(execution, number):
            numbers.append(number)
    return numbers


def give_up(execution: Execution, numbers: Iterable[int]) -> None:
    """Of these failures, record those that nobody may handle any more."""
    unhandled = [number for number in numbers if not may_be_handled(execution, number)]
    for number in sorted(unhandled, key=lambda number: _precedence(execution, number)):
        record_unhandled(execution, number)


def _precedence(execution: Execution, number: int) -> tuple[bool, float, int]:
    """The failure of a catcher says more than the one that it was to handle; else the first."""
    failed = execution.runs[execution.node(number).node_id]
    is_passed_on = False
    for catcher, patterns in execution.node(number).catchers:
        node = execution.node(catcher)
        run = execution.runs.get(node.node_id)
        if run is None or node.optional or not _is_meant(failed, patterns):
            continue
        is_passed_on = is_passed_on or run.state is NodeState.FAILED
    return is_passed_on, failed.finished_at or 0.0, number


def record_unhandled(execution: Execution, number: int) -> TaskError:
    """Leave the dead letter of a failure that had to wait, and make it the execution's error."""
    node = execution.node(number)
    run = execution.runs[node.node_id]
    error = run.failures[-1].error
    execution.unhandled.add(number)
    if error.category != ErrorCategory.DEPENDENCY:
        leave_dead_letter(execution, node, run)
    record_error(execution, number, error)
    return error


def leave_dead_letter(execution: Execution, node: PlanNode, run: NodeRun) -> None:
    """Leave a dead letter, unless the document wants none of this node."""
    if not node.dead_letter:
        return
    execution.commands.dead_letters.append(
        DeadLetter(
            execution.record.execution_id,
            node.node_id,
            node.handler,
            execution.now,
            run.failures,
            run.failures_dropped,
        )
    )


def record_error(execution: Execution, number: int, error: TaskError) -> None:
    """Make the failure of a node the execution's error, if it is the first."""
    record = execution.record
    if record.error is not None:
        return
    node = execution.node(number)
    record.error = _with_originals(execution, node, error)
    record.error_node_id = node.node_id
    execution.commands.record = record


def _with_originals(execution: Execution, node: PlanNode, error: TaskError) -> TaskError:
    """The error of a catcher that has failed, with the failures that it was to handle."""
    originals: list[str] = []
    for number, patterns in node.catches:
        run = execution.runs.get(execution.node(number).node_id)
        if run is not None and _is_meant(run, patterns):
            message = run.failures[-1].error.message
            originals.append(f"{run.node_id!r} has failed with: {message}")
    if not originals:
        return error
    message = f"{error.message}; it was to handle that {', and that '.join(originals)}"
    return failures.cut(structs.replace(error, message=message))
