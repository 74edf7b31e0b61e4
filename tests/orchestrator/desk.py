"""The desk of a partition's owner, for tests.

It has a store in memory, a clock that the test moves, and one owner after another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Any

from penstock.definition.model import HandlerDefaults
from penstock.definition.plan import Plan, compile_document
from penstock.engine.commands import Commands, ExecutionRecord, Task
from penstock.engine.events import ExecutionStarted, TaskFailed, TaskSucceeded
from penstock.engine.states import ExecutionState
from penstock.orchestrator.children import Relay
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.reaper import Reaper
from penstock.orchestrator.tiering import rebuild
from penstock.orchestrator.tiering.archiver import Archiver
from penstock.orchestrator.tiering.checkpointer import Checkpointer
from penstock.orchestrator.tiering.cold_writer import ColdWriter
from penstock.orchestrator.tiering.portions import Portions
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import InlineSandbox, Sandbox
from penstock.stores.base import Intent, Stored
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.task_keys import key_of
from penstock.telemetry.metrics import Metrics
from tests.simulation.tiered import TieredStores

HOUR = 3600.0
WORK = {"work": HandlerDefaults()}
QUICK = OrchestratorTiming(retry_seconds=0.01, collect_seconds=0.0, cold_away_seconds=0.001)
"""Nobody waits for more, or for a store that a test has taken away."""


def quick(**times: float) -> OrchestratorTiming:
    return replace(QUICK, **times)


def node(name: str, *parents: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "handler": "work", "dependencies": list(parents), **fields}


def diamond() -> list[dict[str, Any]]:
    return [node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")]


async def look(reaper: Reaper, seconds: float) -> None:
    """As an orchestrator does: see who is silent, then take back what the dead had."""
    await reaper._watch.look(seconds)
    await reaper.reap_dead()


class Desk:
    def __init__(
        self, inline_max_bytes: int = 10_000, *, timing: OrchestratorTiming = QUICK
    ) -> None:
        self.timing = timing
        self.now = 1000.0
        self.stores = self._open()
        self.plans = PlanCache(self.stores.cold, lambda: WORK)
        self.sandbox: Sandbox = InlineSandbox()
        self.changes: list[list[Commands]] = []
        """What each commit had."""
        self._inline_max_bytes = inline_max_bytes
        self._numbers = count(1)

    def _open(self) -> MemoryStores | TieredStores:
        return MemoryStores(lambda: self.now)

    async def own(self, name: str = "owner-1", seconds: float = HOUR) -> PartitionOwner:
        lease = await self.stores.hot.acquire(0, name, seconds)
        assert lease is not None
        limit = self._inline_max_bytes
        return PartitionOwner(
            self.stores,
            lease,
            self.plans,
            inline_max_bytes=limit,
            sandbox=self.sandbox,
            timing=self.timing,
            observer=self._note,
        )

    def orchestrator(self, name: str = "", metrics: Metrics | None = None) -> Orchestrator:
        """One that isn't started yet."""
        return Orchestrator(
            self.stores,
            self.plans,
            inline_max_bytes=1000,
            name=name,
            metrics=metrics,
            timing=self.timing,
        )

    def _note(self, _plan: Any, changes: Any, _ended: Any) -> None:
        self.changes.append(list(changes))

    async def workflow(
        self, nodes: list[dict[str, Any]], name: str = "flow", **fields: Any
    ) -> Plan:
        document = {"name": name, "nodes": nodes, **fields}
        text = json.dumps(document).encode()
        plan = compile_document(document, handlers=WORK).plan
        plan.version = (
            await self.stores.cold.definitions.put_workflow(name, str(hash(text)), text, self.now)
        ).version
        return plan

    async def start(
        self, nodes: list[dict[str, Any]], input_value: Any = None, **fields: Any
    ) -> str:
        """An accepted execution whose start is in the inbox."""
        name = await self.record_intent(await self.workflow(nodes, **fields), input_value)
        await self.stores.hot.append([ExecutionStarted(name)])
        return name

    async def record_intent(self, plan: Plan, input_value: Any = None) -> str:
        name = f"execution-{next(self._numbers)}"
        text = json.dumps(input_value or {}).encode()
        record = ExecutionRecord(
            name, plan.name, plan.version, ExecutionState.PENDING, text, self.now
        )
        await self.stores.cold.executions.record_intents([Intent(record)])
        return name

    async def drain(self, owner: PartitionOwner) -> None:
        """Until nothing is left to handle now."""
        hot = self.stores.hot
        while hot.inbox_depth() or owner._continue or await hot.due(0, self.now, 1):
            await owner.step()

    async def fetch(self, limit: int = 100_000) -> list[Task]:
        """What a worker would get now; empty if nothing waits."""
        if not any(self.stores.queue._waiting.values()):
            return []
        return await self.stores.queue.fetch("worker-1", {"work"}, limit)

    async def succeed(self, tasks: Iterable[Task], output: bytes = b"{}") -> None:
        events = [TaskSucceeded(*key_of(task), "worker-1", self.now, output) for task in tasks]
        await self.stores.queue.report("worker-1", events)

    async def report(self, *events: TaskSucceeded | TaskFailed) -> None:
        await self.stores.queue.report("worker-1", events)

    async def work(self, owner: PartitionOwner, output: bytes = b"{}") -> list[Task]:
        """Run everything that there is to run, to the end; answers the tasks in order."""
        done: list[Task] = []
        await self.drain(owner)
        while tasks := await self.fetch():
            done += tasks
            await self.succeed(tasks, output)
            await self.drain(owner)
        return done

    async def stored(self, name: str) -> Stored:
        stored = await self.stores.cold.executions.execution(name)
        assert stored is not None
        return stored

    async def state(self, name: str) -> str:
        return str((await self.stored(name)).record.state)

    async def states(self, name: str) -> dict[str, str]:
        return {address: str(run.state) for address, run in (await self.stored(name)).runs.items()}


class TieredDesk(Desk):
    """With a hot and a cold store that are two."""

    stores: TieredStores

    def __init__(
        self,
        inline_max_bytes: int = 10_000,
        *,
        timing: OrchestratorTiming = QUICK,
        portions: Portions | None = None,
    ) -> None:
        super().__init__(inline_max_bytes, timing=timing)
        self.portions = portions or Portions()

    def _open(self) -> TieredStores:
        return TieredStores(lambda: self.now, 1)

    def cold_writer(self, owner: PartitionOwner, metrics: Metrics | None = None) -> ColdWriter:
        return ColdWriter(
            self.stores.tiering,
            owner,
            self.plans,
            metrics or Metrics(),
            timing=self.timing,
            portions=self.portions,
        )

    def archiver(self, owner: PartitionOwner, metrics: Metrics | None = None) -> Archiver:
        hot_tier = self.stores.tiering.hot
        return Archiver(
            hot_tier,
            self.cold_writer(owner, metrics),
            owner.lease,
            metrics or Metrics(),
            lambda: self.now,
            timing=self.timing,
            portions=self.portions,
            relay=self.relay,
        )

    @property
    def relay(self) -> Relay:
        return Relay(self.stores, self.plans, self._inline_max_bytes, self.timing)

    def checkpointer(self, owner: PartitionOwner, metrics: Metrics | None = None) -> Checkpointer:
        return Checkpointer(
            self.stores.tiering.hot,
            self.cold_writer(owner, metrics),
            metrics or Metrics(),
            timing=self.timing,
            portions=self.portions,
        )

    async def checkpoint(self, owner: PartitionOwner) -> None:
        """Of everything that runs."""
        checkpointer = self.checkpointer(owner)
        checkpointer.dirty.update(await self.stores.hot.active(0))
        await checkpointer.copy()

    async def build(
        self, owner: PartitionOwner, known_number: int = 0, metrics: Metrics | None = None
    ) -> int | None:
        tiering = self.stores.tiering
        claimed = await rebuild.claim(tiering, owner.lease, self.timing)
        return await rebuild.build(
            self.stores,
            tiering,
            owner.lease,
            claimed,
            known_number=known_number,
            metrics=metrics,
            timing=self.timing,
            portions=self.portions,
            relay=self.relay,
        )

    def row(self, name: str) -> Stored:
        """What the cold store has, whatever the hot one says."""
        return self.stores.rows.stored(name)
