"""Workers, orchestrators, queues, the audit log and API keys over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, Moment, moment, number_cursor, page
from penstock.api.parameters import Query
from penstock.api.routing import Router
from penstock.errors import NotFound
from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.service.keys import SCOPES, includes
from penstock.stores.records import AuditSearch
from penstock.views.access import (
    AuditItem,
    CreatedKey,
    ListedKey,
    Me,
    audit_view,
    created_key_view,
    listed_key_view,
)
from penstock.views.fleet import Orchestrator, Queue, Worker
from penstock.views.pages import Page

Filter = Annotated[str | None, Query(max_length=1024)]


def routes(service: Service, fleet: Fleet) -> Router:
    router = Router(tags=["system"])
    cold = service.stores.cold

    def listing(
        path: str,
        operation_id: str,
        summary: str,
        item: type[msgspec.Struct],
        items: Callable[[], Awaitable[Sequence[msgspec.Struct]]],
    ) -> None:
        @router.get(path, **operation(operation_id, summary, {200: page_of(item)}))
        async def listed() -> Response:
            return answer(Page(list(await items())))

    listing("/workers", "list_workers", "Workers that are alive", Worker, fleet.workers)
    listing(
        "/orchestrators",
        "list_orchestrators",
        "Who owns which partitions",
        Orchestrator,
        fleet.orchestrators,
    )
    listing("/queues", "list_queues", "What waits and what runs", Queue, fleet.queues)

    @router.get("/me", **operation("get_me", "Who calls, and all that they may do", {200: Me}))
    async def me(request: Request) -> Response:
        """`open`: no key was sent, and on this machine none is needed."""
        caller: Caller = request.scope[CALLER]
        view = Me(
            open=not caller.key_id,
            key_id=caller.key_id or None,
            name=caller.name or None,
            scopes=[scope for scope in SCOPES if includes(caller.scopes, scope)],
        )
        return answer(view)

    @router.get(
        "/audit",
        **operation(
            "list_audit",
            "Who did what, the newest first",
            {200: page_of(AuditItem)},
        ),
    )
    async def audit(  # noqa: PLR0913, PLR0917 -- the filters
        key: Filter = None,
        action: Filter = None,
        about: Annotated[str | None, Query(alias="object", max_length=1024)] = None,
        since: Moment = None,
        until: Moment = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        search = AuditSearch(
            key_id=key,
            action=action,
            object=about,
            since=moment(since, "since"),
            until=moment(until, "until"),
            before=number_cursor(cursor),
            limit=limit + 1,
        )
        lines = await cold.audit_log.audit(search)
        return answer(page(lines, limit, audit_view, lambda line: line.id))

    return router


def key_routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/keys", tags=["keys"])

    @router.get(
        "",
        **operation(
            "list_keys",
            "API keys, without their secrets",
            {200: page_of(ListedKey)},
        ),
    )
    async def listed() -> Response:
        keys = await service.stores.cold.api_keys.keys()
        return answer(Page([listed_key_view(key) for key in keys]))

    @router.post(
        "",
        **operation("create_key", "Make an API key", {201: CreatedKey}, body=body_schemas.KEY),
    )
    async def create(request: Request) -> Response:
        """The answer is the only place where the key can be seen."""
        body = await bodies.read(request, body_schemas.KEY)
        key, token = await service.keys.create(body["name"], body["scopes"])
        note(request.scope, f"keys/{key.id}", name=key.name, scopes=list(key.scopes))
        return answer(created_key_view(key, token), 201)

    @router.delete(
        "/{key_id}", **operation("revoke_key", "Revoke an API key", {204: None}, errors=(404,))
    )
    async def revoke(key_id: str, request: Request) -> Response:
        names = [key.name for key in await service.keys.list() if key.id == key_id]
        note(request.scope, name=names[0] if names else None)
        if not await service.keys.revoke(key_id):
            raise NotFound(f"there is no key {key_id!r} that could be revoked")
        return Response(status_code=204)

    return router
