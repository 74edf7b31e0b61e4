"""The plan cache: compiled versions of workflows, by name and number.

A version never changes, but the defaults of its handlers can: retries, time-outs and queues that
the document doesn't set are the handler's own, which workers report to the store when they start.
Defaults are read when a plan is compiled, never per execution. In the role of an orchestrator,
`run_learning` compiles a plan again when its handlers' defaults have changed, so that soon all
orchestrators agree; elsewhere a plan stays as it is until the process ends. An execution that is in
memory stays with the plan that it was loaded with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from penstock.definition.model import FALLBACK_HANDLERS, HandlerDefaults
from penstock.definition.parse import decode_in_pieces
from penstock.definition.plan import ITEMS_MAX, Plan, compile_document
from penstock.errors import NotFound, StoreError
from penstock.stores.base import WorkflowVersion
from penstock.stores.cold import ColdStore

log = logging.getLogger("penstock.stores")

PLANS_MAX = 2000
PLANS_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of the documents whose plans are cached, together.

A plan takes up to thirty times as much memory as its document.
"""
LEARN_SECONDS = 5.0
"""How often `run_learning` reads the defaults of handlers."""
LARGE_BYTES = 8 * 1024
"""A document of this size is compiled in a thread: the loop has other things to do meanwhile."""
SLOW_BYTES = 64 * 1024
"""A document of this size is compiled while its partition goes on with other executions."""


class Compiling(Exception):
    """The plan is being compiled.

    Once `task` has ended, `PlanCache.get` answers at once or raises what went wrong.
    """

    def __init__(self, task: asyncio.Task[Plan]) -> None:
        super().__init__("the plan is being compiled")
        self.task = task


class _CachedPlan(NamedTuple):
    plan: Plan
    size: int
    """The size of its document, in bytes."""
    defaults: Mapping[str, HandlerDefaults | None] | None
    """Its handlers' defaults when it was compiled; None if it was compiled elsewhere."""
    stored: WorkflowVersion | None = None
    """The version as the cold store had it; None if it was compiled elsewhere."""


class PlanCache:
    """Plans of the versions in a cold store, compiled when they are first needed."""

    def __init__(
        self,
        cold: ColdStore,
        handlers: Callable[[], Mapping[str, HandlerDefaults]],
        on_new: Callable[[Plan], None] | None = None,
        *,
        learn_seconds: float = LEARN_SECONDS,
        items_max: int = ITEMS_MAX,
    ) -> None:
        """`handlers` answers the defaults of the handlers that this process has.

        The defaults in the store, which are the workers', go before them.
        """
        self._cold = cold
        self._handlers = handlers
        self._on_new = on_new
        self._learn_seconds = learn_seconds
        self._items_max = items_max
        self._plans: dict[tuple[str, int], _CachedPlan] = {}
        self._bytes = 0
        self._large = asyncio.Lock()
        self._compiling: dict[tuple[str, int], asyncio.Task[Plan]] = {}
        """Plans of large documents that are being compiled."""
        self.live: Callable[[], Mapping[str, HandlerDefaults]] = dict
        """Answers the defaults of the live workers' handlers.

        They go before the stored ones, which may come from a worker that is dead.
        """

    def put(self, plan: Plan, size: int = 0) -> None:
        """Add a plan. `size`: of its document, in bytes."""
        self._cache(_CachedPlan(plan, size, None))

    def _cache(self, cached: _CachedPlan) -> None:
        plan = cached.plan
        plan.items_max = self._items_max
        key = (plan.name, plan.version)
        self._compiling.pop(key, None)
        self._drop(key)
        self._plans[key] = cached
        self._bytes += cached.size
        while self._is_too_full():
            # the oldest; an execution that runs has a reference of its own to it
            self._drop(next(iter(self._plans)))
        if self._on_new is not None:
            self._on_new(plan)

    def _is_too_full(self) -> bool:
        if len(self._plans) > PLANS_MAX:
            return True
        return self._bytes > PLANS_BYTES_MAX and len(self._plans) > 1

    def _drop(self, key: tuple[str, int]) -> None:
        dropped = self._plans.pop(key, None)
        if dropped is not None:
            self._bytes -= dropped.size

    def cached(self, name: str, version: int) -> Plan | None:
        """A plan if it is in memory, without asking the store."""
        cached = self._plans.get((name, version))
        return None if cached is None else cached.plan

    def stored(self, name: str, version: int) -> WorkflowVersion | None:
        """The version of a plan as it was read, for a cold store that has lost it since.

        None if it wasn't read here.
        """
        cached = self._plans.get((name, version))
        return None if cached is None else cached.stored

    async def get(self, name: str, version: int) -> Plan | None:
        return self.cached(name, version) or await self._compile(name, version)

    async def need_soon(self, name: str, version: int) -> Plan:
        """A plan, as `need`; raises `Compiling` if it takes so long that others shouldn't wait."""
        plan = self.cached(name, version)
        if plan is not None:
            return plan

        compiling = self._compiling.pop((name, version), None)
        if compiling is None:
            stored = await self._cold.definitions.get_workflow(name, version)
            if stored is None or len(stored.document) < SLOW_BYTES:
                return await self.need(name, version)
            compiling = self._compiling.get((name, version))
            if compiling is None:
                compiling = asyncio.create_task(self._compile_stored(stored))
        elif compiling.done():
            return await compiling  # which raises what went wrong: the next one tries again
        self._compiling[name, version] = compiling
        raise Compiling(compiling)

    async def need(self, name: str, version: int) -> Plan:
        """A plan, as `get`. Raises `NotFound`."""
        plan = self.cached(name, version) or await self.get(name, version)
        if plan is None:
            workflow = f"{name}@{version}"
            raise NotFound(f"there is no workflow {workflow!r} in this store")
        return plan

    async def run_learning(self) -> None:
        """Compile plans again when their handlers' defaults have changed, for ever.

        Nothing waits for it: while the store is away, plans stay as they are.
        """
        while True:
            await asyncio.sleep(self._learn_seconds)
            try:
                await self.learn()
            except StoreError as error:
                log.info("the defaults of handlers can't be read now: %s", error)
            except Exception:
                log.exception("plans can't be brought up to date with their handlers' defaults")

    async def learn(self) -> None:
        """Compile every plan again whose handlers have other defaults now."""
        handlers = await self._read_handlers()
        for (name, version), cached in list(self._plans.items()):
            if _is_outdated(cached, handlers):
                await self._compile(name, version)

    async def _compile(self, name: str, version: int) -> Plan | None:
        stored = await self._cold.definitions.get_workflow(name, version)
        return None if stored is None else await self._compile_stored(stored)

    async def _compile_stored(self, stored: WorkflowVersion) -> Plan:
        handlers = await self._read_handlers()

        def work() -> Plan:
            document = decode_in_pieces(stored.document)
            # it was checked when it was submitted; its handlers may be other workers' by now
            compiled = compile_document(
                document, handlers=handlers, allow_unknown_handlers=True, checked=True, stored=True
            )
            return compiled.plan

        if len(stored.document) < LARGE_BYTES:
            plan = work()
        else:
            # one after another: the loop shares the interpreter with one thread, not six
            async with self._large:
                plan = await asyncio.to_thread(work)
        plan.name = stored.name
        plan.version = stored.version

        names = {node.handler for node in plan.handler_nodes()}
        # once a worker has a handler of such a name, it replaces the built-in one
        names |= {name for name, fallback in FALLBACK_HANDLERS.items() if fallback in names}
        defaults = {name: handlers.get(name) for name in names}
        self._cache(_CachedPlan(plan, len(stored.document), defaults, stored))
        return plan

    async def _read_handlers(self) -> Mapping[str, HandlerDefaults]:
        return {**self._handlers(), **await self._cold.definitions.known_handlers(), **self.live()}


def _is_outdated(cached: _CachedPlan, handlers: Mapping[str, HandlerDefaults]) -> bool:
    if cached.defaults is None:
        return True
    return any(handlers.get(name) != defaults for name, defaults in cached.defaults.items())
