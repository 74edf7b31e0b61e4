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
from penstock.engine import deadlines, failures, items, lists, loops, reused_outputs
from penstock.engine.commands import AttemptFailure, DeadLetter, More, NodeRun
from penstock.engine.data import OUTPUT_BYTES_MAX
from penstock.engine.ending import stop_task
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
from penstock.engine.settling import complete, open_run, run_of_item, settle
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
PORTION_BYTES = 1024 * 1024
"""How much of a map's output is put together at a time."""
ITEM_COST_BYTES = 64
"""What putting an output into the list costs at least, as bytes."""

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
    run.more = run.more or More()
    run.more.size = size
    reason = f"{size} items" if plan.each else None
    move_node(execution, run, NodeState.WAITING, reason)
    region = items.begin_region(execution, number, run, plan)
    if values is not None:
        lists.set_values(execution, region, values)
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


def _fail(
    execution: Execution, number: int, run: NodeRun, message: str, reason: str | None = None
) -> None:
    error = TaskError(ErrorCategory.ITEMS, message)
    fail_node(execution, number, run, error, dead_letter=False, reason=reason)


def _go_on(execution: Execution, region: Region) -> None:
    """After a beginning, or the end of an item: open another one, or end the region."""
    if region.plan.repeat is not None or region.is_done:
        execution.ended_regions.append(region)
    elif not region.stopping:
        execution.filling.append(region)


def has_values(execution: Execution, number: int, region: Region | None) -> bool:
    """Whether the items around a node are in memory.

    A new owner looks the list up again, from what was recorded, and so does one that has let go of
    it. If that is a large output that has to be fetched, the node is blocked until then.
    """
    while region is not None:
        if region.values is None and not _look_up_again(execution, region):
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
        values = loops.look_up_previous(execution, region, region.opened - 1)
        if values is None:
            return False
    else:
        values = list_of(execution, region.plan.source, scope_around(execution, region))
    lists.set_values(execution, region, values)
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
    if region.without_deadline:
        for item in region.without_deadline:
            if item.opened_at is None:
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
    _name_failure(execution, item)
    was_stopped = item.failing and _was_stopped(execution, item)
    if item.error is None and not was_stopped and not _is_skipped(execution, item):
        try:
            output = output_of(execution, item)
        except Missing as missing:
            item.error = TaskError(ErrorCategory.CONFIG, f"the item's output: {missing}")
        else:
            if output is None:
                return None
    run = run_of_item(execution, item)
    if item.error is not None:
        prefix = len(item.address) + 1
        node_id = item.error_node_id[prefix:] if item.error_node_id else None
        error = structs.replace(item.error, detail={"node": node_id}, traceback=None)
        failures.note(execution, run, error, is_last=True)
        move_item(execution, run, NodeState.FAILED, error.category)
    elif was_stopped:
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


def _name_failure(execution: Execution, item: OpenItem) -> None:
    """Set the error of an item that has failed; its time limit comes before a node's failure."""
    failed = None if item.error is None else items.first_failure(execution, item)
    if failed is not None:
        item.fail(failed)
    if item.timed_out:
        item.error = _item_timeout(item)
        item.error_node_id = None


def _has_state(execution: Execution, item: OpenItem, local_number: int, state: NodeState) -> bool:
    node = execution.item_nodes[item.base + local_number]
    return execution.runs[node.node_id].state is state


def _was_stopped(execution: Execution, item: OpenItem) -> bool:
    """Whether a node of the item was kept from running by what failed elsewhere."""
    for number in range(item.base, item.own_number):
        run = execution.runs[execution.item_nodes[number].node_id]
        is_skipped = run.state is NodeState.SKIPPED and run.reason == Reason.EXECUTION_FAILED
        if is_skipped or run.state is NodeState.CANCELLED:
            return True
    return False


def _is_skipped(execution: Execution, item: OpenItem) -> bool:
    for sink in item.region.plan.body.sinks:
        if not _has_state(execution, item, sink, NodeState.SKIPPED):
            return False
    return True


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
    if len(body.sinks) == 1:
        only = execution.item_nodes[item.base + body.sinks[0]]
        return execution.outputs.get(only.node_id, b"null")
    sinks = [body.nodes[sink].node_id for sink in body.sinks]
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
    if region.has_too_many_failures:
        stop_region(execution, region)
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
        reason, error = _failed_items(execution, region)
        _fail(execution, number, run, f"{reason}: {error.message}", reason)
    elif region.more.timed_out:
        forget(execution, region)
        fail_timed_out(execution, number, run)
    else:
        _complete(execution, region)


def forget(execution: Execution, region: Region) -> None:
    """A region has ended."""
    _count_dead_letters(execution, region)
    lists.drop_values(execution, region)
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
    reason, first = _failed_items(execution, region)
    error = TaskError(ErrorCategory.ITEMS, f"{reason}: {first.message}")
    execution.commands.dead_letters.append(
        DeadLetter(
            execution.record.execution_id,
            region.address,
            execution.node(region.number).handler,
            execution.now,
            [AttemptFailure(run.attempt, execution.now, error)],
        )
    )


def _failed_items(execution: Execution, region: Region) -> tuple[str, TaskError]:
    """How many items have failed and the first one's address, and its error."""
    index = region.ended.index(items.FAILED)
    address = region.item_address(index)
    error = _error_of(execution, region, index)
    node_id = _failed_node(error, region)
    if not region.plan.is_single and node_id:
        address = f"{address}.{node_id}"
    return f"{region.failed} of {region.size} items failed; first: {address}", error


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
        output = b"null"
    elif each.output == "counts":
        output = msgspec.json.encode(counts(region.ended))
    else:
        if not region.assembled:
            size = _output_bytes(execution, region)
            if size > OUTPUT_BYTES_MAX:
                _fail_too_large(execution, region, size)
                return
        if not _assemble(execution, region):
            return
        output = b"[%b]" % b",".join(region.assembled)
        region.assembled.clear()
    forget(execution, region)
    complete(execution, number, region.run, output)


def _fail_too_large(execution: Execution, region: Region, size: int) -> None:
    forget(execution, region)
    message = (
        f"the outputs of its items have {size:,} bytes together; the limit is"
        f" {OUTPUT_BYTES_MAX:,} (output_too_large): choose with collect what is needed of"
        " them, or set output to counts"
    )
    _fail(execution, region.number, region.run, message)


def counts(ended: bytes | bytearray) -> dict[str, int]:
    return {
        "total": len(ended),
        "completed": ended.count(items.COMPLETED),
        "failed": ended.count(items.FAILED),
        "skipped": ended.count(items.SKIPPED),
    }


def _output_bytes(execution: Execution, region: Region) -> int:
    outputs = execution.outputs
    size = 0
    for index in range(region.size):
        value = outputs.get(region.item_address(index))
        if value is not None:
            size += value.size if isinstance(value, Blob) else len(value)
    return size


def _assemble(execution: Execution, region: Region) -> bool:
    """Put the next items' outputs into the list; whether it is whole.

    Not more than a commit may carry: the rest comes after the next one, so that the loop has its
    turn. Large outputs have to be fetched first, also a portion at a time.
    """
    texts = region.assembled
    size = 0
    wanted: dict[str, Blob] = {}
    for index in range(len(texts), region.size):
        if size >= PORTION_BYTES:
            break
        value = _output_in_list(execution, region, index)
        size += ITEM_COST_BYTES
        if not isinstance(value, Blob):
            size += len(value)
            if not wanted:
                texts.append(value)
        else:
            size += value.size
            wanted[region.item_address(index)] = value
    if wanted:
        execution.wanted.update(wanted)
        execution.blocked.append(region.number)
        return False
    is_whole = len(texts) == region.size
    if not is_whole:
        execution.ended_regions.append(region)
        execution.commands.size += size
    return is_whole


def _output_in_list(execution: Execution, region: Region, index: int) -> bytes | Blob:
    """What stands for an item in the list; a blob if that has to be fetched first."""
    each = region.plan.each
    code = region.ended[index]
    if code == items.FAILED and each is not None and each.on_item_failure == "collect":
        return _error_in_list(execution, region, index)
    if code != items.COMPLETED:
        return b"null"
    address = region.item_address(index)
    value = execution.outputs.get(address, b"null")
    return execution.loaded.get(address, value) if isinstance(value, Blob) else value


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


def region_due(execution: Execution, number: int) -> bool:
    """The time of a map or a loop is up: open items are stopped, and it fails."""
    region = execution.regions.get(number)
    if region is None or region.more.timed_out:
        return False
    region.more.timed_out = True
    execution.commands.nodes[region.address] = region.run
    stop_region(execution, region)
    if region.plan.repeat is not None:
        execution.ended_regions.append(region)
    return True


def item_due(execution: Execution, own_number: int) -> bool:
    """The time of an item is up: it fails."""
    item = execution.items.get(own_number)
    if item is None or item.failing or not item.unfinished:
        return False
    item.timed_out = True
    if item.region.plan.is_single:
        _time_out_single(execution, item)
        return True
    item.failing = True
    move_item(execution, run_of_item(execution, item), NodeState.WAITING, Reason.ITEM_TIMEOUT)
    fail_fast(execution, item)
    return True


def _time_out_single(execution: Execution, item: OpenItem) -> None:
    """The time of an item is up that is its one node: the node fails."""
    run = execution.runs.get(item.address)
    if run is None:
        run = open_run(execution, item.base)
    stop_task(execution, run)
    fail_node(execution, item.base, run, _item_timeout(item))


def _item_timeout(item: OpenItem) -> TaskError:
    each = item.region.plan.each
    seconds = (each and each.item_timeout_seconds) or 0.0
    return TaskError(ErrorCategory.TIMEOUT, f"the item didn't end within {seconds:g} s")


def round_due(execution: Execution, number: int) -> bool:
    """A loop has waited for its next round."""
    region = execution.regions.get(number)
    if region is None:
        return False
    execution.ended_regions.append(region)
    return True


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
    prefix = _identified(item)
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
        region.identities = Identities(region.plan)
    return region.identities.at(index, region.values or [])
