"""Live logs: what running attempts have logged so far, for users who look at them.

They run beside the work: about once a second, the logs that have grown are sent to the store, of
attempts that have run for that long. If a store can't take them, nothing is lost: an outcome brings
the whole log by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from penstock.errors import StoreError
from penstock.stores.base import TaskQueue
from penstock.stores.task_keys import Key
from penstock.worker.attempt import Attempt
from penstock.worker.timing import WorkerTiming

log = logging.getLogger("penstock.worker")

LOOK_CHARACTERS_MAX = 1_000_000
"""Characters that are sent in one look.

They share the connection with outcomes, which must not wait for them.
"""


class _Shared(NamedTuple):
    version: int
    at: float


class LiveLogs:
    """Shares the live logs of running attempts; `running` is the worker's own table."""

    def __init__(
        self, queue: TaskQueue, running: Mapping[Key, Attempt], timing: WorkerTiming
    ) -> None:
        self._timing = timing
        self._queue = queue
        self._running = running
        self._shared: dict[Key, _Shared] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._timing.live_logs_seconds)
            try:
                await self.look(loop.time())
            except StoreError as error:
                log.debug("logs of running attempts can't be shown: %s", error)

    async def look(self, now: float) -> None:
        """Share what is new at `now`, by the loop's clock.

        Raises `StoreError`; the next look makes up for it.
        """
        over = self._shared.keys() - self._running.keys()
        texts = dict.fromkeys(over, "")
        shared: dict[Key, _Shared] = {}
        size = 0
        for attempt in self._grown(now):
            version = attempt.log.version  # first: a thread may write on
            text = attempt.logs()
            texts[attempt.key] = text
            shared[attempt.key] = _Shared(version, now)
            size += len(text)
            if size >= LOOK_CHARACTERS_MAX:
                break
        if texts:
            await self._queue.share_logs(texts)
            for key in over:
                del self._shared[key]
            self._shared.update(shared)

    def _grown(self, now: float) -> Iterator[Attempt]:
        """Attempts with something to share.

        Those that waited longest come first, so that each has its turn.
        """
        long_ago = now - self._timing.live_logs_seconds
        sent_long_ago = now - self._timing.live_logs_again_seconds
        grown: list[tuple[float, Attempt]] = []
        for key, attempt in self._running.items():
            version = attempt.log.version
            if not version or attempt.began > long_ago:
                continue
            shared = self._shared.get(key)
            if shared is None:
                grown.append((float("-inf"), attempt))
            elif shared.version != version or shared.at <= sent_long_ago:
                grown.append((shared.at, attempt))
        grown.sort(key=lambda pair: pair[0])
        return (attempt for _, attempt in grown)
