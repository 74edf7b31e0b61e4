"""Names of Redis keys.

Everything of a partition carries its number as hash tag, so that a cluster keeps it together.
"""

from __future__ import annotations

LAYOUT = 1
"""Raised when what is kept in Redis changes its shape."""
STORE = "penstock:{fleet}:store"
BEATS = "penstock:{fleet}:beats"
WORKERS = "penstock:{fleet}:workers"
ORCHESTRATORS = "penstock:{fleet}:orchestrators"
HANDLER_SEPARATOR = "\x1f"
"""Between queue and handler in the name of a stream: a control character, which no name in a
document has.
"""


def mark(store_id: str) -> str:
    """The value of the key `STORE`."""
    return f"{store_id} {LAYOUT}"


def prefix(partition: int) -> str:
    return f"penstock:{{{partition}}}:"


def lease(partition: int) -> str:
    return f"penstock:{{{partition}}}:lease"


def inbox(partition: int) -> str:
    return f"penstock:{{{partition}}}:inbox"


def wake(partition: int) -> str:
    return f"penstock:{{{partition}}}:wake"


def commit_feed(partition: int) -> str:
    return f"penstock:{{{partition}}}:events"


def execution(partition: int, execution_id: str) -> str:
    return f"penstock:{{{partition}}}:execution:{execution_id}"


def live_log(partition: int, execution_id: str, node: str, generation: int, attempt: int) -> str:
    return f"penstock:{{{partition}}}:log:{execution_id}:{generation}:{attempt}:{node}"


def stream(queue: str, priority: int) -> str:
    """A task stream's name behind `tasks:`."""
    return f"{priority}:{queue}"


def priority_of(stream: str) -> int:
    """The priority of the tasks in a task stream."""
    return int(stream.partition(":")[0])


def queue_of(stream: str) -> tuple[str, str | None]:
    """The queue of a task stream, and the handler of one that only has tasks of that handler.

    The latter are made by `fetch.lua`, for tasks that a worker of the queue met and whose handler
    it doesn't have.
    """
    queue, separator, handler = stream.partition(":")[2].partition(HANDLER_SEPARATOR)
    return queue, handler if separator else None
