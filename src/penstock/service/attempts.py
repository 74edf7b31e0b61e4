"""The attempts of a node, in order.

From its lines in the history, and what is recorded of those that failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.engine.commands import AttemptFailure, NodeRun, Transition
from penstock.engine.reasons import Reason
from penstock.engine.states import NodeState
from penstock.orchestrator.view import error_view, time_text


class _Attempt(msgspec.Struct):
    attempt: int
    state: NodeState
    queued_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None


def attempts_of(run: NodeRun | None, lines: Iterable[Transition]) -> list[dict[str, Any]]:
    """The attempts of a node; `lines` are its history lines.

    What failed before its first attempt, as a config can, is attempt 0.
    """
    if run is None:
        return []
    found: dict[int, _Attempt] = {}
    for line in lines:
        _note(found, line)
    failures = {each.attempt: each for each in run.failures}
    last = found.get(run.attempt)
    if last is not None and last.started_at is None:
        last.started_at = run.started_at
    return [_view(each, failures.get(each.attempt), run) for each in found.values()]


def _note(found: dict[int, _Attempt], line: Transition) -> None:
    after = NodeState(line.after)
    if after is NodeState.QUEUED:  # also again after a loss of data, with the number that it had
        found[line.attempt] = _Attempt(line.attempt, after, queued_at=line.at)
        return
    if not line.attempt and after is not NodeState.FAILED:
        return  # it had no task: a data node, a kept one, or one that was skipped
    attempt = found.setdefault(line.attempt, _Attempt(line.attempt, after))
    if after is NodeState.RUNNING:
        attempt.state, attempt.started_at = after, line.at
    elif (
        line.before != NodeState.RETRYING and line.reason != Reason.REBUILT
    ):  # a cancelled wait isn't part of the attempt
        attempt.state = NodeState.FAILED if after is NodeState.RETRYING else after
        attempt.finished_at = line.at


def _view(attempt: _Attempt, failure: AttemptFailure | None, run: NodeRun) -> dict[str, Any]:
    worker_id = run.worker_id if attempt.attempt == run.attempt else None
    return {
        "attempt": attempt.attempt,
        "state": str(attempt.state),
        "queued_at": time_text(attempt.queued_at),
        "started_at": time_text(attempt.started_at),
        "finished_at": time_text(attempt.finished_at),
        "at": time_text(failure.at) if failure else None,
        "error": error_view(failure.error) if failure else None,
        "worker_id": failure.worker_id if failure else worker_id,
    }
