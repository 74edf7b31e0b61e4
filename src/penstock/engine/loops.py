"""Loops: rounds, one after another, until a condition holds or there have been enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from penstock.definition.condition import Condition
from penstock.definition.template import Missing
from penstock.engine import items, lists, regions
from penstock.engine.deciding import condition_preparation, is_true_at_once
from penstock.engine.events import TaskError, Value
from penstock.engine.failing import fail_node
from penstock.engine.items import OpenItem, Region
from penstock.engine.outputs import ItemOutputs, Outputs, scope_around
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import complete

PAUSE_SECONDS_MAX = 10 * 365 * 86400.0

if TYPE_CHECKING:
    from penstock.definition.model import Repeat
    from penstock.definition.plan import Body
    from penstock.engine.state import Execution


def advance(execution: Execution, region: Region, repeat: Repeat) -> None:
    """Decide what follows the last round, from what is recorded of it."""
    if region.open:
        return
    if region.more.timed_out:
        regions.forget(execution, region)
        regions.fail_timed_out(execution, region.number, region.run)
    elif not region.opened:
        _open_round(execution, region)
    elif _was_reused(execution, region):
        _follow_up(execution, region, repeat)
    elif region.ended[region.opened - 1] == items.COMPLETED:
        has_ended = _holds(execution, region)
        if has_ended:
            _end(execution, region, is_exhausted=False)
        elif has_ended is not None:
            _follow_up(execution, region, repeat)
    elif region.ended[region.opened - 1] == items.FAILED and repeat.on_round_failure == "fail":
        _fail(execution, region, _failed_round(execution, region))
    else:
        _follow_up(execution, region, repeat)


def _was_reused(execution: Execution, region: Region) -> bool:
    """Whether an earlier execution ran the last round: only rounds with another one after them."""
    run = execution.runs[region.item_address(region.opened - 1)]
    return run.reason == Reason.REUSED


def _follow_up(execution: Execution, region: Region, repeat: Repeat) -> None:
    """After a round that wasn't the last: the next one, or the end without success."""
    if region.opened < repeat.max_rounds:
        _open_after_pause(execution, region, repeat)
    elif repeat.on_exhausted == "continue":
        _end(execution, region, is_exhausted=True)
    else:
        message = f"after {region.opened} rounds its condition was still false: {repeat.until}"
        _fail(execution, region, message)


def _fail(execution: Execution, region: Region, message: str) -> None:
    regions.forget(execution, region)
    error = TaskError(ErrorCategory.ITEMS, message)
    fail_node(execution, region.number, region.run, error, dead_letter=False)


def _failed_round(execution: Execution, region: Region) -> str:
    address = region.item_address(region.opened - 1)
    failures = execution.runs[address].failures
    return f"{address} failed: {failures[-1].error.message}" if failures else f"{address} failed"


def _open_after_pause(execution: Execution, region: Region, repeat: Repeat) -> None:
    if _was_reused(execution, region):
        _open_round(execution, region)
        return
    ended_at = execution.runs[region.item_address(region.opened - 1)].finished_at or 0.0
    due_at = ended_at + pause_seconds(repeat, region.opened)
    if due_at > execution.now:
        regions.arm_round(execution, region, due_at)
    else:
        _open_round(execution, region)


def pause_seconds(repeat: Repeat, rounds: int) -> float:
    """The pause after so many rounds."""
    try:
        seconds = repeat.every_seconds * repeat.multiplier ** (rounds - 1)
    except OverflowError:
        seconds = PAUSE_SECONDS_MAX
    limit = repeat.most_every_seconds
    return min(seconds, PAUSE_SECONDS_MAX if limit is None else limit)


def _open_round(execution: Execution, region: Region) -> None:
    """Begin the next round as soon as the execution isn't paused."""
    region.round_is_due = True
    execution.filling.append(region)


def fill(execution: Execution, region: Region) -> None:
    """Open the round that is due."""
    if not region.round_is_due or region.open or region.stopping:
        return
    outer = region.outer
    if outer is not None and not regions.has_values(execution, region.number, outer.region):
        return
    try:
        previous = look_up_previous(execution, region, region.opened)
    except Missing as error:
        _fail(execution, region, f"initial: {error}")
        return
    if previous is None:
        execution.blocked.append(region.number)
        return
    region.round_is_due = False
    lists.set_values(execution, region, previous)
    _drop_old_round(execution, region)
    region.more.size = region.opened + 1
    regions.open_next(execution, region)


def _drop_old_round(execution: Execution, region: Region) -> None:
    """Drop the outputs of the round that is one too many, when the next one begins.

    What a round carried on stays while it is `previous`: rounds after it may all have failed.
    """
    repeat = region.plan.repeat
    old = region.opened - 1 - (repeat.keep_rounds if repeat else 0)
    if old < 0:
        return
    address = region.item_address(old)
    dropped = [] if _is_previous(region, old) else [address]
    if not region.plan.is_single:
        dropped += _addresses_inside(execution, region.plan.body, f"{address}.")
    for name in dropped:
        if name in execution.outputs:
            del execution.outputs[name]
            execution.commands.dropped.append(name)
            execution.commands.outputs.pop(name, None)


def _is_previous(region: Region, index: int) -> bool:
    """Whether a round is the last one that completed."""
    return region.ended.rfind(items.COMPLETED) == index


def _addresses_inside(execution: Execution, body: Body, prefix: str) -> Iterator[str]:
    """The addresses of all nodes and items of a body that has ended."""
    for node in body.nodes:
        address = prefix + node.node_id
        yield address
        run = execution.runs.get(address)
        if node.region is None or run is None or run.more is None:
            continue
        first = 0 if node.region.each else 1
        for index in range(first, first + run.more.opened):
            item = f"{address}[{index}]"
            yield item
            if not node.region.is_single:
                yield from _addresses_inside(execution, node.region.body, f"{item}.")


def look_up_previous(
    execution: Execution, region: Region, index: int, scope: Outputs | None = None
) -> list[msgspec.Raw] | None:
    """What a round finds as `previous`; None if it has to be fetched first. Raises `Missing`.

    It is what the last round before it that completed carried on.
    """
    for earlier in reversed(range(index)):
        if region.ended[earlier] == items.COMPLETED:
            value = _recorded(execution, region.item_address(earlier))
            return None if value is None else [msgspec.Raw(value)]
    initial = region.plan.initial
    if initial is None:
        return []
    scope = scope or scope_around(execution, region)
    if regions.want(execution, scope, initial.references):
        return None
    resolved, _ = initial.resolve(scope)
    return [msgspec.Raw(msgspec.json.encode(resolved["initial"]))]


def _recorded(execution: Execution, address: str) -> bytes | None:
    """An output; None if it has to be fetched first."""
    value: Value = execution.outputs.get(address, b"null")
    if isinstance(value, bytes):
        return value
    if address not in execution.loaded:
        execution.wanted[address] = value
        return None
    return execution.loaded[address]


def _holds(execution: Execution, region: Region) -> bool | None:
    """Whether the loop's condition holds after its last round; None if that isn't known yet."""
    if region.decided is not None and region.decided[0] == region.opened:
        return region.decided[1]
    is_true = _evaluate(execution, region)
    if is_true is not None:
        region.decided = (region.opened, is_true)
    return is_true


def _evaluate(execution: Execution, region: Region) -> bool | None:
    number = region.number
    prepared = execution.prepared.pop(region.address, None)
    if prepared is not None and prepared.error is not None:
        _fail(execution, region, prepared.error.message)
        return None
    if prepared is not None:
        return prepared.outcome == "start"

    condition = region.plan.until
    scope = ItemOutputs(execution, OpenItem(region, region.opened - 1))
    is_under_way = number in execution.preparing
    if condition is None or is_under_way or not regions.has_values(execution, number, region):
        return None
    if regions.want(execution, scope, condition.references):
        execution.blocked.append(number)
        return None
    return _decide(execution, region, condition, scope)


def _decide(
    execution: Execution, region: Region, condition: Condition, scope: ItemOutputs
) -> bool | None:
    """At once if that is cheap, else elsewhere."""
    try:
        is_true = is_true_at_once(execution, condition, scope)
    except Missing as error:
        _fail(execution, region, str(error))
        return None
    if is_true is None:
        preparation = condition_preparation(execution, region.address, condition, scope)
        execution.unprepared[region.address] = preparation
        execution.preparing.add(region.number)
    return is_true


def _end(execution: Execution, region: Region, *, is_exhausted: bool) -> None:
    """Complete a loop with the output of its last round."""
    number = region.number
    item = OpenItem(region, region.opened - 1)
    body = region.plan.body
    sinks = [body.nodes[sink].node_id for sink in body.sinks]
    scope = ItemOutputs(execution, item)
    if regions.want(execution, scope, frozenset(sinks)):
        execution.blocked.append(number)
        return
    present = [name for name in sinks if item.address_of(name) in execution.outputs]
    if len(sinks) == 1:
        output = msgspec.json.decode(scope.raw(sinks[0])) if present else None
    else:
        output = {name: msgspec.Raw(scope.raw(name)) for name in present}
    if not isinstance(output, dict):
        output = {"output": output}
    output["rounds"] = region.opened
    if is_exhausted:
        output["exhausted"] = True
    regions.forget(execution, region)
    complete(execution, number, region.run, msgspec.json.encode(output))
