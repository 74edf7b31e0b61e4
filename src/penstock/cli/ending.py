"""How an execution ended, from an engine here or from a server: what the report is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.remote import decode
from penstock.engine.commands import NodeRun
from penstock.views.errors import Attempt, attempts_view
from penstock.views.executions import Execution
from penstock.views.nodes import Node, NodeDetail
from penstock.views.times import seconds_of

if TYPE_CHECKING:
    from penstock import client
    from penstock.stores.base import Stored
    from penstock.views.result import Result

FAILED_SHOWN = 10
"""Failed nodes that the report explains."""


class FailedNode(NamedTuple):
    """A node of which attempts have failed."""

    attempt: int
    """Its current one."""
    failures: list[Attempt]
    """The first and the newest."""
    dropped: int = 0
    """How many there were between these."""
    due_at: float | None = None
    """When its next attempt is due, if that is known."""


class NodeLog(NamedTuple):
    """The log of one attempt."""

    node_id: str
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class Ending:
    result: Result
    execution: Execution
    failed: dict[str, FailedNode]
    logs: list[NodeLog] = field(default_factory=list)
    interrupted: bool = False
    timed_out: bool = False

    @property
    def nodes(self) -> dict[str, Node]:
        return self.execution.nodes or {}

    def failed_harmlessly(self, node_id: str) -> bool:
        """Whether a node failed, and is optional: nothing else failed because of it."""
        node = self.nodes[node_id]
        return node.state == "FAILED" and node.optional is True


def execution_of(result: Result) -> Execution:
    return decode(result.view, Execution)


def failed_node(run: NodeRun) -> FailedNode:
    """A node of an engine here."""
    return FailedNode(run.attempt, attempts_view(run.failures), run.failures_dropped, run.due_at)


async def remote_failed_node(handle: client.Execution, node_id: str) -> FailedNode:
    """A node on a server."""
    node = decode(await handle.node(node_id), NodeDetail)
    failures: list[Attempt] = [attempt for attempt in node.attempts if attempt.error is not None]
    return FailedNode(node.attempt, failures, node.errors_dropped, seconds_of(node.retry_at))


def local_ending(
    result: Result, stored: Stored | None, *, interrupted: bool, timed_out: bool
) -> Ending:
    """The ending of an execution of an engine here."""
    failed: dict[str, FailedNode] = {}
    logs: list[NodeLog] = []
    if stored is not None:
        failed = {node_id: failed_node(run) for node_id, run in stored.runs.items() if run.failures}
        logs = [NodeLog(*log) for log in stored.logs]
    return Ending(result, execution_of(result), failed, logs, interrupted, timed_out)


async def remote_ending(handle: client.Execution, result: Result, *, logs: bool = False) -> Ending:
    """The ending of an execution on a server.

    It has details and logs of failed nodes; with `logs`, the logs of all nodes.
    """
    execution = execution_of(result)
    nodes = execution.nodes or {}
    failed = [node_id for node_id, node in nodes.items() if node.state == "FAILED"]
    failed = failed[:FAILED_SHOWN]

    node_logs: list[NodeLog] = []
    for node_id in nodes if logs else failed:
        texts = await handle.logs(node_id)
        node_logs += [NodeLog(node_id, attempt, text) for attempt, text in texts.items()]
    failed_nodes = {node_id: await remote_failed_node(handle, node_id) for node_id in failed}
    return Ending(result, execution, failed_nodes, node_logs)
