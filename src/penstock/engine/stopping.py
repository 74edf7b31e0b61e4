"""Failing fast: what runs is stopped and what waits is skipped, in an execution or in one item.

Nodes for clean-up still start. A map or a loop that is stopped ends when its open items have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
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

STATIC = -1
NOWHERE = -2
"""The base of items that have ended, and of items themselves."""


def fail_fast(execution: Execution, item: OpenItem | None = None) -> None:
    """Stop what runs and skip what waits; nodes for clean-up and notification may still start."""
    _fail_all(execution, [item])


def stop_region(execution: Execution, region: Region) -> None:
    """Open nothing any more, and let every open item fail fast."""
    if region.stopping:
        return
    region.stopping = True
    stopped = [item for item in region.open.values() if not item.failing]
    for item in stopped:
        item.failing = True
    _fail_all(execution, stopped)
    if not region.open:
        execution.ended_regions.append(region)


def _fail_all(execution: Execution, parts: Sequence[OpenItem | None]) -> None:
    """Let items fail fast, or the execution itself, for which None stands.

    The worklists are gone through once for all of them: a map may have 10,000 open items.
    """
    bases = {_base_of(part) for part in parts}
    dropped = _drop_ready(execution, bases)
    remaining = [n for n in execution.considered if _base_around(execution, n) not in bases]
    execution.considered.clear()
    execution.considered.extend(remaining)
    for part in parts:
        _fail_one(execution, part, dropped.get(_base_of(part), ()))


def _fail_one(execution: Execution, item: OpenItem | None, dropped: Sequence[int]) -> None:
    considered = execution.considered
    considered_before = len(considered)
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
    added = [considered.pop() for _ in range(len(considered) - considered_before)]
    own_base = _base_of(item)
    others = [n for n in reversed(added) if _base_around(execution, n) != own_base]
    considered.extend(others)
    considered.extend(
        number
        for number in execution.in_order(item)
        if execution.node(number).node_id not in execution.runs
    )


def _base_of(item: OpenItem | None) -> int:
    """What stands for an item, or for the execution itself, in `_base_around`."""
    return STATIC if item is None else item.base


def _base_around(execution: Execution, number: int) -> int:
    """The base of the item that a node is in; of nodes of the plan, `STATIC`."""
    if number < execution.static_count:
        return STATIC
    item = execution.items.get(number)
    if item is None or number == item.own_number:
        return NOWHERE
    return item.base


def _drop_ready(execution: Execution, bases: set[int]) -> dict[int, list[int]]:
    """Take nodes that must not start any more off the lists of those that were about to.

    They are returned by the base of their item.
    """
    dropped: dict[int, list[int]] = {}

    def drop(number: int) -> bool:
        base = _base_around(execution, number)
        # a map that is under way is stopped otherwise
        if base not in bases or number in execution.regions or is_cleanup(execution, number):
            return False
        dropped.setdefault(base, []).append(number)
        return True

    waiting: deque[int] | list[int]
    for waiting in (execution.ready, execution.blocked):
        remaining = [number for number in waiting if not drop(number)]
        waiting.clear()
        waiting.extend(remaining)
    for number in sorted(execution.preparing):
        if drop(number):
            execution.preparing.discard(number)
    return dropped
