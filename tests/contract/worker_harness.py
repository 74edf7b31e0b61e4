"""A worker on a store in memory, and the tasks that a test gives it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count
from typing import Any, Self

import msgspec

from penstock.config import Settings
from penstock.contract.facts import Owner, begin, queued, task
from penstock.engine.commands import Task
from penstock.engine.events import Blob, TaskError, TaskFailed, TaskStarted, TaskSucceeded
from penstock.stores.memory import MemoryStores
from penstock.stores.task_keys import key_of
from penstock.telemetry.outcomes import OutcomeLog
from penstock.worker.registry import Handler, Registry
from penstock.worker.runtime import Worker
from penstock.worker.timing import WorkerTiming
from tests.waiting import until

EXECUTION = "the-execution"


class WorkerHarness:
    """Every handler is served under its function's name, or the name it is given."""

    def __init__(
        self,
        *handlers: Callable[..., Any] | Handler,
        stores: MemoryStores | None = None,
        queue: Any = None,
        clock: Callable[[], float] = time.time,
        timing: WorkerTiming | None = None,
        outcome_log: OutcomeLog | None = None,
        **settings: Any,
    ) -> None:
        registered = [
            handler if isinstance(handler, Handler) else Handler(handler.__name__, handler)
            for handler in handlers
        ]
        self.registry = Registry(registered)
        self.stores = stores or MemoryStores(time.time)
        self.settings = Settings(**{"shutdown_grace_seconds": 5.0, **settings})
        self.worker = Worker(
            queue or self.stores.queue,
            self.stores.blobs,
            self.registry,
            self.settings,
            worker_id="worker-1",
            clock=clock,
            queues=["echo"],
            outcome_log=outcome_log,
            timing=timing,
        )
        self._numbers = count(1)
        self._stopped = False

    async def __aenter__(self) -> Self:
        self.owner: Owner = await begin(self.stores, EXECUTION)
        self.worker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._stopped:
            await self.stop()

    async def stop(self, grace_seconds: float | None = None) -> None:
        self._stopped = True
        await self.worker.stop(grace_seconds)

    async def give(self, handler: str, config: Any = None, **fields: Any) -> Task:
        (dispatched,) = await self.give_all([handler], config, **fields)
        return dispatched

    async def give_all(self, handlers: list[str], config: Any = None, **fields: Any) -> list[Task]:
        """In one commit, so that they are fetched together."""
        fields["config"] = config if isinstance(config, Blob) else msgspec.json.encode(config or {})
        tasks = [
            task(EXECUTION, f"n{next(self._numbers)}", handler=handler, **fields)
            for handler in handlers
        ]
        await self.owner.commit(queued(*tasks))
        return tasks

    async def events(self, dispatched: Task) -> list[Any]:
        return [event for event in await self.owner.inbox() if key_of(event) == key_of(dispatched)]  # type: ignore[arg-type]

    async def outcome(self, dispatched: Task, *, seconds: float = 10.0) -> Any:
        """What the worker reported of it in the end."""

        async def look() -> Any:
            kinds = (TaskSucceeded, TaskFailed)
            return next(
                (event for event in await self.events(dispatched) if isinstance(event, kinds)), None
            )

        return await until(look, f"an outcome of {dispatched.handler}", seconds=seconds)

    async def started(self, dispatched: Task) -> TaskStarted:
        async def look() -> Any:
            return next(
                (
                    event
                    for event in await self.events(dispatched)
                    if isinstance(event, TaskStarted)
                ),
                None,
            )

        task_started: TaskStarted = await until(
            look, f"a word that {dispatched.handler} has started"
        )
        return task_started

    async def run(self, handler: str, config: Any = None, **fields: Any) -> Any:
        return await self.outcome(await self.give(handler, config, **fields))


async def idle() -> str:
    """The handler of the task that shows that a worker goes on."""
    return "went on"


def outcome_of(handler: Callable[..., Any] | Handler, config: Any = None, **fields: Any) -> Any:
    """What is reported of one attempt.

    The worker then goes on with its only slot and its only thread.
    """

    async def scenario() -> Any:
        async with WorkerHarness(handler, idle, worker_concurrency=1, worker_threads=1) as harness:
            name = handler.name if isinstance(handler, Handler) else handler.__name__
            outcome = await harness.run(name, config, **fields)
            assert output_of(await harness.run("idle")) == "went on"
            return outcome

    return asyncio.run(scenario())


def output_of(event: Any) -> Any:
    assert isinstance(event, TaskSucceeded), event
    assert isinstance(event.output, bytes)
    return msgspec.json.decode(event.output)


def error_of(event: Any) -> TaskError:
    assert isinstance(event, TaskFailed), event
    return event.error
