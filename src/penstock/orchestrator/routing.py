"""Routing: the queue that a task goes to, by the offers of live workers.

A document may name a node's queue; that is where its tasks go. Otherwise the handler's own queue
counts, as the live worker that started last has registered it. What a dead worker registered counts
only while no live worker has that handler: then the plan's queue is as good as any, and the next
worker takes the tasks from there (`backlog`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping

from penstock.definition.model import HandlerDefaults
from penstock.errors import StoreError
from penstock.orchestrator.reaper import dead_after
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.base import Offer, TaskQueue

log = logging.getLogger("penstock.orchestrator")

NO_WORKER = "no_worker"
NO_HANDLER = "no_handler"


class Routing:
    """Offers of live workers, read every second: one for all partitions of an orchestrator."""

    def __init__(self, queue: TaskQueue, timing: OrchestratorTiming) -> None:
        self._queue = queue
        self._look_seconds = timing.routing_seconds
        self._dead_seconds = timing.worker_dead_seconds
        self.offers: list[Offer] = []
        self.queues: Mapping[str, str] = {}
        """The queue that tasks go to, by handler."""
        self.announced: Mapping[str, float] = {}
        """Seconds between heartbeats that each worker announces, dead or alive, by its id."""
        self._warned: set[tuple[str, str | None]] = set()
        self._slow: set[str] = set()
        """Workers whose heartbeats are too slow for this orchestrator's settings.

        There has been a warning about them.
        """

    async def run(self) -> None:
        """Read the workers' offers, for ever. While the store is away, the last ones count."""
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.info("the workers' offers can't be read now: %s", error)
            except Exception:
                log.exception("the workers' offers can't be read; trying again")
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        offers = await self._queue.offers()
        self.announced = {offer.worker_id: offer.heartbeat_seconds for offer in offers}
        self._compare_settings()
        self.offers = live(offers, self._dead_seconds)
        self.queues = queues_of(self.offers)

        for queue, handler in list(self._warned):
            if missing(self.offers, queue, handler) is None:
                self._warned.discard((queue, handler))
                for_handler = f" for the handler {handler!r}" if handler else ""
                log.info("the queue %r has a worker again%s", queue, for_handler)

    def _compare_settings(self) -> None:
        """Warn once about each worker whose heartbeats are too slow for the settings here."""
        slow = {
            worker_id
            for worker_id, seconds in self.announced.items()
            if dead_after(0.0, seconds) > self._dead_seconds
        }
        for worker_id in sorted(slow - self._slow):
            seconds = self.announced[worker_id]
            log.warning(
                "the worker %s sends a heartbeat every %g s, and PENSTOCK_WORKER_DEAD_SECONDS "
                "is %g here: it is given %g s; give workers and orchestrators the same settings",
                worker_id,
                seconds,
                self._dead_seconds,
                dead_after(self._dead_seconds, seconds),
            )
        self._slow = slow

    def defaults(self) -> dict[str, HandlerDefaults]:
        """Defaults of the live workers' handlers; those of the newest worker count."""
        defaults: dict[str, HandlerDefaults] = {}
        for offer in self.offers:
            defaults.update(offer.handlers or {})
        return defaults

    def warn(self, queue: str, handler: str | None, waiting: int) -> None:
        """Warn about tasks that wait in a queue: once, until somebody serves it."""
        why = missing(self.offers, queue, handler)
        if why is not None and (queue, handler) not in self._warned:
            self._warned.add((queue, handler))
            log.warning(
                "%d tasks wait in the queue %r: %s",
                waiting,
                queue,
                explain(why, queue, handler or ""),
            )


def live(offers: Iterable[Offer], dead_seconds: float) -> list[Offer]:
    """Offers of workers that aren't dead, the newest worker last.

    Dead are those that have been silent for so long that the reaper takes their tasks.
    """
    alive = [
        offer
        for offer in offers
        if offer.silent_seconds < dead_after(dead_seconds, offer.heartbeat_seconds)
    ]
    return sorted(alive, key=lambda offer: (offer.started_at, offer.worker_id))


def queues_of(offers: Iterable[Offer]) -> dict[str, str]:
    """The queue that the newest worker with a handler asks for and serves, by handler.

    `offers` has the newest last.
    """
    queues: dict[str, str] = {}
    for offer in offers:
        for name, defaults in (offer.handlers or {}).items():
            queue = defaults.queue or name
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
    return (
        f"no live worker of the queue {queue!r} has the handler {handler!r}; "
        "start one with the module that defines it"
    )
