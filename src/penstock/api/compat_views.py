"""Views of the compatible routes: how a trigger's body is read, and what is answered.

Clients of the public implementations expect different names, so each value has all of its usual
names. They call an execution a workflow: `workflow_id` is the execution's id too, because that is
what they put in paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, structs

from penstock.definition.plan import Plan
from penstock.definition.problems import Problem, path_to, quoted
from penstock.engine.commands import ExecutionRecord
from penstock.errors import InvalidInput
from penstock.spelling import nearest_name
from penstock.stores.records import DeadLetterRow
from penstock.views.dead_letters import dead_letter_view
from penstock.views.errors import Error
from penstock.views.executions import Execution
from penstock.views.nodes import Node
from penstock.views.problems import ProblemDocument
from penstock.views.times import time_text

INPUTS = ("input", "input_params", "params")
"""Names of the input in a trigger's body; if two of them have the same key, the later one wins."""
NODE_PARAMS = "node_params"
MISTAKES_MAX = 10
TRIGGER: dict[str, Any] = {
    "title": "TriggerWorkflow",
    "type": ["object", "null"],
    "description": (
        "The input in `params`, `input_params` or `input`. `node_params` is config by node: every"
        " key names a node, every value is an object; if none of its keys names a node, or nearly"
        " so, it is more input. A body with none of these names is config by node if all keys are"
        " nodes and all values objects, and else the input itself."
    ),
    "properties": {name: {"type": ["object", "null"]} for name in (*INPUTS, NODE_PARAMS)},
    "examples": [{"params": {"user_id": 7}}, {"node_params": {"user": {"timeout_seconds": 5}}}, {}],
}


class Names(msgspec.Struct, kw_only=True):
    execution_id: str
    id: str
    workflow_id: str
    workflow_definition_id: Annotated[
        str, Meta(description="`name@version`, as the rest of the API takes it.")
    ]
    name: str
    status: str


class Submitted(Names, kw_only=True):
    created_at: str
    message: str


class Triggered(Names, kw_only=True):
    instance_id: Annotated[str, Meta(description="The same as `execution_id`.")]
    retry_of: Annotated[
        str | None, Meta(description="The failed execution that this one goes on with.")
    ]
    message: str


class CompatNode(msgspec.Struct, kw_only=True):
    node_id: str
    worker_id: str | None
    state: str
    status: str
    output: Any
    error: str | None
    attempt: int
    started_at: str | None
    completed_at: str | None


class Progress(msgspec.Struct, kw_only=True):
    total: int
    completed: int
    failed: int
    percentage: float


class Heading(Names, kw_only=True):
    instance_id: str
    workflow_name: str
    state: str
    error: str | None
    message: str


class Status(Heading, kw_only=True):
    node_states: dict[str, str]
    node_statuses: dict[str, str]
    nodes: dict[str, CompatNode]
    progress: Progress
    retried_as: Annotated[str | None, Meta(description="The retry of it that is shown here.")]
    created_at: str
    started_at: str | None
    completed_at: str | None


class CompatResults(Heading, kw_only=True):
    completed: bool
    results: dict[str, Any]
    outputs: dict[str, Any]
    result: Any
    output_data: Any


class CompatHealth(msgspec.Struct, kw_only=True):
    status: str
    healthy: bool
    ok: bool
    dependencies: dict[str, str]


class Cancelled(msgspec.Struct, kw_only=True):
    execution_id: str
    id: str
    workflow_id: str
    status: str
    message: str


class CompatLetter(msgspec.Struct, kw_only=True):
    id: int
    task_id: Annotated[str, Meta(description="`<execution_id>:<node_id>`.")]
    execution_id: str
    workflow_id: str
    workflow_definition_id: str
    name: str
    node_id: str
    handler: str
    error: str | None
    category: str | None
    attempts: int
    failed_at: str


class CompatEntry(msgspec.Struct, kw_only=True):
    """A dead letter as the public implementations show it."""

    id: str
    task_id: str
    execution_id: str
    node_id: str
    handler: str
    error_message: str | None
    retry_count: int
    original_timestamp: str
    failed_at: str


class CompatLetters(msgspec.Struct, kw_only=True):
    items: list[CompatLetter]
    entries: Annotated[
        list[CompatEntry],
        Meta(description="The same dead letters, under the names of other implementations."),
    ]
    count: int
    next_cursor: str | None


class LetterRetried(msgspec.Struct, kw_only=True):
    id: int
    task_id: str
    execution_id: str
    retry_of: str
    status: str
    message: str


class LetterDropped(msgspec.Struct, kw_only=True):
    id: int
    task_id: str
    status: str
    message: str


def read_trigger(
    body: Mapping[str, Any], plan: Plan
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The input and the configs by node.

    Raises `InvalidInput` for configs of which some name no node.
    """
    if not any(name in body for name in (*INPUTS, NODE_PARAMS)):
        if _are_configs(body, plan):
            return {}, dict(body)
        return dict(body), {}

    value: dict[str, Any] = {}
    for name in INPUTS:
        value |= body.get(name) or {}

    params = body.get(NODE_PARAMS) or {}
    if _are_configs(params, plan):
        return value, params
    problems = _mistaken_configs(params, plan)
    if problems:
        raise InvalidInput("; ".join(problem.message for problem in problems), problems)
    return {**params, **value}, {}


def _are_configs(params: Mapping[str, Any], plan: Plan) -> bool:
    return all(_is_config(name, value, plan) for name, value in params.items())


def _is_config(name: str, value: Any, plan: Plan) -> bool:
    return name in plan.numbers and isinstance(value, dict)


def _mistaken_configs(params: Mapping[str, Any], plan: Plan) -> list[Problem]:
    """The problems of `node_params` that are meant as configs.

    They are meant so if one of them is a config, or has nearly the name of a node.
    """
    are_configs = any(_is_config(name, value, plan) for name, value in params.items())
    suspects = [name for name, value in params.items() if are_configs or isinstance(value, dict)]
    wrong = [name for name in suspects if not _is_config(name, params[name], plan)]
    problems: list[Problem] = []
    for name in wrong[:MISTAKES_MAX]:
        path = path_to(NODE_PARAMS, (name,))
        if name in plan.numbers:
            message = f"{NODE_PARAMS}: {quoted(name)} must be an object, the config of that node"
            problems.append(Problem("bad_value", path, message))
            continue

        near = nearest_name(name, plan.numbers)
        if are_configs or near is not None:
            hint = "" if near is None else f"; did you mean {quoted(near)}?"
            message = f"{NODE_PARAMS}: {quoted(name)} isn't a node{hint}"
            problems.append(Problem("unknown_node", path, message))
    return problems


ERROR_CODES = {
    "invalid_workflow": ("workflow_validation_failed", "INVALID_WORKFLOW"),
    "invalid_input": ("invalid_input", "INVALID_INPUT"),
    "not_found": ("execution_not_found", "EXECUTION_NOT_FOUND"),
}
"""Error codes by our `code`: the `error_code` of the answer, and that inside `error`."""
PROBLEM_CODES = {
    "cycle": "CYCLIC_DEPENDENCY",
    "self_dependency": "CYCLIC_DEPENDENCY",
    "duplicate_id": "DUPLICATE_NODE_ID",
    "unknown_dependency": "INVALID_NODE_REFERENCE",
    "empty_workflow": "EMPTY_WORKFLOW",
}


class ErrorContext(msgspec.Struct, kw_only=True, omit_defaults=True):
    path: str | None = None
    node_id: str | None = None


class NamedError(msgspec.Struct, kw_only=True):
    message: str
    error_code: str
    context: ErrorContext


class CompatProblem(ProblemDocument, kw_only=True):
    """A problem document that also has the names that other implementations use."""

    error_code: str
    message: str
    error: NamedError
    errors: list[Problem]


def named_problem(document: ProblemDocument, *, of_dead_letter: bool) -> CompatProblem:
    problems = [] if document.problems is UNSET else document.problems
    code = document.code
    if of_dead_letter and code == "not_found":
        code = "dead_letter_not_found"
    outer, inner = ERROR_CODES.get(code, (code, code.upper()))
    context = ErrorContext()
    if problems:
        first = problems[0]
        inner = PROBLEM_CODES.get(first.code, inner)
        context = ErrorContext(path=first.path or None, node_id=first.node_id or None)
    return CompatProblem(
        **structs.asdict(document),
        error_code=outer,
        message=document.detail,
        error=NamedError(message=document.detail, error_code=inner, context=context),
        errors=problems,
    )


def names(execution_id: str, workflow: str, version: int, status: str) -> Names:
    return Names(
        execution_id=execution_id,
        id=execution_id,
        workflow_id=execution_id,
        workflow_definition_id=f"{workflow}@{version}",
        name=workflow,
        status=status,
    )


def submitted_view(record: ExecutionRecord) -> Submitted:
    heading = names(record.execution_id, record.workflow, record.version, record.state)
    return Submitted(
        **structs.asdict(heading),
        created_at=time_text(record.created_at),
        message="Workflow submitted successfully; trigger it to start",
    )


def triggered_view(
    record: ExecutionRecord, execution_id: str, retry_of: str | None, message: str
) -> Triggered:
    heading = names(execution_id, record.workflow, record.version, "RUNNING")
    return Triggered(
        **structs.asdict(heading), instance_id=execution_id, retry_of=retry_of, message=message
    )


def status_view(requested_id: str, execution: Execution) -> Status:
    """The status of an execution.

    `execution` is the main API's view of the requested execution, or of its newest retry.
    """
    nodes = _nodes_of(execution)
    states = {node_id: node.state for node_id, node in nodes.items()}
    execution_id = execution.execution_id
    return Status(
        **structs.asdict(_heading(requested_id, execution)),
        node_states=states,
        node_statuses=states,
        nodes={node_id: _node_view(node_id, node) for node_id, node in nodes.items()},
        progress=_progress(execution.state, list(states.values())),
        retried_as=None if execution_id == requested_id else execution_id,
        created_at=execution.created_at,
        started_at=execution.started_at,
        completed_at=execution.finished_at,
    )


def results_view(requested_id: str, execution: Execution) -> CompatResults:
    outputs = {
        node_id: node.output
        for node_id, node in _nodes_of(execution).items()
        if node.state == "COMPLETED"
    }
    return CompatResults(
        **structs.asdict(_heading(requested_id, execution)),
        completed=execution.state == "COMPLETED",
        results=outputs,
        outputs=outputs,
        result=execution.output,
        output_data=execution.output,
    )


def task_id(execution_id: str, node_id: str) -> str:
    return f"{execution_id}:{node_id}"


def entry(row: DeadLetterRow) -> CompatEntry:
    """A dead letter as an entry.

    The first three keys come in this order, because scripts look for them with grep.
    """
    view = dead_letter_view(row)
    letter = row.dead_letter
    first_failed_at = letter.attempts[0].at if letter.attempts else letter.at
    return CompatEntry(
        id=str(row.id),
        task_id=task_id(letter.execution_id, letter.node_id),
        execution_id=letter.execution_id,
        node_id=letter.node_id,
        handler=letter.handler,
        error_message=_error_message(view.error),
        retry_count=max(0, len(letter.attempts) - 1),
        original_timestamp=time_text(first_failed_at),
        failed_at=time_text(letter.at),
    )


def dead_letter(row: DeadLetterRow) -> CompatLetter:
    view = dead_letter_view(row)
    return CompatLetter(
        execution_id=view.execution_id,
        id=row.id,
        workflow_id=view.execution_id,
        workflow_definition_id=f"{view.workflow}@{view.version}",
        name=view.workflow,
        task_id=task_id(view.execution_id, view.node_id),
        node_id=view.node_id,
        handler=view.handler,
        error=_error_message(view.error),
        category=view.category,
        attempts=len(view.attempts) + view.attempts_dropped,
        failed_at=view.at,
    )


def _nodes_of(execution: Execution) -> dict[str, Node]:
    return {} if execution.nodes is UNSET else execution.nodes


def _heading(requested_id: str, execution: Execution) -> Heading:
    state = execution.state
    return Heading(
        **structs.asdict(names(requested_id, execution.workflow, execution.version, state)),
        instance_id=requested_id,
        workflow_name=execution.workflow,
        state=state,
        error=_error_message(execution.error),
        message=_message(execution),
    )


def _message(execution: Execution) -> str:
    """The state of an execution, as one line for people."""
    state = execution.state
    if state == "PENDING":
        return "Workflow waits for its trigger"
    if state == "FAILED":
        return f"Workflow failed: {_error_message(execution.error) or 'see its nodes'}"
    return f"Workflow {state.lower()}"


def _node_view(node_id: str, node: Node) -> CompatNode:
    return CompatNode(
        node_id=node_id,
        worker_id=node.worker_id,
        state=node.state,
        status=node.state,
        output=node.output,
        error=_error_message(node.error),
        attempt=node.attempt,
        started_at=node.started_at,
        completed_at=node.finished_at,
    )


def _progress(state: str, states: list[str]) -> Progress:
    """The progress of an execution. A skipped node counts as done; a completed one has 100 %."""
    total = len(states)
    completed = states.count("COMPLETED")
    done = completed + states.count("SKIPPED")

    percentage = 0.0
    if state == "COMPLETED":
        percentage = 100.0
    elif total:
        percentage = (1000 * done // total) / 10

    return Progress(
        total=total, completed=completed, failed=states.count("FAILED"), percentage=percentage
    )


def _error_message(error: Error | None) -> str | None:
    return None if error is None else error.message
