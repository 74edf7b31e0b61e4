"""Retry of a finished execution: a new one, linked to it, that keeps what completed and runs the rest."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.definition.plan import Plan
from penstock.definition.read import content_hash
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.reasons import Reason
from penstock.engine.states import EXECUTION_ENDS, ExecutionState, NodeState
from penstock.errors import Conflict, KeyReused, NotFound, StoreError
from penstock.orchestrator.plans import Plans
from penstock.service.retry_plan import RetryPlan, RetryRun, plan_retry
from penstock.service.submissions import Submissions, check_labels, new_execution_id
from penstock.stores.base import Intent, ReusedOutput, Stored, Stores
from penstock.stores.records import DeadLetterSearch, Search

__all__ = ["Retries", "RetryPlan", "RetryRun", "plan_retry"]

log = logging.getLogger("penstock.service")

VERSION_DIGITS_MAX = 9
DEAD_LETTERS_MAX = 100_000
KEY_SCOPE = "retry"
"""No API key has this id, so an idempotency key of a client can't be taken for one of ours."""


class _Ready(NamedTuple):
    stored: Stored
    new: Plan
    plan: RetryPlan


class Retries:
    """Retries of finished executions."""

    def __init__(self, stores: Stores, plans: Plans, submissions: Submissions) -> None:
        self._cold, self._now = stores.cold, stores.hot.now
        self._plans, self._submissions = plans, submissions

    async def preview(
        self, execution_id: str, *, start: str | None = None, version: str | int = "same"
    ) -> RetryPlan:
        """What `retry` would do, or the error that it would raise."""
        return (await self._prepare(execution_id, start, version)).plan

    async def retry(
        self,
        execution_id: str,
        *,
        start: str | None = None,
        version: str | int = "same",
        labels: Mapping[str, Any] | None = None,
    ) -> tuple[str, RetryPlan]:
        """Retry an execution; answers the new one's id and the plan.

        `version` is `same`, `latest` or a number.

        Raises `NotFound`, and `Conflict` if it hasn't ended, was retried already or has nothing
        left to run.
        """
        if labels:
            check_labels(labels)
        ready = await self._prepare(execution_id, start, version)
        record = _record(ready, new_execution_id(), self._now(), labels)
        # of two at once, one makes the execution; the other gets its id, or is refused if it wants
        # something else
        request = content_hash([ready.plan.version, start, record.labels])
        reused = [
            ReusedOutput(execution_id, ready.stored.outputs[execution_id])
            for execution_id in ready.plan.reused
        ]
        record.reused = len(reused)
        intent = Intent(record, execution_id, request, execution_id, reused, key_scope=KEY_SCOPE)
        await self._submissions.backlog.enter(record.workflow)
        try:
            [made] = await self._submissions.record_intents([intent])
        except KeyReused:
            await self._check_first(execution_id)
            raise
        await self._close_dead_letters(execution_id, made)
        return made, ready.plan

    async def _close_dead_letters(self, execution_id: str, made: str) -> None:
        """Close the dead letters of an execution, whichever way the retry was asked for."""
        try:
            dead_letters = await self._cold.dead_letters(
                DeadLetterSearch(execution_id=execution_id, limit=DEAD_LETTERS_MAX)
            )
            if dead_letters:
                await self._cold.close_dead_letters(
                    [row.id for row in dead_letters], "retried", self._now(), made
                )
        except StoreError as error:  # the retry is stored, and whoever asked for it must hear so
            log.warning(
                "the dead letters of %s stay open, though it goes on as %s: %s",
                execution_id,
                made,
                error,
            )

    async def _prepare(self, execution_id: str, start: str | None, version: str | int) -> _Ready:
        stored = await self._cold.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        if stored.record.state not in EXECUTION_ENDS:
            state = stored.record.state
            raise Conflict(
                f"execution {execution_id} is {state}; cancel it first, or wait until it has ended"
            )
        await self._check_first(execution_id)
        await self._add_unrecorded(stored)
        old = await self._plans.need(stored.record.workflow, stored.record.version)
        new = await self._wanted(old, version)
        await self._check_input(stored.record, new)
        plan = plan_retry(stored, old, new, start=start)
        if plan.is_idle and stored.record.state is ExecutionState.COMPLETED:
            raise Conflict(
                "everything completed; name a node with from to run it and what comes after it again"
            )
        return _Ready(stored, new, plan)

    async def _check_first(self, execution_id: str) -> None:
        """Raise if the execution was retried.

        One retry per execution; the chain goes on from its end.
        """
        for row in await self._cold.search(Search(retry_of=execution_id, limit=1)):
            advice = (
                "retry that one"
                if row.state in EXECUTION_ENDS
                else "cancel that one first, or wait for it"
            )
            told = (
                f"execution {execution_id} was retried as {row.execution_id}, which is {row.state}"
            )
            raise Conflict(f"{told}; {advice}")

    async def _add_unrecorded(self, stored: Stored) -> None:
        """Add the outputs that a retry reuses and hadn't recorded before it broke.

        Its intent has them.
        """
        intent = (
            await self._cold.intent(stored.record.execution_id) if stored.record.reused else None
        )
        for reused in intent.reused if intent else ():
            if reused.node_id not in stored.runs:
                stored.runs[reused.node_id] = NodeRun(
                    reused.node_id, NodeState.COMPLETED, reason=Reason.REUSED
                )
                stored.outputs[reused.node_id] = reused.output

    async def _check_input(self, record: ExecutionRecord, new: Plan) -> None:
        """Check the input against the new version, which may ask for another."""
        if new.version == record.version or new.input_schema is None:
            return
        told = f"the execution's input doesn't fit the input_schema of {new.name}@{new.version}"
        given = msgspec.json.decode(record.input)
        await self._submissions.check_fits(new.input_schema, given, told, new.name)

    async def _wanted(self, old: Plan, version: str | int) -> Plan:
        text = str(version)
        if text == "same":
            return old
        if text == "latest":
            newest = await self._cold.get_workflow(old.name)
            if newest is None:
                raise NotFound(f"no workflow is stored as {old.name!r}; retry with version=same")
            return await self._plans.need(old.name, newest.version)
        if not (text.isascii() and text.isdecimal() and len(text) <= VERSION_DIGITS_MAX):
            raise NotFound(f"there is no version {text!r}; it is same, latest or a number")
        return await self._plans.need(old.name, int(text))


def _record(
    ready: _Ready, execution_id: str, now: float, labels: Mapping[str, Any] | None
) -> ExecutionRecord:
    old, new = ready.stored.record, ready.new
    record = ExecutionRecord(
        execution_id, new.name, new.version, ExecutionState.PENDING, old.input, now
    )
    record.first_execution_id = old.first_execution_id or old.execution_id
    record.labels = old.labels if labels is None else dict(labels)
    record.overrides, record.priority, record.retry_of = (
        old.overrides,
        old.priority,
        old.execution_id,
    )
    record.lenient_config = old.lenient_config
    return record
