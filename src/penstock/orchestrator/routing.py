"""The queue that a task goes to, by what live workers say of themselves.

A document may name a node's queue; that is where its tasks go. Else the handler's own queue counts,
as the live worker that started last has registered it. What a worker registered that is dead counts
only while no live worker has that handler: then the plan's queue is as good as any, and whoever
comes takes the tasks from there (`backlog`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping

from penstock.definition.model import HandlerDefaults
from penstock.errors import StoreError
from penstock.orchestrator.reaper import DEAD_SECONDS, dead_after
from penstock.stores.base import Offer, TaskQueue

log = logging.getLogger("penstock.orchestrator")

LOOK_SECONDS = 1.0
NO_WORKER, NO_HANDLER = "no_worker", "no_handler"


class Routing:
    """Offers of live workers, read every second: one for all partitions of an orchestrator."""

    def __init__(self, queue: TaskQueue, dead_seconds: float = DEAD_SECONDS) -> None:
        self._queue, self._dead_seconds = queue, dead_seconds
        self.offers: list[Offer] = []
        self.queues: Mapping[str, str] = {}
        """The queue that tasks go to, by handler."""
        self.announced: Mapping[str, float] = {}
        """Seconds between heartbeats that each worker announces, dead or alive, by its id."""
        self._warned: set[tuple[str, str | None]] = set()
        self._slow: set[str] = set()
        """Workers whose heartbeats are too slow for this orchestrator's settings: it has been said.
        """

    async def run(self) -> None:
        """Read the workers' offers, for ever. While the store is away, the last ones count."""
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.info("what workers offer can't be read now: %s", error)
            except Exception:
                log.exception("what workers offer can't be followed")
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        offers = await self._queue.offers()
        self.announced = {offer.worker_id: offer.heartbeat_seconds for offer in offers}
        self._compare_settings()
        self.offers = live(offers, self._dead_seconds)
        self.queues = queues_of(self.offers)
        for queue, handler in [
            each for each in self._warned if missing(self.offers, *each) is None
        ]:
            self._warned.discard((queue, handler))
            log.info(
                "the queue %r has a worker again%s",
                queue,
                f" for the handler {handler!r}" if handler else "",
            )

    def _compare_settings(self) -> None:
        """Warn once of each worker whose settings don't go with the ones here."""
        slow = {
            name
            for name, seconds in self.announced.items()
            if dead_after(0.0, seconds) > self._dead_seconds
        }
        for worker_id in sorted(slow - self._slow):
            seconds = self.announced[worker_id]
            log.warning(
                "the worker %s sends a heartbeat every %g s, and PENSTOCK_WORKER_DEAD_SECONDS is %g here: it is given "
                "%g s; give workers and orchestrators the same settings",
                worker_id,
                seconds,
                self._dead_seconds,
                dead_after(self._dead_seconds, seconds),
            )
        self._slow = slow

    def defaults(self) -> dict[str, HandlerDefaults]:
        """Defaults of the live workers' handlers: the worker that started last is heard."""
        found: dict[str, HandlerDefaults] = {}
        for offer in self.offers:
            found.update(offer.handlers or {})
        return found

    def warn(self, queue: str, handler: str | None, waiting: int) -> None:
        """Warn of tasks that wait in a queue: once, until somebody serves it."""
        why = missing(self.offers, queue, handler)
        if why is not None and (queue, handler) not in self._warned:
            self._warned.add((queue, handler))
            log.warning(
                "%d tasks wait in the queue %r: %s",
                waiting,
                queue,
                explain(why, queue, handler or ""),
            )


def live(offers: Iterable[Offer], dead_seconds: float = DEAD_SECONDS) -> list[Offer]:
    """Offers of workers that aren't dead, the newest worker last.

    Dead are those that have been silent for so long that the reaper takes their tasks.
    """
    found = [
        offer
        for offer in offers
        if offer.silent_seconds < dead_after(dead_seconds, offer.heartbeat_seconds)
    ]
    return sorted(found, key=lambda offer: (offer.started_at, offer.worker_id))


def queues_of(offers: Iterable[Offer]) -> dict[str, str]:
    """The queue that the newest worker with a handler asks for and serves, by handler.

    `offers` has the newest last.
    """
    queues: dict[str, str] = {}
    for offer in offers:
        for name, asked in (offer.handlers or {}).items():
            queue = asked.queue or name
            if queue in offer.queues:
                queues[name] = queue
    return queues


def missing(offers: Collection[Offer], queue: str, handler: str | None) -> str | None:
    """The reason why nobody takes the tasks of a handler (None: of any) from a queue.

    None if somebody does.
    """
    serving = [offer for offer in offers if queue in offer.queues]
    if not serving:
        return NO_WORKER
    if handler is not None and not any(offer.has(handler) for offer in serving):
        return NO_HANDLER
    return None


def explain(why: str, queue: str, handler: str) -> str:
    if why == NO_WORKER:
        return f"no live worker serves the queue {queue!r}; start one that does"
    return f"no live worker of the queue {queue!r} has the handler {handler!r}; start one with the module that defines it"
