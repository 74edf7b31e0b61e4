"""The fleet: the workers and orchestrators of all processes that share a store.

Each says about itself what others may show. Nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from penstock.engine.commands import Task
from penstock.stores.base import Offer


class OrchestratorDetails(msgspec.Struct):
    """What an orchestrator says about itself when it announces itself."""

    partitions: list[int]
    """The partitions that it owns, sorted."""
    pid: int


class ClaimedTask(msgspec.Struct):
    """A task in a worker's hands, as far as it is shown."""

    execution_id: str
    node_id: str
    generation: int
    attempt: int
    handler: str
    queue: str
    workflow: str
    seconds: float | None
    """For how long the worker has had it. None: its handler hasn't been called yet."""

    @classmethod
    def of(cls, task: Task, seconds: float | None) -> ClaimedTask:
        return cls(
            task.execution_id,
            task.node_id,
            task.generation,
            task.attempt,
            task.handler,
            task.queue,
            task.workflow,
            seconds,
        )


class WorkerDetails(msgspec.Struct):
    """A worker, as its last heartbeat and its list of tasks show it."""

    offer: Offer
    running: int
    """Tasks that it had claimed at its last heartbeat."""
    heartbeats: int
    """How many heartbeats it has sent."""
    tasks: list[ClaimedTask]
    """Its claimed tasks; the first are those that it has had for longest."""


class FleetStore(Protocol):
    """What a store that several processes share knows of them all."""

    async def workers(self, tasks_max: int) -> list[WorkerDetails]:
        """Workers that have sent a heartbeat and haven't left, by id.

        At most `tasks_max` tasks are answered of each worker. Also those that are dead by now and
        weren't reaped yet: `Offer.silent_seconds` says for how long each has been silent.
        """

    async def orchestrators(self) -> Mapping[str, OrchestratorDetails]:
        """The live orchestrators by name, with what each announced last."""

    async def inbox_length(self) -> int:
        """How many entries all inboxes have that aren't committed yet.

        One may hold several events.
        """
