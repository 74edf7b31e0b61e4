"""The fleet: workers with what they do, orchestrators, queues."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.stores.fleet import ClaimedTask

TASKS_MAX = 100
"""Tasks that are shown of one worker, in a list of workers."""


class HeldTask(msgspec.Struct, kw_only=True):
    execution_id: str
    node_id: str
    attempt: int
    handler: str
    queue: str
    workflow: str
    seconds: Annotated[
        float | None, Meta(description="For how long the worker has had it, if that is known.")
    ]


class Worker(msgspec.Struct, kw_only=True):
    worker_id: str
    queues: list[str]
    handlers: Annotated[
        list[str] | None,
        Meta(description="Null for a worker of an older version, which doesn't say."),
    ]
    running: int
    heartbeats: int
    seconds_since_heartbeat: Annotated[
        float | UnsetType, Meta(description="Of a worker in another process.")
    ] = UNSET
    started_at: str | None
    tasks: Annotated[list[HeldTask], Meta(description="What it holds, at most 100 of them.")]


class Orchestrator(msgspec.Struct, kw_only=True):
    name: str
    partitions: list[int]
    pid: Annotated[
        int | UnsetType, Meta(description="The process, if it is another one than the API's.")
    ] = UNSET


class Queue(msgspec.Struct, kw_only=True):
    queue: str
    waiting: int
    running: int
    workers: Annotated[int, Meta(description="Live workers that serve it.")]
    reason: Annotated[
        str | None,
        Meta(
            description="Why something in it isn't taken: `no_worker`,"
            " or `no_handler` if no worker of the queue has the handler of some task."
        ),
    ]
    reason_text: Annotated[str | None, Meta(description="The same in words.")]


class UntakenTasks(msgspec.Struct, kw_only=True):
    """Tasks of a queue that no live worker takes."""

    queue: str
    handler: str | None
    waiting: int
    reason: str
    text: str


def tasks_view(claimed: Iterable[ClaimedTask]) -> list[HeldTask]:
    """Claimed tasks, each with the seconds since it was claimed."""
    return [
        HeldTask(
            execution_id=task.execution_id,
            node_id=task.node_id,
            attempt=task.attempt,
            handler=task.handler,
            queue=task.queue,
            workflow=task.workflow,
            seconds=None if task.seconds is None else round(task.seconds, 3),
        )
        for task in islice(claimed, TASKS_MAX)
    ]
