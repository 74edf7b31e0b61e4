"""Facts to put into stores, and an owner that commits them as an orchestrator would."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from msgspec import structs

from penstock.engine.commands import (
    AttemptFailure,
    Commands,
    DeadLetter,
    ExecutionRecord,
    NodeRun,
    Stop,
    Task,
    Transition,
)
from penstock.engine.events import AnyEvent, TaskError, TaskSucceeded
from penstock.engine.states import ExecutionState, NodeState
from penstock.stores import codec
from penstock.stores.base import Commit, Lease, NewExecution, Stores, partition_of
from penstock.stores.split import Copy, Outgoing

HOUR = 3600.0


def execution_ids(stores: Stores, partition: int = 0) -> Iterator[str]:
    """Ids that all belong to one partition."""
    names = (f"execution-{number}" for number in count())
    return (name for name in names if partition_of(name, stores.hot.partitions) == partition)


def record(
    execution_id: str, state: ExecutionState = ExecutionState.PENDING, **fields: Any
) -> ExecutionRecord:
    return ExecutionRecord(execution_id, "report", 1, state, b'{"lang":"en"}', 1000.0, **fields)


def new(execution_id: str, labels: dict[str, Any] | None = None, **fields: Any) -> NewExecution:
    made = record(execution_id)
    made.labels = labels or {}
    return NewExecution(made, **fields)


def submitted(execution_id: str, **fields: Any) -> NewExecution:
    """As `new`, with anything in its record."""
    return NewExecution(structs.replace(record(execution_id), **fields))


def running(given: NewExecution, state: ExecutionState = ExecutionState.RUNNING) -> Commands:
    """The first commit of what was submitted, or one that pauses it."""
    now = structs.replace(given.record, state=state, started_at=1001.0)
    if state == ExecutionState.PAUSED:
        line = Transition(2, 1001.0, "", "RUNNING", "PAUSED", 0)
        return started(given.record.execution_id, record=now, paused=True, history=[line])
    return started(given.record.execution_id, record=now)


def over(
    given: NewExecution, state: ExecutionState = ExecutionState.COMPLETED, **fields: Any
) -> Commands:
    """The last commit of what was submitted."""
    end = structs.replace(
        given.record, state=state, started_at=1001.0, finished_at=1009.0, **fields
    )
    return ended(given.record.execution_id, record=end)


def started(execution_id: str, **fields: Any) -> Commands:
    """What an execution's first commit writes."""
    line = Transition(1, 1001.0, "", "PENDING", "RUNNING", 0)
    running = record(execution_id, ExecutionState.RUNNING, started_at=1001.0)
    return Commands(execution_id, **{"record": running, "history": [line], **fields})


def ended(
    execution_id: str, state: ExecutionState = ExecutionState.COMPLETED, **fields: Any
) -> Commands:
    line = Transition(99, 1009.0, "", "RUNNING", state, 0)
    over = record(execution_id, state, started_at=1001.0, finished_at=1009.0)
    return Commands(execution_id, **{"record": over, "history": [line], "finished": True, **fields})


def queued(*tasks: Task) -> Commands:
    """What a commit writes that hands out tasks."""
    name = tasks[0].execution_id
    runs = {task.node: NodeRun(task.node, NodeState.QUEUED, task.attempt, 1002.0) for task in tasks}
    lines = [
        Transition(2 + i, 1002.0, task.node, "PENDING", "QUEUED", task.attempt)
        for i, task in enumerate(tasks)
    ]
    return Commands(name, nodes=runs, history=lines, tasks=list(tasks))


def task(execution_id: str, node: str = "fetch", attempt: int = 1, **fields: Any) -> Task:
    given = {
        "generation": 1,
        "handler": "echo",
        "queue": "echo",
        "config": b'{"x":1}',
        "inputs": [],
        "secrets": (),
        "timeout_seconds": 60.0,
        "idempotency_key": f"{execution_id}:{node}",
        "workflow": "report",
        **fields,
    }
    return Task(execution_id, node, attempt=attempt, **given)


def stop(task: Task) -> Stop:
    return Stop(task.execution_id, task.node, task.generation, task.attempt)


def success(task: Task, worker_id: str, output: bytes = b"{}", *, logs: str = "") -> TaskSucceeded:
    key = (task.execution_id, task.node, task.generation, task.attempt)
    return TaskSucceeded(*key, worker_id, 1003.0, output, logs)


def letter(
    execution_id: str, node: str = "fetch", handler: str = "echo", category: str = "handler"
) -> DeadLetter:
    failure = AttemptFailure(
        1, 1004.0, TaskError(category, "boom", detail={"status": 500}), "worker-1"
    )
    return DeadLetter(execution_id, node, handler, 1005.0, [failure])


class Owner:
    def __init__(self, stores: Stores, lease: Lease) -> None:
        self.stores, self.lease, self.position = stores, lease, lease.position

    @classmethod
    async def of(cls, stores: Stores, partition: int = 0, name: str = "owner-1") -> Owner:
        lease = await stores.hot.acquire(partition, name, HOUR)
        assert lease is not None
        return cls(stores, lease)

    def commit_of(self, *changes: Commands) -> Commit:
        return codec.new_commit(self.lease, self.position, changes)

    async def commit(self, *changes: Commands) -> None:
        await self.stores.hot.commit(self.commit_of(*changes))
        self.lease.commit_number += 1
        await copy_outbox(self.stores, self.lease)

    async def inbox(self) -> list[AnyEvent]:
        """Everything in the inbox, without taking it."""
        received = await self.stores.hot.receive(self.lease.partition, self.position, 1000, 0.0)
        return [event for _, event in received]


async def copy_outbox(stores: Stores, lease: Lease) -> None:
    """Where hot and cold are two, what the cold store has to hear of is there when this returns."""
    if stores.split is None:
        return
    entries = await stores.split.hot.outbox(lease.partition, 1000)
    changes = await stores.split.hot.changes([entry.execution_id for entry in entries])
    copies = [
        Copy(it.execution_id, it.summary, changes[it.execution_id], it.letters) for it in entries
    ]
    if entries:
        await stores.split.cold.put_copies(lease.partition, lease.commit_number, copies)
        await stores.split.hot.taken(
            lease, len(entries), [it.execution_id for it in entries if ended_by(it)]
        )


def ended_by(entry: Outgoing) -> bool:
    return entry.summary is not None and entry.summary.has_ended


async def begin(stores: Stores, *execution_ids: str) -> Owner:
    """Executions that exist and have started, and the owner of their partition."""
    await stores.cold.create([new(name) for name in execution_ids])
    owner = await Owner.of(stores, partition_of(execution_ids[0], stores.hot.partitions))
    await owner.commit(*(started(name) for name in execution_ids))
    return owner


async def hand_out(stores: Stores, *nodes: str, **fields: Any) -> tuple[Owner, list[Task]]:
    """One execution with a queued task for each node."""
    name = next(execution_ids(stores))
    owner = await begin(stores, name)
    tasks = [task(name, node, **fields) for node in nodes]
    await owner.commit(queued(*tasks))
    return owner, tasks
