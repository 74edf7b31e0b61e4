"""Reads commits for the log of outcomes: which attempts failed, which executions ended."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.commands import AttemptFailure, Commands, ExecutionRecord
from penstock.engine.states import NodeState
from penstock.telemetry.outcomes import OutcomeLog


def log_outcomes(outcome_log: OutcomeLog, changes: Sequence[Commands]) -> None:
    """Log what ended with a commit; called once per commit, after it has landed."""
    for commands in changes:
        for node_id, failure in commands.failures:
            _log_failure(outcome_log, commands, node_id, failure)
        if commands.finished and commands.record is not None:
            _log_end(outcome_log, commands.record)


def _log_failure(
    outcome_log: OutcomeLog, commands: Commands, node_id: str, failure: AttemptFailure
) -> None:
    run = commands.nodes[node_id]
    # The next batch is decided while a commit is written, and may have changed the node's record.
    is_current = run.attempt == failure.attempt
    retry_seconds = None
    if is_current and run.state is NodeState.RETRYING and run.due_at is not None:
        retry_seconds = run.due_at - failure.at
    marks = {
        "execution_id": commands.execution_id,
        "node_id": node_id,
        "attempt": failure.attempt,
    }
    outcome_log.attempt_failed(
        marks,
        failure.error.message,
        category=failure.error.category,
        is_last=is_current and run.state is NodeState.FAILED,
        retry_seconds=retry_seconds,
        traceback=failure.error.traceback,
    )


def _log_end(outcome_log: OutcomeLog, record: ExecutionRecord) -> None:
    failure = ""
    if record.error is not None:
        node = f"{record.error_node_id}: " if record.error_node_id else ""
        failure = f"{node}{record.error.message}"
    finished_at = record.finished_at or record.created_at
    outcome_log.execution_ended(
        {
            "execution_id": record.execution_id,
            "workflow": record.workflow,
            "version": record.version,
        },
        str(record.state),
        finished_at - (record.started_at or record.created_at),
        failure,
    )
