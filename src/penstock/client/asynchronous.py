"""`penstock.Client`: all calls of a server's API, for asyncio."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from penstock.client.answers import error_in
from penstock.client.execution import Execution
from penstock.client.following import follow
from penstock.client.transport import Transport, path_of
from penstock.definition.builder import Workflow
from penstock.errors import PartlyStarted, PenstockError, RequestFailed

PAGE = 100
BATCH = 500
BATCH_TOO_LARGE = "batch_too_large"
WAIT_SECONDS_MAX = 60.0
Json = dict[str, Any]
AnyWorkflow = Workflow | Mapping[str, Any] | str
Moment = datetime | str | None


class Client:
    """A client of a server, with the calls of `penstock.Engine`.

    `timeout_seconds` is the limit for one answer. While the server can't be reached, calls that may
    be repeated are repeated, for `retry_seconds`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        retry_seconds: float = 15.0,
    ) -> None:
        self._transport = Transport(url, api_key, timeout_seconds, retry_seconds)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.url

    @property
    def retry_seconds(self) -> float:
        """For how long a call is tried again while the server doesn't answer."""
        return self._transport.retry_seconds

    @retry_seconds.setter
    def retry_seconds(self, seconds: float) -> None:
        self._transport.retry_seconds = seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def start(  # noqa: PLR0913 -- each is a field of the request
        self,
        workflow: AnyWorkflow,
        input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
        *,
        labels: Mapping[str, Any] | None = None,
        priority: int = 0,
        idempotency_key: str | None = None,
        wait: float | None = None,
    ) -> Execution:
        """Start an execution; once this returns, it will reach its end.

        `workflow` may be the name of a stored one, such as `report` or `report@stable`. The same
        `idempotency_key` again gives the same execution; without one, a lost answer still doesn't
        start two. With `wait`, the server answers when the execution has ended, or after so many
        seconds (60 at most), which saves calls for short executions.
        """
        wait = None if wait is None else min(wait, WAIT_SECONDS_MAX)
        body = _start_request(workflow, input, labels, priority)
        answer = await self._transport.call(
            "POST",
            "/executions",
            query={"wait": wait},
            body=body,
            key=idempotency_key or uuid.uuid4().hex,
            wait_seconds=wait or 0.0,
        )
        return Execution(self._transport, answer["execution_id"], answer)

    async def start_many(
        self,
        workflow: AnyWorkflow,
        inputs: Iterable[Mapping[str, Any] | None],
        *,
        labels: Mapping[str, Any] | None = None,
        priority: int = 0,
    ) -> list[Execution]:
        """Start an execution for each input.

        Raises `PartlyStarted`, with the started and the refused ones, if only some are refused.
        """
        start_requests = [
            _start_request(workflow, execution_input, labels, priority)
            for execution_input in inputs
        ]
        shared: Json = {}
        if not isinstance(workflow, str):
            # The document is sent once, not with every input.
            shared = {"definition": _document(workflow)}
            for start_request in start_requests:
                del start_request["definition"]

        answers: list[Json] = []
        size = BATCH
        while len(answers) < len(start_requests):
            batch = start_requests[len(answers) : len(answers) + size]
            body = {**shared, "executions": batch}
            try:
                answer = await self._json("POST", "/executions/batch", body=body)
            except RequestFailed as error:
                if error.code != BATCH_TOO_LARGE or size == 1:
                    raise
                # The batch is larger than the server's rate limit allows at once.
                size = max(1, size // 2)
            else:
                answers += answer["items"]
        return self._handles(answers)

    def _handles(self, answers: Sequence[Json]) -> list[Execution]:
        errors: dict[int, PenstockError] = {}
        started: dict[int, Execution] = {}
        for number, answer in enumerate(answers):
            if "error" in answer:
                errors[number] = error_in(answer["error"])
            else:
                execution_id = answer["execution_id"]
                started[number] = Execution(self._transport, execution_id, answer)
        if not errors:
            return list(started.values())

        first, error = next(iter(errors.items()))
        if not started:
            raise error
        refused = f"{len(errors)} of {len(answers)} executions were refused"
        raise PartlyStarted(f"{refused}; the first, number {first}: {error}", errors, started)

    def execution(self, execution_id: str) -> Execution:
        """A handle for an execution that the server already has."""
        return Execution(self._transport, execution_id)

    def executions(  # noqa: PLR0913 -- each is a filter
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

        Pages are fetched as they are needed.
        """
        states = [state] if isinstance(state, str) else state or []
        query: list[tuple[str, Any]] = [("state", state_name) for state_name in states]
        query += [("label", f"{name}:{value}") for name, value in (labels or {}).items()]
        query += [
            ("workflow", workflow),
            ("version", version),
            ("text", text),
            ("since", _moment(since)),
            ("until", _moment(until)),
        ]
        return self._pages("/executions", query, limit)

    def events(self, after: str | None = None) -> AsyncGenerator[Json, None]:
        """Live events of all executions, from now on or after the event with this id.

        The stream never ends.
        """
        return follow(self._transport, "/events", after)

    async def put_workflow(
        self,
        document: Workflow | Mapping[str, Any],
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
    ) -> Json:
        """Store a workflow; returns `name`, `version`, `warnings`, and `created` if it is new."""
        query = {"strict": strict or None, "allow_unknown_handlers": allow_unknown_handlers or None}
        return await self._json("POST", "/workflows", query=query, body=_document(document))

    async def validate(
        self,
        document: Workflow | Mapping[str, Any],
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
    ) -> Json:
        """Check a document without storing it; returns `valid`, `problems` and `warnings`."""
        query = {"strict": strict or None, "allow_unknown_handlers": allow_unknown_handlers or None}
        body = _document(document)
        return await self._json("POST", "/workflows/validate", query=query, body=body)

    def workflows(self, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """The stored workflows, with their newest versions."""
        return self._pages("/workflows", [], limit)

    async def workflow(self, name: str, version: int | str | None = None) -> Json:
        """A definition with its `version`, which is the latest by default."""
        return await self._json("GET", path_of("workflows", name), query={"version": version})

    async def delete_workflow(self, name: str) -> None:
        """Delete a workflow with all its versions and aliases."""
        await self._transport.call("DELETE", path_of("workflows", name))

    def versions(self, name: str, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """The versions of a workflow, the newest first."""
        return self._pages(path_of("workflows", name, "versions"), [], limit)

    async def set_alias(
        self,
        name: str,
        alias: str,
        version: int | None = None,
        *,
        weights: Mapping[int, int] | None = None,
    ) -> Json:
        """Point `name@alias` at a version, or at several by weight: `weights={3: 90, 4: 10}`."""
        body: Json = {"version": version}
        if weights is not None:
            body = {"weights": {str(number): share for number, share in weights.items()}}
        return await self._json("PUT", path_of("workflows", name, "aliases", alias), body=body)

    async def remove_alias(self, name: str, alias: str) -> None:
        """Remove an alias; its versions stay."""
        await self._transport.call("DELETE", path_of("workflows", name, "aliases", alias))

    async def put_schedule(self, name: str, document: Mapping[str, Any]) -> Json:
        """Store a schedule; returns it as `schedule`, and `created` if it is new."""
        return await self._json("PUT", path_of("schedules", name), body=dict(document))

    def schedules(self, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """Schedules, by name."""
        return self._pages("/schedules", [], limit)

    async def schedule(self, name: str) -> Json:
        """A schedule, with its `next` slot."""
        return await self._json("GET", path_of("schedules", name))

    async def delete_schedule(self, name: str) -> None:
        """Delete a schedule; executions that it has started go on."""
        await self._transport.call("DELETE", path_of("schedules", name))

    async def pause_schedule(self, name: str, reason: str | None = None) -> Json:
        """Start no more slots of a schedule."""
        body = {"reason": reason}
        return await self._json("POST", path_of("schedules", name, "pause"), body=body)

    async def resume_schedule(self, name: str) -> Json:
        """Start slots again; what was missed is caught up as the schedule says."""
        return await self._json("POST", path_of("schedules", name, "resume"))

    async def trigger_schedule(self, name: str) -> Json:
        """Start an execution now, as a slot would; returns its `execution_id`."""
        return await self._json("POST", path_of("schedules", name, "trigger"))

    def slots(
        self, name: str, *, outcome: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[Json, None]:
        """What has become of a schedule's slots, the newest first."""
        return self._pages(path_of("schedules", name, "slots"), [("outcome", outcome)], limit)

    async def next_slots(self, name: str, count: int = 10) -> list[Json]:
        """When a schedule starts next; `note` is about changes of the clock."""
        page = await self._json("GET", path_of("schedules", name, "next"), query={"count": count})
        items: list[Json] = page["items"]
        return items

    def dead_letters(  # noqa: PLR0913 -- each is a filter
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
        query = [
            ("workflow", workflow),
            ("handler", handler),
            ("category", category),
            ("execution_id", execution_id),
            ("closed", closed or None),
        ]
        return self._pages("/dead-letters", query, limit)

    def errors(  # noqa: PLR0913 -- each is a filter
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
        query = [
            ("workflow", workflow),
            ("node_id", node_id),
            ("handler", handler),
            ("category", category),
            ("text", text),
            ("since", _moment(since)),
            ("until", _moment(until)),
        ]
        return self._pages("/errors", query, limit)

    async def dead_letter(self, letter_id: str | int) -> Json:
        """One dead letter, with the error and the config of its node."""
        return await self._json("GET", path_of("dead-letters", letter_id))

    async def retry_dead_letter(self, letter_id: str | int) -> Json:
        """Retry the execution of a dead letter, as `Execution.retry` does."""
        return await self._json("POST", path_of("dead-letters", letter_id, "retry"))

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
        fields = {
            "ids": ids and list(ids),
            "workflow": workflow,
            "handler": handler,
            "category": category,
            "execution_id": execution_id,
            "preview": preview or None,
            "limit": limit,
        }
        body = {name: value for name, value in fields.items() if value is not None}
        answer = await self._json("POST", "/dead-letters/retry", body=body)
        items: list[Json] = answer["items"]
        return items

    async def drop_dead_letter(self, letter_id: str | int) -> None:
        """Close a dead letter without a retry."""
        await self._transport.call("DELETE", path_of("dead-letters", letter_id))

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
        body: Json = {"correlation": correlation, "payload": payload, "to": to}
        if ttl_seconds is not None:
            body["ttl_seconds"] = ttl_seconds
        return await self._json("POST", path_of("signals", name), body=body)

    def waits(
        self,
        *,
        name: str | None = None,
        correlation: str | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Nodes that wait for signals."""
        return self._pages("/waits", [("name", name), ("correlation", correlation)], limit)

    def hooks(self, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """Webhooks, by id."""
        return self._pages("/hooks", [], limit)

    async def hook(self, hook_id: str) -> Json:
        """A webhook: its `document`, and the `path` that its sender sends to."""
        return await self._json("GET", path_of("hooks", hook_id))

    async def put_hook(self, hook_id: str, document: Mapping[str, Any]) -> Json:
        """Store a webhook, also in place of an earlier one; `created` says if it is new."""
        return await self._json("PUT", path_of("hooks", hook_id), body=dict(document))

    async def delete_hook(self, hook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        await self._transport.call("DELETE", path_of("hooks", hook_id))

    def deliveries(self, hook_id: str, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """The deliveries of a webhook, the newest first; the last 200 are stored."""
        return self._pages(path_of("hooks", hook_id, "deliveries"), [], limit)

    async def redeliver(self, hook_id: str, delivery_id: int) -> Json:
        """Handle the request of a delivery again, also if it was handled before."""
        path = path_of("hooks", hook_id, "deliveries", str(delivery_id), "redeliver")
        return await self._json("POST", path)

    async def test_hook(
        self,
        hook_id: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """What a webhook would do with a request; nothing is done, nor a signature checked."""
        request: Json = {"body": body, "headers": dict(headers or {}), "query": dict(query or {})}
        return await self._json("POST", path_of("hooks", hook_id, "test"), body=request)

    def approvals(self, *, limit: int | None = None) -> AsyncGenerator[Json, None]:
        """Open approvals; `may_decide` says which of them your key may decide."""
        return self._pages("/approvals", [], limit)

    async def workers(self) -> list[Json]:
        """The live workers, with their queues, handlers and tasks."""
        return await self._items("/workers")

    async def orchestrators(self) -> list[Json]:
        """The live orchestrators, with their partitions."""
        return await self._items("/orchestrators")

    async def queues(self) -> list[Json]:
        """The queues, with the numbers of tasks that wait and run."""
        return await self._items("/queues")

    def audit(  # noqa: PLR0913 -- each is a filter
        self,
        *,
        key: str | None = None,
        action: str | None = None,
        object: str | None = None,  # noqa: A002 -- the field's name
        since: Moment = None,
        until: Moment = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Json, None]:
        """The audit log: who changed what, when and from where; the newest first."""
        query = [
            ("key", key),
            ("action", action),
            ("object", object),
            ("since", _moment(since)),
            ("until", _moment(until)),
        ]
        return self._pages("/audit", query, limit)

    async def health(self) -> Json:
        """The health of the server and its parts; `status` is `ok` or `unavailable`."""
        return await self._json("GET", "/health", fine=503)

    async def _json(self, method: str, path: str, **request: Any) -> Json:
        answer: Json = await self._transport.call(method, path, **request)
        return answer

    async def _items(self, path: str) -> list[Json]:
        return [item async for item in self._pages(path, [], None)]

    async def _pages(
        self, path: str, query: Sequence[tuple[str, Any]], limit: int | None
    ) -> AsyncGenerator[Json, None]:
        cursor = None
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page_query = [*query, ("cursor", cursor), ("limit", size)]
            page = await self._transport.call("GET", path, query=page_query)
            for item in page["items"]:
                yield item

            if left is not None:
                left -= len(page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return


def _start_request(
    workflow: AnyWorkflow,
    execution_input: Mapping[str, Any] | None,
    labels: Mapping[str, Any] | None,
    priority: int,
) -> Json:
    start_request: Json = {}
    if isinstance(workflow, str):
        start_request["workflow"] = workflow
    else:
        start_request["definition"] = _document(workflow)

    if execution_input is not None:
        start_request["input"] = execution_input
    if labels is not None:
        start_request["labels"] = dict(labels)
    if priority:
        start_request["priority"] = priority
    return start_request


def _document(document: Workflow | Mapping[str, Any]) -> Json:
    return document.document() if isinstance(document, Workflow) else dict(document)


def _moment(moment: Moment) -> str | None:
    if not isinstance(moment, datetime):
        return moment
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
