"""Starting a node whose trigger rule lets it.

Its condition is evaluated and its config resolved; then a task is dispatched or, for a data node,
the output is computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.definition.cel import INLINE_LOOP_BYTES, size_of
from penstock.definition.condition import Condition
from penstock.definition.config import SecretText, put_over
from penstock.definition.plan import PlanNode
from penstock.definition.template import Missing
from penstock.engine import losses
from penstock.engine.commands import NodeRun, Task
from penstock.engine.data import evaluate
from penstock.engine.deadlines import arm_queue
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.failing import fail_node
from penstock.engine.preparing import INPUT, Preparation, Prepared
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import complete, open_run, skip
from penstock.engine.states import NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


COMPILED_BYTES = 10
"""What a character of a program that isn't compiled yet counts as."""
LOOP_BYTES = 32
"""What a byte that a comprehension looks at counts as."""
PREPARATION_BYTES_MAX = 128 * 1024 * 1024
"""Of all values that one node refers to."""


class Outputs:
    """Where a node's references look: recorded outputs only."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def output(self, node_id: str) -> Any:
        execution = self._execution
        if node_id not in execution.values:
            execution.values[node_id] = msgspec.json.decode(self.raw(node_id))
        return execution.values[node_id]

    def raw(self, node_id: str) -> bytes:
        execution = self._execution
        value = execution.outputs.get(node_id)
        if isinstance(value, Blob):
            return execution.loaded[node_id]
        if value is None:
            run = execution.runs.get(node_id)
            state = run.state if run else NodeState.PENDING
            raise Missing(
                f"{node_id!r} has no output: it is {state}; a ?? fallback would stand in for it"
            )
        return value

    def aliases(self, node_id: str) -> Mapping[str, str]:
        return self._execution.nodes[self._execution.numbers[node_id]].aliases

    @property
    def input(self) -> Any:
        execution = self._execution
        if "" not in execution.values:
            execution.values[""] = msgspec.json.decode(execution.record.input)
        return execution.values[""]

    @property
    def execution(self) -> Mapping[str, Any]:
        record = self._execution.record
        return {"id": record.execution_id, "workflow": record.workflow, "version": record.version}


def start(execution: Execution, number: int) -> None:
    """Start a node that has become ready, its next attempt, or its returned task again."""
    node = execution.nodes[number]
    if (node.needs or node.is_data) and _lacks_blobs(execution, node):
        execution.blocked.append(number)
        return
    run = execution.runs.get(node.node_id)
    if run is not None and run.state is not NodeState.RETRYING and not _is_returned(run):
        return

    needs_no_evaluation = (
        node.condition is None and node.fixed_config is not None and not node.is_data
    )
    prepared = _take_prepared(execution, node) if execution.prepared else None
    if prepared is not None:
        _use_prepared(execution, number, run, prepared)
    elif needs_no_evaluation or _is_cheap(execution, node):
        _start_now(execution, number, run)
    else:
        _request_preparation(execution, number, run)


def _take_prepared(execution: Execution, node: PlanNode) -> Prepared | None:
    """The result of the node's preparation, unless more is known by now."""
    prepared = execution.prepared.pop(node.node_id, None)
    if prepared is None or any(node_id in execution.outputs for node_id in prepared.missing):
        return None
    return prepared


def _start_now(execution: Execution, number: int, run: NodeRun | None) -> None:
    node = execution.nodes[number]
    if run is None and node.condition is not None:
        try:
            is_true = _is_true(execution, node.condition)
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

    if run is None:
        run = open_run(execution, number)
    if node.is_data:
        _evaluate(execution, number, run)
    else:
        _dispatch(execution, node, run)


def _is_cheap(execution: Execution, node: PlanNode) -> bool:
    """Whether little has to be decoded and compiled to start the node; then it is counted."""
    cost = node.config.size
    condition = node.condition
    if condition is not None:
        if not condition.inline_bytes:
            return False
        if not condition.is_compiled:
            cost += COMPILED_BYTES * len(condition.program)
    for node_id in node.needs:
        if node_id not in execution.values:
            cost += len(_text_of(execution, node_id) or b"")
    if node.uses_input and INPUT not in execution.values:
        cost += len(execution.record.input)
    if cost > execution.inline_bytes:
        return False
    execution.inline_bytes -= cost
    return True


def _is_true(execution: Execution, condition: Condition) -> bool | None:
    """The condition's result; None if it may look at more than is cheap. Raises `Missing`."""
    scope = Outputs(execution)
    values = condition.bind(scope)
    size = size_of(values, condition.inline_bytes)
    has_loop = condition.inline_bytes <= INLINE_LOOP_BYTES
    cost = size * LOOP_BYTES if has_loop else size
    if size > condition.inline_bytes or cost > execution.inline_bytes:
        return None
    execution.inline_bytes -= cost
    return condition.decide(values, scope)


def _text_of(execution: Execution, node_id: str) -> bytes | None:
    """An output, undecoded; None if there is none. A large one has been fetched."""
    value = execution.outputs.get(node_id)
    return execution.loaded[node_id] if isinstance(value, Blob) else value


def _request_preparation(execution: Execution, number: int, run: NodeRun | None) -> None:
    """Note what has to be worked out before this node can start."""
    node = execution.nodes[number]
    scope = Outputs(execution)
    values: dict[str, bytes] = {}
    missing: dict[str, str] = {}
    if node.uses_input:
        values[INPUT] = execution.record.input
    for node_id in node.needs:
        try:
            values[node_id] = scope.raw(node_id)
        except Missing as error:
            missing[node_id] = str(error)

    needs_config = bool(node.config.slots) or node.handler == "input"
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

    if run is None:
        run = open_run(execution, number)
    if prepared.error is not None:
        fail_node(execution, number, run, prepared.error)
    elif prepared.output is not None:
        complete(execution, number, run, prepared.output)
    elif execution.nodes[number].is_data:
        _evaluate(execution, number, run)
    else:
        _dispatch(execution, execution.nodes[number], run, prepared)


def _is_returned(run: NodeRun) -> bool:
    return run.state is NodeState.QUEUED and run.reason == Reason.RETURNED


def _lacks_blobs(execution: Execution, node: PlanNode) -> bool:
    """Note which large outputs have to be fetched before this node can start."""
    needed = set(node.needs)
    if node.is_data and not node.config.value:
        needed.update(execution.nodes[parent].node_id for parent in node.dependencies)

    lacks = False
    for node_id in needed:
        value = execution.outputs.get(node_id)
        if isinstance(value, Blob) and node_id not in execution.loaded:
            execution.wanted[node_id] = value
            lacks = True
    return lacks


def _evaluate(execution: Execution, number: int, run: NodeRun) -> None:
    node = execution.nodes[number]
    scope = Outputs(execution)
    parents = [execution.nodes[parent].node_id for parent in node.dependencies]
    with_output = [node_id for node_id in parents if node_id in execution.outputs]
    try:
        config, _ = resolve(execution, node, scope)
        output = evaluate(node.handler, config, scope, with_output)
    except Missing as error:
        fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))
        return
    complete(execution, number, run, output)


def resolve(
    execution: Execution, node: PlanNode, scope: Outputs
) -> tuple[dict[str, Any], tuple[SecretText, ...]]:
    """The node's config, with what the execution puts over it."""
    config, secrets = node.config.resolve(scope)
    return put_over(config, secrets, execution.record.overrides.get(node.node_id) or {})


def _dispatch(
    execution: Execution, node: PlanNode, run: NodeRun, prepared: Prepared | None = None
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
            resolved, secrets = resolve(execution, node, Outputs(execution))
        except Missing as error:
            number = execution.numbers[node.node_id]
            fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))
            return
        config = msgspec.json.encode(resolved)

    is_returned = run.state is NodeState.QUEUED
    if not is_returned:
        run.attempt += 1
        run.queued_at = execution.now
        run.started_at = None
        run.due_at = None
        run.worker_id = None

    outputs = execution.outputs
    nodes = execution.nodes
    inputs: list[tuple[str, Value]] = []
    for parent in node.dependencies:
        node_id = nodes[parent].node_id
        if node_id in outputs:
            inputs.append((node_id, outputs[node_id]))

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
            f"{record.first_execution_id or record.execution_id}:{node.node_id}",
            record.workflow,
            record.priority,
            record.trace,
            node.names_queue,
            record.lenient_config,
            losses.attempts_used(run) >= node.retry.max_attempts,
        )
    )

    if is_returned:
        run.reason = None
        commands.nodes[run.node_id] = run
        return
    move_node(execution, run, NodeState.QUEUED)
    if node.queue_timeout_seconds:
        arm_queue(execution, run)
