"""Starting executions: the workflow checked and stored, the input checked, the intent stored before it is answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from penstock.config import Settings
from penstock.definition.model import HandlerDefaults
from penstock.definition.parse import Limits, check_values
from penstock.definition.plan import Plan, compile_document
from penstock.definition.read import content_hash
from penstock.definition.schema import schema_errors
from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import ExecutionStarted
from penstock.engine.states import ExecutionState
from penstock.errors import InvalidInput, InvalidWorkflow, NotFound, StoreError
from penstock.orchestrator.plans import Plans
from penstock.stores.base import NewExecution, Stores

MOST_STARTS = 500


def new_execution_id() -> str:
    """Ids sort by time (UUID version 7), so that an index of them grows at its end."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Submissions:
    def __init__(
        self, stores: Stores, plans: Plans, settings: Settings, handlers: Callable[[], Mapping[str, HandlerDefaults]]
    ) -> None:
        self._stores, self._plans, self._settings, self._handlers = stores, plans, settings, handlers
        self._compiled: dict[bytes, Plan] = {}
        self._compiling = asyncio.Lock()
        self._starting: list[tuple[NewExecution, asyncio.Future[str]]] = []
        self._background: set[asyncio.Task[None]] = set()
        self.unfinished: set[str] = set()
        """Started here, end not seen yet: whoever waits for one needn't look in the store first."""

    async def submit(
        self, plan: Plan, given: Mapping[str, Any] | None, labels: Mapping[str, Any], idempotency_key: str | None
    ) -> str:
        """The new execution's id, or for a known key the one that it made."""
        record = self._record(plan, given, labels)
        request = content_hash([plan.name, plan.version, record.input.decode()]) if idempotency_key else ""
        return await self._create(NewExecution(record, idempotency_key, request))

    async def submit_many(
        self, plan: Plan, inputs: Iterable[Mapping[str, Any] | None], labels: Mapping[str, Any]
    ) -> list[str]:
        """One execution for each input. All inputs are checked before the first one is stored."""
        news = [NewExecution(self._record(plan, given, labels)) for given in inputs]
        for first in range(0, len(news), MOST_STARTS):
            await self._accept(news[first : first + MOST_STARTS])
        return [new.record.execution_id for new in news]

    def _record(self, plan: Plan, given: Mapping[str, Any] | None, labels: Mapping[str, Any]) -> ExecutionRecord:
        data, now = self._check_input(plan, given), self._stores.hot.now()
        record = ExecutionRecord(new_execution_id(), plan.name, plan.version, ExecutionState.PENDING, data, now)
        record.labels = dict(labels)
        return record

    async def plan(self, document: dict[str, Any]) -> Plan:
        """Check, compile and store a document, unless it is known."""
        try:
            key = msgspec.msgpack.encode(document)
        except (TypeError, ValueError, RecursionError, OverflowError):
            check_values(document)  # says where it isn't JSON
            raise
        if key not in self._compiled:
            async with self._compiling:  # thousands may start a new document at once: it is compiled for the first
                if key not in self._compiled:
                    self._compiled[key] = await self._compile(document)
        return self._compiled[key]

    async def _compile(self, document: dict[str, Any]) -> Plan:
        settings = self._settings
        limits = Limits(settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth)
        plan = compile_document(document, handlers=self._handlers(), limits=limits).plan
        text = json.dumps(document, ensure_ascii=False).encode()
        stored = await self._stores.cold.put_workflow(plan.name, content_hash(document), text, self._stores.hot.now())
        plan.version = stored.version
        self._plans.put(plan)
        return plan

    async def stored_plan(self, name: str) -> Plan:
        base, _, version = name.partition("@")
        if version and version != "latest" and not version.isdecimal():
            raise NotFound(f"{name!r}: a version is a number or latest")
        stored = await self._stores.cold.get_workflow(base, int(version) if version.isdecimal() else None)
        plan = await self._plans.get(base, stored.version) if stored else None
        if plan is None:
            raise NotFound(f"there is no workflow {name!r} in this store")
        return plan

    def _check_input(self, plan: Plan, given: Mapping[str, Any] | None) -> bytes:
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInput('the input must be an object, such as {"user_id": 7}')
        merged = {**plan.input, **(given or {})}
        if not merged and plan.input_schema is None:
            return b"{}"
        try:
            check_values(merged)
        except InvalidWorkflow as error:
            raise InvalidInput(f"input: {error}") from None
        if plan.input_schema is not None:
            errors = schema_errors(plan.input_schema, merged)
            if errors:
                raise InvalidInput("the input doesn't fit the workflow's input_schema: " + "; ".join(errors))
        return msgspec.json.encode(merged)

    def _create(self, new: NewExecution) -> asyncio.Future[str]:
        """Starts that come in one turn of the loop are stored together."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        if not self._starting:
            loop.call_soon(self._flush_starts)
        self._starting.append((new, future))
        return future

    def _flush_starts(self) -> None:
        batch, self._starting = self._starting, []
        task = asyncio.get_running_loop().create_task(self._store_all(batch))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _store_all(self, batch: list[tuple[NewExecution, asyncio.Future[str]]]) -> None:
        """In portions: while one is written, those before it already run."""
        for first in range(0, len(batch), MOST_STARTS):
            await self._store_starts(batch[first : first + MOST_STARTS])

    async def _store_starts(self, batch: list[tuple[NewExecution, asyncio.Future[str]]]) -> None:
        try:
            ids = await self._accept([new for new, _ in batch])
        except Exception as error:  # noqa: BLE001 -- each caller gets its own
            if len(batch) > 1:
                for one in batch:
                    await self._store_starts([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for execution_id, (_, future) in zip(ids, batch, strict=True):
            if not future.done():
                future.set_result(execution_id)

    async def _accept(self, news: list[NewExecution]) -> list[str]:
        """Stored and on their way; answers the ids, for a known key that of the execution that it made."""
        ids = await self._stores.cold.create(news)
        fresh = [ExecutionStarted(i) for i, new in zip(ids, news, strict=True) if i == new.record.execution_id]
        self.unfinished.update(event.execution_id for event in fresh)
        with contextlib.suppress(StoreError):  # it is stored, so it will run: the owner looks for what has no start
            await self._stores.hot.append(fresh)
        return ids
