"""Times of a workflow's nodes: executions are added one by one, and not held in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from penstock.definition.plan import Plan
from penstock.engine.commands import NodeRun
from penstock.engine.reasons import Reason
from penstock.engine.states import ExecutionState, NodeState
from penstock.service.charts import ENDS, percentile, rate
from penstock.stores.base import Stored
from penstock.views.statistics import NodeStats, WorkflowStats


class _NodeTimes:
    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.attempts = 0
        self.seconds: list[float] = []

    def add(self, run: NodeRun) -> None:
        self.states[run.state] += 1
        self.attempts += run.attempt

        if run.state is not NodeState.COMPLETED:
            return
        if run.started_at is not None and run.finished_at is not None:
            self.seconds.append(run.finished_at - run.started_at)

    def view(self, node_id: str, handler: str) -> NodeStats:
        failed = self.states[NodeState.FAILED]
        count = self.states[NodeState.COMPLETED] + failed
        return NodeStats(
            node_id=node_id,
            handler=handler,
            count=count,
            failed=failed,
            skipped=self.states[NodeState.SKIPPED],
            failure_rate=rate(failed, count),
            attempts=self.attempts,
            p50_seconds=percentile(self.seconds, 0.50),
            p95_seconds=percentile(self.seconds, 0.95),
        )


class NodeTimes:
    """Times of a workflow's nodes."""

    def __init__(self) -> None:
        self.versions: set[int] = set()
        self._states: Counter[str] = Counter()
        self._seconds: list[float] = []
        self._nodes: dict[str, _NodeTimes] = {}

    def add(self, stored: Stored) -> None:
        record = stored.record
        self.versions.add(record.version)
        self._states[record.state] += 1
        if record.state is ExecutionState.COMPLETED and record.started_at is not None:
            finished_at = record.finished_at or record.started_at
            self._seconds.append(finished_at - record.started_at)

        for node_id, run in stored.runs.items():
            if run.reason == Reason.REUSED:  # an earlier execution ran it
                continue
            self._nodes.setdefault(node_id, _NodeTimes()).add(run)

    def view(self, name: str, version: int | None, plans: Iterable[Plan]) -> WorkflowStats:
        """The times of nodes, in the order of these plans, the newest version's first."""
        handlers: dict[str, str] = {}
        for plan in plans:
            for node in plan.nodes:
                handlers.setdefault(node.node_id, node.handler)

        nodes: list[NodeStats] = []
        for node_id, handler in handlers.items():
            times = self._nodes.get(node_id, _NodeTimes())
            nodes.append(times.view(node_id, handler))

        return WorkflowStats(
            name=name,
            version=version,
            sampled=sum(self._states.values()),
            states={state: self._states[state] for state in ENDS},
            p50_seconds=percentile(self._seconds, 0.50),
            p95_seconds=percentile(self._seconds, 0.95),
            nodes=nodes,
        )
