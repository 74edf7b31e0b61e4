"""Executions from the stores into memory, one at a time where one of them is bad."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from penstock.definition.plan import Plan
from penstock.engine import keeping
from penstock.engine.commands import ExecutionRecord
from penstock.engine.execution import Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.plans import Plans
from penstock.stores.base import NewExecution, Stored, Stores

log = logging.getLogger("penstock.orchestrator")

LARGE_NODES = 500
Loaded = tuple[dict[str, Execution], dict[str, Exception]]


class Loader:
    def __init__(self, stores: Stores, plans: Plans) -> None:
        self._hot, self._cold, self._plans = stores.hot, stores.cold, plans
        self._is_split = stores.split is not None

    async def load(self, names: Collection[str], starts: Collection[str]) -> Loaded:
        """The executions that haven't ended, and what went wrong with others. `starts` may be new to the hot store."""
        try:
            known = await self._hot.load(names)
            intents = await self._intents(names, known, starts)
        except (Fenced, StoreUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 -- one of them can't be read
            if len(names) == 1:
                return {}, dict.fromkeys(names, error)
            return await self._one_by_one(names, starts)
        loaded: dict[str, Execution] = {}
        failed: dict[str, Exception] = {}
        for name in names:
            try:
                execution = await self._execution(known.get(name), intents.get(name))
            except (Fenced, StoreUnavailable):
                raise
            except Exception as error:  # noqa: BLE001
                failed[name] = error
            else:
                if execution is not None:
                    loaded[name] = execution
                    if len(execution.runs) > LARGE_NODES:
                        await asyncio.sleep(0)  # the lease has to be renewed meanwhile
        return loaded, failed

    async def _one_by_one(self, names: Collection[str], starts: Collection[str]) -> Loaded:
        loaded: dict[str, Execution] = {}
        failed: dict[str, Exception] = {}
        for name in names:
            fine, bad = await self.load([name], starts)
            loaded.update(fine)
            failed.update(bad)
        return loaded, failed

    async def last_committed(self, name: str) -> Stored | None:
        """What the stores have of it; for one that never began, its intent."""
        stored = (await self._hot.load([name])).get(name)
        if stored is not None:
            return stored
        intent = (await self._cold.intents([name])).get(name)
        return None if intent is None else Stored(intent.record, {}, {}, 0, [], [])

    async def _intents(
        self, names: Collection[str], known: Mapping[str, Stored], starts: Collection[str]
    ) -> Mapping[str, NewExecution]:
        """Of those that need one: a start or a cancel that the hot store doesn't know, the cold store must."""
        needed = [name for name in names if (_keeps(known[name]) if name in known else name in starts)]
        if not needed:
            return {}
        try:
            return await self._cold.intents(needed)
        except StoreUnavailable as error:
            if not self._is_split or not known.keys().isdisjoint(needed):
                raise
            # what runs goes on without the cold store; what was to begin is found there again by the reconciler
            log.warning("%d executions can't begin now: %s", len(needed), error)
            return {}

    async def _execution(self, stored: Stored | None, intent: NewExecution | None) -> Execution | None:
        if stored is not None:
            if stored.record.state in EXECUTION_ENDS:
                return None
            plan = await self._plan(stored.record)
            execution = Execution(plan, stored.record, stored.runs.values(), stored.outputs, stored.last_seq)
            _keep(execution, intent)
            return execution
        if intent is None or intent.record.state in EXECUTION_ENDS:
            return None
        execution = Execution(await self._plan(intent.record), intent.record)
        _keep(execution, intent)
        return execution

    async def _plan(self, record: ExecutionRecord) -> Plan:
        return await self._plans.need(record.workflow, record.version)


def _keeps(stored: Stored) -> bool:
    """Whether nodes of an earlier execution are still to be recorded."""
    return bool(stored.record.kept) or stored.record.state is ExecutionState.PENDING


def _keep(execution: Execution, intent: NewExecution | None) -> None:
    if intent is not None and intent.kept:
        keeping.keep(execution, {kept.address: kept.output for kept in intent.kept})
