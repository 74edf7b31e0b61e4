"""`penstock.Result`: the state of an execution as Python code reads it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.states import ExecutionState
from penstock.views.executions import NOTHING, execution_view


class Result:
    """The state of an execution, with the fields that it has over HTTP.

    `output` is that of the output node, or a dictionary by sink; `nodes` has everything. They are
    computed when they are first read.
    """

    def __init__(
        self,
        record: ExecutionRecord,
        runs: Mapping[str, NodeRun],
        outputs: Mapping[str, bytes],
        plan: Plan,
        waits: Mapping[str, tuple[str, str]] = NOTHING,
    ) -> None:
        self.execution_id = record.execution_id
        self.workflow = record.workflow
        self.version = record.version
        self.state = str(record.state)
        self._parts = (record, runs, outputs, plan)
        self._waits = waits

    @cached_property
    def view(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
        return execution_view(*self._parts, waits=self._waits)

    @property
    def input(self) -> Any:
        return self.view["input"]

    @property
    def output(self) -> Any:
        return self.view["output"]

    @property
    def error(self) -> dict[str, Any] | None:
        error: dict[str, Any] | None = self.view["error"]
        return error

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
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
    def completed(self) -> bool:
        return self.state == ExecutionState.COMPLETED

    def __getitem__(self, name: str) -> Any:
        return self.view[name]

    def __repr__(self) -> str:
        return f"<Result {self.workflow}@{self.version} {self.state} {self.execution_id}>"
