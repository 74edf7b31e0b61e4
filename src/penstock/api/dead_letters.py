"""Dead letters over HTTP."""

from __future__ import annotations

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.audit_log import IDS_MAX, note, skip_audit
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, number_cursor, page
from penstock.api.parameters import Path, Query
from penstock.api.rate_limit import charge
from penstock.api.routing import Router
from penstock.service import Service
from penstock.service.dead_letters import DeadLetters, Retried
from penstock.stores.records import DeadLetterSearch
from penstock.views import retries
from penstock.views.dead_letters import DeadLetter, DroppedLetters, dead_letter_view
from penstock.views.pages import Page
from penstock.views.retries import RetriedLetters

Filter = Annotated[str | None, Query(max_length=1024)]
DeadLetterId = Annotated[int, Path(ge=1, le=2**53)]
"""The id of a dead letter in the path.

The parameter is `letter_id` in the OpenAPI document, which is public.
"""


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/dead-letters", tags=["dead letters"])
    dead_letters = service.dead_letters

    @router.get(
        "",
        **operation(
            "list_dead_letters",
            "Nodes that used up their attempts, the newest first",
            {200: page_of(DeadLetter)},
        ),
    )
    async def listed(  # noqa: PLR0913, PLR0917 -- the filters
        workflow: Filter = None,
        handler: Filter = None,
        category: Filter = None,
        execution_id: Filter = None,
        closed: Annotated[
            bool, Query(description="Also those that were retried or dropped.")
        ] = False,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        search = DeadLetterSearch(
            workflow=workflow,
            handler=handler,
            category=category,
            execution_id=execution_id,
            closed=closed,
            before=number_cursor(cursor),
            limit=limit + 1,
        )
        rows = await dead_letters.page(search)
        return answer(page(rows, limit, dead_letter_view, lambda row: row.id))

    @router.post(
        "/retry",
        **operation(
            "retry_dead_letters",
            "Retry many: one new execution for each that they belong to",
            {200: page_of(RetriedLetters)},
            errors=(404,),
            body=body_schemas.RETRY_DEAD_LETTERS,
        ),
    )
    async def retry_many(request: Request) -> Response:
        body = await bodies.read(request, body_schemas.RETRY_DEAD_LETTERS)
        search = DeadLetterSearch(
            workflow=body.get("workflow"),
            handler=body.get("handler"),
            category=body.get("category"),
            execution_id=body.get("execution_id"),
            limit=body.get("limit", 1000),
        )
        preview = body.get("preview", False)
        if preview:
            skip_audit(request.scope)

        ids = body.get("ids")
        if ids is not None:
            await charge(request.scope, len(ids))
        rows = await dead_letters.select(search, ids)
        if ids is None:
            await charge(request.scope, len(rows))

        results = await dead_letters.retry_many(rows, preview=preview)
        if not preview:
            _note_retries(request, results)
        items = [retried.view() for retried in results]
        return answer(Page(items))

    @router.post(
        "/drop",
        **operation(
            "drop_dead_letters",
            "Drop many dead letters",
            {200: DroppedLetters},
            body=body_schemas.DROP_DEAD_LETTERS,
        ),
    )
    async def drop_many(request: Request) -> Response:
        """Those that are closed already, or aren't there, stay as they are and aren't counted."""
        body = await bodies.read(request, body_schemas.DROP_DEAD_LETTERS)
        await charge(request.scope, len(body["ids"]))
        dropped = await dead_letters.drop_many(body["ids"])
        note(request.scope, count=dropped, dead_letter_ids=body["ids"][:IDS_MAX])
        return answer(DroppedLetters(dropped))

    _dead_letter_routes(router, dead_letters)
    return router


def _dead_letter_routes(router: Router, dead_letters: DeadLetters) -> None:
    @router.get(
        "/{letter_id:int}",
        **operation("get_dead_letter", "A dead letter", {200: DeadLetter}, errors=(404,)),
    )
    async def get(letter_id: DeadLetterId) -> Response:
        return answer(dead_letter_view(await dead_letters.get_undropped(letter_id)))

    @router.post(
        "/{letter_id:int}/retry",
        **operation(
            "retry_dead_letter",
            "Retry the execution of a dead letter",
            {201: retries.Retried},
            errors=(404, 409),
        ),
    )
    async def retry(letter_id: DeadLetterId, request: Request) -> Response:
        retried = await dead_letters.retry(letter_id)
        note(request.scope, execution_id=retried.execution_id)
        return answer(retried.view(), 201)

    @router.delete(
        "/{letter_id:int}",
        **operation("drop_dead_letter", "Drop a dead letter", {204: None}, errors=(404, 409)),
    )
    async def drop(letter_id: DeadLetterId) -> Response:
        await dead_letters.drop(letter_id)
        return Response(status_code=204)


def _note_retries(request: Request, results: list[Retried]) -> None:
    """Add to the audit line which executions were started, and which dead letters closed."""
    execution_ids: list[str] = []
    closed_ids: list[int] = []
    for retried in results:
        if retried.execution_id is not None:
            execution_ids.append(retried.execution_id)
            closed_ids.extend(retried.dead_letters)
    note(
        request.scope,
        count=len(closed_ids),
        dead_letter_ids=closed_ids[:IDS_MAX],
        execution_ids=execution_ids[:IDS_MAX],
        failed=len(results) - len(execution_ids),
    )
