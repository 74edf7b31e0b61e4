"""Reads commits for `Metrics`: what began, what ended, how long things took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.engine.commands import Commands
from penstock.engine.states import EXECUTION_ENDS, ExecutionState, NodeState
from penstock.stores.base import Stores
from penstock.telemetry.metrics import Levels, Metrics

if TYPE_CHECKING:
    from penstock.orchestrator.owner import PartitionOwner

RUNNING, BEGUN, PENDING = NodeState.RUNNING, ExecutionState.RUNNING, ExecutionState.PENDING
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
        self._metrics, self._now = metrics, now
        self._landed: dict[float, float] = {}
        """When decisions were durable, by their time: from then on their tasks could be fetched."""
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
        for commands in [each for each in changes if each.dead_letters]:
            metrics.dead_letters.update(
                [metrics.handlers.of(dead_letter.handler) for dead_letter in commands.dead_letters]
            )
        self._time(changes[:: len(changes) // TIMED_EXECUTIONS_MAX + 1])

    def _count_executions(self, changes: Sequence[Commands]) -> None:
        first = [commands.history[0] for commands in changes]
        started = [line for line in first if line.after is BEGUN and line.before == PENDING]
        self._metrics.executions_started += len(started)
        ended = [commands.history[-1].after for commands in changes if commands.finished]
        for state in ENDS if ended else ():  # an enum's hash is slow: counting by identity isn't
            if count := ended.count(state):
                self._metrics.executions_finished[str(state)] += count

    def _time(self, changes: Sequence[Commands]) -> None:
        now, first, last = self._now(), 0.0, 0.0
        hops: list[float] = []
        waits: list[float] = []
        landed, before = self._landed.get, self._landed_before.get
        for commands in changes:
            nodes = commands.nodes
            for line in commands.history:
                after = line.after
                if after is RUNNING:
                    run = nodes[line.node_id]
                    queued_at = run.queued_at
                    if (
                        run.attempt == line.attempt and queued_at is not None
                    ):  # else it waits for the next one already
                        hops.append(line.at - queued_at)
                        waits.append(
                            line.at - (landed(queued_at) or before(queued_at) or queued_at)
                        )
                elif line.at != last:  # all others have the time of the decision
                    last = line.at
                    first = first or last
                    self._landed[last] = now
        self._metrics.hop_seconds.observe(*hops)
        self._metrics.queue_wait_seconds.observe(*waits)
        if first:
            self._metrics.commit_seconds.observe(now - first)
        if len(self._landed) > REMEMBERED:
            self._landed, self._landed_before = {}, self._landed


async def levels(stores: Stores, owned: Mapping[int, PartitionOwner]) -> Levels:
    return Levels(
        await inboxes(stores, owned), await stores.queue.depths(), len(await stores.queue.workers())
    )


async def inboxes(stores: Stores, owned: Mapping[int, PartitionOwner]) -> dict[int, int]:
    """The number of events that aren't committed yet, by partition."""
    return {
        partition: len(
            await stores.hot.receive(partition, owner.lease.position, LAG_EVENTS_MAX, 0.0)
        )
        for partition, owner in list(owned.items())
    }
