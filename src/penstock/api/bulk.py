"""Bulk requests: a control request or a retry for many executions, with one answer each.

If it can't be done for one of them, its answer says why; the others aren't affected.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.audit_log import IDS_MAX, note, skip_audit
from penstock.api.bodies import Bodies, answer, invalid_request
from penstock.api.describing import operation, page_of
from penstock.api.problems import problem_of
from penstock.api.rate_limit import charge
from penstock.api.routing import Router
from penstock.service import Service
from penstock.stores.base import ControlRequest
from penstock.views.pages import Page
from penstock.views.retries import BulkItem

BulkControl: TypeAlias = ControlRequest | Literal["retry"]
RETRY: Final = "retry"
REQUESTS_AT_ONCE_MAX = 16
"""Executions of one call that are handled at once, so that other calls get their turn."""


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/executions", tags=["executions"])

    @router.post(
        "/bulk",
        **operation(
            "steer_executions",
            "Cancel, pause, resume or retry many executions",
            {200: page_of(BulkItem)},
            body=body_schemas.BULK,
        ),
    )
    async def bulk(request: Request) -> Response:
        """One answer each, in the same order. `preview` only says what a retry would run."""
        body = await bodies.read(request, body_schemas.BULK)
        control = body["action"]
        execution_ids = body["execution_ids"]
        preview = body.get("preview", False)
        if preview and control != RETRY:
            raise invalid_request(
                [("preview", f"only a retry has a preview; leave it out to {control} them")]
            )

        await charge(request.scope, len(execution_ids))
        items = await _do_all(service, control, execution_ids, preview=preview)
        if preview:
            skip_audit(request.scope)
        else:
            done = [item.execution_id for item in items if item.ok]
            note(
                request.scope,
                action=control,
                count=len(items),
                done=len(done),
                execution_ids=done[:IDS_MAX],
            )
        return answer(Page(items))

    return router


async def _do_all(
    service: Service, control: BulkControl, execution_ids: list[str], *, preview: bool
) -> list[BulkItem]:
    slots = asyncio.Semaphore(REQUESTS_AT_ONCE_MAX)

    async def do_one(execution_id: str) -> BulkItem:
        item = BulkItem(
            execution_id=execution_id, ok=True, made=None, runs=None, keeps=None, error=None
        )
        try:
            async with slots:
                if control == RETRY:
                    await _retry(service, item, preview=preview)
                else:
                    await service.executions.request_control(execution_id, control)
        except Exception as error:  # noqa: BLE001 -- it must not fail the other executions
            item.ok = False
            item.error = problem_of(error)
        return item

    return await asyncio.gather(*map(do_one, execution_ids))


async def _retry(service: Service, item: BulkItem, *, preview: bool) -> None:
    if preview:
        plan = await service.retries.preview(item.execution_id)
    else:
        item.made, plan = await service.retries.retry(item.execution_id)
    item.runs = plan.runs
    item.keeps = plan.reused
