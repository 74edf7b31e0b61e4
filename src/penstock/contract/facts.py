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
from penstock.stores.base import Intent, Lease, Stores, partition_of
from penstock.stores.commit_plan import CommitPlan, plan_commit
from penstock.stores.tiering import Copy, Outgoing

HOUR = 3600.0


def new_execution_ids(stores: Stores, partition: int = 0) -> Iterator[str]:
    """Ids that all belong to one partition."""
    execution_ids = (f"execution-{number}" for number in count())
    return (
        execution_id
        for execution_id in execution_ids
        if partition_of(execution_id, stores.hot.partitions) == partition
    )


def record(
    execution_id: str, state: ExecutionState = ExecutionState.PENDING, **fields: Any
) -> ExecutionRecord:
    return ExecutionRecord(execution_id, "report", 1, state, b'{"lang":"en"}', 1000.0, **fields)


def new_intent(execution_id: str, labels: dict[str, Any] | None = None, **fields: Any) -> Intent:
    made = record(execution_id)
    made.labels = labels or {}
    return Intent(made, **fields)


def submitted(execution_id: str, **fields: Any) -> Intent:
    """As `new`, with anything in its record."""
    return Intent(structs.replace(record(execution_id), **fields))


def running(given: Intent, state: ExecutionState = ExecutionState.RUNNING) -> Commands:
    """The first commit of what was submitted, or one that pauses it."""
    now = structs.replace(given.record, state=state, started_at=1001.0)
    if state == ExecutionState.PAUSED:
        line = Transition(2, 1001.0, "", "RUNNING", "PAUSED", 0)
        return started(given.record.execution_id, record=now, paused=True, history=[line])
    return started(given.record.execution_id, record=now)


def over(
    given: Intent, state: ExecutionState = ExecutionState.COMPLETED, **fields: Any
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
    execution_id = tasks[0].execution_id
    runs = {
        task.node_id: NodeRun(task.node_id, NodeState.QUEUED, task.attempt, 1002.0)
        for task in tasks
    }
    lines = [
        Transition(2 + i, 1002.0, task.node_id, "PENDING", "QUEUED", task.attempt)
        for i, task in enumerate(tasks)
    ]
    return Commands(execution_id, nodes=runs, history=lines, tasks=list(tasks))


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
    return Stop(task.execution_id, task.node_id, task.generation, task.attempt)


def success(task: Task, worker_id: str, output: bytes = b"{}", *, logs: str = "") -> TaskSucceeded:
    key = (task.execution_id, task.node_id, task.generation, task.attempt)
    return TaskSucceeded(*key, worker_id, 1003.0, output, logs)


def dead_letter(
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

    def commit_of(self, *changes: Commands) -> CommitPlan:
        return plan_commit(self.lease, self.position, changes)

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
    if stores.tiering is None:
        return
    entries = await stores.tiering.hot.outbox(lease.partition, 1000)
    changes = await stores.tiering.hot.changes([entry.execution_id for entry in entries])
    copies = [
        Copy(it.execution_id, it.summary, changes[it.execution_id], it.dead_letters)
        for it in entries
    ]
    if entries:
        await stores.tiering.cold.put_copies(lease.partition, lease.commit_number, copies)
        await stores.tiering.hot.acknowledge_outbox(
            lease, len(entries), [it.execution_id for it in entries if ended_by(it)]
        )


def ended_by(entry: Outgoing) -> bool:
    return entry.summary is not None and entry.summary.has_ended


async def begin(stores: Stores, *execution_ids: str) -> Owner:
    """Executions that exist and have started, and the owner of their partition."""
    await stores.cold.record_intents([new_intent(execution_id) for execution_id in execution_ids])
    owner = await Owner.of(stores, partition_of(execution_ids[0], stores.hot.partitions))
    await owner.commit(*(started(execution_id) for execution_id in execution_ids))
    return owner


async def hand_out(stores: Stores, *nodes: str, **fields: Any) -> tuple[Owner, list[Task]]:
    """One execution with a queued task for each node."""
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    tasks = [task(execution_id, node, **fields) for node in nodes]
    await owner.commit(queued(*tasks))
    return owner, tasks
