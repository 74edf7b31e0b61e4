"""Failing fast: what runs is stopped and what waits is skipped, in an execution or in one item.

Nodes for clean-up still start. A map or a loop that is stopped ends when its open items have.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from penstock.engine.ending import stop_task
from penstock.engine.items import OpenItem, Region, is_cleanup
from penstock.engine.readiness import Outcome
from penstock.engine.reasons import Reason
from penstock.engine.settling import settle, skip
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def fail_fast(execution: Execution, item: OpenItem | None = None) -> None:
    """Stop what runs and skip what waits; nodes for clean-up and notification may still start."""
    dropped = _drop_ready(execution, item)
    for number in execution.in_order(item):
        run = execution.runs.get(execution.node(number).node_id)
        if run is None or run.state in NODE_ENDS or is_cleanup(execution, number):
            continue
        region = execution.regions.get(number)
        if region is not None:
            stop_region(execution, region)
            continue
        stop_task(execution, run)
        move_node(execution, run, NodeState.CANCELLED, Reason.EXECUTION_FAILED)
        settle(execution, number, Outcome.SKIP)
    for number in dropped:
        node_id = execution.node(number).node_id
        execution.prepared.pop(node_id, None)
        execution.unprepared.pop(node_id, None)
        if node_id not in execution.runs:
            skip(execution, number, Reason.EXECUTION_FAILED)
    # all that wait are looked at again, parents before children
    others = [number for number in execution.considered if not _is_in(execution, number, item)]
    execution.considered.clear()
    execution.considered.extend(others)
    execution.considered.extend(
        number
        for number in execution.in_order(item)
        if execution.node(number).node_id not in execution.runs
    )


def stop_region(execution: Execution, region: Region) -> None:
    """Open nothing any more, and let every open item fail fast."""
    if region.stopping:
        return
    region.stopping = True
    for item in list(region.open.values()):
        if not item.failing:
            item.failing = True
            item.stopped = True
            fail_fast(execution, item)
    if not region.open:
        execution.ended_regions.append(region)


def _is_in(execution: Execution, number: int, item: OpenItem | None) -> bool:
    """Whether a number is of a node of the item itself; without an item, of the plan."""
    if item is None:
        return number < execution.static_count
    return item.base <= number < item.own_number


def _drop_ready(execution: Execution, item: OpenItem | None) -> list[int]:
    """Take nodes that must not start any more off the lists of those that were about to."""

    def is_dropped(number: int) -> bool:
        if not _is_in(execution, number, item):
            return False
        # a map that is under way is stopped otherwise
        return number not in execution.regions and not is_cleanup(execution, number)

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
