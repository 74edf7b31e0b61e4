"""Records to put into stores, and an owner that commits them as an orchestrator would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import Any

from msgspec import structs

from penstock.engine.commands import (
    AttemptFailure,
    Commands,
    ControlChild,
    DeadLetter,
    ExecutionRecord,
    NodeRun,
    Send,
    StartChild,
    Stop,
    Task,
    Transition,
)
from penstock.engine.events import AnyEvent, TaskError, TaskEvent, TaskSucceeded
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import Conflict, NotFound
from penstock.stores.base import Backlog, Intent, Lease, Stores, WaitingTask, partition_of
from penstock.stores.children import event_of
from penstock.stores.commit_plan import CommitPlan, plan_commit
from penstock.stores.tiering import Copy, Outgoing
from penstock.stores.waits import newest

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
    intent = Intent(record(execution_id), **fields)
    intent.record.labels = labels or {}
    return intent


def submitted(execution_id: str, **fields: Any) -> Intent:
    """An intent as `new_intent` gives it, with any fields of its record."""
    return Intent(structs.replace(record(execution_id), **fields))


def running(intent: Intent, state: ExecutionState = ExecutionState.RUNNING) -> Commands:
    """The first commit of a submitted execution, or a commit that pauses it."""
    running = structs.replace(intent.record, state=state, started_at=1001.0)
    if state == ExecutionState.PAUSED:
        line = Transition(2, 1001.0, "", "RUNNING", "PAUSED", 0)
        return started(intent.record.execution_id, record=running, paused=True, history=[line])
    return started(intent.record.execution_id, record=running)


def over(
    intent: Intent, state: ExecutionState = ExecutionState.COMPLETED, **fields: Any
) -> Commands:
    """The last commit of a submitted execution."""
    end = structs.replace(
        intent.record, state=state, started_at=1001.0, finished_at=1009.0, **fields
    )
    return ended(intent.record.execution_id, record=end)


def started(execution_id: str, **fields: Any) -> Commands:
    """The first commit of an execution."""
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
    """A commit that dispatches tasks."""
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
    all_fields = {
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
    return Task(execution_id, node, attempt=attempt, **all_fields)


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
    """The owner of one partition."""

    def __init__(self, stores: Stores, lease: Lease) -> None:
        self.stores = stores
        self.lease = lease
        self.position = lease.position

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

    async def reap(self, worker_id: str) -> int:
        """Take back the tasks of a worker in this partition, as if it were dead."""
        return await self.stores.queue.reap(self.lease.partition, self.lease.token, worker_id)

    async def recall(
        self, backlog: Backlog, decide: Callable[[WaitingTask], TaskEvent | None]
    ) -> int:
        """Take waiting tasks of this partition back."""
        partition = self.lease.partition
        token = self.lease.token
        return await self.stores.queue.recall(partition, token, backlog, decide)

    async def inbox(self) -> list[AnyEvent]:
        """All events in the inbox, which stay there."""
        received = await self.stores.hot.receive(self.lease.partition, self.position, 1000, 0.0)
        return [event for _, event in received]


async def copy_outbox(stores: Stores, lease: Lease) -> None:
    """Empty the outbox into the cold store, where hot and cold store are two."""
    if stores.tiering is None:
        return

    entries = await stores.tiering.hot.outbox(lease.partition, 1000)
    changes = await stores.tiering.hot.changes([entry.execution_id for entry in entries])
    copies = [
        Copy(entry.execution_id, entry.summary, changes[entry.execution_id], entry.dead_letters)
        for entry in entries
    ]
    if not entries:
        return

    waits = newest(chain.from_iterable(entry.waits for entry in entries))
    if waits:
        await stores.tiering.cold.put_waits(waits)
    ended_ids = [entry.execution_id for entry in entries if ended_by(entry)]
    await stores.tiering.cold.put_copies(lease.partition, lease.commit_number, copies)
    for send in chain.from_iterable(entry.sends for entry in entries):
        await _deliver(stores, send)
    await stores.tiering.hot.acknowledge_outbox(lease, len(entries), ended_ids)


async def _deliver(stores: Stores, send: Send) -> None:
    """Deliver what a commit has sent, as the archiver does, one after another."""
    executions = stores.cold.executions
    if isinstance(send, StartChild):
        if not await executions.intents([send.record.execution_id]):
            await executions.record_intents([Intent(send.record)])
    elif isinstance(send, ControlChild):
        try:
            await executions.request_control(send.execution_id, send.request)
        except (NotFound, Conflict):
            return
    await stores.hot.append([event_of(send)], own=True)


def ended_by(entry: Outgoing) -> bool:
    return entry.summary is not None and entry.summary.has_ended


async def begin(stores: Stores, *execution_ids: str) -> Owner:
    """Executions that exist and have started, and the owner of their partition."""
    await stores.cold.executions.record_intents(
        [new_intent(execution_id) for execution_id in execution_ids]
    )
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
