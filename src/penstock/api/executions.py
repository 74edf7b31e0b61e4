"""Executions over HTTP: start them, search and show them, send control requests."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.audit_log import IDS_MAX, line_of, note, skip_audit
from penstock.api.bodies import Bodies, answer, invalid_request
from penstock.api.describing import operation, page_of
from penstock.api.mounting import prefix_of
from penstock.api.paging import Cursor, Limit, Moment, moment, number_cursor, page
from penstock.api.parameters import Header, Query
from penstock.api.problems import problem_of
from penstock.api.rate_limit import charge
from penstock.api.raw_path import is_route_word
from penstock.api.routing import Router
from penstock.definition.plan import Plan
from penstock.engine.states import ExecutionState
from penstock.errors import InvalidInput, StoreError
from penstock.service import Service
from penstock.service.submissions import LABELS_MAX, StartRequest, Submitted
from penstock.stores.base import ControlRequest
from penstock.stores.records import Search
from penstock.telemetry import traces
from penstock.views.executions import (
    Execution,
    HistoryItem,
    ListedExecution,
    LogItemPage,
    Requested,
    Results,
    history_item,
    listed_view,
)
from penstock.views.graphs import Graph
from penstock.views.nodes import NodeDetail
from penstock.views.pages import Page
from penstock.views.retries import Retried, RetriedItems
from penstock.views.starts import BatchItem, Started, started_view
from penstock.views.trees import Tree
from penstock.views.why import Why

WAIT_SECONDS_MAX = 60.0
NAME_LENGTH = 200
STARTS_AT_ONCE = 3
"""Executions of a batch that are started before other tasks of the event loop get a turn."""
Wait = Annotated[
    float, Query(ge=0, le=WAIT_SECONDS_MAX, description="Seconds to wait for the end of it.")
]
OnceKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Start it once, however often this is sent.",
    ),
]
Under = Annotated[
    str | None,
    Query(description="An item of a map or a round of a loop, such as `each[17]`: its nodes."),
]
States = Annotated[list[ExecutionState], Query(alias="state", description="One of these.")]
Labels = Annotated[
    list[str],
    Query(alias="label", max_length=LABELS_MAX, description="`key:value`; all of them must hold."),
]
Words = Annotated[
    str | None, Query(max_length=256, description="Part of the id or of the workflow's name.")
]
From = Annotated[
    str | None,
    Query(
        alias="from",
        min_length=1,
        max_length=256,
        description="Also this node and what comes after it.",
    ),
]
RetriedItemsQuery = Annotated[
    RetriedItems | None,
    Query(
        alias="items",
        description="Of maps that run again, the items that `failed` or `all`. Default: `failed`,"
        " and `all` of the map that `from` names.",
    ),
]
After = Annotated[int, Query(ge=0, le=2**53, description="Only items with a greater `seq`.")]


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/executions", tags=["executions"])
    _start_routes(router, service, bodies)
    _look_routes(router, service)
    _node_routes(router, service)
    _control_routes(router, service, bodies)
    return router


def _start_routes(router: Router, service: Service, bodies: Bodies) -> None:
    @router.post(
        "",
        **operation(
            "start_execution",
            "Start an execution",
            {201: Execution},
            errors=(404,),
            body=body_schemas.START_REQUEST,
        ),
    )
    async def start(
        request: Request, wait: Wait = 0.0, idempotency_key: OnceKey = None
    ) -> Response:
        """Once this has answered, the execution reaches its end.

        With `wait`, the answer has its result if it ends.
        """
        return await start_one(service, bodies, request, wait, idempotency_key)

    @router.post(
        "/batch",
        **operation(
            "start_executions",
            "Start many executions",
            {200: page_of(BatchItem)},
            body=body_schemas.BATCH,
        ),
    )
    async def start_many(request: Request) -> Response:
        """One answer each, in the same order: the execution, or `error`."""
        body = await bodies.read(request, body_schemas.BATCH)
        await charge(request.scope, len(body["executions"]))
        # compiled once: a large document a thousand times would block the event loop
        shared = await service.workflows.plan(body["definition"]) if "definition" in body else None

        starts: list[asyncio.Task[BatchItem]] = []
        for number, item in enumerate(body["executions"], 1):
            starting = _start_item(service, bodies, item, request, shared)
            starts.append(asyncio.create_task(starting))
            if number % STARTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # other requests get a turn
        answers = await asyncio.gather(*starts)

        started = [item.execution_id for item in answers if item.execution_id is not None]
        note(
            request.scope, count=len(answers), started=len(started), execution_ids=started[:IDS_MAX]
        )
        return answer(Page(answers))


async def start_one(
    service: Service, bodies: Bodies, request: Request, wait: float = 0.0, key: str | None = None
) -> Response:
    """Start one execution, and wait for its end if the caller asks for that."""
    body = await bodies.read(request, body_schemas.START_REQUEST)
    start_request = _start_request(body, request, key)
    note(request.scope, workflow=_workflow_name(body))
    start_request.audit = line_of(request.scope, 201)

    tracer = traces.active_tracer()
    header = request.headers.get("traceparent")
    with traces.request_span(tracer, "start_execution", header) as start_request.trace:
        submitted = await service.submissions.submit(start_request)

    headers = {"Location": _address(request, submitted.execution_id)}
    if submitted.replayed:
        note(request.scope, f"executions/{submitted.execution_id}")
        headers["Idempotency-Replayed"] = "true"
    else:
        skip_audit(request.scope)  # its line was written with the execution

    if submitted.record is None or submitted.replayed:
        return answer(await _current_view(service, submitted, wait), 201, headers)

    view: Started | Execution = started_view(submitted.record)
    if wait:
        with suppress(StoreError):  # it is stored and was accepted, though it can't be read now
            view = await _current_view(service, submitted, wait)
    return answer(view, 201, headers)


def _address(request: Request, execution_id: str) -> str:
    return f"{prefix_of(request.scope)}/api/v1/executions/{execution_id}"


async def _start_item(
    service: Service, bodies: Bodies, item: dict[str, Any], request: Request, shared: Plan | None
) -> BatchItem:
    try:
        if shared is not None and not item.keys() & {"workflow", "definition"}:
            bodies.check({"workflow": shared.name, **item}, body_schemas.START_REQUEST)
            start_request = _start_request({"workflow": shared, **item}, request, None)
        else:
            bodies.check(item, body_schemas.START_REQUEST)
            start_request = _start_request(item, request, None)
        submitted = await service.submissions.submit(start_request)
    except Exception as error:  # noqa: BLE001 -- it must not fail the other items
        return BatchItem(error=problem_of(error))

    if submitted.record is None:
        return BatchItem(execution_id=submitted.execution_id)
    return BatchItem(**structs.asdict(started_view(submitted.record)))


def _workflow_name(body: dict[str, Any]) -> str:
    """The workflow of a start request for the audit log, also if the request is refused."""
    if "workflow" in body:
        return str(body["workflow"])[:NAME_LENGTH]
    return f"a document {str(body['definition'].get('name', ''))[:NAME_LENGTH]!r}"


def _start_request(body: dict[str, Any], request: Request, key: str | None) -> StartRequest:
    caller = request.scope.get("penstock.caller")
    return StartRequest(
        workflow=body["workflow"] if "workflow" in body else body["definition"],
        input=body.get("input"),
        labels=body.get("labels") or {},
        priority=body.get("priority") or 0,
        idempotency_key=key,
        key_scope=caller.key_id if caller else "",
        trace=traces.incoming(request.headers.get("traceparent")),
    )


async def _current_view(service: Service, submitted: Submitted, wait: float) -> Execution:
    execution_id = submitted.execution_id
    ended = None
    if wait:
        # if it isn't unfinished, it may have ended already: then the store is read first
        is_unfinished = execution_id in service.submissions.unfinished
        ended = await service.executions.end(execution_id, wait, known=is_unfinished)
    return await service.executions.view(execution_id, ended, newest=not submitted.replayed)


def _look_routes(router: Router, service: Service) -> None:
    executions = service.executions

    @router.get(
        "",
        **operation(
            "list_executions",
            "Search executions, the newest first",
            {200: page_of(ListedExecution)},
        ),
    )
    async def listed(  # noqa: PLR0913, PLR0917 -- the filters
        states: States = [],  # noqa: B006 -- each request gets a list of its own
        workflow: Annotated[str | None, Query(max_length=1024)] = None,
        version: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        labels: Labels = [],  # noqa: B006
        since: Moment = None,
        until: Moment = None,
        text: Words = None,
        retry_of: Annotated[
            str | None, Query(max_length=1024, description="Retries of this execution.")
        ] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        if workflow is not None and version is None:
            workflow, version = await _resolve_reference(service, workflow)
        search = Search(
            states=tuple(str(state) for state in states),
            workflow=workflow,
            version=version,
            labels=_labels(labels),
            since=moment(since, "since"),
            until=moment(until, "until"),
            text=text or None,
            retry_of=retry_of,
            before=number_cursor(cursor),
            limit=limit + 1,
        )
        rows = await executions.search(search)
        return answer(page(rows, limit, listed_view, lambda row: row.n))

    @router.get(
        "/{execution_id}",
        **operation("get_execution", "An execution", {200: Execution}, errors=(404,)),
    )
    async def get(
        execution_id: str,
        nodes: Annotated[bool, Query(description="Also all its nodes with their outputs.")] = True,
    ) -> Response:
        if nodes:
            return answer(await executions.view(execution_id))
        return answer(await executions.bare(execution_id))

    @router.get(
        "/{execution_id}/results",
        **operation("get_results", "Its outputs", {200: Results}, errors=(404,)),
    )
    async def results(execution_id: str) -> Response:
        return answer(await executions.results(execution_id))

    @router.get(
        "/{execution_id}/history",
        **operation(
            "get_history",
            "Every change of state",
            {200: page_of(HistoryItem)},
            errors=(404,),
        ),
    )
    async def history(
        execution_id: str, after: After = 0, cursor: Cursor = None, limit: Limit = 500
    ) -> Response:
        lines = await executions.history(execution_id, max(after, number_cursor(cursor) or 0))
        return answer(page(lines[: limit + 1], limit, history_item, lambda line: line.seq))

    @router.get(
        "/{execution_id}/tree",
        **operation("get_tree", "Its children, and theirs", {200: Tree}, errors=(404,)),
    )
    async def tree(execution_id: str) -> Response:
        return answer(await executions.tree(execution_id))

    @router.get(
        "/{execution_id}/graph",
        **operation("get_graph", "Nodes and edges", {200: Graph}, errors=(404,)),
    )
    async def graph(execution_id: str, under: Under = None) -> Response:
        return answer(await executions.graph(execution_id, under))


def _node_routes(router: Router, service: Service) -> None:
    @router.get(
        "/{execution_id}/nodes/{node_id:path}/logs",
        **operation(
            "get_node_logs",
            "What a node's attempts logged",
            {200: LogItemPage},
            errors=(404,),
        ),
    )
    async def logs(execution_id: str, node_id: str, request: Request) -> Response:
        if not is_route_word(request, "logs"):
            return await node(execution_id, f"{node_id}/logs")
        logs = await service.executions.logs(execution_id, node_id)
        return answer(LogItemPage(node_id=node_id, items=logs))

    @router.get(
        "/{execution_id}/nodes/{node_id:path}/why",
        **operation("explain_node", "Why a node isn't running", {200: Why}, errors=(404,)),
    )
    async def why(execution_id: str, node_id: str, request: Request) -> Response:
        if not is_route_word(request, "why"):
            return await node(execution_id, f"{node_id}/why")
        return answer(await service.explanations.why(execution_id, node_id))

    @router.get(
        "/{execution_id}/nodes/{node_id:path}",
        **operation("get_node", "A node with its attempts", {200: NodeDetail}, errors=(404,)),
    )
    async def node(
        execution_id: str,
        node_id: str,
        item_states: Annotated[
            bool,
            Query(description="Of a map or a loop: the states of its items, and not its output."),
        ] = False,
    ) -> Response:
        return answer(await service.nodes.view(execution_id, node_id, item_states=item_states))


async def _resolve_reference(service: Service, reference: str) -> tuple[str, int | None]:
    try:
        return await service.workflows.searched(reference)
    except InvalidInput as error:
        raise invalid_request([("workflow", str(error))]) from None


def _labels(texts: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        key, colon, value = text.partition(":")
        if not key or not colon:
            raise invalid_request(
                [("label", f"{text[:50]!r} isn't key:value, such as team:billing")]
            )
        labels[key] = value
    return labels


def _control_routes(router: Router, service: Service, bodies: Bodies) -> None:
    def add(request: ControlRequest, summary: str) -> None:
        @router.post(
            f"/{{execution_id}}/{request}",
            **operation(f"{request}_execution", summary, {202: Requested}, errors=(404, 409)),
        )
        async def request_control(execution_id: str) -> Response:
            await service.executions.request_control(execution_id, request)
            return answer(Requested(execution_id=execution_id, requested=request), 202)

    add("cancel", "Cancel: at once for the execution, cooperative for what runs")
    add("pause", "Pause: what runs is recorded, nothing new starts")
    add("resume", "Go on after a pause")

    @router.post(
        "/{execution_id}/retry",
        **operation(
            "retry_execution",
            "Run again what didn't complete, as a new execution",
            {201: Retried, 200: Retried},
            errors=(404, 409),
            body=body_schemas.RETRY,
            body_required=False,
        ),
    )
    async def retry(  # noqa: PLR0913, PLR0917 -- one for each parameter
        execution_id: str,
        request: Request,
        start: From = None,
        version: Annotated[str | None, Query(pattern=r"^(same|latest|[1-9][0-9]{0,9})$")] = None,
        items: RetriedItemsQuery = None,
        preview: Annotated[
            bool | None, Query(description="Only say what would run and why.")
        ] = None,
    ) -> Response:
        """Outputs of what completed are kept.

        The body, where there is one, wins over the parameters.
        """
        body = await bodies.read(request, body_schemas.RETRY, empty={})
        start = body.get("from") or start
        version = str(body.get("version") or version or "same")
        items = body.get("items") or items
        if body.get("preview", preview):
            skip_audit(request.scope)
            plan = await service.retries.preview(
                execution_id, start=start, version=version, items=items
            )
            return answer(plan.view(None, execution_id))

        retry_id, plan = await service.retries.retry(
            execution_id, start=start, version=version, items=items
        )
        note(request.scope, execution_id=retry_id)
        headers = {"Location": _address(request, retry_id)}
        return answer(plan.view(retry_id, execution_id), 201, headers)
