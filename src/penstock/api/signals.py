"""Signals over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import IDS_MAX, note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, encode, number_cursor
from penstock.api.parameters import Header, Query
from penstock.api.routing import Router
from penstock.service import Service
from penstock.service.signals import TTL_SECONDS
from penstock.views.pages import Page
from penstock.views.signals import PostedSignal, SentSignal, SignalItem, WaitItem

OnceKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Send it once, however often this is repeated within a day.",
    ),
]


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(tags=["signals"])
    _correlation_routes(router, service, bodies)

    async def send(
        request: Request, execution_id: str, name: str, body: dict[str, Any], key: str | None
    ) -> Response:
        caller: Caller = request.scope.get(CALLER, Caller())
        sent = await service.signals.send(
            execution_id,
            name,
            body.get("payload"),
            correlation=body.get("correlation"),
            sender=sender_of(caller),
            idempotency_key=None if key is None else f"{caller.key_id} {key}",
        )
        note(request.scope, name=name[:200], number=sent.number)
        return answer(sent, 202)

    @router.post(
        "/executions/{execution_id}/signals",
        **operation(
            "send_signal",
            "Send a signal",
            {202: SentSignal},
            errors=(404, 409),
            body=body_schemas.SIGNAL,
        ),
    )
    async def send_named(
        execution_id: str, request: Request, idempotency_key: OnceKey = None
    ) -> Response:
        """It is stored when this has answered, also if nobody waits for it yet."""
        body = await bodies.read(request, body_schemas.SIGNAL)
        return await send(request, execution_id, body["name"], body, idempotency_key)

    @router.post(
        "/executions/{execution_id}/signals/{name}",
        **operation(
            "send_signal_by_name",
            "Send a signal",
            {202: SentSignal},
            errors=(404, 409),
            body=body_schemas.SIGNAL_PAYLOAD,
            body_required=False,
        ),
    )
    async def send_by_name(
        execution_id: str, name: str, request: Request, idempotency_key: OnceKey = None
    ) -> Response:
        """As `POST …/signals`, with the name in the path."""
        body = await bodies.read(request, body_schemas.SIGNAL_PAYLOAD, empty={})
        return await send(request, execution_id, name, body, idempotency_key)

    @router.get(
        "/executions/{execution_id}/signals",
        **operation(
            "list_signals", "Its signals, by number", {200: page_of(SignalItem)}, errors=(404,)
        ),
    )
    async def listed(
        execution_id: str,
        name: Annotated[str | None, Query(max_length=128, description="Of this name.")] = None,
    ) -> Response:
        return answer(Page(await service.signals.listed(execution_id, name)))

    return router


def _correlation_routes(router: Router, service: Service, bodies: Bodies) -> None:
    @router.post(
        "/signals/{name}",
        **operation(
            "post_signal",
            "Send a signal to whoever waits for its correlation",
            {202: PostedSignal},
            body=body_schemas.POST_SIGNAL,
        ),
    )
    async def post(name: str, request: Request) -> Response:
        """For webhooks, which know no execution's id. It may come before a node waits for it."""
        body = await bodies.read(request, body_schemas.POST_SIGNAL)
        caller: Caller = request.scope.get(CALLER, Caller())
        posted = await service.signals.post(
            name,
            body["correlation"],
            body.get("payload"),
            ttl_seconds=body.get("ttl_seconds", TTL_SECONDS),
            to_all=body.get("to") == "all",
            sender=sender_of(caller),
        )
        execution_ids = [sent.execution_id for sent in posted.delivered]
        note(request.scope, execution_ids=execution_ids[:IDS_MAX])
        return answer(posted, 202)

    @router.get(
        "/waits",
        **operation("list_waits", "Nodes that wait for signals", {200: page_of(WaitItem)}),
    )
    async def waits(
        name: Annotated[str | None, Query(max_length=128, description="For this name.")] = None,
        correlation: Annotated[str | None, Query(max_length=512)] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        """A page may have fewer items than its limit, also if others follow."""
        after = number_cursor(cursor) or 0
        items, last_id = await service.signals.waits(name, correlation, after, limit)
        return answer(Page(items, None if last_id is None else encode(last_id)))


def sender_of(caller: Caller) -> str:
    """Who sends a signal, as its receiver sees it."""
    return f"key {caller.name}" if caller.key_id else ""
