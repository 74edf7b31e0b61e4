"""Retries of finished executions.

A retry is a new execution, linked to the finished one. It reuses the outputs of the nodes that
completed, and runs the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.definition.plan import Plan
from penstock.definition.read import content_hash
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.reasons import Reason
from penstock.engine.reused_outputs import IDENTITY
from penstock.engine.states import EXECUTION_ENDS, ExecutionState, NodeState
from penstock.errors import Conflict, KeyReused, NotFound, StoreError
from penstock.service.items import identities_in
from penstock.service.retry_plan import RetryPlan, plan_retry, say_who_waits
from penstock.service.signals import Signals
from penstock.service.submissions import Submissions, check_labels, new_execution_id
from penstock.stores.base import Intent, ReusedOutput, Stored, Stores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import DeadLetterSearch, Search
from penstock.views.retries import RetriedItems

__all__ = ["Retries", "RetryPlan", "plan_retry"]

log = logging.getLogger("penstock.service")

VERSION_DIGITS_MAX = 9
DEAD_LETTERS_MAX = 100_000
KEY_SCOPE = "retry"
"""The key scope of retries: no API key has this id, so no client's idempotency key can collide."""


class _PreparedRetry(NamedTuple):
    stored: Stored
    new: Plan
    plan: RetryPlan


class Retries:
    """Retries of finished executions."""

    def __init__(
        self, stores: Stores, plans: PlanCache, submissions: Submissions, signals: Signals
    ) -> None:
        self._signals = signals
        self._cold = stores.cold
        self._blobs = stores.blobs
        self._now = stores.hot.now
        self._plans = plans
        self._submissions = submissions

    async def preview(
        self,
        execution_id: str,
        *,
        start: str | None = None,
        version: str | int = "same",
        items: RetriedItems | None = None,
    ) -> RetryPlan:
        """What `retry` would do, or the error that it would raise."""
        prepared = await self._prepare(execution_id, start, version, items)
        unused = await self._signals.unused(prepared.stored)
        say_who_waits(prepared.plan, prepared.stored, unused)
        return prepared.plan

    async def retry(
        self,
        execution_id: str,
        *,
        start: str | None = None,
        version: str | int = "same",
        items: RetriedItems | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> tuple[str, RetryPlan]:
        """Retry an execution; returns the new execution's id and the plan.

        `version` is `same`, `latest` or a number. `items`: of maps that run again, those that
        `failed` (the default, unless `start` names the map), or `all`.

        Raises `NotFound`, and `Conflict` if it hasn't ended, was retried already or has nothing
        left to run.
        """
        if labels:
            check_labels(labels)
        prepared = await self._prepare(execution_id, start, version, items)
        plan = prepared.plan
        record = _new_record(prepared, new_execution_id(), self._now(), labels)

        outputs = prepared.stored.outputs
        reused = [
            ReusedOutput(node_id, outputs[node_id]) for node_id in plan.reused if node_id in outputs
        ]
        reused += [ReusedOutput(name, output) for name, output in plan.items.items()]
        record.reused = len(reused)

        # The idempotency key is the old execution's id: of two retries at once, one creates the
        # execution. The other gets its id, or is refused if it asks for something else.
        asked: list[Any] = [plan.version, start, record.labels]
        if items is not None:
            asked.append(items)
        request = content_hash(asked)
        intent = Intent(record, execution_id, request, execution_id, reused, key_scope=KEY_SCOPE)
        await self._submissions.backlog.enter(record.workflow)
        try:
            [retry_id] = await self._submissions.record_intents([intent])
        except KeyReused:
            await self._check_first(execution_id)
            raise

        await self._close_dead_letters(execution_id, retry_id)
        if retry_id == record.execution_id:
            await self._signals.copy_unused(prepared.stored, retry_id)
        return retry_id, plan

    async def _close_dead_letters(self, execution_id: str, retry_id: str) -> None:
        """Close the dead letters of an execution that was retried."""
        search = DeadLetterSearch(execution_id=execution_id, limit=DEAD_LETTERS_MAX)
        try:
            rows = await self._cold.dead_letters.dead_letters(search)
            if rows:
                ids = [row.id for row in rows]
                await self._cold.dead_letters.close_dead_letters(
                    ids, "retried", self._now(), retry_id
                )
        except StoreError as error:  # the retry is stored, so the caller must get its id
            log.warning(
                "the dead letters of %s stay open, though it was retried as %s: %s",
                execution_id,
                retry_id,
                error,
            )

    async def _prepare(
        self,
        execution_id: str,
        start: str | None,
        version: str | int,
        items: RetriedItems | None,
    ) -> _PreparedRetry:
        stored = await self._cold.executions.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        state = stored.record.state
        if state not in EXECUTION_ENDS:
            raise Conflict(
                f"execution {execution_id} is {state}; cancel it first, or wait until it has ended"
            )
        await self._check_first(execution_id)
        await self._add_unrecorded(stored)

        old = await self._plans.need(stored.record.workflow, stored.record.version)
        new = await self._plan_of_version(old, version)
        await self._check_input(stored.record, new)

        identities = await identities_in(stored, old, self._blobs)
        new_identities = identities
        if new is not old:
            new_identities = await identities_in(stored, new, self._blobs)
        plan = plan_retry(
            stored,
            old,
            new,
            start=start,
            items_to_run=items,
            identities=identities,
            new_identities=new_identities,
        )
        if plan.is_idle and state is ExecutionState.COMPLETED:
            raise Conflict(
                "everything completed; name a node with from"
                " to run it and what comes after it again"
            )
        return _PreparedRetry(stored, new, plan)

    async def _check_first(self, execution_id: str) -> None:
        """Raise `Conflict` if the execution was retried already.

        An execution has one retry at most; the next one is a retry of that.
        """
        for row in await self._cold.executions.search(Search(retry_of=execution_id, limit=1)):
            advice = "cancel that one first, or wait for it"
            if row.state in EXECUTION_ENDS:
                advice = "retry that one"
            raise Conflict(
                f"execution {execution_id} was retried as {row.execution_id},"
                f" which is {row.state}; {advice}"
            )

    async def _add_unrecorded(self, stored: Stored) -> None:
        """Add the outputs that a retry reuses and hadn't recorded before it ended.

        Its intent has them.
        """
        if not stored.record.reused:
            return
        intent = await self._cold.executions.intent(stored.record.execution_id)
        if intent is None:
            return

        for reused in intent.reused:
            node_id = reused.node_id
            if IDENTITY in node_id:
                stored.outputs[node_id] = reused.output
            elif node_id not in stored.runs:
                run = NodeRun(node_id, NodeState.COMPLETED, reason=Reason.REUSED)
                stored.runs[node_id] = run
                stored.outputs[node_id] = reused.output

    async def _check_input(self, record: ExecutionRecord, new: Plan) -> None:
        """Check the input against the new version, which may ask for another."""
        if new.version == record.version or new.input_schema is None:
            return
        value = msgspec.json.decode(record.input)
        message = f"the execution's input doesn't fit the input_schema of {new.name}@{new.version}"
        await self._submissions.check_fits(new.input_schema, value, message, new.name)

    async def _plan_of_version(self, old: Plan, version: str | int) -> Plan:
        text = str(version)
        if text == "same":
            return old
        if text == "latest":
            newest = await self._cold.definitions.get_workflow(old.name)
            if newest is None:
                raise NotFound(f"no workflow is stored as {old.name!r}; retry with version=same")
            return await self._plans.need(old.name, newest.version)
        if not (text.isascii() and text.isdecimal() and len(text) <= VERSION_DIGITS_MAX):
            raise NotFound(f"there is no version {text!r}; it is same, latest or a number")
        return await self._plans.need(old.name, int(text))


def _new_record(
    prepared: _PreparedRetry, execution_id: str, now: float, labels: Mapping[str, Any] | None
) -> ExecutionRecord:
    old = prepared.stored.record
    new = prepared.new
    record = ExecutionRecord(
        execution_id, new.name, new.version, ExecutionState.PENDING, old.input, now
    )
    record.first_execution_id = old.first_execution_id or old.execution_id
    record.retry_of = old.execution_id
    record.labels = old.labels if labels is None else dict(labels)
    record.overrides = old.overrides
    record.priority = old.priority
    record.lenient_config = old.lenient_config
    record.started_by = old.started_by
    record.pins = old.pins
    return record
