"""What is kept of a node's failed attempts and of their logs: bounded, however often it is tried.

A failure is written once, when it happens, beside the node's record and not inside it: a record is
written with every change of its node, and 1,000 attempts would write each failure thousands of
times. The first failures of a node and the one that ends it are kept as they are; those between are
cut short, and of them only the newest stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from penstock.engine.commands import AttemptFailure, NodeRun
from penstock.engine.events import TaskError

if TYPE_CHECKING:
    from penstock.engine.state import Execution

FIRST_FAILURES_MAX = 5
LAST_FAILURES_MAX = 15
MESSAGE_CHARACTERS_MAX = 4000
"""Characters of any error's message.

A worker cuts its own; this is for texts that are made of a document's.
"""
SHORT_MESSAGE_CHARACTERS_MAX = 200
"""Characters of a message between the first failures and the last; these have no detail and no
traceback either.
"""
LOGS_CHARACTERS_MAX = 256 * 1024
"""Characters of a node's logs.

Attempts that begin beyond it keep none, but for the last attempt.
"""


def note(execution: Execution, run: NodeRun, error: TaskError, *, is_last: bool) -> None:
    """Record that the current attempt has failed; `is_last` if the node has no attempts left."""
    if not is_last and len(run.failures) >= FIRST_FAILURES_MAX:
        error = shortened(error)
    failure = AttemptFailure(run.attempt, execution.now, error, run.worker_id)
    execution.commands.failures.append((run.node_id, failure))
    execution.commands.size += len(error.message) + len(error.traceback or "")
    run.failures = [*run.failures, failure]
    run.failures_dropped += trim(run.failures)


def trim(failures: list[AttemptFailure]) -> int:
    """Drop from the middle what is too much; answers how many that were."""
    excess = max(0, len(failures) - FIRST_FAILURES_MAX - LAST_FAILURES_MAX)
    del failures[FIRST_FAILURES_MAX : FIRST_FAILURES_MAX + excess]
    return excess


def cut(error: TaskError) -> TaskError:
    if len(error.message) <= MESSAGE_CHARACTERS_MAX:
        return error
    return structs.replace(error, message=_start_of(error.message, MESSAGE_CHARACTERS_MAX))


def shortened(error: TaskError) -> TaskError:
    return TaskError(
        error.category, _start_of(error.message, SHORT_MESSAGE_CHARACTERS_MAX), error.type
    )


def _start_of(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def record_logs(execution: Execution, run: NodeRun, logs: str, *, is_last: bool) -> None:
    """What an attempt has logged, as long as there is room for it; the last attempt's always."""
    if run.logs_size > LOGS_CHARACTERS_MAX and not is_last:
        return
    run.logs_size += len(logs)
    if run.logs_size > LOGS_CHARACTERS_MAX and not is_last:
        logs += (
            "\n(this node has logged too much:"
            " of the attempts after this one only the last one's log is kept)"
        )
    execution.commands.logs.append((run.node_id, run.attempt, logs))
    execution.commands.size += len(logs)
