"""Starting a node whose rule lets it: its condition, its config, then a task or, for data nodes, the output itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.definition.config import SecretText
from penstock.definition.plan import PlanNode
from penstock.definition.template import Missing
from penstock.engine.commands import RETURNED, NodeRun, Task
from penstock.engine.data import evaluate
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.states import NodeState

if TYPE_CHECKING:
    from penstock.engine.execution import Execution


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
            raise Missing(f"{node_id!r} has no output: it is {state}; a ?? fallback would stand in for it")
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
    """Start a node that has become ready, the next attempt of one that waited for it, or a returned task again."""
    node = execution.nodes[number]
    if (node.needs or node.is_data) and _lacks_blobs(execution, node):
        execution.blocked.append(number)
        return
    run = execution.runs.get(node.address)
    if run is not None and run.state is not NodeState.RETRYING and not _is_returned(run):
        return
    if run is None and node.condition is not None:
        try:
            if not node.condition.evaluate(Outputs(execution)):
                execution.skip(number, "condition_false")
                return
        except Missing as error:
            execution.fail(number, execution.open_run(number), TaskError("condition", str(error)))
            return
    if run is None:
        run = execution.open_run(number)
    if node.is_data:
        _evaluate(execution, number, run)
    else:
        _dispatch(execution, node, run)


def _is_returned(run: NodeRun) -> bool:
    return run.state is NodeState.QUEUED and run.reason == RETURNED


def _lacks_blobs(execution: Execution, node: PlanNode) -> bool:
    """Note which large outputs have to be fetched before this node can start."""
    needed = set(node.needs)
    if node.is_data and not node.config.value:
        needed.update(execution.nodes[parent].address for parent in node.dependencies)
    missing = {
        address: value
        for address in needed
        if isinstance(value := execution.outputs.get(address), Blob) and address not in execution.loaded
    }
    execution.wanted.update(missing)
    return bool(missing)


def _evaluate(execution: Execution, number: int, run: NodeRun) -> None:
    node, scope = execution.nodes[number], Outputs(execution)
    try:
        config, _ = resolve(execution, node, scope)
        parents = [execution.nodes[parent].address for parent in node.dependencies]
        output = evaluate(node.handler, config, scope, [name for name in parents if name in execution.outputs])
    except Missing as error:
        execution.fail(number, run, TaskError("config", str(error)))
        return
    execution.complete(number, run, output)


def resolve(execution: Execution, node: PlanNode, scope: Outputs) -> tuple[dict[str, Any], tuple[SecretText, ...]]:
    """The node's config, with what the execution puts over it: plain data, in which nothing is looked up."""
    config, secrets = node.config.resolve(scope)
    over = execution.record.overrides.get(node.address)
    if not over:
        return config, secrets
    return {**config, **over}, tuple(secret for secret in secrets if secret.path[0] not in over)


def _dispatch(execution: Execution, node: PlanNode, run: NodeRun) -> None:
    record = execution.record
    secrets: tuple[SecretText, ...] = ()
    config: Value
    if node.fixed_config is not None and node.address not in record.overrides:
        config = node.fixed_config
    else:
        try:
            resolved, secrets = resolve(execution, node, Outputs(execution))
        except Missing as error:
            execution.fail(execution.numbers[node.address], run, TaskError("config", str(error)))
            return
        config = msgspec.json.encode(resolved)
    again = run.state is NodeState.QUEUED
    if not again:
        run.attempt += 1
        run.queued_at, run.started_at, run.due_at, run.worker_id = execution.now, None, None, None
    outputs, nodes = execution.outputs, execution.nodes
    inputs = [(name, outputs[name]) for parent in node.dependencies if (name := nodes[parent].address) in outputs]
    commands = execution.commands
    commands.size += sum([len(value) for _, value in inputs if type(value) is bytes])
    if type(config) is bytes:
        commands.size += len(config)
    commands.tasks.append(
        Task(
            record.execution_id, node.address, record.generation, run.attempt, node.handler, node.queue, config, inputs,
            secrets, node.timeout_seconds, f"{record.first_execution_id or record.execution_id}:{node.address}",
            record.workflow, record.priority, record.trace, record.lenient_config,
        )
    )  # fmt: skip
    if again:
        run.reason = None
        commands.nodes[run.address] = run
        return
    execution.move(run, NodeState.QUEUED)
    if node.queue_timeout_seconds:
        execution.arm_queue(run)
