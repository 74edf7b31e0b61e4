"""Maps and loops: a node that begins, opens its items or rounds, and ends with the last of them.

An item is like an execution of its own: its nodes settle among themselves, fail it, and end it.
What is recorded is the size and how many items were opened (`more` of the node's record), and one
record for each item that has ended; the rest is derived (`items`).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from heapq import heappush
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from penstock.definition.fields import kind_of
from penstock.definition.template import Missing, Reference, look_up
from penstock.engine import deadlines, failures, items, loops, reused_outputs
from penstock.engine.commands import AttemptFailure, DeadLetter, More, NodeRun
from penstock.engine.data import OUTPUT_BYTES_MAX
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.failing import DEAD_LETTERS_MAX, fail_node
from penstock.engine.identities import DuplicateKey, Identities, identities_of
from penstock.engine.items import OpenItem, Region
from penstock.engine.outputs import (
    ItemOutputs,
    Outputs,
    Undecoded,
    item_value,
    scope_around,
    scope_of,
)
from penstock.engine.readiness import Outcome
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import complete, settle
from penstock.engine.states import NodeState
from penstock.engine.stopping import fail_fast, stop_region
from penstock.engine.transitions import move_item, move_node

if TYPE_CHECKING:
    from penstock.definition.config import Config
    from penstock.definition.plan import RegionPlan
    from penstock.engine.state import Execution

BODY_NODES_MAX = 200_000
"""Nodes in all items of a map together."""
ITEM_BYTES_MAX = 1024 * 1024

_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])


def begin(execution: Execution, number: int, run: NodeRun, plan: RegionPlan) -> None:
    """Start a map or a loop: its list is looked up, once."""
    scope = scope_of(execution, number)
    values: list[msgspec.Raw] | None = None
    try:
        if plan.source is not None:
            values = list_of(execution, plan.source, scope)
            _check_size(values, len(plan.body.nodes), execution.plan.items_max)
            if plan.key is not None:
                identities_of(plan, values)
    except (Missing, DuplicateKey) as error:
        _fail(execution, number, run, str(error))
        return

    run.started_at = execution.now
    size = 0 if values is None else len(values)
    run.more = More(size=size)
    reason = f"{size} items" if plan.each else None
    move_node(execution, run, NodeState.WAITING, reason)
    region = items.begin_region(execution, number, run, plan)
    region.values = values
    deadlines.arm_region(execution, run)
    _go_on(execution, region)


def _check_size(values: list[msgspec.Raw], body_nodes: int, items_max: int) -> None:
    size = len(values)
    if size > items_max:
        raise Missing(
            f"the list has {size:,} items; the limit is {items_max:,} (too_many_items),"
            " or up to 100,000 with PENSTOCK_MAP_ITEMS_MAX"
        )
    if size * body_nodes > BODY_NODES_MAX:
        raise Missing(
            f"{size:,} items with {body_nodes} nodes are {size * body_nodes:,} nodes;"
            f" the limit is {BODY_NODES_MAX:,} (too_many_items)"
        )
    for index, value in enumerate(values):
        if memoryview(value).nbytes > ITEM_BYTES_MAX:
            raise Missing(f"item {index} has more than {ITEM_BYTES_MAX:,} bytes")


def list_of(execution: Execution, source: Config, scope: Outputs) -> list[msgspec.Raw]:
    """The items of a map, undecoded. Raises `Missing`."""
    value = _value_of("for_each", source, scope, execution.record.input)
    if isinstance(value, msgspec.Raw):
        try:
            return _list_decoder.decode(value)
        except msgspec.ValidationError:
            value = msgspec.json.decode(value)
    if not isinstance(value, list):
        written = source.value["for_each"]
        raise Missing(f"for_each needs a list, and {written} is {kind_of(value)}")
    return [_raw(item) for item in value]


def _raw(value: Any) -> msgspec.Raw:
    return value if isinstance(value, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(value))


def _value_of(name: str, config: Config, scope: Outputs, recorded_input: bytes) -> Any:
    """The value of a setting; JSON text where it is one large value. Raises `Missing`."""
    slots = config.slots
    if len(slots) == 1 and slots[0].path == (name,) and len(slots[0].text) == 1:
        reference = slots[0].text[0]
        if isinstance(reference, Reference):
            return look_up(reference, Undecoded(scope, recorded_input))
    resolved, _ = config.resolve(scope)
    return resolved[name]


def _fail(execution: Execution, number: int, run: NodeRun, message: str) -> None:
    error = TaskError(ErrorCategory.ITEMS, message)
    fail_node(execution, number, run, error, dead_letter=False)


def _go_on(execution: Execution, region: Region) -> None:
    """After a beginning, or the end of an item: open another one, or end the region."""
    if region.plan.repeat is not None or region.is_done:
        execution.ended_regions.append(region)
    elif not region.stopping:
        execution.filling.append(region)


def has_values(execution: Execution, number: int, region: Region | None) -> bool:
    """Whether the items around a node are in memory.

    A new owner looks the list up again, from what was recorded. If that is a large output that has
    to be fetched, the node is blocked until then.
    """
    while region is not None:
        if not _has_own_values(execution, region):
            execution.blocked.append(number)
            return False
        region = region.outer.region if region.outer else None
    return True


def _look_up_again(execution: Execution, region: Region) -> bool:
    outer = region.outer
    if outer is not None and not _has_own_values(execution, outer.region):
        return False
    if want(execution, scope_around(execution, region), region.plan.needs):
        return False
    if region.plan.source is None:
        region.values = loops.look_up_previous(execution, region, region.opened - 1)
        return region.values is not None
    region.values = list_of(execution, region.plan.source, scope_around(execution, region))
    return True


def _has_own_values(execution: Execution, region: Region) -> bool:
    return region.values is not None or _look_up_again(execution, region)


def want(execution: Execution, scope: Outputs, names: AbstractSet[str]) -> bool:
    """Note which large outputs have to be fetched; whether there are any."""
    lacks = False
    for name in names:
        address = scope.address(name)
        value = None if address is None else execution.outputs.get(address)
        if isinstance(value, Blob) and address is not None and address not in execution.loaded:
            execution.wanted[address] = value
            lacks = True
    return lacks


def fill(execution: Execution, region: Region) -> None:
    """Open the next item of a map, if there is room for one."""
    if execution.regions.get(region.number) is not region:
        return
    if region.plan.repeat is not None:
        loops.fill(execution, region)
        return
    for item in region.without_deadline:
        items.arm_item(execution, item, execution.now)
    region.without_deadline.clear()
    if region.is_done:
        execution.ended_regions.append(region)
        return
    if not region.has_room or not has_values(execution, region.number, region):
        return
    open_next(execution, region)
    if region.has_room:
        execution.filling.append(region)


def open_next(execution: Execution, region: Region) -> None:
    index = region.opened
    output = _kept_output(execution, region, index)
    if output is not None:
        _reuse_item(execution, region, index, output)
        return
    item = items.open_item(execution, region, index)
    region.more.opened = index + 1
    execution.commands.nodes[region.address] = region.run
    items.arm_item(execution, item, execution.now)
    for root in region.plan.body.roots:
        number = item.base + root
        execution.readied.add(number)
        execution.ready.append(number)


def _kept_output(execution: Execution, region: Region, index: int) -> Value | None:
    """The output of an item that an earlier execution has completed."""
    kept = execution.kept_items.get(region.address)
    return None if kept is None else kept.get(_identity_at(region, index))


def _reuse_item(execution: Execution, region: Region, index: int, output: Value) -> None:
    """Record an item that an earlier execution has completed."""
    address = region.item_address(index)
    region.more.opened = index + 1
    execution.commands.nodes[region.address] = region.run
    run = NodeRun(address, NodeState.PENDING)
    execution.runs[address] = run
    execution.outputs[address] = output
    execution.commands.outputs[address] = output
    if type(output) is bytes:
        execution.commands.size += len(output)
    move_item(execution, run, NodeState.COMPLETED, Reason.REUSED)
    region.close(index, NodeState.COMPLETED)
    _go_on(execution, region)


def end_item(execution: Execution, item: OpenItem) -> None:
    """Record how an item has ended whose last node has."""
    region = item.region
    if region.open.get(item.index) is not item:
        return
    if region.plan.is_single:
        state = execution.runs[item.address].state
    else:
        ended = _record_item(execution, item)
        if ended is None:
            return
        state = ended
    items.close_item(execution, item)
    region.close(item.index, state, is_optional=region.is_optional)
    if region.has_too_many_failures:
        stop_region(execution, region)
    _go_on(execution, region)


def _record_item(execution: Execution, item: OpenItem) -> NodeState | None:
    """The record of an item with a body; None if its output has to be fetched first."""
    output: Value | None = None
    if item.timed_out or (item.error is None and _was_stopped_by_its_time(execution, item)):
        seconds = item.region.plan.each.item_timeout_seconds if item.region.plan.each else 0.0
        message = f"the item didn't end within {seconds or 0.0:g} s"
        item.error = TaskError(ErrorCategory.TIMEOUT, message)
        item.error_node_id = None
    if item.error is None and not item.stopped and not _is_skipped(execution, item):
        try:
            output = output_of(execution, item)
        except Missing as missing:
            item.fail(None, TaskError(ErrorCategory.CONFIG, f"the item's output: {missing}"))
        else:
            if output is None:
                return None
    run = NodeRun(item.address, NodeState.PENDING)
    execution.runs[item.address] = run
    if item.error is not None:
        prefix = len(item.address) + 1
        node_id = item.error_node_id[prefix:] if item.error_node_id else None
        error = structs.replace(item.error, detail={"node": node_id}, traceback=None)
        failures.note(execution, run, error, is_last=True)
        move_item(execution, run, NodeState.FAILED, error.category)
    elif item.stopped:
        move_item(execution, run, NodeState.CANCELLED, Reason.EXECUTION_FAILED)
    elif output is None:
        move_item(execution, run, NodeState.SKIPPED, Reason.BRANCH_NOT_TAKEN)
    else:
        execution.outputs[item.address] = output
        execution.commands.outputs[item.address] = output
        if type(output) is bytes:
            execution.commands.size += len(output)
        move_item(execution, run, NodeState.COMPLETED)
    return run.state


def _states_in(execution: Execution, item: OpenItem, numbers: tuple[int, ...]) -> set[NodeState]:
    nodes = execution.item_nodes
    return {execution.runs[nodes[item.base + number].node_id].state for number in numbers}


def _is_skipped(execution: Execution, item: OpenItem) -> bool:
    return _states_in(execution, item, item.region.plan.body.sinks) == {NodeState.SKIPPED}


def _was_stopped_by_its_time(execution: Execution, item: OpenItem) -> bool:
    """As the records have it, of an item that was opened by an earlier owner."""
    if item.stopped:
        return False
    numbers = tuple(range(len(item.region.plan.body.nodes)))
    return NodeState.CANCELLED in _states_in(execution, item, numbers)


def output_of(execution: Execution, item: OpenItem) -> Value | None:
    """The output of an item with a body; None if values have to be fetched first."""
    plan = item.region.plan
    body = plan.body
    scope = ItemOutputs(execution, item)
    if plan.collect is not None:
        if not has_values(execution, item.own_number, item.region):
            return None
        if want(execution, scope, plan.collect.references):
            execution.blocked.append(item.own_number)
            return None
        name = "collect" if plan.each else "carry"
        value = _value_of(name, plan.collect, scope, execution.record.input)
        return bytes(_raw(value))
    sinks = [body.nodes[sink].node_id for sink in body.sinks]
    if len(sinks) == 1:
        return execution.outputs.get(item.address_of(sinks[0]), b"null")
    if want(execution, scope, frozenset(sinks)):
        execution.blocked.append(item.own_number)
        return None
    present = [name for name in sinks if item.address_of(name) in execution.outputs]
    return msgspec.json.encode({name: msgspec.Raw(scope.raw(name)) for name in present})


def end_region(execution: Execution, region: Region) -> None:
    """End a map whose last item has ended; of a loop, end it or begin the next round."""
    number = region.number
    if execution.regions.get(number) is not region:
        return
    run = region.run
    if items.is_stopped_from_outside(execution, region) and not region.has_failed:
        if region.open:
            return
        forget(execution, region)
        move_node(execution, run, NodeState.CANCELLED, Reason.EXECUTION_FAILED)
        settle(execution, number, Outcome.SKIP)
        return
    if region.plan.repeat is not None:
        loops.advance(execution, region, region.plan.repeat)
        return
    if not region.is_done:
        return
    if region.has_failed:
        forget(execution, region)
        _fail(execution, number, run, _failed_items(execution, region))
    elif region.timed_out or items.CANCELLED in region.ended:
        forget(execution, region)
        fail_timed_out(execution, number, run)
    else:
        _complete(execution, region)


def forget(execution: Execution, region: Region) -> None:
    """A region has ended."""
    _count_dead_letters(execution, region)
    del execution.regions[region.number]
    reused_outputs.drop_items(execution, region.address)


def fail_timed_out(execution: Execution, number: int, run: NodeRun) -> None:
    seconds = execution.node(number).timeout_seconds
    error = TaskError(ErrorCategory.TIMEOUT, f"it didn't end within {seconds:g} s")
    fail_node(execution, number, run, error, dead_letter=False)


def _count_dead_letters(execution: Execution, region: Region) -> None:
    """One dead letter that stands for the failed items which have none of their own."""
    if region.failed <= DEAD_LETTERS_MAX:
        return
    run = region.run
    error = TaskError(ErrorCategory.ITEMS, _failed_items(execution, region))
    execution.commands.dead_letters.append(
        DeadLetter(
            execution.record.execution_id,
            region.address,
            execution.node(region.number).handler,
            execution.now,
            [AttemptFailure(run.attempt, execution.now, error)],
        )
    )


def _failed_items(execution: Execution, region: Region) -> str:
    """How many items have failed, with the first one's error."""
    index = region.ended.index(items.FAILED)
    address = region.item_address(index)
    error = _error_of(execution, region, index)
    node_id = _failed_node(error, region)
    if not region.plan.is_single and node_id:
        address = f"{address}.{node_id}"
    return f"{region.failed} of {region.size} items failed; first: {address}: {error.message}"


def _error_of(execution: Execution, region: Region, index: int) -> TaskError:
    return execution.runs[region.item_address(index)].failures[-1].error


def _failed_node(error: TaskError, region: Region) -> str | None:
    if region.plan.is_single:
        return region.plan.body.nodes[0].node_id
    node_id = error.detail.get("node") if isinstance(error.detail, dict) else None
    return node_id if isinstance(node_id, str) else None


def _complete(execution: Execution, region: Region) -> None:
    number = region.number
    each = region.plan.each
    if each is None or each.output == "none":
        output: bytes | None = b"null"
    elif each.output == "counts":
        output = msgspec.json.encode(counts(region.ended))
    else:
        size = _output_bytes(execution, region)
        if size > OUTPUT_BYTES_MAX:
            forget(execution, region)
            message = (
                f"the outputs of its items have {size:,} bytes together; the limit is"
                f" {OUTPUT_BYTES_MAX:,} (output_too_large): choose with collect what is needed of"
                " them, or set output to counts"
            )
            _fail(execution, number, region.run, message)
            return
        output = _list_output(execution, region)
    if output is None:
        execution.blocked.append(number)
        return
    forget(execution, region)
    complete(execution, number, region.run, output)


def counts(ended: bytes | bytearray) -> dict[str, int]:
    return {
        "total": len(ended),
        "completed": ended.count(items.COMPLETED),
        "failed": ended.count(items.FAILED),
        "skipped": ended.count(items.SKIPPED),
    }


def _output_bytes(execution: Execution, region: Region) -> int:
    size = 0
    for index in range(region.size):
        value = execution.outputs.get(region.item_address(index), b"")
        size += value.size if isinstance(value, Blob) else len(value)
    return size


def _list_output(execution: Execution, region: Region) -> bytes | None:
    """The outputs of all items as one list; None if large ones have to be fetched first."""
    each = region.plan.each
    collects_errors = each is not None and each.on_item_failure == "collect"
    texts: list[bytes] = []
    lacks = False
    for index, code in enumerate(region.ended):
        address = region.item_address(index)
        if code == items.FAILED and collects_errors:
            texts.append(_error_in_list(execution, region, index))
            continue
        value = execution.outputs.get(address) if code == items.COMPLETED else None
        if isinstance(value, Blob):
            if address not in execution.loaded:
                execution.wanted[address] = value
                lacks = True
                continue
            value = execution.loaded[address]
        texts.append(b"null" if value is None else value)
    return None if lacks else b"[%b]" % b",".join(texts)


def _error_in_list(execution: Execution, region: Region, index: int) -> bytes:
    error = _error_of(execution, region, index)
    shown = {
        "category": error.category,
        "message": error.message,
        "node": _failed_node(error, region),
    }
    return msgspec.json.encode({"error": shown, "index": index})


def go_on(execution: Execution, number: int) -> bool:
    """Go on with an item or a region that waited for values; whether the number is such a one."""
    region = execution.regions.get(number)
    if region is not None:
        execution.ended_regions.append(region)
        execution.filling.append(region)
        return True
    if number < execution.static_count or number in execution.item_nodes:
        return False
    item = execution.items.get(number)
    if item is not None:
        execution.ended_items.append(item)
    return True


def region_due(execution: Execution, number: int) -> None:
    """The time of a map or a loop is up: open items are stopped, and it fails."""
    region = execution.regions.get(number)
    if region is None:
        return
    region.timed_out = True
    stop_region(execution, region)
    if region.plan.repeat is not None:
        execution.ended_regions.append(region)


def item_due(execution: Execution, own_number: int) -> None:
    """The time of an item is up: it fails."""
    item = execution.items.get(own_number)
    if item is None or item.failing or item.timed_out:
        return
    item.timed_out = True
    item.failing = True
    fail_fast(execution, item)


def round_due(execution: Execution, number: int) -> None:
    """A loop has waited for its next round."""
    region = execution.regions.get(number)
    if region is not None:
        execution.ended_regions.append(region)


def arm_round(execution: Execution, region: Region, due_at: float) -> None:
    heappush(execution.deadlines, (due_at, region.number, region.run.attempt, "round"))


def context_of(item: OpenItem) -> tuple[bytes | None, int]:
    """What a handler inside of an item is given: the item, and its index or round."""
    index = item.index + item.region.first_index
    if item.region.plan.repeat is not None and not item.region.values:
        return None, index
    return item_value(item), index


def identity_address(item: OpenItem, address: str) -> str:
    """An address in which items stand by their identities: what idempotency keys are made of.

    A list that is made again may be in another order; a payment must not become another's.
    """
    prefix = f"{_identified(item)}"
    return prefix + address[len(item.address) :]


def _identified(item: OpenItem) -> str:
    region = item.region
    address = region.address
    outer = region.outer
    if outer is not None:
        address = _identified(outer) + address[len(outer.address) :]
    return f"{address}#{_identity_at(region, item.index)}"


def _identity_at(region: Region, index: int) -> str:
    if region.plan.repeat is not None:
        return str(index + region.first_index)
    if region.identities is None:
        region.identities = Identities(region.plan, region.values or [])
    return region.identities.at(index)
