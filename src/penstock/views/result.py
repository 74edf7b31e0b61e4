"""`penstock.Result`: the state of an execution as Python code reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Self

import msgspec
from msgspec import UNSET, structs

from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.reasons import Reason
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, ExecutionFailed, HandlerError, RecordedError
from penstock.views.executions import NOTHING, Execution, execution_view


class Result:
    """The state of an execution, with the fields that it has over HTTP.

    `output` is that of the output node, or a dictionary by sink; `nodes` has everything. They are
    computed when they are first read.
    """

    def __init__(
        self,
        execution_id: str,
        workflow: str,
        version: int,
        state: str,
        *,
        make_view: Callable[[], dict[str, Any]],
    ) -> None:
        self.execution_id = execution_id
        self.workflow = workflow
        self.version = version
        self.state = state
        self._make_view = make_view

    @classmethod
    def of_records(  # noqa: PLR0913 -- what a result is made of
        cls,
        record: ExecutionRecord,
        runs: Mapping[str, NodeRun],
        outputs: Mapping[str, bytes],
        plan: Plan,
        *,
        waits: Mapping[str, tuple[str, str]] = NOTHING,
        retried_as: str | None = None,
    ) -> Self:
        """The result of an execution of an engine in this process."""

        def make_view() -> dict[str, Any]:
            view = execution_view(record, runs, outputs, plan, waits=waits)
            view.priority = record.priority
            view.retry_of = record.retry_of
            view.retried_as = retried_as
            return plain(view)

        return cls(
            record.execution_id,
            record.workflow,
            record.version,
            str(record.state),
            make_view=make_view,
        )

    @classmethod
    def of_answer(cls, view: dict[str, Any]) -> Self:
        """The result of an execution on a server, from its JSON."""
        return cls(
            view["execution_id"],
            view["workflow"],
            view["version"],
            view["state"],
            make_view=lambda: view,
        )

    @cached_property
    def view(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
        return self._make_view()

    @property
    def input(self) -> Any:
        """The execution's input, with the document's defaults."""
        return self.view["input"]

    @property
    def output(self) -> Any:
        """The output of the output node, or of the last nodes by id."""
        return self.view["output"]

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the execution failed: `category`, `message`, `node_id`; None if it didn't."""
        error: dict[str, Any] | None = self.view["error"]
        return error

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes by id, with state, output, error and times."""
        nodes: dict[str, dict[str, Any]] = self.view["nodes"]
        return nodes

    @property
    def outputs(self) -> dict[str, Any]:
        """The output of each completed node."""
        return {
            node_id: node["output"]
            for node_id, node in self.nodes.items()
            if node["state"] == "COMPLETED"
        }

    @property
    def tokens(self) -> dict[str, int] | None:
        """The tokens that language models used: `prompt`, `completion`, `total`."""
        tokens: dict[str, int] | None = self.view.get("tokens")  # an older server has none
        return tokens

    @property
    def completed(self) -> bool:
        """Whether the execution ended as COMPLETED."""
        return self.state == ExecutionState.COMPLETED

    def unwrap(self) -> Any:
        """The output of a completed execution.

        Raises `ExecutionFailed`, with the error of the handler as its cause, if the execution
        failed or was cancelled; `Conflict` if it hasn't ended.
        """
        if self.completed:
            return self.output
        if self.state not in EXECUTION_ENDS:
            raise Conflict(
                f"execution {self.execution_id} is {self.state} and has no output yet;"
                " wait for its end with result()"
            )
        raise _failure(self) from _cause(self.error)

    def __getitem__(self, name: str) -> Any:
        return self.view[name]

    def __repr__(self) -> str:
        return f"<Result {self.workflow}@{self.version} {self.state} {self.execution_id}>"


def _failure(result: Result) -> ExecutionFailed:
    about = f"execution {result.execution_id} of {result.workflow}@{result.version}"
    if result.state == ExecutionState.CANCELLED:
        return ExecutionFailed(
            f"{about} was cancelled",
            execution_id=result.execution_id,
            state=result.state,
            category=str(Reason.CANCELLED),
            message="it was cancelled",
        )

    error = result.error or {}
    node_id = error.get("node_id")
    category = error.get("category", "")
    message = error.get("message", "")
    where = f" at node {node_id!r}" if node_id else ""
    return ExecutionFailed(
        f"{about} failed{where} ({category}): {message}",
        execution_id=result.execution_id,
        state=result.state,
        node_id=node_id,
        category=category,
        message=message,
        detail=error.get("detail"),
    )


def _cause(error: Mapping[str, Any] | None) -> Exception | None:
    """The error of the handler, as far as it was recorded."""
    if error is None:
        return None
    if error.get("traceback"):
        return RecordedError(error["traceback"])
    return HandlerError(error["message"], category=error["category"], detail=error.get("detail"))


def plain(execution: Execution) -> dict[str, Any]:
    """An execution as dictionaries.

    Inputs and outputs are not copied, as `msgspec.to_builtins` would: they may be large.
    """
    view = _fields(execution)
    if execution.nodes is not UNSET:
        view["nodes"] = {node_id: _fields(node) for node_id, node in execution.nodes.items()}
    return view


def _fields(view: msgspec.Struct) -> dict[str, Any]:
    fields = {name: value for name, value in structs.asdict(view).items() if value is not UNSET}
    for name in ("error", "tokens", "ending", "items", "parent"):
        if name in fields:
            fields[name] = msgspec.to_builtins(fields[name])
    return fields
