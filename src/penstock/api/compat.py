"""The compatible routes: those of the public implementations, so that their clients work here.

These clients don't tell workflows from executions: submitting a document also creates an execution,
which waits in PENDING for its trigger. Triggering a failed execution retries it. Our retry is a new
execution, but for these clients the old id stands for the whole chain. So every request for an id
is answered for its newest retry.

Everything wrong with a request is 400 here, also what is 422 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api import compat_views as views
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation
from penstock.api.paging import Cursor, Limit, number_cursor, page
from penstock.api.problems import Refused, refusal_of
from penstock.api.routing import Route, Router
from penstock.api.timing import ApiTiming
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict, NotFound, PenstockError
from penstock.service import Service
from penstock.service.health import store_checks
from penstock.service.keys import includes
from penstock.service.submissions import StartRequest
from penstock.stores.base import Stored
from penstock.stores.records import DeadLetterSearch, Search
from penstock.telemetry import traces
from penstock.views.executions import Execution

PREFIXES = ("/api/v1", "", "/api", "/v1")
"""Path prefixes of these routes; the first one is in the OpenAPI document."""
API = "/api/v1"
"""The prefix where the plural, `/workflows`, is a route of the main API."""
LETTER_ID_DIGITS_MAX = 18
UNPROCESSABLE = 422
BAD_REQUEST = 400

Endpoint: TypeAlias = Callable[..., Coroutine[Any, Any, Response]]


class CompatRoute(Route):
    """A compatible route.

    Its clients expect 400 for everything that is wrong with a request, and an `error_code` in the
    answer.
    """

    async def answer(self, request: Request) -> Response:
        try:
            return await super().answer(request)
        except (PenstockError, Refused) as error:
            raise _with_error_code(error, request.scope["path"]) from error


def _with_error_code(error: PenstockError | Refused, path: str) -> Refused:
    """The refusal with the names that other implementations give to the members of its problem."""
    refusal = refusal_of(error)
    document = refusal.document
    status = document.status
    detail = document.detail
    if status == UNPROCESSABLE:
        status = BAD_REQUEST
    if document.code == "invalid_workflow":
        detail = f"Workflow didn't pass validation: {detail}"

    named = Refused(
        status, document.code, detail, headers=refusal.headers, problems=document.problems
    )
    named.document = views.named_problem(named.document, of_dead_letter="/admin/dlq" in path)
    return named


def compat_routes(service: Service, timing: ApiTiming) -> Router:
    """The compatible routes.

    Include them before the main API, where names of workflows may contain slashes.
    """
    router = Router(route_class=CompatRoute, tags=["compatible"])
    bodies = Bodies(service.workflows.limits, service.sandbox)
    workflows = Workflows(service, bodies)
    dead_letters = DeadLetters(service)
    for prefix in PREFIXES:
        _workflow_routes(router, prefix, workflows)
        _dead_letter_routes(router, prefix, dead_letters)
    _add(
        router,
        "GET",
        "/v1/health",
        _health(service, timing),
        **operation("compat_health", "Health", {200: views.CompatHealth}),
    )
    return router


class Workflows:
    """Workflows and executions of the compatible routes."""

    def __init__(self, service: Service, bodies: Bodies) -> None:
        self._service = service
        self._bodies = bodies

    async def submit(self, request: Request) -> Response:
        """The execution waits in PENDING for its trigger."""
        document = await self._bodies.read(request, body_schemas.DOCUMENT)
        trace = traces.incoming(request.headers.get("traceparent"))
        start_request = StartRequest(
            workflow=document, waits=True, trace=trace, lenient_config=True
        )
        intent = await self._service.submissions.prepare(start_request)
        await self._service.submissions.record_soon(intent)

        record = intent.record
        workflow = f"{record.workflow}@{record.version}"
        note(request.scope, f"executions/{record.execution_id}", workflow=workflow)
        return answer(views.submitted_view(record), 201)

    async def trigger(self, execution_id: str, request: Request) -> Response:
        body = await self._bodies.read(request, views.TRIGGER, empty={}) or {}
        stored = await newest(self._service, execution_id)
        if stored.record.state is ExecutionState.FAILED:
            return await self._retry(stored, request)
        await self._start(stored, body)
        return _triggered(stored, stored.record.execution_id, None, "Workflow triggered")

    async def _start(self, stored: Stored, body: dict[str, Any]) -> None:
        record = stored.record
        if record.state is not ExecutionState.PENDING:
            raise Conflict(
                f"execution {record.execution_id} is {record.state};"
                " only a pending or failed one can start"
            )
        plan = await self._service.executions.plan(record)
        value, overrides = views.read_trigger(body, plan)
        data = await self._service.submissions.check_input(plan, value)
        await self._service.submissions.trigger(
            record.execution_id, record.workflow, data, overrides
        )

    async def _retry(self, stored: Stored, request: Request) -> Response:
        failed_id = stored.record.execution_id
        _check_operator(request)
        retry_id, _ = await self._service.retries.retry(failed_id)
        note(request.scope, retried_as=retry_id)
        message = "Workflow failed before; what failed runs again"
        return _triggered(stored, retry_id, failed_id, message)

    async def status(self, execution_id: str) -> Response:
        execution = await self._newest_view(execution_id)
        return answer(views.status_view(execution_id, execution))

    async def results(self, execution_id: str) -> Response:
        """Also while it runs: what there is so far, with `completed` false."""
        execution = await self._newest_view(execution_id)
        return answer(views.results_view(execution_id, execution))

    async def results_by_uuid(self, execution_id: UUID) -> Response:
        return await self.results(str(execution_id))

    async def cancel(self, execution_id: str) -> Response:
        stored = await newest(self._service, execution_id)
        await self._service.executions.request_control(stored.record.execution_id, "cancel")
        view = views.Cancelled(
            execution_id=execution_id,
            id=execution_id,
            workflow_id=execution_id,
            status="CANCELLED",
            message=f"Execution {execution_id} is being cancelled",
        )
        return answer(view)

    async def _newest_view(self, execution_id: str) -> Execution:
        stored = await newest(self._service, execution_id)
        return await self._service.executions.view(stored.record.execution_id, stored, newest=True)


class DeadLetters:
    """Dead letters of the compatible routes."""

    def __init__(self, service: Service) -> None:
        self._dead_letters = service.dead_letters

    async def list(self, cursor: Cursor = None, limit: Limit = 100) -> Response:
        search = DeadLetterSearch(before=number_cursor(cursor), limit=limit + 1)
        rows = await self._dead_letters.page(search)
        entries = [views.entry(row) for row in rows[:limit]]
        letters = page(rows, limit, views.dead_letter, lambda row: row.id)
        view = views.CompatLetters(
            items=letters.items,
            entries=entries,
            count=len(entries),
            next_cursor=letters.next_cursor,
        )
        return answer(view)

    async def retry(self, letter_id: str, request: Request) -> Response:
        number = _number(letter_id)
        retried = await self._dead_letters.retry(number)
        note(request.scope, retried_as=retried.execution_id)
        row = await self._dead_letters.get(number)
        view = views.LetterRetried(
            id=number,
            task_id=views.task_id(row.dead_letter.execution_id, row.dead_letter.node_id),
            execution_id=str(retried.execution_id),
            retry_of=retried.retry_of,
            status="success",
            message="What failed runs again",
        )
        return answer(view)

    async def drop(self, letter_id: str) -> Response:
        number = _number(letter_id)
        row = await self._dead_letters.get(number)
        await self._dead_letters.drop(number)
        view = views.LetterDropped(
            id=number,
            task_id=views.task_id(row.dead_letter.execution_id, row.dead_letter.node_id),
            status="success",
            message=f"Dead letter {number} deleted",
        )
        return answer(view)


async def newest(service: Service, execution_id: str) -> Stored:
    """The execution, or the last of its retries.

    A completed execution is never replaced by its retry.
    """
    stored = await service.executions.stored(execution_id)
    while stored.record.state in (ExecutionState.FAILED, ExecutionState.CANCELLED):
        rows = await service.executions.search(Search(retry_of=stored.record.execution_id, limit=1))
        if not rows:
            break
        stored = await service.executions.stored(rows[0].execution_id)
    return stored


def _workflow_routes(router: Router, prefix: str, workflows: Workflows) -> None:
    base = f"{prefix}/workflow"
    submit = operation(
        "compat_submit",
        "Store a workflow and make an execution that waits",
        {201: views.Submitted},
        body=body_schemas.DOCUMENT,
    )
    trigger = operation(
        "compat_trigger",
        "Start an execution that waits, or retry one that failed",
        {200: views.Triggered},
        errors=(404, 409, 413, 415),
    )
    body = {"required": False, "content": {"application/json": {"schema": views.TRIGGER}}}
    trigger["requestBody"] = body
    trigger["description"] = (
        "One that failed goes on as a new execution, with the input it had:"
        " `retry_of` is the failed one's id then."
    )
    status = operation(
        "compat_status", "An execution with its nodes", {200: views.Status}, errors=(404,)
    )
    results = operation(
        "compat_results", "The outputs of an execution", {200: views.CompatResults}, errors=(404,)
    )
    cancel = operation(
        "compat_cancel", "Cancel an execution", {200: views.Cancelled}, errors=(404, 409)
    )
    _add(router, "POST", base, workflows.submit, **submit)
    _add(router, "POST", f"{base}/trigger/{{execution_id}}", workflows.trigger, **trigger)
    _add(router, "GET", f"{base}/{{execution_id}}", workflows.status, **status)
    _add(router, "GET", f"{base}/{{execution_id}}/results", workflows.results, **results)
    _add(router, "DELETE", f"{base}/{{execution_id}}", workflows.cancel, **cancel)
    _plural_routes(router, prefix, workflows, submit, trigger, status, results)


def _plural_routes(  # noqa: PLR0913, PLR0917 -- one for each route
    router: Router,
    prefix: str,
    workflows: Workflows,
    submit: dict[str, Any],
    trigger: dict[str, Any],
    status: dict[str, Any],
    results: dict[str, Any],
) -> None:
    base = f"{prefix}/workflows"
    add = partial(_add, router, listed=False)
    add("POST", f"{base}/{{execution_id}}/trigger", workflows.trigger, **trigger)
    if prefix == API:
        # only a UUID, because a workflow's name may end in /results
        add("GET", f"{base}/{{execution_id:uuid}}/results", workflows.results_by_uuid, **results)
        return

    add("POST", base, workflows.submit, **submit)
    add("GET", f"{base}/{{execution_id}}", workflows.status, **status)
    add("GET", f"{base}/{{execution_id}}/results", workflows.results, **results)


def _dead_letter_routes(router: Router, prefix: str, dead_letters: DeadLetters) -> None:
    base = f"{prefix}/admin/dlq"
    by_id = f"{base}/{{letter_id}}"
    listed = operation(
        "compat_list_dead_letters",
        "The open dead letters, the newest first",
        {200: views.CompatLetters},
    )
    retry = operation(
        "compat_retry_dead_letter", "Retry", {200: views.LetterRetried}, errors=(404, 409)
    )
    drop = operation(
        "compat_drop_dead_letter", "Drop it", {200: views.LetterDropped}, errors=(404, 409)
    )
    _add(router, "GET", base, dead_letters.list, **listed)
    _add(router, "POST", f"{by_id}/retry", dead_letters.retry, **retry)
    _add(router, "DELETE", by_id, dead_letters.drop, **drop)


def _add(
    router: Router,
    method: str,
    path: str,
    endpoint: Endpoint,
    *,
    listed: bool = True,
    **description: Any,
) -> None:
    is_described = listed and (path.startswith(PREFIXES[0]) or path == "/v1/health")
    router.add(method, path, endpoint, **(description if is_described else {}))


def _check_operator(request: Request) -> None:
    """Raise unless the caller may retry: a key with `submit` may only start pending executions."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is not None and not includes(caller.scopes, "operate"):
        detail = "the execution failed, and a retry needs a key with the scope 'operate'"
        raise Refused(403, "forbidden", detail)


def _health(service: Service, timing: ApiTiming) -> Endpoint:
    async def health() -> Response:
        checks = await store_checks(service.stores, timing.check_seconds)
        fine = all(check.ok for check in checks.values())
        parts = {name: "healthy" if check.ok else "unhealthy" for name, check in checks.items()}
        view = views.CompatHealth(
            status="healthy" if fine else "unhealthy",
            healthy=fine,
            ok=fine,
            dependencies=parts,
        )
        return answer(view, 200 if fine else 503)

    return health


def _triggered(stored: Stored, execution_id: str, retry_of: str | None, message: str) -> Response:
    return answer(views.triggered_view(stored.record, execution_id, retry_of, message))


def _number(dead_letter_id: str) -> int:
    is_number = dead_letter_id.isascii() and dead_letter_id.isdecimal()
    if not is_number or len(dead_letter_id) > LETTER_ID_DIGITS_MAX:
        raise NotFound(f"there is no dead letter {dead_letter_id[:50]!r}")
    return int(dead_letter_id)
