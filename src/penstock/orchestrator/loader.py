"""The loader loads executions from the stores into memory.

It loads them one at a time if one of them can't be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from typing import Any, TypeVar

from penstock.definition.plan import Plan
from penstock.engine import reused_outputs
from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import SignalReceived
from penstock.engine.state import Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced, NotFound, StoreError, StoreUnavailable
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.base import Intent, Stored, Stores
from penstock.stores.plan_cache import PlanCache

log = logging.getLogger("penstock.orchestrator")

LARGE_NODES = 500
SILENT = "the cold store hasn't answered in time"


class PlanMissing(StoreError):
    """The cold store has lost the version that an execution in the hot store runs.

    It isn't the execution's fault.
    """


class ColdStoreAway(StoreError):
    """The cold store is away, and has what an execution in the hot store needs to go on.

    That is its plan, or outputs that a retry reuses. All others go on.
    """


Answer = TypeVar("Answer")
Loaded = tuple[dict[str, Execution], dict[str, Exception]]


class Loader:
    def __init__(self, stores: Stores, plans: PlanCache, timing: OrchestratorTiming) -> None:
        self._hot = stores.hot
        self._cold = stores.cold
        self._plans = plans
        self._timing = timing
        self._topology = stores.topology
        self._silent_until = 0.0

    async def load(self, execution_ids: Collection[str], starts: Collection[str]) -> Loaded:
        """The executions that haven't ended, and what went wrong with others.

        `starts` may be new to the hot store.

        One that is to begin and whose plan takes long has `Compiling` for its error.
        """
        failed: dict[str, Exception] = {}
        try:
            stored = await self._hot.load(execution_ids)
            intents = await self._intents(execution_ids, stored, starts, failed)
        except (Fenced, StoreUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 -- one of them can't be read
            if len(execution_ids) == 1:
                return {}, dict.fromkeys(execution_ids, error)
            return await self._load_one_by_one(execution_ids, starts)

        remaining = [execution_id for execution_id in execution_ids if execution_id not in failed]
        loaded = await self._executions(remaining, stored, intents, failed)
        return loaded, failed

    async def _executions(
        self,
        execution_ids: Collection[str],
        stored: Mapping[str, Stored],
        intents: Mapping[str, Intent],
        failed: dict[str, Exception],
    ) -> dict[str, Execution]:
        """Executions that go on; what goes wrong with others is put in `failed`."""
        loaded: dict[str, Execution] = {}
        for execution_id in execution_ids:
            try:
                execution = await self._execution(
                    stored.get(execution_id), intents.get(execution_id)
                )
            except StoreUnavailable as error:  # its plan can't be read
                if not self._topology.is_tiered:
                    raise
                self._note_away([execution_id], stored, failed, error)
            except Fenced:
                raise
            except Exception as error:  # noqa: BLE001
                failed[execution_id] = error
            else:
                if execution is not None:
                    loaded[execution_id] = execution
                    if len(execution.runs) > LARGE_NODES:
                        await asyncio.sleep(0)  # the lease has to be renewed meanwhile
        return loaded

    async def _load_one_by_one(
        self, execution_ids: Collection[str], starts: Collection[str]
    ) -> Loaded:
        loaded: dict[str, Execution] = {}
        failed: dict[str, Exception] = {}
        for execution_id in execution_ids:
            fine, bad = await self.load([execution_id], starts)
            loaded.update(fine)
            failed.update(bad)
        return loaded, failed

    async def last_committed(self, execution_id: str) -> Stored | None:
        """An execution as the stores have it; for one that never began, its intent."""
        stored = (await self._hot.load([execution_id])).get(execution_id)
        if stored is not None:
            return stored
        intent = (await self._cold.executions.intents([execution_id])).get(execution_id)
        return None if intent is None else Stored(intent.record, {}, {}, 0, [], [])

    async def _intents(
        self,
        execution_ids: Collection[str],
        stored: Mapping[str, Stored],
        starts: Collection[str],
        failed: dict[str, Exception],
    ) -> Mapping[str, Intent]:
        """Intents of executions that need one; those that can't go on without are put in `failed`.

        An execution that is to start or to be cancelled and isn't in the hot store must be in the
        cold store.
        """
        needed: list[str] = []
        for execution_id in execution_ids:
            if execution_id not in stored:
                is_needed = execution_id in starts
            else:
                is_needed = _reuses_outputs(stored[execution_id])
            if is_needed:
                needed.append(execution_id)
        if not needed:
            return {}

        try:
            intents = await self._ask(self._cold.executions.intents(needed))
        except StoreUnavailable as error:
            if not self._topology.is_tiered:
                raise
            self._note_away(needed, stored, failed, error)
            return {}

        lost = [
            execution_id
            for execution_id in needed
            if execution_id not in intents and execution_id not in stored
        ]
        if lost and self._topology.is_tiered:
            log.error(
                "%d executions were to begin, such as %s, and no store has them: "
                "was PostgreSQL put back to an older copy?",
                len(lost),
                lost[0],
            )
        return intents

    def _note_away(
        self,
        execution_ids: Collection[str],
        stored: Mapping[str, Stored],
        failed: dict[str, Exception],
        error: StoreUnavailable,
    ) -> None:
        """Executions that can't be loaded without the cold store: all others go on."""
        begun = [execution_id for execution_id in execution_ids if execution_id in stored]
        for execution_id in begun:
            failed[execution_id] = ColdStoreAway(str(error))
        # those are found in the cold store again by the reconciler
        if len(execution_ids) > len(begun):
            beginning = len(execution_ids) - len(begun)
            log.warning("%d executions can't begin now: %s", beginning, error)

    async def signals(self, execution_ids: Collection[str]) -> Mapping[str, list[SignalReceived]]:
        """The signals that are stored for executions, also those that haven't been received.

        Raises `StoreUnavailable` as `_ask` does.
        """
        return await self._ask(self._cold.signals.of(execution_ids))

    async def _ask(self, answer: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer of the cold store.

        Raises `StoreUnavailable` also if the answer takes long, and for a while after that without
        asking.
        """
        now = asyncio.get_running_loop().time()
        if now < self._silent_until:
            answer.close()
            raise StoreUnavailable(SILENT)
        try:
            async with asyncio.timeout(self._timing.intents_seconds):
                return await answer
        except TimeoutError as error:
            self._silent_until = now + self._timing.intents_silent_seconds
            raise StoreUnavailable(SILENT) from error

    async def _execution(self, stored: Stored | None, intent: Intent | None) -> Execution | None:
        """The execution as the hot store has it, or a new one from its intent.

        None if it has ended, or if there is neither.
        """
        if stored is not None:
            if stored.record.state in EXECUTION_ENDS:
                return None
            plan = await self._plan_of_running(stored.record)
            execution = Execution(
                plan,
                stored.record,
                stored.runs.values(),
                stored.outputs,
                stored.last_seq,
                stored.signals,
            )
            _set_reused(execution, intent)
            return execution

        if intent is None or intent.record.state in EXECUTION_ENDS:
            return None
        if self._topology.is_tiered:
            intent.remember_key()
        plan = await self._plans.need_soon(intent.record.workflow, intent.record.version)
        execution = Execution(plan, intent.record)
        _set_reused(execution, intent)
        return execution

    async def _plan_of_running(self, record: ExecutionRecord) -> Plan:
        try:
            return await self._plan(record)
        except NotFound as error:
            if not self._topology.is_tiered:
                raise
            raise PlanMissing(
                f"{error}; submit the document again, so that {record.execution_id} can go on"
            ) from error

    async def _plan(self, record: ExecutionRecord) -> Plan:
        return await self._plans.need(record.workflow, record.version)


def _reuses_outputs(stored: Stored) -> bool:
    """Whether nodes of an earlier execution are still to be recorded."""
    return bool(stored.record.reused) or stored.record.state is ExecutionState.PENDING


def _set_reused(execution: Execution, intent: Intent | None) -> None:
    if intent is not None and intent.reused:
        outputs = {reused.node_id: reused.output for reused in intent.reused}
        reused_outputs.set_reused(execution, outputs)
