"""Backlogs: tasks that wait in a queue where nobody takes them.

There are three cases:

- A live worker has the handler and serves it on another queue (it was moved there, or the worker
  that served this queue is gone). The task is handed out again, to that queue, unless its document
  names the queue.
- Workers serve the queue, and none of them has the handler. Another may come, in the middle of a
  deployment say; after `no_handler_seconds` without one the task fails, with the category
  `no_handler`, into the dead letters.
- Nobody serves the queue. The tasks wait for a worker, however long it takes: a pool that is down,
  or scaled to zero, is no reason to fail what it will run. `queue_timeout_seconds` is for those who
  want an end to that.

Nothing of this costs an attempt, and all of it is said in the log, in `/health` and on the node.
"""

from __future__ import annotations

import asyncio
import logging

from penstock.engine.events import TaskError, TaskEvent, TaskFailed, TaskReturned
from penstock.orchestrator.routing import NO_HANDLER, Routing, explain, missing
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.base import Backlog, Lease, TaskQueue, WaitingTask
from penstock.stores.task_keys import key_of

log = logging.getLogger("penstock.orchestrator")


class BacklogWatch:
    """Watches the backlogs of one partition, for its owner."""

    def __init__(
        self, queue: TaskQueue, lease: Lease, routing: Routing, timing: OrchestratorTiming
    ) -> None:
        self._queue = queue
        self._lease = lease
        self._routing = routing
        self._timing = timing
        self._untaken_seconds: dict[tuple[str, str | None], float] = {}
        """Seconds for which nobody could take what waits, by queue and handler.

        Of this watch's own time.
        """
        self.recalled = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        look_seconds = self._timing.backlog_seconds
        last = loop.time()
        while True:
            await asyncio.sleep(look_seconds)
            now = loop.time()
            # time in which it couldn't look, because of a pause or an outage, says nothing about
            # workers
            await self.look(min(now - last, 2 * look_seconds))
            last = loop.time()

    async def look(self, seconds: float) -> None:
        """Look at the backlogs; `seconds` have passed since the last look."""
        untaken: dict[tuple[str, str | None], float] = {}
        for backlog in await self._queue.backlog(self._lease.partition):
            why = missing(self._routing.offers, backlog.queue, backlog.handler)
            if why is None:
                continue
            where = (backlog.queue, backlog.handler)
            untaken[where] = self._untaken_seconds.get(where, 0.0) + seconds
            if untaken[where] >= self._timing.untaken_seconds:
                await self._recall(backlog, why, untaken[where])
        self._untaken_seconds = untaken

    async def _recall(self, backlog: Backlog, why: str, untaken_seconds: float) -> None:
        """Move the tasks of a backlog to other queues, or fail them, if it is time for that."""
        limit = self._timing.no_handler_seconds
        gives_up = why == NO_HANDLER and untaken_seconds >= limit
        routes = self._routing.queues
        failed = 0

        def is_elsewhere(handler: str) -> bool:
            return routes.get(handler, backlog.queue) != backlog.queue

        def decide(waiting: WaitingTask) -> TaskEvent | None:
            nonlocal failed
            task = waiting.task
            if not task.names_queue and is_elsewhere(task.handler):
                return TaskReturned(*key_of(task), waiting.location)
            if gives_up and waiting.waiting_seconds >= limit:
                failed += 1
                text = f"{explain(why, backlog.queue, task.handler)} (waited {limit:g} s)"
                error = TaskError(NO_HANDLER, text)
                return TaskFailed(*key_of(task), "", 0.0, error, retryable=False)
            return None

        recalled = 0
        may_move = backlog.handler is None or is_elsewhere(backlog.handler)
        if may_move or gives_up:
            recalled = await self._queue.recall(
                self._lease.partition, self._lease.token, backlog, decide
            )
            self.recalled += recalled
            if failed:
                log.warning(
                    "%d tasks fail: %s", failed, explain(why, backlog.queue, backlog.handler or "")
                )
            if recalled > failed:
                log.warning(
                    "%d tasks that nobody took from the queue %r are moved to the queues "
                    "where live workers serve their handlers now",
                    recalled - failed,
                    backlog.queue,
                )
        if recalled < backlog.waiting:
            self._routing.warn(backlog.queue, backlog.handler, backlog.waiting - recalled)
