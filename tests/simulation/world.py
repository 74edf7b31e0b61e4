"""One simulated run: a seed makes the documents, the handlers' behaviour and every fault."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from penstock.config import Settings
from penstock.definition.plan import compile_document
from penstock.definition.waits import decision_name
from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import ExecutionStarted, ResumeRequested
from penstock.engine.reused_outputs import IDENTITY
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, Retryable, Terminal
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.recovery import CONTROL_EVENTS
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import InlineSandbox, Job
from penstock.service.items import identities_in
from penstock.service.retry_plan import plan_retry
from penstock.stores.base import ControlRequest, Intent, ReusedOutput, Stored
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.signals import NewSignal, received
from penstock.telemetry.metrics import Metrics
from penstock.testing import run_jumping
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from penstock.worker.runtime import Worker
from tests.simulation.judge import violations
from tests.simulation.tiered import Image, TieredHotStore, TieredStores
from tests.simulation.wire import Wire

FAULTY_SECONDS = 40.0
PATIENCE_SECONDS = 1200.0
LEFTOVER_SECONDS = 20.0
STEP_SECONDS = 2.0
LOSS_RATE = 0.3
REGION_DEPTH = 3
"""How deep maps and loops are nested in one that isn't."""
RETRY_RATE = 0.3
LARGE_TEXT = "x" * 1500
"""What makes an output a blob here."""
TIMING = OrchestratorTiming(checkpoint_seconds=2.0, rest_seconds=0.3)
"""Few owners live for as long as these take in earnest."""
SETTINGS = Settings.load({"worker_concurrency": 3}, environ={})
RULES = ["all_success"] * 6 + ["none_failed", "all_done", "one_success", "one_failed"]


def random_document(seed: random.Random, name: str) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for number in range(seed.randint(1, 8)):
        parents = seed.sample(range(number), k=min(number, seed.randint(0, 3)))
        node = {
            "id": f"n{number}",
            "handler": "work",
            "dependencies": [f"n{parent}" for parent in parents],
            "trigger_rule": seed.choice(RULES),
            "optional": seed.random() < 0.1,
            "config": {
                "fails": seed.choice([0, 0, 0, 0, 1, 2, 9]),
                "seconds": seed.choice([0, 0, 0.01, 0.3, 8]),
                "pads": number % 3 == 2,
            },
            "retry": {
                "max_attempts": seed.randint(2, 6),
                "initial_delay_seconds": 0.2,
                "jitter_seconds": 0.1,
            },
            "timeout_seconds": 20,
        }
        if number % 4 == 3:
            node["condition"] = (
                # true, but nothing to be evaluated on the owner's loop
                "execution.id.matches('.+')"
            )
        if parents and seed.random() < 0.4:
            node |= _about_errors(seed, node)
        nodes.append(node)
    return {
        "name": name,
        "on_failure": seed.choice(["fail_fast", "continue"]),
        "cleanup_timeout_seconds": seed.choice([300, 12]),
        "timeout_seconds": seed.choice([None, None, None, 60]),
        "nodes": nodes,
    }


def _about_errors(seed: random.Random, node: dict[str, Any]) -> dict[str, Any]:
    """What a node with parents may do about their errors."""
    parent = seed.choice(node["dependencies"])
    asks = {
        "state": f"{{{{ nodes.{parent}.state }}}}",
        "computed": f"{{{{ nodes.{parent}.state.matches('.+') ? 1 : 2 }}}}",
    }
    kind = seed.choice(["asks", "asks", "catches", "catches", "catches", "terminates"])
    if kind == "catches":
        return {"catches": [parent], "trigger_rule": None, "config": {**node["config"], **asks}}
    if kind == "asks":
        return {"config": {**node["config"], **asks}}
    config = {"state": seed.choice(["COMPLETED", "FAILED"]), "output": asks}
    return {"handler": "terminate", "config": config}


def with_regions(seed: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """The document with maps and loops in place of nodes, some of them nested."""
    nodes = [
        _region(seed, node, REGION_DEPTH) if seed.random() < 0.4 and _may_be_inside(node) else node
        for node in document["nodes"]
    ]
    return {**document, "nodes": nodes}


def _may_be_inside(node: dict[str, Any]) -> bool:
    """Whether a node asks nothing and decides nothing about what is outside of its item."""
    asks = "nodes." in json.dumps(node.get("config", {}))
    return node["handler"] != "terminate" and not asks


def _region(seed: random.Random, node: dict[str, Any], depth: int) -> dict[str, Any]:
    outside = ("id", "dependencies", "catches", "trigger_rule", "optional", "condition")
    around = {name: node[name] for name in outside if name in node}
    inside = {name: node[name] for name in node if name not in outside}
    inside["config"] = {
        **inside["config"],
        "seconds": seed.choice([0, 0, 0.01, 0.3, 2]),
        "fails": seed.choice([0, 0, 0, 0, 0, 1, 9]),
    }
    if seed.random() < 0.1:
        around["timeout_seconds"] = seed.choice([5, 20])
    if depth < REGION_DEPTH and seed.random() < 0.2:
        del inside["timeout_seconds"]  # of one node it would be the map's
        return {**around, **inside, **_repeated(seed, node, depth)}
    first = {**inside, "id": f"{node['id']}a", "dependencies": []}
    if depth and seed.random() < 0.4:
        first = _region(seed, first, depth - 1)
    second = {**inside, "id": f"{node['id']}b", "dependencies": [first["id"]]}
    if depth and seed.random() < 0.2:
        second = _region(seed, second, depth - 1)
    if seed.random() < 0.3:
        second["trigger_rule"] = seed.choice(["all_done", "one_failed"])
    body = [first, second][: seed.choice([1, 2])]
    repeated = _repeated(seed, node, depth)
    if seed.random() < 0.2:
        setting = repeated.get("repeat", repeated)
        setting["carry" if "repeat" in repeated else "collect"] = f"{{{{ {first['id']} ?? 0 }}}}"
    return {**around, **repeated, "nodes": body}


def _repeated(seed: random.Random, node: dict[str, Any], depth: int) -> dict[str, Any]:
    """The settings of a map or a loop."""
    if seed.random() < 0.35:
        repeat = {"until": f"round >= {seed.randint(1, 3)}", "max_rounds": seed.randint(1, 3)}
        repeat["every_seconds"] = seed.choice([0, 1, 5])
        repeat["on_round_failure"] = seed.choice(["fail", "continue"])
        repeat["on_exhausted"] = seed.choice(["fail", "continue"])
        return {"repeat": repeat}
    name = f"item_{node['id']}"
    sizes = [0, 1, 2, 5] if depth >= REGION_DEPTH - 1 else [0, 1, 2]
    return {
        "for_each": [{"id": number // 2} for number in range(seed.choice(sizes))],
        "as": name,
        "key": seed.choice([None, None, None, f"{{{{ {name}_index }}}}", f"{{{{ {name}.id }}}}"]),
        "max_parallel": seed.choice([1, 2, 10]),
        "on_item_failure": seed.choice(["fail_fast", "continue", "skip", "collect"]),
        "max_failures": seed.choice([None, None, None, 1, "50%"]),
        "item_timeout_seconds": seed.choice([None, None, None, 3, 9]),
        "output": seed.choice(["list", "list", "list", "counts", "none"]),
    }


def let_wait(seed: random.Random, document: dict[str, Any]) -> list[str]:
    """Let nodes wait instead of working. Answers the names of the signals that they need."""
    needed: list[str] = []
    for node in document["nodes"]:
        if "for_each" in node or "repeat" in node:
            needed += _let_wait_inside(seed, node)
            continue
        kind = seed.choice(["work", "work", "wait", "signal", "approval"])
        if kind == "work" or node["handler"] == "terminate":
            continue
        node["handler"] = kind
        del node["timeout_seconds"]
        if kind == "wait":
            node["config"] = {"seconds": seed.choice([0, 0.01, 2, 9])}
        elif kind == "approval":
            node["config"] = {"title": "May I?"}
            needed.append(decision_name(node["id"], 1))
        else:
            node["config"] = {"name": seed.choice(["go", "stop"])}
            needed.append(node["config"]["name"])
    return needed


def _let_wait_inside(seed: random.Random, region: dict[str, Any], prefix: str = "") -> list[str]:
    """Let nodes of items wait, with time limits: signals for them may come or not.

    They have a name of their own, so that none takes a signal that a node outside needs.
    """
    needed: list[str] = []
    address = f"{prefix}{region['id']}[{seed.choice([0, 1, 1])}]"
    for node in region.get("nodes", []):
        if "for_each" in node or "repeat" in node:
            needed += _let_wait_inside(seed, node, f"{address}.")
            continue
        kind = seed.choice(["work", "work", "wait", "signal", "approval"])
        if kind == "work":
            continue
        node["handler"] = kind
        del node["timeout_seconds"]
        on_timeout = seed.choice(["fail", "continue"])
        if kind == "wait":
            node["config"] = {"seconds": seed.choice([0, 0.01, 2])}
        elif kind == "approval":
            node["config"] = {"title": "May I?", "expires_seconds": 3, "on_expire": "approve"}
            needed.append(decision_name(f"{address}.{node['id']}", 1))
        else:
            count = seed.choice([None, None, 2])
            config = {"name": "inside", "timeout_seconds": 4, "on_timeout": on_timeout}
            node["config"] = config if count is None else {**config, "count": count}
            needed += ["inside"] * seed.randint(0, 2)
    return needed


class SlowSandbox(InlineSandbox):
    """Takes its time, in which owners die and executions are cancelled."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    async def run(self, job: Job) -> AsyncIterator[bytes]:
        await asyncio.sleep(self._random.choice([0.0, 0.01, 1.0, 7.0]))
        async for answer in super().run(job):
            yield answer


class World:
    def __init__(
        self,
        seed: int,
        clock: Callable[[], float],
        rate: float,
        *,
        tiered: bool,
        regions: bool = False,
        waits: bool = False,
    ) -> None:
        self.regions = regions
        self.waits = waits
        self.retries = regions
        self.reused: dict[str, set[str]] = {}
        """By execution, nodes whose outputs it has of the one that it is a retry of."""
        self.needed: dict[str, list[str]] = {}
        """By execution, the signals that it needs."""
        self._senders: list[asyncio.Task[None]] = []
        self.random = random.Random(seed)
        self.clock = clock
        self.rate = rate
        self.faults: Counter[str] = Counter()
        self.stores = (
            TieredStores(clock, partitions=3) if tiered else MemoryStores(clock, partitions=2)
        )
        self.metrics = Metrics()
        self.images: list[Image] = []
        """How the hot store was, now and then."""
        self.notes: list[tuple[str, str, int]] = []
        self.documents: dict[str, dict[str, Any]] = {}
        self.processes: dict[str, tuple[Any, Wire]] = {}
        self.born = 0
        self._duplicate_messages()

    def _duplicate_messages(self) -> None:
        """Every message may come again, later and in another order."""
        append_now = self.stores.hot.append_now

        def append(events: Any) -> None:
            events = list(events)
            append_now(events)
            for event in events:
                if self.rate and self.random.random() < 0.1:
                    self.faults["duplicate"] += 1
                    asyncio.get_running_loop().call_later(
                        self.random.random() * 5, append_now, [event]
                    )

        self.stores.hot.append_now = append  # type: ignore[method-assign]
        self.stores.queue._append = append

    async def work(self, config: dict[str, Any], context: Context) -> dict[str, Any]:
        self.notes.append((context.execution_id, context.node_id, context.attempt))
        if config["seconds"]:
            context.heartbeat("at work")  # which a worker shows while it waits
            await asyncio.sleep(config["seconds"])
        if config["fails"] >= 9 and context.attempt % 2:
            raise Terminal("never")
        if context.attempt <= config["fails"]:
            raise Retryable("not yet")
        padding = LARGE_TEXT if config.get("pads") else ""
        return {"node": context.node_id, "padding": padding}

    def spawn(self, kind: str) -> None:
        self.born += 1
        wire = Wire(self.stores, self.random, self.faults, self.rate)
        if kind == "worker":
            registry = Registry([Handler("work", self.work)])
            process: Any = Worker(
                wire.queue,
                wire.blobs,
                registry,
                SETTINGS,
                worker_id=f"worker-{self.born}",
                clock=self.clock,
            )
        else:
            plans = PlanCache(self.stores.cold, dict)
            process = Orchestrator(
                wire,
                plans,
                inline_max_bytes=1000,
                sandbox=SlowSandbox(self.born),
                name=f"orchestrator-{self.born}",
                metrics=self.metrics,
                timing=TIMING,
            )
        process.start()
        self.processes[f"{kind}-{self.born}"] = (process, wire)

    async def kill(self, name: str) -> None:
        """As kill -9: nothing is handed back, nothing is said."""
        self.faults["kill"] += 1
        process, wire = self.processes.pop(name)
        wire.cut()
        tasks = (
            process._services + list(process._slots)
            if isinstance(process, Worker)
            else process._tasks
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def cold_is_away(self) -> bool:
        return isinstance(self.stores, TieredStores) and self.stores.cold_is_away

    async def submit(self, number: int) -> str:
        while self.cold_is_away:  # noqa: ASYNC110 -- simulated time
            await asyncio.sleep(STEP_SECONDS)
        document = random_document(self.random, f"flow-{number}")
        if self.regions:
            document = with_regions(self.random, document)
        needed = let_wait(self.random, document) if self.waits else []
        plan = compile_document(document, allow_unknown_handlers=True).plan
        data = json.dumps(document).encode()
        version = await self.stores.cold.definitions.put_workflow(
            plan.name, str(number), data, self.clock()
        )
        execution_id = f"execution-{number}"
        record = ExecutionRecord(
            execution_id, plan.name, version.version, ExecutionState.PENDING, b"{}", self.clock()
        )
        await self.stores.cold.executions.record_intents([Intent(record)])
        self.documents[execution_id] = document
        self.needed[execution_id] = needed
        if self.random.random() < 0.8:  # otherwise the client dies between the two steps of a start
            await self.stores.hot.append([ExecutionStarted(execution_id)])
        for name in needed:
            sending = self.send(execution_id, name, self.random.random() * 20)
            self._senders.append(asyncio.create_task(sending))
        return execution_id

    async def send(self, execution_id: str, name: str, seconds: float) -> None:
        """A client sends a signal, until it is answered."""
        await asyncio.sleep(seconds)
        while self.cold_is_away:  # noqa: ASYNC110 -- simulated time
            await asyncio.sleep(STEP_SECONDS)
        signal = NewSignal(
            execution_id=execution_id,
            name=name,
            payload=b'{"decision":"approved"}',
            at=self.clock(),
        )
        with contextlib.suppress(Conflict):  # it has ended
            number, _ = await self.stores.cold.signals.put(signal)
            self.faults["signal"] += 1
            if self.random.random() < 0.8:  # otherwise the client dies before it has told the owner
                await self.stores.hot.append([received(signal, number)])

    async def trouble(self) -> None:
        """Kills, pauses and orders from users, until the faults end."""
        end = self.clock() + FAULTY_SECONDS
        while self.clock() < end:
            await asyncio.sleep(self.random.expovariate(0.5))
            if (
                isinstance(self.stores, TieredStores)
                and self.rate
                and self.random.random() < LOSS_RATE
            ):
                self.lose(self.stores)
                continue
            name = self.random.choice(sorted(self.processes))
            kind = name.split("-")[0]
            what = self.random.random()
            if what < 0.35:
                await self.kill(name)
                self.spawn(kind)
            elif what < 0.65:
                wire = self.processes[name][1]
                wire.pause()
                asyncio.get_running_loop().call_later(self.random.uniform(1, 25), wire.resume)
            elif what < 0.75 and self.retries:
                await self.retry()
            elif self.documents:
                await self.request_control(self.random.choice(sorted(self.documents)))
        self.heal()

    def lose(self, stores: TieredStores) -> None:
        """Something befalls one of the two stores."""
        what = self.random.choice(["image", "image", "loss", "rollback", "away"])
        self.images = self.images or [stores.hot.image()]
        self.faults[what] += 1
        if what == "image":
            self.images.append(stores.hot.image())
        elif what == "loss":
            stores.lose_everything()
        elif what == "rollback":
            stores.hot.become(self.random.choice(self.images[-2:]))
        else:
            stores.cold_is_away = True
            asyncio.get_running_loop().call_later(
                self.random.uniform(1, 15), stores.bring_cold_back
            )

    async def request_control(self, execution_id: str) -> None:
        request: ControlRequest = self.random.choice(["cancel", "pause", "resume"])
        if self.cold_is_away:
            return  # nobody is told that it is accepted
        self.faults[request] += 1
        with contextlib.suppress(Conflict):  # it has ended
            await self.stores.cold.executions.request_control(execution_id, request)
            if self.random.random() < 0.8:  # otherwise the client dies before it has told the owner
                await self.stores.hot.append([CONTROL_EVENTS[request](execution_id)])

    async def retry(self) -> None:
        """A client retries an execution that has ended, and that nobody has retried."""
        if self.cold_is_away:
            return
        retried = {stem for name in self.documents for stem in [name.rpartition("+")[0]]}
        for name in sorted(self.documents.keys() - retried):
            stored = await self.stores.cold.executions.execution(name)
            if stored is None or stored.record.state not in EXECUTION_ENDS:
                continue
            if self.random.random() < RETRY_RATE:
                await self._retry(name, stored)

    async def _retry(self, name: str, stored: Stored) -> None:
        plan = compile_document(self.documents[name], allow_unknown_handlers=True).plan
        plan.version = stored.record.version
        intent = await self.stores.cold.executions.intent(name)
        if stored.record.reused and intent is not None:
            for reused in intent.reused:
                if IDENTITY in reused.node_id:
                    stored.outputs[reused.node_id] = reused.output
        identities = await identities_in(stored, plan, self.stores.blobs)
        retry = plan_retry(stored, plan, plan, identities=identities)
        if retry.is_idle:
            return
        record = ExecutionRecord(
            f"{name}+",
            stored.record.workflow,
            stored.record.version,
            ExecutionState.PENDING,
            b"{}",
            self.clock(),
            first_execution_id=stored.record.first_execution_id or name,
            retry_of=name,
        )
        outputs = {node_id: stored.outputs[node_id] for node_id in retry.reused} | retry.items
        record.reused = len(outputs)
        reused_outputs = [ReusedOutput(node_id, output) for node_id, output in outputs.items()]
        await self.stores.cold.executions.record_intents(
            [Intent(record, retry_of=name, reused=reused_outputs)]
        )
        self.faults["retry"] += 1
        self.faults["reused items"] += len(retry.items)
        self.documents[record.execution_id] = self.documents[name]
        self.reused[record.execution_id] = set(retry.reused)
        await self.stores.hot.append([ExecutionStarted(record.execution_id)])
        for signal_name in self.needed[name]:
            sending = self.send(record.execution_id, signal_name, self.random.random() * 20)
            self._senders.append(asyncio.create_task(sending))
        self.needed[record.execution_id] = self.needed[name]

    def heal(self) -> None:
        self.rate = 0.0
        if isinstance(self.stores, TieredStores):
            self.stores.bring_cold_back()
        for _, wire in self.processes.values():
            wire.rate = 0.0
            wire.resume()

    async def unfinished(self) -> dict[str, str]:
        """By id, the state."""
        states: dict[str, str] = {}
        for name in self.documents:
            stored = await self.stores.cold.executions.execution(name)
            assert stored is not None
            if stored.record.state not in EXECUTION_ENDS:
                states[name] = str(stored.record.state)
        return states

    async def run(self) -> list[str]:
        for kind in ("orchestrator", "orchestrator", "worker", "worker"):
            self.spawn(kind)
        troubles = asyncio.create_task(self.trouble())
        for number in range(self.random.randint(2, 5)):
            await self.submit(number)
            await asyncio.sleep(self.random.random() * 4)
        await troubles
        await asyncio.gather(*self._senders)
        end = self.clock() + PATIENCE_SECONDS
        while (left := await self.unfinished()) and self.clock() < end:
            paused = [name for name, state in left.items() if state == ExecutionState.PAUSED]
            for name in paused:  # and nobody else: what runs must go on by itself
                with contextlib.suppress(Conflict):
                    await self.stores.cold.executions.request_control(name, "resume")
            await self.stores.hot.append([ResumeRequested(name) for name in paused])
            await asyncio.sleep(STEP_SECONDS)
        problems = await self.judge()
        for name in sorted(self.processes):
            await self.kill(name)
        return problems

    async def judge(self) -> list[str]:
        end = self.clock() + LEFTOVER_SECONDS
        while self.leftovers() and self.clock() < end:  # noqa: ASYNC110
            await asyncio.sleep(STEP_SECONDS)  # what is still on its way arrives
        problems: list[str] = []
        was_lost = bool(self.faults["loss"] or self.faults["rollback"])
        for name, document in self.documents.items():
            stored = await self.stores.cold.executions.execution(name)
            assert stored is not None
            notes = None if was_lost else self.notes
            problems += [f"{name}: {text}" for text in violations(stored, document, notes)]
            reran = {node for execution, node, _ in self.notes if execution == name}
            again = sorted(reran & self.reused.get(name, set()))
            problems += [f"{name}: {node} was reused and run" for node in again]
        if isinstance(self.stores, TieredStores) and not self.faults["rollback"]:
            dispatched = self.stores.hot.dispatched
            problems += [
                f"G2 {key} was dispatched {count} times"
                for key, count in dispatched.items()
                if count > 1
            ]
        return problems or self.leftovers()

    def leftovers(self) -> list[str]:
        hot = self.stores.hot
        left = {
            "tasks in the queue": self.stores.queue.depth(),
            "events in an inbox": hot.inbox_depth(),
        }
        if isinstance(hot, TieredHotStore):
            left["entries in an outbox"] = sum(map(len, hot.boxes))
            left["executions in the hot store"] = len(hot.changes)
        return [f"{count} {what} are left" for what, count in left.items() if count]


def simulate(
    seed: int,
    rate: float = 0.04,
    *,
    tiered: bool = False,
    regions: bool = False,
    waits: bool = False,
) -> tuple[list[str], Counter[str]]:
    """The violations of this seed (none, if all is well), and what was done to the system."""

    async def work(clock: Callable[[], float]) -> tuple[list[str], Counter[str]]:
        world = World(seed, clock, rate, tiered=tiered, regions=regions, waits=waits)
        problems = await world.run()
        world.faults["fenced"] = world.stores.hot.fenced
        world.faults["attempts"] = len(world.notes)
        for name in ("archived", "checkpointed", "rebuilt"):
            world.faults[name] = getattr(world.metrics, name)
        return problems, world.faults

    level = logging.getLogger("penstock").level
    logging.getLogger("penstock").setLevel(logging.CRITICAL)
    try:
        return run_jumping(work)
    finally:
        logging.getLogger("penstock").setLevel(level)
