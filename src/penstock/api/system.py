"""Workers, orchestrators, queues, the audit log and API keys over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.api import body_schemas, schemas
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation
from penstock.api.paging import Cursor, Limit, Moment, moment, number_cursor, page
from penstock.errors import NotFound
from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.service.keys import SCOPES, includes
from penstock.stores.records import AuditLine, AuditSearch
from penstock.views.executions import time_text

Filter = Annotated[str | None, Query(max_length=1024)]


def routes(service: Service, fleet: Fleet) -> APIRouter:
    router = APIRouter(tags=["system"])
    cold = service.stores.cold

    def listing(path: str, operation_id: str, summary: str, model: Any, items: Any) -> None:
        @router.get(path, **operation(operation_id, summary, {200: schemas.page_of(model)}))
        async def listed() -> Response:
            return answer({"items": await items(), "next_cursor": None})

    listing("/workers", "list_workers", "Workers that are alive", schemas.Worker, fleet.workers)
    listing(
        "/orchestrators",
        "list_orchestrators",
        "Who owns which partitions",
        schemas.Orchestrator,
        fleet.orchestrators,
    )
    listing("/queues", "list_queues", "What waits and what runs", schemas.Queue, fleet.queues)

    @router.get(
        "/me", **operation("get_me", "Who calls, and all that they may do", {200: schemas.Me})
    )
    async def me(request: Request) -> Response:
        """`open`: no key was sent, and on this machine none is needed."""
        caller: Caller = request.scope[CALLER]
        view = {
            "open": not caller.key_id,
            "key_id": caller.key_id or None,
            "name": caller.name or None,
            "scopes": [scope for scope in SCOPES if includes(caller.scopes, scope)],
        }
        return answer(view)

    @router.get(
        "/audit",
        **operation(
            "list_audit",
            "Who did what, the newest first",
            {200: schemas.page_of(schemas.AuditItem)},
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
        return answer(page(lines, limit, _audit_view, lambda line: line.id))

    return router


def key_routes(service: Service, bodies: Bodies) -> APIRouter:
    router = APIRouter(prefix="/keys", tags=["keys"])

    @router.get(
        "",
        **operation(
            "list_keys",
            "API keys, without their secrets",
            {200: schemas.page_of(schemas.ListedKey)},
        ),
    )
    async def listed() -> Response:
        items = [
            {
                "id": key.id,
                "name": key.name,
                "scopes": list(key.scopes),
                "created_at": time_text(key.created_at),
                "revoked_at": time_text(key.revoked_at),
            }
            for key in await service.stores.cold.api_keys.keys()
        ]
        return answer({"items": items, "next_cursor": None})

    @router.post(
        "",
        **operation(
            "create_key", "Make an API key", {201: schemas.CreatedKey}, body=body_schemas.KEY
        ),
    )
    async def create(request: Request) -> Response:
        """The answer is the only place where the key can be seen."""
        body = await bodies.read(request, body_schemas.KEY)
        key, token = await service.keys.create(body["name"], body["scopes"])
        note(request.scope, f"keys/{key.id}", name=key.name, scopes=list(key.scopes))
        view = {
            "id": key.id,
            "name": key.name,
            "scopes": list(key.scopes),
            "key": token,
        }
        return answer(view, 201)

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


def _audit_view(line: AuditLine) -> dict[str, Any]:
    return {
        "id": line.id,
        "at": time_text(line.at),
        "key_id": line.key_id,
        "key_name": line.key_name,
        "action": line.action,
        "object": line.object,
        "address": line.address,
        "status": line.status,
        "detail": line.detail,
    }
