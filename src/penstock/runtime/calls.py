"""The calls of an embedded engine that `penstock.Client` has too.

A call has the same name, arguments and answer on both: what isn't a handle or a `Result` is the
JSON that the API answers, as plain Python data. The calls of an `ExecutionHandle` are here too, by
the execution's id.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from importlib.metadata import version
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from penstock.definition.builder import Workflow
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import InvalidInput, NotFound
from penstock.runtime.open_state import OpenState, counted, items_while_open, while_open
from penstock.service import Service
from penstock.service.approvals import Decider
from penstock.service.failures import FailureSearch
from penstock.service.fleet import Fleet
from penstock.service.health import health_report
from penstock.service.item_events import Selection
from penstock.service.signals import TTL_SECONDS
from penstock.stores.records import AuditSearch, DeadLetterSearch, Search
from penstock.views import workflows as workflow_views
from penstock.views.access import audit_view
from penstock.views.approvals import ApprovalItem
from penstock.views.dead_letters import dead_letter_view, failure_view
from penstock.views.executions import history_view, listed_view, live_event, live_items
from penstock.views.retries import RetriedItems
from penstock.views.signals import WaitItem
from penstock.views.times import parse_moment
from penstock.views.values import plain_json

Json = dict[str, Any]
Moment = datetime | str | None
Row = TypeVar("Row")

PAGE = 100
CHECK_SECONDS = 2.0
"""How long a health check waits for the part that it checks."""
DEAD_LETTERS_MAX = 1000
"""Dead letters that one call retries, unless it says how many."""


Searched = TypeVar("Searched", Search, DeadLetterSearch, AuditSearch)


class EngineCalls(OpenState):
    """What a `penstock.Client` can ask of a server, asked of an engine in this process."""

    service: Service
    fleet: Fleet

    @items_while_open
    async def executions(  # noqa: PLR0913 -- each is a filter
        self,
        *,
        state: str | Sequence[str] | None = None,
        workflow: str | None = None,
        version: int | None = None,
        labels: Mapping[str, Any] | None = None,
        since: Moment = None,
        until: Moment = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Executions without their nodes, the newest first, at most `limit`.

        Pages are read as they are needed.
        """
        if workflow is not None and version is None:
            workflow, version = await self.service.workflows.searched(workflow)
        search = Search(
            states=tuple(_states(state)),
            workflow=workflow,
            version=version,
            labels={name: str(value) for name, value in (labels or {}).items()},
            since=_seconds(since, "since"),
            until=_seconds(until, "until"),
            text=text or None,
        )
        rows = _rows(self.service.executions.search, search, limit, lambda row: row.n)
        async with aclosing(rows):
            async for row in rows:
                yield plain_json(listed_view(row))

    @items_while_open
    async def events(self, after: str | None = None) -> AsyncGenerator[Json, None]:
        """Live events of all executions, from now on or after the event with this id.

        The stream ends when the engine closes.
        """
        batches = self.service.live_events.everything(after)
        async with aclosing(batches):
            async for batch in batches:
                for feed_line in batch.feed_lines:
                    yield plain_json(live_event(feed_line.line, feed_line.execution_id))

    @while_open
    @counted
    async def put_workflow(
        self,
        document: Workflow | Mapping[str, Any],
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
    ) -> Json:
        """Store a workflow; returns `name`, `version`, `warnings`, and `created` if it is new."""
        workflows = self.service.workflows
        put = await workflows.put(
            document_of(document), strict=strict, allow_unknown_handlers=allow_unknown_handlers
        )
        aliases = await workflows.aliases(put.plan.name)
        view = workflow_views.stored_workflow_view(
            put.stored, aliases, put.warnings, created=put.created
        )
        return _json(view)

    @while_open
    async def validate(
        self,
        document: Workflow | Mapping[str, Any],
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
    ) -> Json:
        """Check a document without storing it; returns `valid`, `problems` and `warnings`."""
        view = await self.service.workflows.validation(
            document_of(document), strict=strict, allow_unknown_handlers=allow_unknown_handlers
        )
        return _json(view)

    @items_while_open
    async def workflows(self, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """The stored workflows, with their newest versions."""
        after: str | None = None
        for size in _page_sizes(limit):
            rows = await self.service.workflows.page(after, size)
            for row in rows:
                yield plain_json(workflow_views.listed_workflow_view(row))
            if len(rows) < size:
                return
            after = rows[-1].name

    @while_open
    async def workflow(self, name: str, version: int | str | None = None) -> Json:
        """A definition with its `version`, which is the latest by default."""
        tag = None if version is None else str(version)
        stored, aliases = await self.service.workflows.get(name, tag)
        return _json(workflow_views.workflow_view(stored, aliases))

    @while_open
    @counted
    async def delete_workflow(self, name: str) -> None:
        """Delete a workflow with all its versions and aliases."""
        await self.service.workflows.delete(name)

    @items_while_open
    async def versions(self, name: str, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """The versions of a workflow, the newest first."""
        stored_versions = await self.service.workflows.versions(name)
        aliases = await self.service.workflows.aliases(name)
        for stored in stored_versions[:limit]:
            yield plain_json(workflow_views.version_view(stored, aliases))

    @while_open
    @counted
    async def set_alias(
        self,
        name: str,
        alias: str,
        version: int | None = None,
        *,
        weights: Mapping[int, int] | None = None,
    ) -> Json:
        """Point `name@alias` at a version, or at several by weight: `weights={3: 90, 4: 10}`."""
        if weights is None:
            if version is None:
                raise InvalidInput("an alias needs a version, or several by their weights")
            weights = {version: 100}
        await self.service.workflows.set_alias(name, alias, dict(weights))
        shown_weights = workflow_views.weights_view(dict(weights))
        return _json(workflow_views.Alias(name=name, alias=alias, weights=shown_weights))

    @while_open
    @counted
    async def remove_alias(self, name: str, alias: str) -> None:
        """Remove an alias; its versions stay."""
        await self.service.workflows.remove_alias(name, alias)

    @items_while_open
    async def dead_letters(  # noqa: PLR0913 -- each is a filter
        self,
        *,
        workflow: str | None = None,
        handler: str | None = None,
        category: str | None = None,
        execution_id: str | None = None,
        closed: bool = False,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Dead letters, newest first; with `closed`, also those that were retried or dropped."""
        search = DeadLetterSearch(
            workflow=workflow,
            handler=handler,
            category=category,
            execution_id=execution_id,
            closed=closed,
        )
        rows = _rows(self.service.dead_letters.page, search, limit, lambda row: row.id)
        async with aclosing(rows):
            async for row in rows:
                yield plain_json(dead_letter_view(row))

    @items_while_open
    async def errors(  # noqa: PLR0913 -- each is a filter
        self,
        *,
        workflow: str | None = None,
        node_id: str | None = None,
        handler: str | None = None,
        category: str | None = None,
        text: str | None = None,
        since: Moment = None,
        until: Moment = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Errors of nodes that failed for good, the newest first; also of those retried since."""
        search = FailureSearch(
            workflow=workflow,
            node_id=node_id,
            handler=handler,
            category=category,
            text=text or None,
            since=_seconds(since, "since"),
            until=_seconds(until, "until"),
        )
        left = limit
        while left is None or left > 0:
            search.limit = PAGE if left is None else min(PAGE, left)
            page = await self.service.failures.page(search)
            for row in page.rows:
                yield plain_json(failure_view(row))
            if page.next_before is None:
                return
            search.before = page.next_before
            if left is not None:
                left -= len(page.rows)

    @while_open
    async def dead_letter(self, letter_id: str | int) -> Json:
        """One dead letter, with the error and the config of its node."""
        row = await self.service.dead_letters.get_undropped(_number(letter_id))
        return _json(dead_letter_view(row))

    @while_open
    @counted
    async def retry_dead_letter(self, letter_id: str | int) -> Json:
        """Retry the execution of a dead letter, as `ExecutionHandle.retry` does."""
        retried = await self.service.dead_letters.retry(_number(letter_id))
        return _json(retried.view())

    @while_open
    @counted
    async def retry_dead_letters(  # noqa: PLR0913 -- each is a filter
        self,
        *,
        ids: Sequence[str | int] | None = None,
        workflow: str | None = None,
        handler: str | None = None,
        category: str | None = None,
        execution_id: str | None = None,
        preview: bool = False,
        limit: int | None = None,
    ) -> list[Json]:
        """Retry all dead letters that match; an item for each execution, or its `error`."""
        search = DeadLetterSearch(
            workflow=workflow,
            handler=handler,
            category=category,
            execution_id=execution_id,
            limit=DEAD_LETTERS_MAX if limit is None else limit,
        )
        numbers = None if ids is None else [_number(letter_id) for letter_id in ids]
        rows = await self.service.dead_letters.select(search, numbers)
        retries = await self.service.dead_letters.retry_many(rows, preview=preview)
        return [_json(retried.view()) for retried in retries]

    @while_open
    @counted
    async def drop_dead_letter(self, letter_id: str | int) -> None:
        """Close a dead letter without a retry."""
        await self.service.dead_letters.drop(_number(letter_id))

    @while_open
    @counted
    async def post_signal(
        self,
        name: str,
        correlation: str,
        payload: Any = None,
        *,
        ttl_seconds: float | None = None,
        to: str = "one",
    ) -> Json:
        """Send a signal to whoever waits for its name and correlation, now or within its ttl."""
        if to not in ("one", "all"):
            raise InvalidInput(f"to is {to!r}; it must be 'one' or 'all'")
        posted = await self.service.signals.post(
            name,
            correlation,
            payload,
            ttl_seconds=TTL_SECONDS if ttl_seconds is None else ttl_seconds,
            to_all=to == "all",
        )
        return _json(posted)

    @items_while_open
    async def waits(
        self,
        *,
        name: str | None = None,
        correlation: str | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Nodes that wait for signals."""

        async def read(after: int, size: int) -> tuple[list[WaitItem], int | None]:
            return await self.service.signals.waits(name, correlation, after, size)

        async with aclosing(_numbered_pages(read, limit)) as items:
            async for item in items:
                yield plain_json(item)

    @items_while_open
    async def approvals(self, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """Open approvals; who calls an engine may decide all of them."""

        async def read(after: int, size: int) -> tuple[list[ApprovalItem], int | None]:
            return await self.service.approvals.inbox(Decider(""), after, size)

        async with aclosing(_numbered_pages(read, limit)) as items:
            async for item in items:
                yield plain_json(item)

    @while_open
    async def workers(self) -> list[Json]:
        """The live workers, with their queues, handlers and tasks."""
        return [_json(worker) for worker in await self.fleet.workers()]

    @while_open
    async def orchestrators(self) -> list[Json]:
        """The live orchestrators, with their partitions."""
        return [_json(orchestrator) for orchestrator in await self.fleet.orchestrators()]

    @while_open
    async def queues(self) -> list[Json]:
        """The queues, with the numbers of tasks that wait and run."""
        return [_json(queue) for queue in await self.fleet.queues()]

    @items_while_open
    async def audit(  # noqa: PLR0913 -- each is a filter
        self,
        *,
        key: str | None = None,
        action: str | None = None,
        object: str | None = None,  # noqa: A002 -- the field's name
        since: Moment = None,
        until: Moment = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """The audit log: who changed what over HTTP, when and from where; the newest first."""
        search = AuditSearch(
            key_id=key,
            action=action,
            object=object,
            since=_seconds(since, "since"),
            until=_seconds(until, "until"),
        )
        audit_log = self.service.stores.cold.audit_log
        lines = _rows(audit_log.audit, search, limit, lambda line: line.id)
        async with aclosing(lines):
            async for line in lines:
                yield plain_json(audit_view(line))

    @while_open
    async def health(self) -> Json:
        """The health of the engine and its parts; `status` is `ok` or `unavailable`."""
        report = await health_report(self.service, self.fleet, version("penstock"), CHECK_SECONDS)
        return _json(report)

    @items_while_open
    async def execution_events(
        self,
        execution_id: str,
        after: int = 0,
        *,
        depth: int | None = None,
        under: str | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Live events of an execution: every transition after `seq`, until it has ended.

        `depth` and `under` are those of `ExecutionHandle.events`.
        """
        selection = Selection(depth, under)
        if selection.is_everything:
            batches = self.service.live_events.follow(execution_id, after)
        else:
            batches = self.service.item_events.follow(execution_id, after, selection=selection)
        async with aclosing(batches):
            async for batch in batches:
                for counts in batch.counts:
                    yield plain_json(live_items(counts.execution_id, counts.node_id, counts.items))
                for feed_line in batch.feed_lines:
                    yield plain_json(live_event(feed_line.line, execution_id))

    @while_open
    @counted
    async def retry(
        self,
        execution_id: str,
        start: str | None = None,
        version: str | int = "same",
        *,
        items: RetriedItems | None = None,
        preview: bool = False,
    ) -> Json:
        """Retry an execution, as `ExecutionHandle.retry` does."""
        retries = self.service.retries
        if preview:
            plan = await retries.preview(execution_id, start=start, version=version, items=items)
            return _json(plan.view(None, execution_id))
        retry_id, plan = await retries.retry(
            execution_id, start=start, version=version, items=items
        )
        return _json(plan.view(retry_id, execution_id))

    @while_open
    async def results(self, execution_id: str) -> Json:
        """The values of an execution alone, as `ExecutionHandle.results` has them."""
        return _json(await self.service.executions.results(execution_id))

    @while_open
    async def history(self, execution_id: str) -> list[Json]:
        """The history of an execution so far."""
        lines = await self.service.executions.history(execution_id)
        return [_json(line) for line in history_view(lines)]

    @while_open
    async def node(self, execution_id: str, name: str) -> Json:
        """One node of an execution, as `ExecutionHandle.node` has it."""
        return _json(await self.service.nodes.view(execution_id, name))

    @while_open
    async def nodes(
        self, execution_id: str, under: str | None = None, state: str | None = None
    ) -> list[Json]:
        """The nodes of an execution, as `ExecutionHandle.nodes` has them."""
        if state is not None and state not in NodeState.__members__:
            listed = ", ".join(NodeState.__members__)
            raise InvalidInput(f"a node has no state {state!r}; it has one of {listed}")
        nodes: list[Json] = []
        while True:
            page = await self.service.items.nodes(execution_id, under, state, len(nodes), PAGE)
            nodes += [_json(node) for node in page]
            if len(page) < PAGE:
                return nodes

    @items_while_open
    async def items(
        self, execution_id: str, name: str, *, follow: bool = False
    ) -> AsyncGenerator[Json, None]:
        """The items of a map of an execution, as `ExecutionHandle.items` has them."""
        batches = self.service.items.ends(execution_id, name, 0, follow=follow)
        async with aclosing(batches):
            async for batch in batches:
                for line in batch:
                    yield plain_json(line)

    @while_open
    async def why(self, execution_id: str, name: str) -> Json:
        """Why a node of an execution isn't running now: `reason`, and `text` in words."""
        return _json(await self.service.explanations.why(execution_id, name))

    @while_open
    @counted
    async def signal(
        self,
        execution_id: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Send an execution a signal, as `ExecutionHandle.signal` does."""
        sent = await self.service.signals.send(
            execution_id,
            name,
            payload,
            correlation=correlation,
            idempotency_key=idempotency_key,
        )
        return _json(sent)

    @while_open
    async def signals(self, execution_id: str, name: str | None = None) -> list[Json]:
        """The signals of an execution by number, and which node has taken each."""
        return [_json(item) for item in await self.service.signals.listed(execution_id, name)]

    @while_open
    @counted
    async def approve(
        self,
        execution_id: str,
        node: str,
        *,
        comment: str | None = None,
        form: Any = None,
        by: str | None = None,
    ) -> Json:
        """Approve what a node of an execution waits for, as `ExecutionHandle.approve` does."""
        decided = await self.service.approvals.decide(
            execution_id, node, "approved", Decider(by or ""), comment=comment, form=form
        )
        return _json(decided)

    @while_open
    @counted
    async def reject(
        self,
        execution_id: str,
        node: str,
        *,
        comment: str | None = None,
        by: str | None = None,
    ) -> Json:
        """Reject what a node of an execution waits for."""
        decided = await self.service.approvals.decide(
            execution_id, node, "rejected", Decider(by or ""), comment=comment
        )
        return _json(decided)

    @items_while_open
    async def all_logs(self, execution_id: str) -> AsyncGenerator[Json, None]:
        """The logs of all nodes of an execution, as `ExecutionHandle.all_logs` has them."""
        position: int | None = 0
        while position is not None:
            page = await self.service.execution_logs.page(execution_id, position, PAGE)
            for log in page.logs:
                yield plain_json(log)
            position = page.next_position

    @while_open
    async def graph(self, execution_id: str) -> Json:
        """The nodes and edges of an execution, with their states."""
        return _json(await self.service.executions.graph(execution_id))

    @while_open
    async def tree(self, execution_id: str) -> Json:
        """An execution with its children, and theirs: each before those below it."""
        return _json(await self.service.executions.tree(execution_id))


def document_of(workflow: Workflow | Mapping[str, Any]) -> Json:
    return workflow.document() if isinstance(workflow, Workflow) else dict(workflow)


def _json(view: msgspec.Struct) -> Json:
    answer: Json = plain_json(view)
    return answer


def _page_sizes(limit: int | None) -> Iterator[int]:
    """The sizes of the pages of a list of at most `limit` items."""
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        yield size
        if left is not None:
            left -= size


async def _rows(
    read: Callable[[Searched], Awaitable[Sequence[Row]]],
    search: Searched,
    limit: int | None,
    number_of: Callable[[Row], int],
) -> AsyncGenerator[Row, None]:
    """The rows of a search, read in pages."""
    for size in _page_sizes(limit):
        rows = await read(structs.replace(search, limit=size))
        for row in rows:
            yield row
        if len(rows) < size:
            return
        search = structs.replace(search, before=number_of(rows[-1]))


async def _numbered_pages(
    read: Callable[[int, int], Awaitable[tuple[list[Row], int | None]]], limit: int | None
) -> AsyncGenerator[Row, None]:
    """The items of a list that is read after a number, page by page."""
    after = 0
    left = limit
    while left is None or left > 0:
        items, last_number = await read(after, PAGE if left is None else min(PAGE, left))
        for item in items:
            yield item
        if last_number is None:
            return
        after = last_number
        if left is not None:
            left -= len(items)


def _states(state: str | Sequence[str] | None) -> Iterator[str]:
    names = [state] if isinstance(state, str) else state or []
    for name in names:
        if name not in ExecutionState.__members__:
            listed = ", ".join(ExecutionState.__members__)
            raise InvalidInput(f"an execution has no state {name!r}; it has one of {listed}")
        yield str(ExecutionState[name])


def _seconds(moment: Moment, name: str) -> float | None:
    if moment is None:
        return None
    if isinstance(moment, datetime):
        return moment.timestamp()
    try:
        return parse_moment(moment)
    except ValueError:
        message = f"{name} is {moment[:50]!r}; it must be a time such as 2026-01-31T12:00:00Z"
        raise InvalidInput(message) from None


def _number(letter_id: str | int) -> int:
    try:
        return int(letter_id)
    except ValueError:
        raise NotFound(f"there is no dead letter {letter_id!r}") from None
