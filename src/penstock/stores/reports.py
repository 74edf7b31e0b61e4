"""A report of an execution that has ended: JSON that SQL can read, because what is stored of it otherwise can't be.

The views `penstock_executions` and `penstock_nodes` (in each store's SQL) are made from it, and promised to users: see
docs/history.md. A field may be added here; none may change its name or meaning.
"""

from __future__ import annotations

import msgspec

from penstock.engine.commands import Commands, NodeRun
from penstock.engine.states import NodeState

INPUT_BYTES_MAX = 64 * 1024
"""A larger input isn't part of a report."""
NODES_MAX = 10_000
"""Of an execution with more nodes, only those that failed are."""
MESSAGE_CHARACTERS_MAX = 1000


class NodeReport(msgspec.Struct, omit_defaults=True, gc=False):
    state: str
    attempts: int
    queued_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    reason: str | None = None
    worker_id: str | None = None
    error_category: str | None = None
    error_message: str | None = None


class Report(msgspec.Struct):
    input: msgspec.Raw | None
    nodes: dict[str, NodeReport]
    error_category: str | None
    error_message: str | None
    error_node: str | None
    started_at: float | None


_encoder = msgspec.json.Encoder()


def report_of(commands: Commands) -> bytes:
    """Of commands that end an execution; empty for others."""
    record, runs = commands.record, commands.final_runs
    if record is None or runs is None:
        return b""
    listed = list(runs.values())
    if len(runs) > NODES_MAX:
        listed = [run for run in listed if run.state is NodeState.FAILED]
    report = Report(
        input=msgspec.Raw(record.input) if len(record.input) <= INPUT_BYTES_MAX else None,
        nodes={run.node_id: _node(run) for run in listed},
        error_category=record.error.category if record.error else None,
        error_message=record.error.message[:MESSAGE_CHARACTERS_MAX] if record.error else None,
        error_node=record.error_node_id,
        started_at=record.started_at,
    )
    return _without_nul(_encoder.encode(report))


def _node(run: NodeRun) -> NodeReport:
    report = NodeReport(
        state=str(run.state),
        attempts=run.attempt,
        queued_at=run.queued_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        reason=run.reason,
        worker_id=run.worker_id,
    )
    if run.failures:
        error = run.failures[-1].error
        report.error_category = error.category
        report.error_message = error.message[:MESSAGE_CHARACTERS_MAX]
    return report


def _without_nul(data: bytes) -> bytes:
    """PostgreSQL's JSON can't hold it; nobody looks for it."""
    return data.replace(b"\\u0000", b"\\ufffd") if b"\\u0000" in data else data
