"""Recovery: a new owner appends the events that are missing in its inbox, before it reads it.

- An intent that never started is started: its event was lost between the two steps of a start.
  Where tasks outlive the process, so does the inbox, and a start that waits there isn't lost.
- Where queued tasks don't outlive the process, each node that was queued is handed out again, with
  the same attempt. A node that was claimed by a worker has lost that attempt, so that a handler
  that kills its process can't do so for ever.
- A child that ended, and whose parent may not have been told, is told of again.
- A signal that was stored and perhaps never reached the inbox is appended again.
- A control request (cancel, pause or resume) that was stored and perhaps never handled is appended
  again.

Doing this twice does no harm: events that are not current change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.engine.commands import NodeRun
from penstock.engine.events import (
    AnyEvent,
    CancelRequested,
    Continued,
    ExecutionStarted,
    PauseRequested,
    ResumeRequested,
    SignalReceived,
    TaskLost,
    TaskReturned,
)
from penstock.engine.states import EXECUTION_ENDS, NodeState
from penstock.orchestrator.children import children_of, ends_of
from penstock.stores.base import ControlRequest, Stored, Stores, TaskQueue
from penstock.stores.plan_cache import PlanCache

CHUNK = 500
INBOX_CHUNK = 5000
CONTROL_EVENTS: dict[ControlRequest, Callable[[str], AnyEvent]] = {
    "cancel": CancelRequested,
    "pause": PauseRequested,
    "resume": ResumeRequested,
}
LAST_PROCESS = "of the last process"
Key = tuple[str, str, int, int]


async def recover(stores: Stores, plans: PlanCache, partition: int, position: int = 0) -> int:
    """Append the events that are missing to the inbox of a new owner.

    Everything after `position` is still to be read there. Returns the number of executions that
    were looked at.
    """
    if not stores.topology.tasks_are_durable:
        return await _make_up(stores, plans, partition)
    execution_ids = await stores.cold.executions.started(partition)
    await _make_up_starts(stores, partition, execution_ids, position)
    return len(execution_ids)


async def sweep(stores: Stores, partition: int, overdue_seconds: float, position: int = 0) -> int:
    """Append missing starts to the inbox of an owner that is at work, as `recover` does.

    Returns the number of starts that had got lost. One that is younger than `overdue_seconds` may
    just be on its way, and is no sign that something is wrong.
    """
    execution_ids = await stores.cold.executions.started(partition)
    lost = await _make_up_starts(stores, partition, execution_ids, position)
    latest = stores.hot.now() - overdue_seconds
    return sum(created_at <= latest for created_at in lost)


async def _make_up_starts(
    stores: Stores, partition: int, execution_ids: Sequence[str], position: int
) -> list[float]:
    """Append starts and control requests that nobody will handle otherwise.

    Returns the times at which the executions were created whose starts were lost.
    """
    lost = await _lost(stores, partition, execution_ids, position)
    # read last: a request that is stored meanwhile must not be followed by an older one
    control_requests = await stores.cold.executions.control_requests(partition)

    # a cancel finds its execution by itself, and nothing is to run
    events: list[AnyEvent] = [
        ExecutionStarted(execution_id)
        for execution_id in lost
        if control_requests.get(execution_id) != "cancel"
    ]
    events += [
        CONTROL_EVENTS[request](execution_id) for execution_id, request in control_requests.items()
    ]
    signals = await _undelivered_signals(stores, partition, list(lost))
    events += signals

    for first in range(0, len(events), CHUNK):
        await stores.hot.append(events[first : first + CHUNK], own=True)
    return list(lost.values())


async def _undelivered_signals(
    stores: Stores, partition: int, beginning: Sequence[str]
) -> list[SignalReceived]:
    """Signals that may not have reached the inbox, or that a hot store has lost again.

    All of those executions whose start was lost: a signal that came before was dropped.
    """
    signals = await stores.cold.signals.undelivered(partition)
    for first in range(0, len(beginning), CHUNK):
        found = await stores.cold.signals.of(beginning[first : first + CHUNK])
        for execution_signals in found.values():
            signals += execution_signals
    return signals


async def _lost(
    stores: Stores, partition: int, execution_ids: Sequence[str], position: int
) -> dict[str, float]:
    """Executions that should run and that neither the hot store nor its inbox knows.

    By their id, with the time at which they were created.
    """
    unknown = await _unknown(stores, execution_ids)
    if unknown:
        awaited = await _awaited(stores, partition, position)
        # asked once more: what was in the inbox a moment ago may be handled by now
        unknown = await _unknown(
            stores, [execution_id for execution_id in unknown if execution_id not in awaited]
        )

    created_at: dict[str, float] = {}
    for first in range(0, len(unknown), CHUNK):
        # and once more there: it may have ended and left the hot store since it was listed
        intents = await stores.cold.executions.intents(unknown[first : first + CHUNK])
        for execution_id, intent in intents.items():
            if intent.record.state not in EXECUTION_ENDS:
                created_at[execution_id] = intent.record.created_at
    return created_at


async def _unknown(stores: Stores, execution_ids: Sequence[str]) -> list[str]:
    """Executions that the hot store doesn't have."""
    unknown: list[str] = []
    for first in range(0, len(execution_ids), CHUNK):
        chunk = execution_ids[first : first + CHUNK]
        in_hot_store = await stores.hot.known(chunk)
        unknown += [execution_id for execution_id in chunk if execution_id not in in_hot_store]
    return unknown


async def _awaited(stores: Stores, partition: int, position: int) -> set[str]:
    """Executions whose start is in the inbox."""
    execution_ids: set[str] = set()
    while events := await stores.hot.receive(partition, position, INBOX_CHUNK, 0.0):
        position = events[-1][0]
        for _, event in events:
            if isinstance(event, ExecutionStarted):
                execution_ids.add(event.execution_id)
    return execution_ids


async def _make_up(stores: Stores, plans: PlanCache, partition: int) -> int:
    """Append events for all executions, where nothing else has outlived the process.

    Returns the number of executions.
    """
    execution_ids = await stores.cold.executions.started(partition)
    unfinished = set(execution_ids)
    orphans = set(stores.queue.orphans())
    lost: set[Key] = set()
    control_requests = await stores.cold.executions.control_requests(partition)
    for first in range(0, len(execution_ids), CHUNK):
        chunk = execution_ids[first : first + CHUNK]
        loaded = await stores.hot.load(chunk)
        signals = await stores.cold.signals.of(chunk)
        events: list[AnyEvent] = []
        for execution_id in chunk:
            stored = loaded.get(execution_id)
            if stored is not None:
                events += _hand_out_again(stored, stores.queue, orphans, lost)
            elif control_requests.get(execution_id) != "cancel":
                events.append(ExecutionStarted(execution_id))
            events += signals.get(execution_id, ())
            if stored is not None:
                children = [start.record.execution_id for start in children_of(stored)]
                over = [child for child in children if child not in unfinished]
                if over:
                    events += (await ends_of(stores, plans, over))[0]
            if execution_id in control_requests:
                events.append(CONTROL_EVENTS[control_requests[execution_id]](execution_id))
        await stores.hot.append(events, own=True)
    stores.queue.disown(orphans - lost)
    return len(execution_ids)


def _hand_out_again(
    stored: Stored, queue: TaskQueue, orphans: set[Key], lost: set[Key]
) -> list[AnyEvent]:
    """Events for the tasks of an execution that were queued or running when the process ended.

    Adds the tasks whose attempt is lost to `lost`.
    """
    events: list[AnyEvent] = []
    for run in stored.runs.values():
        if run.state not in (NodeState.QUEUED, NodeState.RUNNING):
            continue
        key = _key(stored, run)
        if queue.knows(key):
            continue  # only the owner is new: the queue and its workers live on
        if run.state == NodeState.RUNNING or key in orphans:
            lost.add(key)
            events.append(TaskLost(*key, run.worker_id or LAST_PROCESS))
        else:
            events.append(TaskReturned(*key, ""))
    # last, because it also starts what was ready and had not been dispatched
    events.append(Continued(stored.record.execution_id))
    return events


def _key(stored: Stored, run: NodeRun) -> Key:
    return (stored.record.execution_id, run.node_id, stored.record.generation, run.attempt)
