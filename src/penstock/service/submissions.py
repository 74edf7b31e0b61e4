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

from penstock.definition.cel import size_of
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
"""Transactions at once; intents that come meanwhile share the next one."""
LABELS_MAX = 64
LABELS_BYTES_MAX = 16 * 1024
"""Bytes of all labels of an execution: they are stored in every index of it."""
SMALL_INPUT_BYTES = 64 * 1024
LABEL_NAME_CHARACTERS_MAX = 128
LABEL_VALUE_CHARACTERS_MAX = 1024
"""Characters of a label's value, or of its JSON if it isn't a text."""
OVERRIDES_BYTES_MAX = 1024 * 1024
PRIORITY_MAX = 100
"""Priorities are from -100 to 100; the higher goes first."""


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
    """A request to start an execution, before it is checked."""

    workflow: str | Mapping[str, Any] | Plan
    """A reference to a stored workflow, a document, or a plan that was looked up before."""
    named: bool = False
    """A document is also stored under its name, for others to start.

    That needs the right to change what others run.
    """
    input: Any = None
    labels: Mapping[str, Any] = {}
    priority: int = 0
    idempotency_key: str | None = None
    key_scope: str = ""
    trace: str = ""
    waits: bool = False
    """The execution is stored as PENDING, for a later `trigger`."""
    lenient_config: bool = False
    """As `ExecutionRecord.lenient_config`: for the compatible routes."""
    audit: AuditLine | None = None
    """The audit line that is written with the intent; its object is the new execution."""


class Submitted(NamedTuple):
    """The execution that a start request started, or had started before."""

    execution_id: str
    record: ExecutionRecord | None
    """The execution's record; None for one that was started before."""
    replayed: bool
    """The idempotency key was used before: nothing new was started."""


class PendingIntent(NamedTuple):
    """An intent that is about to be recorded, and the future of its caller."""

    intent: Intent
    line: AuditLine | None
    recorded: asyncio.Future[str]
    """The id of the execution: for a repeated idempotency key, of the one that it started first."""


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
        self.backlog = backlog
        self._stores = stores
        self._workflows = workflows
        self._sandbox = sandbox
        self._sees_all_ends = sees_all_ends
        self._pending: list[PendingIntent] = []
        self._flushing = False
        self._recording: set[asyncio.Task[None]] = set()
        self.unfinished: set[str] = set()
        """Executions that were started here and haven't ended.

        To wait for one of them, the store needn't be read first. The set stays empty in a process
        that doesn't see all ends.
        """

    async def submit(self, start_request: StartRequest) -> Submitted:
        """Start an execution: check the request and record its intent.

        Raises `InvalidWorkflow`, `InvalidInput`, `NotFound`, `KeyReused`, `Overloaded`.
        """
        if start_request.idempotency_key is not None:
            earlier_id = await self._replayed(start_request)
            if earlier_id is not None:
                return Submitted(earlier_id, None, replayed=True)

        intent = await self.prepare(start_request)
        execution_id = await self.record_soon(intent, start_request.audit)
        replayed = execution_id != intent.record.execution_id
        return Submitted(execution_id, intent.record, replayed=replayed)

    async def _replayed(self, start_request: StartRequest) -> str | None:
        """The execution that an idempotency key has started, or None.

        This comes before all other checks: the workflow that the request named then may be deleted
        or different by now.
        """
        key = start_request.idempotency_key or ""
        key_use = await self._stores.cold.executions.key_use(start_request.key_scope, key)
        try:
            request = _request_hash(start_request)
        except (TypeError, ValueError, RecursionError):
            return None  # a value that isn't JSON is refused later, with its path
        return idempotency.replayed(key_use, key, request, self._stores.hot.now())

    async def submit_many(
        self, plan: Plan, inputs: Iterable[Mapping[str, Any] | None], labels: Mapping[str, Any]
    ) -> list[str]:
        """Start an execution for each input; returns their ids."""
        return [record.execution_id for record in await self.submit_all(plan, inputs, labels)]

    async def submit_all(
        self,
        plan: Plan,
        inputs: Iterable[Mapping[str, Any] | None],
        labels: Mapping[str, Any],
        priority: int = 0,
    ) -> list[ExecutionRecord]:
        """Start an execution for each input; returns their records.

        All inputs are checked before the first one is stored.
        """
        checked = [await self.check_input(plan, value) for value in inputs]
        records = [
            self._record(new_execution_id(), plan, data, labels, priority) for data in checked
        ]
        if plan.has_children:
            for record in records:
                record.pins = await self._workflows.pins(plan, record.execution_id)
        intents = [Intent(record) for record in records]
        await self.backlog.enter(plan.name, len(intents))
        for first in range(0, len(intents), STARTS_MAX):
            await self.record_intents(intents[first : first + STARTS_MAX])
        return records

    async def prepare(self, start_request: StartRequest) -> Intent:
        """The intent of a start request, not recorded yet. A new document is stored here."""
        self._stores.hot.check_open()
        execution_id = new_execution_id()
        workflow = start_request.workflow
        if isinstance(workflow, Plan):
            plan = workflow
        elif isinstance(workflow, str):
            plan = await self._workflows.resolve(workflow, execution_id)
        else:
            plan = await self._workflows.plan(
                dict(workflow),
                named=start_request.named,
                lenient_config=start_request.lenient_config,
            )

        data = await self.check_input(plan, start_request.input, complete=not start_request.waits)
        record = self._record(
            execution_id, plan, data, start_request.labels, start_request.priority
        )
        record.trace = start_request.trace
        record.started_by = start_request.key_scope
        record.lenient_config = start_request.lenient_config
        if plan.has_children:
            record.pins = await self._workflows.pins(plan, execution_id)

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

    async def check_input(self, plan: Plan, value: Any, *, complete: bool = True) -> bytes:
        """The input as it is stored.

        One that isn't `complete` yet is checked against the schema later.

        Raises `InvalidInput`.
        """
        if size_of(value, SMALL_INPUT_BYTES) <= SMALL_INPUT_BYTES:
            merged, text = _merge_input(plan, value)
        else:  # in a thread, as it would block the event loop
            merged, text = await asyncio.to_thread(_merge_input, plan, value)

        if complete and plan.input_schema is not None:
            message = "the input doesn't fit the workflow's input_schema"
            await self.check_fits(plan.input_schema, merged, message, plan.name)
        return text

    async def check_fits(self, schema: Any, value: Any, message: str, turn: str) -> None:
        """Check an input against a schema.

        Raises `InvalidInput` with all problems and their paths.
        """
        problems = await schema_problems_in(self._sandbox, schema, value, turn)
        if not problems:
            return

        input_problems = [
            Problem(problem.code, f"input.{problem.path}".rstrip("."), problem.message)
            for problem in problems
        ]
        raise InvalidInput(f"{message}: {'; '.join(lines_of(problems))}", input_problems)

    def _record(
        self,
        execution_id: str,
        plan: Plan,
        data: bytes,
        labels: Mapping[str, Any],
        priority: int,
    ) -> ExecutionRecord:
        now = self._stores.hot.now()
        record = ExecutionRecord(
            execution_id, plan.name, plan.version, ExecutionState.PENDING, data, now
        )
        if priority:
            check_priority(priority)
            record.priority = priority
        if labels:
            check_labels(labels)
            record.labels = dict(labels)
        return record

    async def trigger(
        self, execution_id: str, workflow: str, data: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        """Trigger an execution that was stored as PENDING. `data` is its input, if that changes.

        Raises `NotFound`, `Conflict`, `InvalidInput`, `Overloaded`.
        """
        size = len(msgspec.json.encode(overrides))
        if size > OVERRIDES_BYTES_MAX:
            raise InvalidInput(
                f"the configs by node have {size:,} bytes; the limit is {OVERRIDES_BYTES_MAX:,};"
                " put large values into the input, and refer to them"
            )
        self._stores.hot.check_open()
        await self.backlog.enter(workflow)
        await self._stores.cold.executions.trigger(execution_id, data, overrides)
        await self._append_started([execution_id])

    def record_soon(self, intent: Intent, line: AuditLine | None = None) -> asyncio.Future[str]:
        """Record an intent, in one transaction with others that come at about the same time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        if line is not None:
            record = intent.record
            line.object = f"executions/{record.execution_id}"
            line.detail = {**line.detail, "workflow": f"{record.workflow}@{record.version}"}

        self._pending.append(PendingIntent(intent, line, future))
        if not self._flushing and len(self._recording) < TRANSACTIONS_MAX:
            self._flushing = True
            loop.call_soon(self._flush_pending)
        return future

    def _flush_pending(self) -> None:
        """Record pending intents in batches: while one is written, the earlier ones already run."""
        self._flushing = False
        batch = self._pending[:STARTS_MAX]
        self._pending = self._pending[STARTS_MAX:]
        if batch:
            task = asyncio.get_running_loop().create_task(self._record_batch(batch))
            self._recording.add(task)
            task.add_done_callback(self._recorded)

    def _recorded(self, task: asyncio.Task[None]) -> None:
        self._recording.discard(task)
        if not self._flushing:
            self._flush_pending()

    async def _record_batch(self, batch: list[PendingIntent]) -> None:
        intents = [pending.intent for pending in batch]
        lines = {
            pending.intent.record.execution_id: pending.line
            for pending in batch
            if pending.line is not None
        }
        try:
            ids = await self.record_intents(intents, lines)
        except Exception as error:  # noqa: BLE001 -- each caller gets its own
            # One refused intent must not fail the others: try again with halves of the batch. If
            # the store is unavailable, it is so for all of them.
            if len(batch) > 1 and not isinstance(error, StoreUnavailable):
                middle = len(batch) // 2
                await self._record_batch(batch[:middle])
                await self._record_batch(batch[middle:])
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
        """Record intents, and have the engine begin those that don't wait for a trigger.

        Returns the ids: for a repeated idempotency key, of the execution that it started first.
        """
        self._stores.hot.check_open()
        ids = await self._stores.cold.executions.record_intents(intents, lines)

        started: list[str] = []
        for execution_id, intent in zip(ids, intents, strict=True):
            is_new = execution_id == intent.record.execution_id
            if is_new and not intent.waits:
                started.append(execution_id)
        await self._append_started(started)
        return ids

    async def _append_started(self, execution_ids: list[str]) -> None:
        if self._sees_all_ends:
            self.unfinished.update(execution_ids)
        if not execution_ids:
            return
        events = [ExecutionStarted(execution_id) for execution_id in execution_ids]
        # they are recorded, so they will run: the reconciler looks for them
        with contextlib.suppress(StoreError):
            await self._stores.hot.append(events)


def _request_hash(start_request: StartRequest) -> str:
    content = [
        start_request.workflow,
        start_request.input,
        dict(start_request.labels),
        start_request.priority,
    ]
    return content_hash(content)


def _merge_input(plan: Plan, value: Any) -> tuple[dict[str, Any], bytes]:
    """The input, with the workflow's own as defaults, and its JSON. Raises `InvalidInput`."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput('the input must be an object, such as {"user_id": 7}')
    merged = {**plan.input, **(value or {})}
    if not merged:
        return merged, b"{}"
    try:
        check_values(merged)
    except InvalidWorkflow as error:
        raise InvalidInput(f"input: {error}") from None
    return merged, msgspec.json.encode(merged)


def check_priority(priority: Any) -> None:
    is_whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not is_whole or not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
        raise InvalidInput(
            f"the priority is {priority!r}; it must be a whole number"
            f" from -{PRIORITY_MAX} to {PRIORITY_MAX}"
        )


def check_labels(labels: Mapping[str, Any]) -> None:
    if len(labels) > LABELS_MAX:
        raise InvalidInput(f"there are {len(labels)} labels; at most {LABELS_MAX} are kept")
    if size_of(dict(labels), LABELS_BYTES_MAX) > LABELS_BYTES_MAX:
        raise InvalidInput(
            f"the labels have more than {LABELS_BYTES_MAX:,} bytes; put large values into the input"
        )
    try:
        check_values(dict(labels))
    except InvalidWorkflow as error:
        raise InvalidInput(f"labels: {error}") from None

    for name, value in labels.items():
        if len(name) > LABEL_NAME_CHARACTERS_MAX:
            raise InvalidInput(
                f"labels: the name {quoted(name)} has {len(name):,} characters;"
                f" the limit is {LABEL_NAME_CHARACTERS_MAX}"
            )
        length = len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
        if length > LABEL_VALUE_CHARACTERS_MAX:
            raise InvalidInput(
                f"labels: the value of {quoted(name)} has {length:,} characters;"
                f" the limit is {LABEL_VALUE_CHARACTERS_MAX:,}; put large values into the input"
            )
