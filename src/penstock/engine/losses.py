"""What a task that is lost with its worker costs its node.

A worker that dies takes all its tasks along, and nobody can tell which of them killed it, if any
did. So:

- A loss counts as an attempt, like a failure. A task that kills its workers ends in the dead
  letters.
- The first loss of a node never uses up its last attempt: one that may be tried once survives the
  death of a worker. The second loss is no coincidence any more. A node so has at most one attempt
  more than `max_attempts`.
- An attempt that a worker hands back because it was told to stop (a deployment, a node that is
  drained) doesn't count at all: that worker lived to say so. `UNCOUNTED_MAX` is for a handler that
  tells its own worker to stop.

See docs/decisions/016-heartbeats-and-losses.md.
"""

from __future__ import annotations

from penstock.engine.commands import NodeRun
from penstock.engine.events import TaskError, TaskLost
from penstock.engine.reasons import ErrorCategory

UNCOUNTED_MAX = 20


def attempts_used(run: NodeRun) -> int:
    """How many of its `max_attempts` a node has used."""
    return run.attempt - run.uncounted


def record_loss(run: NodeRun, event: TaskLost, max_attempts: int) -> TaskError:
    """Note on the node's record what the loss costs; returns the error of the attempt."""
    run.worker_id = event.worker_id
    if event.interrupted:
        if run.uncounted < UNCOUNTED_MAX:
            run.uncounted += 1
        return TaskError(
            ErrorCategory.INTERRUPTED,
            f"the worker {event.worker_id} was stopped before the handler was done",
        )
    run.losses += 1
    was_last = attempts_used(run) >= max_attempts
    if was_last and run.losses == 1:
        run.uncounted += 1
    return TaskError(
        ErrorCategory.LOST, f"the worker {event.worker_id} died while it held the task"
    )
