"""The attempts of a node, in order: from its history lines and the recorded failures."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.engine.commands import AttemptFailure, NodeRun, Transition
from penstock.engine.reasons import Reason
from penstock.engine.states import NodeState
from penstock.views.errors import Attempt, error_view
from penstock.views.times import time_text


class NodeAttempt(Attempt, kw_only=True):
    """`at` and `error` are of one that failed."""

    state: str
    queued_at: str | None
    started_at: str | None
    finished_at: str | None


class _Attempt(msgspec.Struct):
    attempt: int
    state: NodeState
    queued_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None


def attempts_of(run: NodeRun | None, lines: Iterable[Transition]) -> list[NodeAttempt]:
    """The attempts of a node; `lines` are its history lines.

    A failure before the first attempt, such as that of a config, is attempt 0.
    """
    if run is None:
        return []

    attempts: dict[int, _Attempt] = {}
    for line in lines:
        _apply_line(attempts, line)

    last = attempts.get(run.attempt)
    if last is not None and last.started_at is None:
        last.started_at = run.started_at

    failures = {failure.attempt: failure for failure in run.failures}
    return [
        _attempt_view(attempt, failures.get(attempt.attempt), run) for attempt in attempts.values()
    ]


def _apply_line(attempts: dict[int, _Attempt], line: Transition) -> None:
    after = NodeState(line.after)
    if after is NodeState.QUEUED:
        # after a loss of data an attempt is queued again, with the number that it had
        attempts[line.attempt] = _Attempt(line.attempt, after, queued_at=line.at)
        return
    if not line.attempt and after is not NodeState.FAILED:
        return  # it had no task: a data node, a reused output, or a skipped node

    attempt = attempts.setdefault(line.attempt, _Attempt(line.attempt, after))
    if after is NodeState.RUNNING:
        attempt.state = after
        attempt.started_at = line.at
        return

    # a cancelled retry delay isn't part of the attempt
    if line.before != NodeState.RETRYING and line.reason != Reason.REBUILT:
        attempt.state = NodeState.FAILED if after is NodeState.RETRYING else after
        attempt.finished_at = line.at


def _attempt_view(attempt: _Attempt, failure: AttemptFailure | None, run: NodeRun) -> NodeAttempt:
    worker_id = None
    if failure:
        worker_id = failure.worker_id
    elif attempt.attempt == run.attempt:
        worker_id = run.worker_id

    return NodeAttempt(
        attempt=attempt.attempt,
        state=str(attempt.state),
        queued_at=time_text(attempt.queued_at),
        started_at=time_text(attempt.started_at),
        finished_at=time_text(attempt.finished_at),
        at=time_text(failure.at) if failure else None,
        error=error_view(failure.error) if failure else None,
        worker_id=worker_id,
    )
