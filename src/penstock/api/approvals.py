"""Approvals over HTTP."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, encode, number_cursor
from penstock.api.raw_path import is_route_word
from penstock.api.routing import Router
from penstock.service import Service
from penstock.service.approvals import Decider
from penstock.service.keys import SCOPES
from penstock.views.approvals import ApprovalItem, ApprovalLink, Decided
from penstock.views.pages import Page
from penstock.views.times import time_text

LINK_SECONDS = 86400.0


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(tags=["approvals"])

    @router.get(
        "/approvals",
        **operation(
            "list_approvals",
            "Open approvals, those that began first before others",
            {200: page_of(ApprovalItem)},
        ),
    )
    async def inbox(request: Request, cursor: Cursor = None, limit: Limit = 50) -> Response:
        """`may_decide` says which of them are the caller's to decide."""
        after = number_cursor(cursor) or 0
        items, last_id = await service.approvals.inbox(decider_of(request), after, limit)
        return answer(Page(items, None if last_id is None else encode(last_id)))

    @router.post(
        "/executions/{execution_id}/approvals/{node_id:path}/links",
        **operation(
            "make_approval_link",
            "Make a link with which somebody decides",
            {201: ApprovalLink},
            errors=(404, 409),
            body=body_schemas.APPROVAL_LINK,
        ),
    )
    async def make_link(execution_id: str, node_id: str, request: Request) -> Response:
        """For mail and chat. Opening the link shows a page, and only its buttons decide."""
        if not is_route_word(request, "links"):
            return await decide(execution_id, f"{node_id}/links", request)
        body = await bodies.read(request, body_schemas.APPROVAL_LINK)
        note(request.scope, node_id=node_id[:200], by=body["by"])
        seconds = body.get("seconds", LINK_SECONDS)
        token, expires_at = await service.approvals.link(
            execution_id, node_id, body["by"], seconds, decider_of(request)
        )
        url = f"{request.base_url}approve/{token}"
        return answer(ApprovalLink(url=url, expires_at=time_text(expires_at)), 201)

    @router.post(
        "/executions/{execution_id}/approvals/{node_id:path}",
        **operation(
            "decide_approval",
            "Approve or reject",
            {200: Decided},
            errors=(404, 409),
            body=body_schemas.DECISION,
        ),
    )
    async def decide(execution_id: str, node_id: str, request: Request) -> Response:
        """Of two decisions that exclude each other the first counts; the second gets 409."""
        body = await bodies.read(request, body_schemas.DECISION)
        note(request.scope, node_id=node_id[:200], decision=body["decision"])
        decided = await service.approvals.decide(
            execution_id,
            node_id,
            body["decision"],
            decider_of(request, body.get("by")),
            comment=body.get("comment"),
            form=body.get("form"),
        )
        return answer(decided)

    return router


def decider_of(request: Request, name: str | None = None) -> Decider:
    """Who sends the request. Only where no key is needed may a caller name itself."""
    caller: Caller = request.scope.get(CALLER, Caller())
    if caller.key_id:
        return Decider(f"key {caller.name}", caller.key_id, caller.scopes)
    return Decider(name or "", "", caller.scopes or SCOPES)
