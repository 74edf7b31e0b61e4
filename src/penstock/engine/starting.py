"""Starting a node whose trigger rule lets it.

Its condition is evaluated and its config resolved; then a task is dispatched or, for a data node,
the output is computed at once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.definition.condition import Formula
from penstock.definition.config import SecretText, put_over
from penstock.definition.model import TERMINATE
from penstock.definition.plan import PlanNode
from penstock.definition.template import Missing
from penstock.engine import children, losses, regions, waiting
from penstock.engine.commands import NodeRun, Task
from penstock.engine.data import evaluate
from penstock.engine.deadlines import arm_queue
from penstock.engine.deciding import COMPILED_BYTES, cost_of
from penstock.engine.deciding import is_true as decide
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.failing import fail_node
from penstock.engine.outputs import Outputs, scope_of
from penstock.engine.preparing import EXECUTION, INPUT, Preparation, Prepared
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import complete, open_run, skip
from penstock.engine.states import NodeState
from penstock.engine.terminating import terminate
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


QUEUED = NodeState.QUEUED  # looked up here, once: see `settling`
PREPARATION_BYTES_MAX = 128 * 1024 * 1024
"""Of all values that one node refers to."""


def start(execution: Execution, number: int) -> None:
    """Start a node that has become ready, its next attempt, or its returned task again."""
    is_static = number < execution.static_count
    is_inside = not is_static or number in execution.regions
    if is_inside and not _may_start_inside(execution, number):
        return
    node = execution.nodes[number] if is_static else execution.item_nodes[number]
    run = execution.runs.get(node.node_id)
    if run is None and node.is_plain:
        _dispatch(execution, number, node, open_run(execution, number))
        return
    if (node.needs or node.is_data or node.region) and _lacks_blobs(execution, number, node):
        execution.blocked.append(number)
        return
    if run is not None and run.state is not NodeState.RETRYING and not _is_returned(run):
        return

    found = execution.found.pop(node.node_id, None) if execution.found else None
    if found is not None:
        children.begin(execution, number, run, found)
        return

    needs_no_evaluation = (
        node.condition is None and node.fixed_config is not None and not node.is_data
    )
    prepared = _take_prepared(execution, number, node) if execution.prepared else None
    if prepared is not None:
        _use_prepared(execution, number, run, prepared)
    elif needs_no_evaluation or _is_cheap(execution, number, node):
        _start_now(execution, number, node, run)
    else:
        _request_preparation(execution, number, run)


def _may_start_inside(execution: Execution, number: int) -> bool:
    """Of a node of an item: whether that is open still, and its value in memory.

    A region or an item that waited for values goes on here, and doesn't start.
    """
    if regions.go_on(execution, number):
        return False
    return regions.has_values(execution, number, execution.items[number].region)


def _take_prepared(execution: Execution, number: int, node: PlanNode) -> Prepared | None:
    """The result of the node's preparation, unless more is known by now."""
    prepared = execution.prepared.pop(node.node_id, None)
    if prepared is None:
        return None
    scope = scope_of(execution, number)
    if any(scope.address(name) in execution.outputs for name in prepared.missing):
        return None
    if prepared.states != _states_asked_for(scope, node):
        return None
    return prepared


def _states_asked_for(scope: Outputs, node: PlanNode) -> dict[str, str]:
    """The states that the node's condition and config may ask for, of nodes and the execution."""
    states = {name: str(scope.outcome(name)["state"]) for name in node.outcomes}
    if node.is_about_end:
        states[EXECUTION] = str(scope.ending["state"])
    return states


def _start_now(  # noqa: C901 -- one kind of node after another
    execution: Execution, number: int, node: PlanNode, run: NodeRun | None
) -> None:
    if run is None and node.condition is not None:
        try:
            is_true = decide(execution, node.condition, scope_of(execution, number))
        except Missing as error:
            run = open_run(execution, number)
            fail_node(execution, number, run, TaskError(ErrorCategory.CONDITION, str(error)))
            return
        if is_true is None:
            _request_preparation(execution, number, run)
            return
        if not is_true:
            skip(execution, number, Reason.CONDITION_FALSE)
            return

    if node.config.computed and not computes_cheaply(execution, node, scope_of(execution, number)):
        _request_preparation(execution, number, run)
        return
    if node.child is not None:
        _look_up_child(execution, number, run)
        return
    if run is None:
        run = open_run(execution, number)
    if node.region is not None:
        regions.begin(execution, number, run, node.region)
    elif node.is_data:
        _evaluate(execution, number, run)
    elif node.waits:
        _begin_waiting(execution, number, run)
    else:
        _dispatch(execution, number, node, run)


def _is_cheap(execution: Execution, number: int, node: PlanNode) -> bool:
    """Whether little has to be decoded and compiled to start the node; then it is counted."""
    cost = node.config.size
    formulas: list[Formula] = [*node.config.computed]
    if node.condition is not None:
        formulas.append(node.condition)
    for formula in formulas:
        if not formula.inline_bytes:
            return False
        if not formula.is_compiled:
            cost += COMPILED_BYTES * len(formula.program)
    if node.needs:
        cost += _bytes_referred_to(execution, number, node)
    if node.uses_input and INPUT not in execution.values:
        cost += len(execution.record.input)
    if cost > execution.inline_bytes:
        return False
    execution.inline_bytes -= cost
    return True


def _bytes_referred_to(execution: Execution, number: int, node: PlanNode) -> int:
    """Bytes of outputs that have to be decoded for a node."""
    size = 0
    if number < execution.static_count:
        for node_id in node.needs:
            if node_id not in execution.values:
                size += len(_text_of(execution, node_id) or b"")
        return size
    scope = scope_of(execution, number)
    for name in node.needs:
        with suppress(Missing):
            size += len(scope.raw(name))
    return size


def computes_cheaply(execution: Execution, node: PlanNode, scope: Outputs) -> bool:
    """Whether the expressions of a config look at little; then it is counted."""
    for computed in node.config.computed:
        if not computed.inline_bytes:
            return False
        try:
            cost = cost_of(computed, computed.bind(scope))
        except Missing:
            continue  # nothing is computed then
        if cost is None or cost > execution.inline_bytes:
            return False
        execution.inline_bytes -= cost
    return True


def _text_of(execution: Execution, node_id: str) -> bytes | None:
    """An output, undecoded; None if there is none. A large one has been fetched."""
    value = execution.outputs.get(node_id)
    return execution.loaded[node_id] if isinstance(value, Blob) else value


def _request_preparation(execution: Execution, number: int, run: NodeRun | None) -> None:
    """Note what has to be worked out before this node can start."""
    node = execution.node(number)
    scope = scope_of(execution, number)
    values: dict[str, bytes] = {}
    missing: dict[str, str] = {}
    if node.uses_input:
        values[INPUT] = execution.record.input
    keys = scope.keys(node.needs)
    for node_id in node.needs:
        try:
            values[keys.get(node_id, node_id)] = scope.raw(node_id)
        except Missing as error:
            missing[node_id] = str(error)

    needs_config = not node.config.is_fixed or node.handler == "input"
    preparation = Preparation(
        node.node_id,
        node.handler,
        node.is_data,
        condition=node.condition if run is None else None,
        config=node.config if needs_config else None,
        overrides=execution.record.overrides.get(node.node_id, {}),
        aliases={node_id: dict(scope.aliases(node_id)) for node_id in node.needs},
        execution=dict(scope.execution),
        missing=missing,
        values=values,
        outcomes={name: dict(scope.outcome(name)) for name in node.outcomes},
        ending=dict(scope.ending),
        states=_states_asked_for(scope, node),
        keys=keys,
    )

    size = sum(map(len, values.values()))
    if size > PREPARATION_BYTES_MAX:
        message = (
            f"it refers to {size:,} bytes of outputs and input;"
            f" the limit is {PREPARATION_BYTES_MAX:,}"
        )
        run = run or open_run(execution, number)
        fail_node(execution, number, run, TaskError(preparation.category, message))
        return

    execution.unprepared[node.node_id] = preparation
    execution.preparing.add(number)


def _use_prepared(
    execution: Execution, number: int, run: NodeRun | None, prepared: Prepared
) -> None:
    """Go on with what was worked out for this node."""
    if prepared.outcome == "skip":
        skip(execution, number, Reason.CONDITION_FALSE)
        return

    if prepared.error is None and execution.node(number).child is not None:
        _look_up_child(execution, number, run, prepared)
        return
    if run is None:
        run = open_run(execution, number)
    if prepared.error is not None:
        fail_node(execution, number, run, prepared.error)
        return
    if prepared.output is not None:
        _complete_data(execution, number, run, prepared.output)
        return
    node = execution.node(number)
    if node.region is not None:
        regions.begin(execution, number, run, node.region)
    elif node.is_data:
        _evaluate(execution, number, run)
    elif execution.node(number).waits:
        _begin_waiting(execution, number, run, prepared)
    else:
        _dispatch(execution, number, node, run, prepared)


def _is_returned(run: NodeRun) -> bool:
    return run.state is QUEUED and run.reason == Reason.RETURNED


def _lacks_blobs(execution: Execution, number: int, node: PlanNode) -> bool:
    """Note which large outputs have to be fetched before this node can start."""
    needed = node.needs
    if node.region is not None:
        needed = needed | node.region.needs
    lacks = bool(needed) and regions.want(execution, scope_of(execution, number), needed)
    if node.is_data and not node.config.value:
        for parent in node.dependencies:
            node_id = execution.node(parent).node_id
            value = execution.outputs.get(node_id)
            if isinstance(value, Blob) and node_id not in execution.loaded:
                execution.wanted[node_id] = value
                lacks = True
    return lacks


def _evaluate(execution: Execution, number: int, run: NodeRun) -> None:
    node = execution.node(number)
    scope = scope_of(execution, number)
    parents = _named_parents(execution, number, node)
    try:
        config, _ = resolve(execution, node, scope)
        output = evaluate(node.handler, config, scope, parents)
    except Missing as error:
        fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))
        return
    _complete_data(execution, number, run, output)


def _complete_data(execution: Execution, number: int, run: NodeRun, output: bytes) -> None:
    if execution.node(number).handler == TERMINATE:
        terminate(execution, number, run, output)
    else:
        complete(execution, number, run, output)


def _named_parents(execution: Execution, number: int, node: PlanNode) -> list[str]:
    """The parents with an output, by the names that the node has for them."""
    if number < execution.static_count:
        parents = [execution.node(parent).node_id for parent in node.dependencies]
        return [node_id for node_id in parents if node_id in execution.outputs]
    item = execution.items[number]
    body = item.region.plan.body
    names = [body.nodes[parent - item.base].node_id for parent in node.dependencies]
    return [name for name in names if item.address_of(name) in execution.outputs]


def _inputs_inside(execution: Execution, number: int, node: PlanNode) -> list[tuple[str, Value]]:
    """Of a node inside of an item: the outputs of its parents in the body only."""
    if not node.dependencies:
        return []
    item = execution.items[number]
    names = _named_parents(execution, number, node)
    return [(name, execution.outputs[item.address_of(name)]) for name in names]


def _begin_waiting(
    execution: Execution, number: int, run: NodeRun, prepared: Prepared | None = None
) -> None:
    """Resolve the config of a node that waits, and let it wait."""
    try:
        config = _waiting_config(execution, number, prepared)
    except Missing as error:
        fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))
        return
    waiting.begin(execution, number, run, config)


def _look_up_child(
    execution: Execution, number: int, run: NodeRun | None, prepared: Prepared | None = None
) -> None:
    """Resolve the config of a node that runs another workflow, and ask for what that needs.

    The node gets no record before the answer is there: a new owner asks again.
    """
    try:
        config = _waiting_config(execution, number, prepared)
    except Missing as error:
        run = run or open_run(execution, number)
        fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))
        return
    children.look_up(execution, number, run, config)


def _waiting_config(execution: Execution, number: int, prepared: Prepared | None) -> Value:
    """The config of a node that waits, filled in. Raises `Missing`."""
    if prepared is not None and prepared.config is not None:
        return prepared.config
    resolved, _ = resolve(execution, execution.node(number), scope_of(execution, number))
    return msgspec.json.encode(resolved)


def resolve(
    execution: Execution, node: PlanNode, scope: Outputs
) -> tuple[dict[str, Any], tuple[SecretText, ...]]:
    """The node's config, with what the execution puts over it."""
    config, secrets = node.config.resolve(scope)
    return put_over(config, secrets, execution.record.overrides.get(node.node_id) or {})


def _dispatch(  # noqa: C901 -- one case after another, hot
    execution: Execution,
    number: int,
    node: PlanNode,
    run: NodeRun,
    prepared: Prepared | None = None,
) -> None:
    record = execution.record
    secrets: tuple[SecretText, ...] = ()
    config: Value
    if prepared is not None and prepared.config is not None:
        config = prepared.config
        secrets = prepared.secrets
    elif node.fixed_config is not None and node.node_id not in record.overrides:
        config = node.fixed_config
    else:
        try:
            resolved, secrets = resolve(execution, node, scope_of(execution, number))
        except Missing as error:
            fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))
            return
        config = msgspec.json.encode(resolved)

    is_returned = run.state is QUEUED
    if not is_returned:
        run.attempt += 1
        run.queued_at = execution.now
        run.started_at = None
        run.due_at = None
        run.worker_id = None

    key = node.node_id
    item: bytes | None = None
    index: int | None = None
    inputs: list[tuple[str, Value]]
    if number < execution.static_count:
        nodes = execution.nodes
        outputs = execution.outputs
        inputs = []
        for parent in node.dependencies:
            node_id = nodes[parent].node_id
            if node_id in outputs:
                inputs.append((node_id, outputs[node_id]))
    else:
        around = execution.items[number]
        inputs = _inputs_inside(execution, number, node)
        item, index = regions.context_of(around)
        key = regions.identity_address(around, node.node_id)
        execution.commands.size += len(item or b"")

    commands = execution.commands
    commands.size += sum([len(value) for _, value in inputs if type(value) is bytes])
    if type(config) is bytes:
        commands.size += len(config)
    commands.tasks.append(
        Task(
            record.execution_id,
            node.node_id,
            record.generation,
            run.attempt,
            node.handler,
            node.queue,
            config,
            inputs,
            secrets,
            node.timeout_seconds,
            f"{record.first_execution_id or record.execution_id}:{key}",
            record.workflow,
            record.priority,
            record.trace,
            node.names_queue,
            record.lenient_config,
            losses.attempts_used(run) >= node.retry.max_attempts,
            item,
            index,
        )
    )

    if is_returned:
        run.reason = None
        commands.nodes[run.node_id] = run
        return
    move_node(execution, run, QUEUED)
    if node.queue_timeout_seconds:
        arm_queue(execution, run)
