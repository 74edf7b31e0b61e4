"""The report of a finished execution: JSON, because SQL can't read the other records.

The views `penstock_executions` and `penstock_nodes` (in each store's SQL) are made from it, and
promised to users: see docs/history.md. A field may be added here; none may change its name or
meaning.
"""

from __future__ import annotations

import msgspec

from penstock.engine.commands import Commands, NodeRun
from penstock.engine.states import NodeState

INPUT_BYTES_MAX = 64 * 1024
"""A larger input isn't part of a report."""
NODES_MAX = 10_000
"""With more nodes than this, only those that failed are part of a report."""
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
    """The report of an execution that these commands end; empty for other commands."""
    record = commands.record
    runs = commands.final_runs
    if record is None or runs is None:
        return b""
    listed = list(runs.values())
    if len(runs) > NODES_MAX:
        listed = [run for run in listed if run.state is NodeState.FAILED]
    is_input_small = len(record.input) <= INPUT_BYTES_MAX
    report = Report(
        input=msgspec.Raw(record.input) if is_input_small else None,
        nodes={run.node_id: _report_node(run) for run in listed},
        error_category=record.error.category if record.error else None,
        error_message=record.error.message[:MESSAGE_CHARACTERS_MAX] if record.error else None,
        error_node=record.error_node_id,
        started_at=record.started_at,
    )
    return _without_nul(_encoder.encode(report))


def _report_node(run: NodeRun) -> NodeReport:
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
    """The JSON without U+0000, which PostgreSQL can't store."""
    return data.replace(b"\\u0000", b"\\ufffd") if b"\\u0000" in data else data
