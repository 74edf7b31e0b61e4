"""Executions from the stores into memory, one at a time where one of them is bad."""

from __future__ import annotations

from collections.abc import Collection

from penstock.definition.plan import Plan
from penstock.engine import keeping
from penstock.engine.commands import ExecutionRecord
from penstock.engine.execution import Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.plans import Plans
from penstock.stores.base import NewExecution, Stored, Stores

Loaded = tuple[dict[str, Execution], dict[str, Exception]]


class Loader:
    def __init__(self, stores: Stores, plans: Plans) -> None:
        self._hot, self._cold, self._plans = stores.hot, stores.cold, plans

    async def load(self, names: Collection[str], starts: Collection[str]) -> Loaded:
        """The executions that haven't ended, and what went wrong with others. `starts` may be new to the hot store."""
        try:
            known = await self._hot.load(names)
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
                execution = await self._execution(name, known.get(name), may_begin=name in starts)
            except (Fenced, StoreUnavailable):
                raise
            except Exception as error:  # noqa: BLE001
                failed[name] = error
            else:
                if execution is not None:
                    loaded[name] = execution
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
        intent = await self._cold.intent(name)
        return None if intent is None else Stored(intent.record, {}, {}, 0, [], [])

    async def _execution(self, name: str, stored: Stored | None, *, may_begin: bool) -> Execution | None:
        if stored is not None:
            if stored.record.state in EXECUTION_ENDS:
                return None
            plan = await self._plan(stored.record)
            execution = Execution(plan, stored.record, stored.runs.values(), stored.outputs, stored.last_seq)
            if stored.record.kept or stored.record.state is ExecutionState.PENDING:
                _keep(execution, await self._cold.intent(name))
            return execution
        # a start or a cancel that the hot store doesn't know: the cold store must
        intent = await self._cold.intent(name) if may_begin else None
        if intent is None or intent.record.state in EXECUTION_ENDS:
            return None
        execution = Execution(await self._plan(intent.record), intent.record)
        _keep(execution, intent)
        return execution

    async def _plan(self, record: ExecutionRecord) -> Plan:
        return await self._plans.need(record.workflow, record.version)


def _keep(execution: Execution, intent: NewExecution | None) -> None:
    if intent is not None and intent.kept:
        keeping.keep(execution, {kept.address: kept.output for kept in intent.kept})
