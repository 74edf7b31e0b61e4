"""The meter reads commits for `Metrics`: what began, what ended, how long things took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.engine.commands import Commands
from penstock.engine.states import EXECUTION_ENDS, ExecutionState, NodeState
from penstock.stores.base import Stores
from penstock.telemetry.metrics import Levels, Metrics

if TYPE_CHECKING:
    from penstock.orchestrator.owner import PartitionOwner

RUNNING = NodeState.RUNNING
BEGUN = ExecutionState.RUNNING
PENDING = ExecutionState.PENDING
ENDS = tuple(EXECUTION_ENDS)

TIMED_EXECUTIONS_MAX = 64
"""The greatest number of executions of a commit that are timed.

Everything else is counted one by one.
"""
REMEMBERED = 1000
LAG_EVENTS_MAX = 10_000


class Meter:
    """Counts and times what commits did.

    `now` is the store's clock, which decisions go by.
    """

    def __init__(self, metrics: Metrics, now: Callable[[], float]) -> None:
        self._metrics = metrics
        self._now = now
        self._landed: dict[float, float] = {}
        """When decisions were durable, by the time of the decision.

        From then on their tasks could be fetched.
        """
        self._landed_before: dict[float, float] = {}

    def on_commit(self, changes: Sequence[Commands]) -> None:
        """Count a commit; called as an `Observer`.

        Once per commit: whatever it does is paid for by every task.
        """
        if not changes:
            return
        metrics = self._metrics
        metrics.commit_executions.observe(len(changes))

        recorded = [
            commands for commands in changes if commands.record is not None and commands.history
        ]
        if recorded:
            self._count_executions(recorded)

        for commands in changes:
            if commands.dead_letters:
                handlers = [dead_letter.handler for dead_letter in commands.dead_letters]
                metrics.dead_letters.update(map(metrics.handlers.of, handlers))

        step = len(changes) // TIMED_EXECUTIONS_MAX + 1
        self._time(changes[::step])

    def _count_executions(self, changes: Sequence[Commands]) -> None:
        first = [commands.history[0] for commands in changes]
        started = [line for line in first if line.after is BEGUN and line.before == PENDING]
        self._metrics.executions_started += len(started)

        ended = [commands.history[-1].after for commands in changes if commands.finished]
        if not ended:
            return
        for state in ENDS:  # an enum's hash is slow: counting by identity isn't
            count = ended.count(state)
            if count:
                self._metrics.executions_finished[str(state)] += count

    def _time(self, changes: Sequence[Commands]) -> None:
        now = self._now()
        first = 0.0
        last = 0.0
        hops: list[float] = []
        waits: list[float] = []
        landed = self._landed.get
        landed_before = self._landed_before.get
        for commands in changes:
            nodes = commands.nodes
            for line in commands.history:
                after = line.after
                if after is RUNNING:
                    run = nodes[line.node_id]
                    queued_at = run.queued_at
                    # else the node waits for its next attempt already
                    if run.attempt == line.attempt and queued_at is not None:
                        hops.append(line.at - queued_at)
                        landed_at = landed(queued_at) or landed_before(queued_at) or queued_at
                        waits.append(line.at - landed_at)
                elif line.at != last:  # all others have the time of the decision
                    last = line.at
                    first = first or last
                    self._landed[last] = now

        self._metrics.hop_seconds.observe(*hops)
        self._metrics.queue_wait_seconds.observe(*waits)
        if first:
            self._metrics.commit_seconds.observe(now - first)
        if len(self._landed) > REMEMBERED:
            self._landed_before = self._landed
            self._landed = {}


async def levels(stores: Stores, owned: Mapping[int, PartitionOwner]) -> Levels:
    lags = await inboxes(stores, owned)
    depths = await stores.queue.depths()
    workers = await stores.queue.workers()
    return Levels(lags, depths, len(workers))


async def inboxes(stores: Stores, owned: Mapping[int, PartitionOwner]) -> dict[int, int]:
    """The number of events that aren't committed yet, by partition."""
    lags = {}
    for partition, owner in list(owned.items()):
        position = owner.lease.position
        lags[partition] = len(await stores.hot.receive(partition, position, LAG_EVENTS_MAX, 0.0))
    return lags
