"""Dead letters over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.api import body_schemas, schemas
from penstock.api.audit_log import IDS_MAX, note, skip_audit
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation
from penstock.api.executions import retry_view
from penstock.api.paging import Cursor, Limit, number_cursor, page
from penstock.api.problems import problem_of
from penstock.api.rate_limit import charge
from penstock.errors import NotFound
from penstock.service import Service
from penstock.service.dead_letters import DeadLetters, Retried, dead_letter_view
from penstock.stores.records import DeadLetterSearch

Filter = Annotated[str | None, Query(max_length=1024)]
DeadLetterId = Annotated[int, Path(ge=1, le=2**53)]
"""The id of a dead letter in the path.

The parameter is `letter_id` in the OpenAPI document, which is public.
"""


def routes(service: Service, bodies: Bodies) -> APIRouter:
    router = APIRouter(prefix="/dead-letters", tags=["dead letters"])
    dead_letters = service.dead_letters

    @router.get(
        "",
        **operation(
            "list_dead_letters",
            "Nodes that used up their attempts, the newest first",
            {200: schemas.page_of(schemas.DeadLetter)},
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
        return answer(
            page(await dead_letters.page(search), limit, dead_letter_view, lambda row: row.id)
        )

    @router.post(
        "/retry",
        **operation(
            "retry_dead_letters",
            "Retry many: one new execution for each that they belong to",
            {200: schemas.page_of(schemas.RetriedLetters)},
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
        if body.get("preview"):
            skip_audit(request.scope)
        if "ids" in body:
            await charge(request.scope, len(body["ids"]))
            rows = [await dead_letters.get(dead_letter_id) for dead_letter_id in body["ids"]]
        else:
            rows = await dead_letters.page(search)
            await charge(request.scope, len(rows))
        done = await dead_letters.retry_many(rows, preview=body.get("preview", False))
        if not body.get("preview"):
            retried = [each.execution_id for each in done if each.execution_id is not None]
            closed = [
                dead_letter_id
                for each in done
                if each.execution_id is not None
                for dead_letter_id in each.dead_letters
            ]
            note(
                request.scope,
                count=len(closed),
                dead_letter_ids=closed[:IDS_MAX],
                execution_ids=retried[:IDS_MAX],
                failed=len(done) - len(retried),
            )
        return answer({"items": [_retried(each) for each in done], "next_cursor": None})

    @router.post(
        "/drop",
        **operation(
            "drop_dead_letters",
            "Drop many dead letters",
            {200: schemas.DroppedLetters},
            body=body_schemas.DROP_DEAD_LETTERS,
        ),
    )
    async def drop_many(request: Request) -> Response:
        """Those that are closed already, or aren't there, stay as they are and aren't counted."""
        body = await bodies.read(request, body_schemas.DROP_DEAD_LETTERS)
        await charge(request.scope, len(body["ids"]))
        dropped = await dead_letters.drop_many(body["ids"])
        note(request.scope, count=dropped, dead_letter_ids=body["ids"][:IDS_MAX])
        return answer({"dropped": dropped})

    _dead_letter_routes(router, dead_letters)
    return router


def _dead_letter_routes(router: APIRouter, dead_letters: DeadLetters) -> None:
    @router.get(
        "/{letter_id:int}",
        **operation("get_dead_letter", "A dead letter", {200: schemas.DeadLetter}, errors=(404,)),
    )
    async def get(letter_id: DeadLetterId) -> Response:
        row = await dead_letters.get(letter_id)
        if row.closed == "dropped":
            raise NotFound(
                f"the dead letter {letter_id} was dropped; the list with closed=true still has it"
            )
        return answer(dead_letter_view(row))

    @router.post(
        "/{letter_id:int}/retry",
        **operation(
            "retry_dead_letter",
            "Retry the execution of a dead letter",
            {201: schemas.Retried},
            errors=(404, 409),
        ),
    )
    async def retry(letter_id: DeadLetterId, request: Request) -> Response:
        done = await dead_letters.retry(letter_id)
        note(request.scope, execution_id=done.execution_id)
        return answer(_retried(done), 201)

    @router.delete(
        "/{letter_id:int}",
        **operation("drop_dead_letter", "Drop a dead letter", {204: None}, errors=(404, 409)),
    )
    async def drop(letter_id: DeadLetterId) -> Response:
        await dead_letters.drop(letter_id)
        return Response(status_code=204)


def _retried(done: Retried) -> dict[str, Any]:
    shown: dict[str, Any] = {"retry_of": done.retry_of, "letters": done.dead_letters}
    if done.plan is not None:
        shown |= retry_view(done.execution_id, done.retry_of, done.plan)
    if done.error is not None:
        shown["error"] = problem_of(done.error)
    return shown
