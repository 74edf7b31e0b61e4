"""What a new owner does before it reads its inbox: make sure that everything that should run has something to run it.

- An execution that was accepted and never started is started (its event was lost between the two steps of a start).
- Where queued tasks don't outlive the process, each node that was queued is handed out again, with the same attempt; a
  node that was in a worker's hands has lost that attempt, so a handler that kills its process can't do so for ever.
- A cancel, pause or resume that was stored and perhaps never handled is asked for again.

Doing this twice does no harm: events that are not current change nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.commands import NodeRun
from penstock.engine.events import (
    AnyEvent,
    CancelRequested,
    Continued,
    ExecutionStarted,
    PauseRequested,
    ResumeRequested,
    TaskLost,
    TaskReturned,
)
from penstock.engine.states import NodeState
from penstock.stores.base import Stored, Stores, TaskQueue, Wish

CHUNK = 500
EVENTS: dict[Wish, Callable[[str], AnyEvent]] = {
    "cancel": CancelRequested, "pause": PauseRequested, "resume": ResumeRequested,
}  # fmt: skip
LAST_PROCESS = "of the last process"
Key = tuple[str, str, int, int]


async def recover(stores: Stores, partition: int) -> int:
    """Append what is missing to the inbox; answers how many executions were looked at."""
    looked_at, _ = await _recover(stores, partition)
    return looked_at


async def sweep(stores: Stores, partition: int, overdue_seconds: float) -> int:
    """As `recover`, for an owner that is at work; answers how many starts had got lost.

    One that is younger than `overdue_seconds` may just be on its way, and is no sign that something is wrong.
    """
    _, restarted = await _recover(stores, partition)
    intents = [await stores.cold.intent(name) for name in restarted]
    latest = stores.hot.now() - overdue_seconds
    return sum(intent is not None and intent.record.created_at <= latest for intent in intents)


async def _recover(stores: Stores, partition: int) -> tuple[int, list[str]]:
    """How many executions were looked at, and which of them had to be started."""
    names = await stores.cold.started(partition)
    orphans = set(stores.queue.orphans())
    lost: set[Key] = set()
    restarted: list[str] = []
    wishes = await stores.cold.wishes(partition)
    for first in range(0, len(names), CHUNK):
        chunk = names[first : first + CHUNK]
        known = await stores.hot.load(chunk)
        events: list[AnyEvent] = []
        for name in chunk:
            stored = known.get(name)
            if stored is None and wishes.get(name) != "cancel":  # a cancel finds it by itself, and nothing is to run
                events.append(ExecutionStarted(name))
                restarted.append(name)
            elif stored is not None and not stores.hot.keeps_tasks:
                events += _hand_out_again(stored, stores.queue, orphans, lost)
            if name in wishes:
                events.append(EVENTS[wishes[name]](name))
        await stores.hot.append(events)
    stores.queue.disown(orphans - lost)
    return len(names), restarted


def _hand_out_again(stored: Stored, queue: TaskQueue, orphans: set[Key], lost: set[Key]) -> list[AnyEvent]:
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
    return (stored.record.execution_id, run.address, stored.record.generation, run.attempt)
