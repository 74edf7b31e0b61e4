"""Children of executions: what they need before they begin, and what is sent to and from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from penstock.definition.parse import check_values
from penstock.definition.schema import lines_of
from penstock.engine.children import Found, Lookup, start_of
from penstock.engine.commands import ControlChild, Send, StartChild
from penstock.engine.events import AnyEvent, Blob, ChildEnded, TaskError
from penstock.engine.parents import end_of, joined
from penstock.engine.reasons import ErrorCategory
from penstock.engine.states import EXECUTION_ENDS, ExecutionState, NodeState
from penstock.errors import Conflict, InvalidWorkflow, NotFound, StoreError, StoreUnavailable
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import Sandbox, schema_problems_in
from penstock.stores import references
from penstock.stores.base import BlobStore, Intent, Stored, Stores
from penstock.stores.children import event_of
from penstock.stores.plan_cache import PlanCache

log = logging.getLogger("penstock.orchestrator")

FOUND_MAX = 100
"""Answers after which the owner is woken, while others are looked up."""
CHUNK = 500
OUTPUT_BYTES_MAX = 256 * 1024
"""A larger output that is joined here becomes a blob."""


class ChildFinder:
    """Looks up versions and inputs of children, beside the owner's loop.

    `wake` makes the owner handle an execution for which there are answers. If the owner dies, the
    next one asks again.
    """

    def __init__(
        self,
        stores: Stores,
        plans: PlanCache,
        sandbox: Sandbox,
        wake: Callable[[str], Awaitable[None]],
        timing: OrchestratorTiming,
    ) -> None:
        self._definitions = stores.cold.definitions
        self._plans = plans
        self._sandbox = sandbox
        self._wake = wake
        self._retry_seconds = timing.retry_seconds
        self._answers: dict[str, dict[str, Found]] = {}
        self._under_way: dict[str, dict[str, asyncio.Task[None]]] = {}
        """Tasks that look up, by execution and node."""

    def ask(self, execution_id: str, lookups: Mapping[str, Lookup]) -> None:
        """Ask for what children need. Nothing is looked up twice at once."""
        under_way = self._under_way.setdefault(execution_id, {})
        answered = self._answers.get(execution_id, {})
        new = [
            lookup
            for node_id, lookup in lookups.items()
            if node_id not in under_way and node_id not in answered
        ]
        if new:
            task = asyncio.create_task(self._find_all(execution_id, new))
            under_way.update((lookup.node_id, task) for lookup in new)

    def take(self, execution_id: str) -> dict[str, Found]:
        if not self._answers:
            return {}
        return self._answers.pop(execution_id, {})

    def forget(self, execution_id: str) -> None:
        """Forget an execution that has ended: nobody waits for an answer."""
        if not self._under_way and not self._answers:
            return
        self._answers.pop(execution_id, None)
        for task in set(self._under_way.pop(execution_id, {}).values()):
            task.cancel()

    async def close(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        for under_way in self._under_way.values():
            tasks.update(under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find_all(self, execution_id: str, lookups: Sequence[Lookup]) -> None:
        for number, lookup in enumerate(lookups, start=1):
            found = await self._until_found(lookup)
            self._answers.setdefault(execution_id, {})[lookup.node_id] = found
            self._under_way.get(execution_id, {}).pop(lookup.node_id, None)
            if number % FOUND_MAX == 0 or number == len(lookups):
                await self._wake_owner(execution_id)
        if not self._under_way.get(execution_id, True):
            del self._under_way[execution_id]

    async def _until_found(self, lookup: Lookup) -> Found:
        """The answer; a store that is away is asked again."""
        while True:
            try:
                return await self._find(lookup)
            except (NotFound, InvalidWorkflow) as error:
                return Found(error=TaskError(ErrorCategory.CONFIG, str(error)))
            except StoreError:
                await asyncio.sleep(self._retry_seconds)

    async def _find(self, lookup: Lookup) -> Found:
        name, version = lookup.pinned or await references.find(
            self._definitions, lookup.reference, lookup.root_id
        )
        plan = await self._plans.need(name, version)
        merged = {**plan.input, **lookup.input}
        check_values(merged)
        if plan.input_schema is not None:
            problems = await schema_problems_in(self._sandbox, plan.input_schema, merged, name)
            if problems:
                message = (
                    f"its input doesn't fit the input_schema of {name}@{version}:"
                    f" {'; '.join(lines_of(problems))}"
                )
                return Found(error=TaskError(ErrorCategory.CONFIG, message))
        return Found(name, version, msgspec.json.encode(merged))

    async def _wake_owner(self, execution_id: str) -> None:
        while True:
            try:
                await self._wake(execution_id)
            except StoreError:  # an owner whose store is gone ends soon, and this with it
                await asyncio.sleep(self._retry_seconds)
            else:
                return


async def join_output(blobs: BlobStore, event: ChildEnded, inline_max_bytes: int) -> None:
    """Join the output of a child that is still in parts. Raises `StoreError`."""
    if not event.parts:
        return
    parts = {
        node_id: await blobs.get(value) if isinstance(value, Blob) else value
        for node_id, value in event.parts.items()
    }
    output = joined(parts) or b"null"
    event.output = output if len(output) <= inline_max_bytes else await blobs.put(output)
    event.parts = {}


class Relay:
    """Delivers what commits have sent to other executions, where hot and cold store are two.

    Doing it twice does no harm: whoever gets it looks whether it is current. A store that is away
    is waited for.
    """

    def __init__(
        self, stores: Stores, plans: PlanCache, inline_max_bytes: int, timing: OrchestratorTiming
    ) -> None:
        self._stores = stores
        self._plans = plans
        self._inline_max_bytes = inline_max_bytes
        self._away_seconds = timing.cold_away_seconds

    async def deliver(self, sends: Sequence[Send]) -> None:
        """Deliver starts and control requests: into the cold store, then into the inboxes."""
        while True:
            try:
                events = await self._write(sends)
                await self._stores.hot.append(events, own=True)
            except StoreUnavailable as error:
                log.warning("children can't be started or stopped now: %s", error)
                await asyncio.sleep(self._away_seconds)
            else:
                return

    async def tell(self, ends: Sequence[ChildEnded]) -> None:
        """Tell parents of ends that the cold store has."""
        while True:
            try:
                for event in ends:
                    await join_output(self._stores.blobs, event, self._inline_max_bytes)
                await self._stores.hot.append(ends, own=True)
            except StoreUnavailable as error:
                log.warning("parents can't be told of their children now: %s", error)
                await asyncio.sleep(self._away_seconds)
            else:
                return

    async def _write(self, sends: Sequence[Send]) -> list[AnyEvent]:
        """Write starts and control requests; answers the events that follow."""
        events: list[AnyEvent] = []
        starts = [send for send in sends if isinstance(send, StartChild)]
        for first in range(0, len(starts), CHUNK):
            events += await self._start(starts[first : first + CHUNK])
        for send in sends:
            if isinstance(send, ControlChild):
                try:
                    await self._stores.cold.executions.request_control(
                        send.execution_id, send.request
                    )
                except (NotFound, Conflict):
                    continue  # it has ended meanwhile, or is as it is to be
                events.append(event_of(send))
        return events

    async def _start(self, starts: Sequence[StartChild]) -> list[AnyEvent]:
        """Record children that aren't there; those that have ended are told of again."""
        by_id = {start.record.execution_id: start for start in starts}
        executions = self._stores.cold.executions
        known = await executions.intents(by_id)
        new = [Intent(start.record) for child, start in by_id.items() if child not in known]
        if new:
            await executions.record_intents(new)
        over = [child for child, intent in known.items() if intent.record.state in EXECUTION_ENDS]
        told, _ = await ends_of(self._stores, self._plans, over)
        going_on = [event_of(start) for child, start in by_id.items() if child not in over]
        return [*going_on, *told]


def children_of(stored: Stored, *, with_detached: bool = False) -> list[StartChild]:
    """The starts of the children that nodes of an execution wait for.

    `with_detached`: also of those that nobody waits for.
    """
    starts: list[StartChild] = []
    for run in stored.runs.values():
        is_open = run.state is NodeState.WAITING
        is_detached = with_detached and run.state is NodeState.COMPLETED
        if run.more is None or run.more.child is None or not (is_open or is_detached):
            continue
        start = start_of(stored.record, run)
        if start is None or start.record.parent is None:
            continue
        if is_open or not start.record.parent.is_awaited:
            starts.append(start)
    return starts


async def ends_of(
    stores: Stores, plans: PlanCache, children: Iterable[str]
) -> tuple[list[ChildEnded], set[str]]:
    """What is to be told of children that have ended, and those that no store knows."""
    events: list[ChildEnded] = []
    unknown: set[str] = set()
    for child in children:
        stored = await stores.cold.executions.execution(child)
        if stored is None:
            unknown.add(child)
            continue
        record = stored.record
        if record.state not in EXECUTION_ENDS:
            continue
        plan = await plans.get(record.workflow, record.version)
        event = end_of(record, stored.outputs, plan)
        if event is None:
            continue
        if plan is None and event.state == ExecutionState.COMPLETED:
            message = f"{record.workflow}@{record.version} is gone, so its output isn't known"
            error = TaskError(ErrorCategory.INTERNAL_ERROR, message)
            event = structs.replace(event, state=str(ExecutionState.FAILED), error=error)
        await join_output(stores.blobs, event, OUTPUT_BYTES_MAX)
        events.append(event)
    return events, unknown
