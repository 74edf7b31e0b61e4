"""The shapes of the compatible routes: what is read from a trigger's body, and what is answered.

Clients of the public implementations differ in the names they look for, so each fact stands under
all of its usual names. An execution is what they call a workflow: `workflow_id` is its id too,
because that is what they put in paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from penstock.definition.plan import Plan
from penstock.definition.problems import Problem, path_to, quoted
from penstock.errors import InvalidInput
from penstock.orchestrator.view import time_text
from penstock.service.dead_letters import dead_letter_view
from penstock.spelling import nearest_name
from penstock.stores.records import DeadLetterRow

INPUTS = ("input", "input_params", "params")
"""Where the input may stand in a trigger's body; where two have the same key, the later one counts.
"""
NODE_PARAMS = "node_params"
MISTAKES_MAX = 10
TRIGGER: dict[str, Any] = {
    "title": "TriggerWorkflow",
    "type": ["object", "null"],
    "description": (
        "The input in `params`, `input_params` or `input`. `node_params` is config by node: every key names a node, "
        "every value is an object; if none of its keys names a node, or nearly so, it is more input. A body with none "
        "of these names is config by node if all keys are nodes and all values objects, and else the input itself."
    ),
    "properties": {name: {"type": ["object", "null"]} for name in (*INPUTS, NODE_PARAMS)},
    "examples": [{"params": {"user_id": 7}}, {"node_params": {"user": {"timeout_seconds": 5}}}, {}],
}


class Names(BaseModel):
    execution_id: str
    id: str
    workflow_id: str
    workflow_definition_id: str = Field(
        description="`name@version`, as the rest of the API takes it."
    )
    name: str
    status: str


class Submitted(Names):
    created_at: str
    message: str


class Triggered(Names):
    instance_id: str = Field(description="The same as `execution_id`.")
    retry_of: str | None = Field(description="The failed execution that this one goes on with.")
    message: str


class CompatNode(BaseModel):
    node_id: str
    worker_id: str | None
    state: str
    status: str
    output: Any
    error: str | None
    attempt: int
    started_at: str | None
    completed_at: str | None


class Progress(BaseModel):
    total: int
    completed: int
    failed: int
    percentage: float


class Status(Names):
    instance_id: str
    workflow_name: str
    message: str
    state: str
    node_states: dict[str, str]
    node_statuses: dict[str, str]
    nodes: dict[str, CompatNode]
    progress: Progress
    error: str | None
    retried_as: str | None = Field(description="The retry of it that is shown here.")
    created_at: str
    started_at: str | None
    completed_at: str | None


class CompatResults(Names):
    instance_id: str
    workflow_name: str
    message: str
    state: str
    completed: bool
    results: dict[str, Any]
    outputs: dict[str, Any]
    result: Any
    output_data: Any
    error: str | None


class CompatHealth(BaseModel):
    status: str
    healthy: bool
    ok: bool
    dependencies: dict[str, str]


class Cancelled(BaseModel):
    execution_id: str
    id: str
    workflow_id: str
    status: str
    message: str


class CompatLetter(BaseModel):
    id: int
    task_id: str = Field(description="`<execution_id>:<node_id>`.")
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


class CompatEntry(BaseModel):
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


class CompatLetters(BaseModel):
    items: list[CompatLetter]
    entries: list[CompatEntry] = Field(
        description="The same dead letters, under the names of other implementations."
    )
    count: int
    next_cursor: str | None


class LetterRetried(BaseModel):
    id: int
    task_id: str
    execution_id: str
    retry_of: str
    status: str
    message: str


class LetterDropped(BaseModel):
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
        is_override = all(_is_config(name, value, plan) for name, value in body.items())
        return ({}, dict(body)) if is_override else (dict(body), {})
    given: dict[str, Any] = {}
    for name in INPUTS:
        given |= body.get(name) or {}
    params = body.get(NODE_PARAMS) or {}
    if all(_is_config(name, value, plan) for name, value in params.items()):
        return given, params
    problems = _mistaken_configs(params, plan)
    if problems:
        raise InvalidInput("; ".join(problem.message for problem in problems), problems)
    return {**params, **given}, {}


def _is_config(name: str, value: Any, plan: Plan) -> bool:
    return name in plan.numbers and isinstance(value, dict)


def _mistaken_configs(params: Mapping[str, Any], plan: Plan) -> list[Problem]:
    """What is wrong with `node_params` that are meant as configs: one of them is, or has nearly a node's name."""
    are_configs = any(_is_config(name, value, plan) for name, value in params.items())
    suspects = [name for name, value in params.items() if are_configs or isinstance(value, dict)]
    wrong = [name for name in suspects if not _is_config(name, params[name], plan)]
    problems: list[Problem] = []
    for name in wrong[:MISTAKES_MAX]:
        path = path_to(NODE_PARAMS, (name,))
        if name in plan.numbers:
            told = f"{NODE_PARAMS}: {quoted(name)} must be an object, the config of that node"
            problems.append(Problem("bad_value", path, told))
            continue
        near = nearest_name(name, plan.numbers)
        if are_configs or near is not None:
            hint = "" if near is None else f"; did you mean {quoted(near)}?"
            problems.append(
                Problem("unknown_node", path, f"{NODE_PARAMS}: {quoted(name)} isn't a node{hint}")
            )
    return problems


ERROR_CODES = {
    "invalid_workflow": ("workflow_validation_failed", "INVALID_WORKFLOW"),
    "invalid_input": ("invalid_input", "INVALID_INPUT"),
    "not_found": ("execution_not_found", "EXECUTION_NOT_FOUND"),
}
"""Error codes by our code: the `error_code` of the answer, and that inside `error`.

The implementations differ in both.
"""
PROBLEM_CODES = {
    "cycle": "CYCLIC_DEPENDENCY",
    "self_dependency": "CYCLIC_DEPENDENCY",
    "duplicate_id": "DUPLICATE_NODE_ID",
    "unknown_dependency": "INVALID_NODE_REFERENCE",
    "empty_workflow": "EMPTY_WORKFLOW",
}


def error_names(
    code: str, detail: str, problems: list[dict[str, Any]], *, of_dead_letter: bool
) -> dict[str, Any]:
    """What stands in a problem document beside what the main API has in it."""
    if of_dead_letter and code == "not_found":
        code = "dead_letter_not_found"
    outer, inner = ERROR_CODES.get(code, (code, code.upper()))
    first = problems[0] if problems else {}
    inner = PROBLEM_CODES.get(first.get("code", ""), inner)
    context = {key: first[key] for key in ("path", "node_id") if first.get(key)}
    return {
        "error_code": outer,
        "message": detail,
        "error": {"message": detail, "error_code": inner, "context": context},
        "errors": problems,
    }


def names(execution_id: str, workflow: str, version: int, status: str) -> dict[str, Any]:
    return {
        "execution_id": execution_id,
        "id": execution_id,
        "workflow_id": execution_id,
        "workflow_definition_id": f"{workflow}@{version}",
        "name": workflow,
        "status": status,
    }


def status_view(asked: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """The status of an execution.

    `shown` is the execution as the API has it: the one that was asked for, or a retry of it.
    """
    states = {name: node["state"] for name, node in shown["nodes"].items()}
    return {
        **_heading(asked, shown),
        "node_states": states,
        "node_statuses": states,
        "nodes": {name: _node(name, node) for name, node in shown["nodes"].items()},
        "progress": _progress(shown["state"], list(states.values())),
        "retried_as": None if shown["execution_id"] == asked else shown["execution_id"],
        "created_at": shown["created_at"],
        "started_at": shown["started_at"],
        "completed_at": shown["finished_at"],
    }


def results_view(asked: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    outputs = {
        name: node["output"]
        for name, node in shown["nodes"].items()
        if node["state"] == "COMPLETED"
    }
    return {
        **_heading(asked, shown),
        "completed": shown["state"] == "COMPLETED",
        "results": outputs,
        "outputs": outputs,
        "result": shown["output"],
        "output_data": shown["output"],
    }


def task_id(execution_id: str, node_id: str) -> str:
    return f"{execution_id}:{node_id}"


def entry(row: DeadLetterRow) -> dict[str, Any]:
    """A dead letter as an entry.

    The first three keys come in this order: scripts look for them with grep.
    """
    shown = dead_letter_view(row)
    return {
        "id": str(row.id),
        "task_id": task_id(shown["execution_id"], shown["node_id"]),
        "execution_id": shown["execution_id"],
        "node_id": shown["node_id"],
        "handler": shown["handler"],
        "error_message": _text(shown["error"]),
        "retry_count": max(0, len(shown["attempts"]) - 1),
        "original_timestamp": time_text(
            row.dead_letter.attempts[0].at if row.dead_letter.attempts else row.dead_letter.at
        ),
        "failed_at": time_text(row.dead_letter.at),
    }


def dead_letter(row: DeadLetterRow) -> dict[str, Any]:
    shown = dead_letter_view(row)
    heading = names(shown["execution_id"], shown["workflow"], shown["version"], "")
    return {
        **{key: value for key, value in heading.items() if key != "status"},
        "id": row.id,
        "task_id": task_id(shown["execution_id"], shown["node_id"]),
        "node_id": shown["node_id"],
        "handler": shown["handler"],
        "error": _text(shown["error"]),
        "category": shown["category"],
        "attempts": len(shown["attempts"]) + shown["attempts_dropped"],
        "failed_at": time_text(row.dead_letter.at),
    }


def _heading(asked: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    heading = names(asked, shown["workflow"], shown["version"], shown["state"])
    return {
        **heading,
        "instance_id": asked,
        "workflow_name": shown["workflow"],
        "state": shown["state"],
        "error": _text(shown["error"]),
        "message": _message(shown),
    }


def _message(shown: Mapping[str, Any]) -> str:
    """An error's message as one line for people."""
    state = shown["state"]
    if state == "PENDING":
        return "Workflow waits for its trigger"
    if state == "FAILED":
        return f"Workflow failed: {_text(shown['error']) or 'see its nodes'}"
    return f"Workflow {state.lower()}"


def _node(node_id: str, node: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "worker_id": node["worker_id"],
        "state": node["state"],
        "status": node["state"],
        "output": node["output"],
        "error": _text(node["error"]),
        "attempt": node["attempt"],
        "started_at": node["started_at"],
        "completed_at": node["finished_at"],
    }


def _progress(state: str, states: list[str]) -> dict[str, Any]:
    """The progress in percent. A skipped node is done: an execution that completes ends at 100."""
    total, done = len(states), states.count("COMPLETED") + states.count("SKIPPED")
    share = 100.0 if state == "COMPLETED" else (1000 * done // total) / 10 if total else 0.0
    return {
        "total": total,
        "completed": states.count("COMPLETED"),
        "failed": states.count("FAILED"),
        "percentage": share,
    }


def _text(error: Mapping[str, Any] | None) -> str | None:
    return None if error is None else str(error["message"])
