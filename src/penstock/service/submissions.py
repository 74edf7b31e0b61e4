"""Submissions: a start request is checked, and its intent recorded before it is answered.

Many intents share one transaction of the cold store.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.definition.condition import size_of
from penstock.definition.parse import check_values
from penstock.definition.plan import Plan
from penstock.definition.problems import Problem, quoted
from penstock.definition.read import content_hash
from penstock.definition.schema import lines_of
from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import ExecutionStarted
from penstock.engine.states import ExecutionState
from penstock.errors import InvalidInput, InvalidWorkflow, StoreError, StoreUnavailable
from penstock.sandbox import Sandbox, schema_problems_in
from penstock.service.backlog import Backlog
from penstock.service.workflows import Workflows
from penstock.stores import idempotency
from penstock.stores.base import Intent, Stores
from penstock.stores.cold import NO_LINES
from penstock.stores.records import AuditLine

STARTS_MAX = 500
TRANSACTIONS_MAX = 3
"""Transactions at once; what comes meanwhile goes together into the next."""
LABELS_MAX = 64
LABELS_BYTES_MAX = 16 * 1024
"""Bytes of all labels of an execution: they are kept in every list and index that finds it."""
SMALL_INPUT_BYTES = 64 * 1024
LABEL_NAME_CHARACTERS_MAX = 128
LABEL_VALUE_CHARACTERS_MAX = 1024
"""Characters of a label's value; of a value that isn't text, of its JSON."""
OVERRIDES_BYTES_MAX = 1024 * 1024


def new_execution_id() -> str:
    """A new execution id.

    Ids sort by time (UUID version 7), so that an index of them grows at its end.
    """
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class StartRequest(msgspec.Struct, kw_only=True):
    """What a user wants to have run, before it is checked."""

    workflow: str | Mapping[str, Any] | Plan
    """A reference to a stored workflow, the document itself, or the plan of one that was looked up
    before.
    """
    named: bool = False
    """A document is also stored under its name, for others to start: who asks for that may change
    what they run.
    """
    input: Any = None
    labels: Mapping[str, Any] = {}
    priority: int = 0
    idempotency_key: str | None = None
    key_scope: str = ""
    trace: str = ""
    waits: bool = False
    """Store it as PENDING, for a later `trigger`."""
    lenient_config: bool = False
    """As `ExecutionRecord.lenient_config`: for the compatible routes."""
    audit: AuditLine | None = None
    """The audit line that is written together with it; its object is the new execution."""


class Submitted(NamedTuple):
    """The execution that a start request has led to."""

    execution_id: str
    record: ExecutionRecord | None
    """The execution's record; None for one that was started before."""
    replayed: bool
    """The idempotency key was known: nothing new was started."""


class PendingIntent(NamedTuple):
    """An intent that is about to be recorded, and whoever waits for that."""

    intent: Intent
    line: AuditLine | None
    recorded: asyncio.Future[str]
    """The id of the execution: for a known idempotency key that of the one it started."""


class Submissions:
    """Submits start requests: records their intents and tells the engine to begin."""

    def __init__(
        self,
        stores: Stores,
        workflows: Workflows,
        backlog: Backlog,
        sandbox: Sandbox,
        *,
        sees_all_ends: bool = True,
    ) -> None:
        self.backlog, self._sandbox = backlog, sandbox
        self._stores, self._workflows, self._sees_all_ends = stores, workflows, sees_all_ends
        self._pending: list[PendingIntent] = []
        self._flushing = False
        self._recording: set[asyncio.Task[None]] = set()
        self.unfinished: set[str] = set()
        """Executions started here whose end wasn't seen yet.

        Whoever waits for one needn't look in the store first.

        Stays empty in a process that doesn't see all ends.
        """

    async def submit(self, start_request: StartRequest) -> Submitted:
        """Start an execution: check the request and record its intent.

        Raises `InvalidWorkflow`, `InvalidInput`, `NotFound`, `KeyReused`, `Overloaded`.
        """
        known = (
            await self._replayed(start_request)
            if start_request.idempotency_key is not None
            else None
        )
        if known is not None:
            return Submitted(known, None, replayed=True)
        intent = await self.prepare(start_request)
        execution_id = await self.record_soon(intent, start_request.audit)
        replayed = execution_id != intent.record.execution_id
        return Submitted(execution_id, intent.record, replayed=replayed)

    async def _replayed(self, start_request: StartRequest) -> str | None:
        """The execution that an idempotency key has started.

        Asked before anything else is looked at: what the request meant then may be gone or
        different by now.
        """
        key = start_request.idempotency_key or ""
        made = await self._stores.cold.key_use(start_request.key_scope, key)
        try:
            request = _request_hash(start_request)
        except (TypeError, ValueError, RecursionError):
            return None  # what isn't JSON is refused further on, with its place
        return idempotency.replayed(made, key, request, self._stores.hot.now())

    async def submit_many(
        self, plan: Plan, inputs: Iterable[Mapping[str, Any] | None], labels: Mapping[str, Any]
    ) -> list[str]:
        """Start an execution for each input.

        All inputs are checked before the first one is stored.
        """
        checked = [await self.check_input(plan, given) for given in inputs]
        intents = [Intent(self._record(new_execution_id(), plan, data, labels)) for data in checked]
        await self.backlog.enter(plan.name, len(intents))
        for first in range(0, len(intents), STARTS_MAX):
            await self.record_intents(intents[first : first + STARTS_MAX])
        return [intent.record.execution_id for intent in intents]

    async def prepare(self, start_request: StartRequest) -> Intent:
        """The intent of a start request, not recorded yet. A document that isn't known is stored here."""
        self._stores.hot.check_open()
        execution_id = new_execution_id()
        if isinstance(start_request.workflow, Plan):
            plan = start_request.workflow
        elif isinstance(start_request.workflow, str):
            plan = await self._workflows.resolve(start_request.workflow, execution_id)
        else:
            plan = await self._workflows.plan(
                dict(start_request.workflow), named=start_request.named
            )
        data = await self.check_input(plan, start_request.input, complete=not start_request.waits)
        record = self._record(execution_id, plan, data, start_request.labels)
        record.priority, record.trace, record.lenient_config = (
            start_request.priority,
            start_request.trace,
            start_request.lenient_config,
        )
        if not start_request.waits:
            await self.backlog.enter(plan.name)
        request = _request_hash(start_request) if start_request.idempotency_key is not None else ""
        return Intent(
            record,
            start_request.idempotency_key,
            request,
            waits=start_request.waits,
            key_scope=start_request.key_scope,
        )

    async def check_input(self, plan: Plan, given: Any, *, complete: bool = True) -> bytes:
        """The input as it is kept.

        One that isn't `complete` yet is checked against the schema later.

        Raises `InvalidInput`.
        """
        if size_of(given, SMALL_INPUT_BYTES) <= SMALL_INPUT_BYTES:
            merged, text = _merge_input(plan, given)
        else:  # in a thread: others wait for the loop
            merged, text = await asyncio.to_thread(_merge_input, plan, given)
        if complete and plan.input_schema is not None:
            told = "the input doesn't fit the workflow's input_schema"
            await self.check_fits(plan.input_schema, merged, told, plan.name)
        return text

    async def check_fits(self, schema: Any, given: Any, told: str, turn: str) -> None:
        """Check an input against a schema.

        Raises `InvalidInput` with everything that doesn't fit, and where.
        """
        problems = await schema_problems_in(self._sandbox, schema, given, turn)
        if problems:
            input_problems = [
                Problem(it.code, f"input.{it.path}".rstrip("."), it.message) for it in problems
            ]
            raise InvalidInput(f"{told}: {'; '.join(lines_of(problems))}", input_problems)

    def _record(
        self, execution_id: str, plan: Plan, data: bytes, labels: Mapping[str, Any]
    ) -> ExecutionRecord:
        now = self._stores.hot.now()
        record = ExecutionRecord(
            execution_id, plan.name, plan.version, ExecutionState.PENDING, data, now
        )
        if labels:
            check_labels(labels)
            record.labels = dict(labels)
        return record

    async def trigger(
        self, execution_id: str, workflow: str, given: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        """Let an execution that waits begin.

        Raises `NotFound`, `Conflict`, `InvalidInput`, `Overloaded`.
        """
        size = len(msgspec.json.encode(overrides))
        if size > OVERRIDES_BYTES_MAX:
            told = f"the configs by node have {size:,} bytes; the limit is {OVERRIDES_BYTES_MAX:,}"
            raise InvalidInput(f"{told}; put large values into the input, and refer to them")
        self._stores.hot.check_open()
        await self.backlog.enter(workflow)
        await self._stores.cold.trigger(execution_id, given, overrides)
        await self._append_started([execution_id])

    def record_soon(self, intent: Intent, line: AuditLine | None = None) -> asyncio.Future[str]:
        """Record one intent, together with what comes in the same turn of the loop or meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        if line is not None:
            line.object = f"executions/{intent.record.execution_id}"
            line.detail = {
                **line.detail,
                "workflow": f"{intent.record.workflow}@{intent.record.version}",
            }
        self._pending.append(PendingIntent(intent, line, future))
        if not self._flushing and len(self._recording) < TRANSACTIONS_MAX:
            self._flushing = True
            loop.call_soon(self._flush_pending)
        return future

    def _flush_pending(self) -> None:
        """Record pending intents in portions: while one is written, those before it already run."""
        self._flushing = False
        batch, self._pending = self._pending[:STARTS_MAX], self._pending[STARTS_MAX:]
        if batch:
            task = asyncio.get_running_loop().create_task(self._record_batch(batch))
            self._recording.add(task)
            task.add_done_callback(self._recorded)

    def _recorded(self, task: asyncio.Task[None]) -> None:
        self._recording.discard(task)
        if not self._flushing:
            self._flush_pending()

    async def _record_batch(self, batch: list[PendingIntent]) -> None:
        try:
            lines = {
                pending.intent.record.execution_id: pending.line
                for pending in batch
                if pending.line is not None
            }
            ids = await self.record_intents([pending.intent for pending in batch], lines)
        except Exception as error:  # noqa: BLE001 -- each caller gets its own
            # one that is refused takes no others with it; a store that is away is so for all of
            # them
            if len(batch) > 1 and not isinstance(error, StoreUnavailable):
                await self._record_batch(batch[: len(batch) // 2])
                await self._record_batch(batch[len(batch) // 2 :])
                return
            for pending in batch:
                if not pending.recorded.done():
                    pending.recorded.set_exception(error)
            return
        for execution_id, pending in zip(ids, batch, strict=True):
            if not pending.recorded.done():
                pending.recorded.set_result(execution_id)

    async def record_intents(
        self, intents: list[Intent], lines: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        """Record intents, and have the engine begin with those that don't wait.

        Answers the ids: for a known idempotency key that of the execution that it started.
        """
        self._stores.hot.check_open()
        ids = await self._stores.cold.record_intents(intents, lines)
        await self._append_started(
            [
                i
                for i, intent in zip(ids, intents, strict=True)
                if i == intent.record.execution_id and not intent.waits
            ]
        )
        return ids

    async def _append_started(self, execution_ids: list[str]) -> None:
        if self._sees_all_ends:
            self.unfinished.update(execution_ids)
        if execution_ids:
            with contextlib.suppress(
                StoreError
            ):  # they are recorded, so they will run: the owner looks for them
                await self._stores.hot.append(
                    [ExecutionStarted(execution_id) for execution_id in execution_ids]
                )


def _request_hash(start_request: StartRequest) -> str:
    return content_hash(
        [
            start_request.workflow,
            start_request.input,
            dict(start_request.labels),
            start_request.priority,
        ]
    )


def _merge_input(plan: Plan, given: Any) -> tuple[dict[str, Any], bytes]:
    """The input over the workflow's own, and how it is kept. Raises `InvalidInput`."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput('the input must be an object, such as {"user_id": 7}')
    merged = {**plan.input, **(given or {})}
    if not merged:
        return merged, b"{}"
    try:
        check_values(merged)
    except InvalidWorkflow as error:
        raise InvalidInput(f"input: {error}") from None
    return merged, msgspec.json.encode(merged)


def check_labels(labels: Mapping[str, Any]) -> None:
    if len(labels) > LABELS_MAX:
        raise InvalidInput(f"there are {len(labels)} labels; at most {LABELS_MAX} are kept")
    if size_of(dict(labels), LABELS_BYTES_MAX) > LABELS_BYTES_MAX:
        raise InvalidInput(
            f"the labels have more than {LABELS_BYTES_MAX:,} bytes; what is large belongs into the input"
        )
    try:
        check_values(dict(labels))
    except InvalidWorkflow as error:
        raise InvalidInput(f"labels: {error}") from None
    for name, value in labels.items():
        if len(name) > LABEL_NAME_CHARACTERS_MAX:
            told = f"labels: the name {quoted(name)} has {len(name):,} characters"
            raise InvalidInput(f"{told}; the limit is {LABEL_NAME_CHARACTERS_MAX}")
        length = len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
        if length > LABEL_VALUE_CHARACTERS_MAX:
            told = f"labels: the value of {quoted(name)} has {length:,} characters; the limit is {LABEL_VALUE_CHARACTERS_MAX:,}"
            raise InvalidInput(f"{told}; put large values into the input")
