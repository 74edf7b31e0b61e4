"""The scheduler: looks after the schedules of the partitions that are owned in this process.

It has their next times in memory, and wakes at the first of them. Rows are read again every few
seconds, because others change them. Nothing hangs on who looks after a schedule: a write at an
older revision is refused, so two schedulers, or one that was away, start no slot twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection

from penstock.errors import NotOpen, StoreError
from penstock.service.firing import Firing
from penstock.stores.base import Stores
from penstock.stores.schedules import Schedule

log = logging.getLogger("penstock.schedules")

READ_SECONDS = 10.0
"""How often rows are read again."""
LOOK_SECONDS = 1.0
"""How often it is looked, in memory, which partitions are owned."""
PAUSE_SECONDS = 0.001
"""A pause between two rounds, for whatever else this process does."""
AT_ONCE = 10
"""Schedules that fire at the same time; each is a transaction."""


class Scheduler:
    def __init__(
        self,
        stores: Stores,
        firing: Firing,
        owned: Callable[[], Collection[int]],
        *,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._stores = stores
        self._firing = firing
        self._owned = owned
        self._read_seconds = read_seconds
        self._partitions: set[int] = set()
        self._schedules: dict[str, Schedule] = {}
        self._due: dict[str, float] = {}
        """By id, of those for which something will be due."""
        self._read_at = float("-inf")
        self._changed = asyncio.Event()
        self._room = asyncio.Semaphore(AT_ONCE)

    def look_again(self) -> None:
        """Read rows again at once: some have changed."""
        self._read_at = float("-inf")
        self._changed.set()

    async def run(self) -> None:
        """Run until cancelled, or until the store is closed."""
        while True:
            try:
                await self._round()
            except NotOpen:
                return
            except StoreError as error:
                log.info("schedules can't be looked after now: %s", error)
                await asyncio.sleep(LOOK_SECONDS)
            await self._wait()

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        partitions = set(self._owned())
        if partitions != self._partitions or now - self._read_at >= self._read_seconds:
            self._read_at = now
            await self._read(partitions)
        due = [id_ for id_, at in self._due.items() if at <= self._stores.hot.now()]
        if due:
            fires = [self._fire(self._schedules[id_]) for id_ in due]
            for error in await asyncio.gather(*fires, return_exceptions=True):
                if error is not None:
                    raise error

    async def _read(self, partitions: set[int]) -> None:
        schedules: dict[str, Schedule] = {}
        for partition in sorted(partitions):
            for schedule in await self._stores.cold.schedules.of_partition(partition):
                schedules[schedule.id] = schedule
        self._schedules = schedules
        self._partitions = partitions
        self._due.clear()
        for schedule in schedules.values():
            self._set_due(schedule)
            # also seen here: that the last execution has failed
            if schedule.running and schedule.definition.pause_on_failure:
                self._due[schedule.id] = 0.0

    def _set_due(self, schedule: Schedule) -> None:
        due_at = self._firing.due_at(schedule)
        if due_at is None:
            self._due.pop(schedule.id, None)
        else:
            self._due[schedule.id] = due_at

    async def _fire(self, schedule: Schedule) -> None:
        async with self._room:
            try:
                fired = await self._firing.fire(schedule)
            except StoreError:
                raise
            except Exception:
                # one schedule that can't be read must not keep the others from starting
                log.exception("schedule %s can't be looked after", schedule.name)
                self._due.pop(schedule.id, None)
                return
        if fired is None:
            self._due.pop(schedule.id, None)
            self.look_again()
        else:
            self._schedules[schedule.id] = fired
            self._set_due(fired)

    async def _wait(self) -> None:
        """Wait until a schedule is due or has changed, or the rows must be read again."""
        seconds = LOOK_SECONDS
        if self._due:
            seconds = min(seconds, min(self._due.values()) - self._stores.hot.now())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, PAUSE_SECONDS)):
                await self._changed.wait()
        self._changed.clear()
