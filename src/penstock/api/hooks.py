"""Webhooks over HTTP: the address that senders send to, and the hooks themselves.

The address needs no key: a request has its signature. Nothing parses its body before that is
checked, so the body is read here, as the bytes that came.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import AUDIT, line_of, note, skip_audit
from penstock.api.auth import was_forwarded
from penstock.api.bodies import Bodies, answer
from penstock.api.client_address import limited_part
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, number_cursor, page
from penstock.api.parameters import Path
from penstock.api.problems import Refused
from penstock.api.rate_limit import OFF, MemoryRateLimitStorage, RateLimitStorage, parse_limit
from penstock.api.routing import Router
from penstock.config import is_loopback
from penstock.definition.hooks import CompiledHook
from penstock.service import Service
from penstock.service.hooks import (
    BODY_BYTES_MAX,
    BUSY_SECONDS,
    BadRequest,
    Handling,
    HookUnusable,
    MessageBusy,
    RawRequest,
)
from penstock.stores.records import AuditLine
from penstock.views.hooks import (
    DeliveryItem,
    HookAnswer,
    HookItem,
    HookTrial,
    StoredHook,
    delivery_view,
    hook_view,
    stored_hook_view,
)
from penstock.views.pages import Page

UNUSABLE_SECONDS = 60
JSON_TYPE = "application/json"
DeliveryId = Annotated[int, Path(ge=1, le=2**53)]


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/hooks", tags=["hooks"])
    _hook_routes(router, service, bodies)
    _delivery_routes(router, service, bodies)
    return router


def _hook_routes(router: Router, service: Service, bodies: Bodies) -> None:
    @router.get("", **operation("list_hooks", "Hooks, by id", {200: page_of(HookItem)}))
    async def listed() -> Response:
        return answer(Page([hook_view(row) for row in await service.hooks.rows()]))

    @router.get("/{hook_id}", **operation("get_hook", "A hook", {200: HookItem}, errors=(404,)))
    async def get(hook_id: str) -> Response:
        return answer(hook_view(await service.hooks.row(hook_id)))

    @router.put(
        "/{hook_id}",
        **operation(
            "put_hook",
            "Store a hook",
            {200: StoredHook, 201: StoredHook},
            errors=(404,),
            body=body_schemas.HOOK,
        ),
    )
    async def put(hook_id: str, request: Request) -> Response:
        """Its secrets are named in it, and must be in the service's settings."""
        body = await bodies.read(request, body_schemas.HOOK)
        row, created = await service.hooks.put(body, hook_id)
        return answer(stored_hook_view(row, created=created), 201 if created else 200)

    @router.delete(
        "/{hook_id}", **operation("delete_hook", "Delete a hook", {204: None}, errors=(404,))
    )
    async def delete(hook_id: str) -> Response:
        """Its deliveries are deleted too."""
        await service.hooks.delete(hook_id)
        return Response(status_code=204)


def _delivery_routes(router: Router, service: Service, bodies: Bodies) -> None:
    @router.get(
        "/{hook_id}/deliveries",
        **operation(
            "list_deliveries",
            "Its deliveries, the newest first",
            {200: page_of(DeliveryItem)},
            errors=(404,),
        ),
    )
    async def deliveries(hook_id: str, cursor: Cursor = None, limit: Limit = 50) -> Response:
        """The last 200. Requests whose signature was wrong aren't among them."""
        rows = await service.hooks.deliveries(hook_id, number_cursor(cursor), limit + 1)
        return answer(page(rows, limit, delivery_view, lambda delivery: delivery.id))

    @router.post(
        "/{hook_id}/deliveries/{delivery_id}/redeliver",
        **operation(
            "redeliver",
            "Handle the request of a delivery again",
            {200: HookAnswer, 202: HookAnswer},
            errors=(404, 409),
        ),
    )
    async def redeliver(hook_id: str, delivery_id: DeliveryId, request: Request) -> Response:
        """Also if it was handled before: what it started then is started again."""
        handling = await service.hooks.redeliver(hook_id, delivery_id)
        note(request.scope, delivery_id=delivery_id, **_noted(handling))
        return answer(handling.answer, handling.status)

    @router.post(
        "/{hook_id}/test",
        **operation(
            "test_hook",
            "What a hook would do with a request",
            {200: HookTrial},
            errors=(404,),
            body=body_schemas.HOOK_TEST,
        ),
    )
    async def test(hook_id: str, request: Request) -> Response:
        """Nothing is done, and no signature is checked."""
        body = await bodies.read(request, body_schemas.HOOK_TEST)
        headers = body.get("headers", {})
        trial = await service.hooks.try_out(
            hook_id, body.get("body"), headers, body.get("query", {})
        )
        return answer(trial)


def request_routes(service: Service, rate_limit_storage: RateLimitStorage | None) -> Router:
    """The address that senders send to."""
    storage = rate_limit_storage or MemoryRateLimitStorage()
    router = Router()

    @router.post("/hooks/{hook_id}")
    async def receive(hook_id: str, request: Request) -> Response:
        # A refused request leaves no line: else anybody could fill the log.
        skip_audit(request.scope)
        caller: Caller = request.scope.get(CALLER, Caller())
        body = await _body(request)
        try:
            hook = await service.hooks.find(hook_id)
            await _enter(storage, hook, f"address:{limited_part(caller.address)}")
            raw = RawRequest(_headers(request), dict(request.query_params), body)
            _check_type(hook, raw)
            accepted = await service.hooks.accept(hook, raw, is_from_here=_is_from_here(request))
            await _enter(storage, hook, "signed")
        except BadRequest as error:
            raise Refused(401, "unauthorized", str(error)) from None
        except HookUnusable as error:
            wait = {"Retry-After": str(UNUSABLE_SECONDS)}
            raise Refused(503, "unavailable", str(error), headers=wait) from None

        line = _audit_line(request)
        try:
            handling = await service.hooks.handle(accepted, line)
        except MessageBusy as error:
            wait = {"Retry-After": str(BUSY_SECONDS)}
            raise Refused(409, "in_progress", str(error), headers=wait) from None
        if handling.outcome == "signalled" and not handling.replayed:
            request.scope.pop(AUDIT, None)
            note(request.scope, f"hooks/{hook.id}", **_noted(handling))
        headers = {"Idempotency-Replayed": "true"} if handling.replayed else None
        return answer(handling.answer, handling.status, headers)

    @router.get("/hooks/{hook_id}")
    async def challenge(hook_id: str, request: Request) -> Response:
        caller: Caller = request.scope.get(CALLER, Caller())
        try:
            hook = await service.hooks.find(hook_id)
            await _enter(storage, hook, f"address:{limited_part(caller.address)}")
            text = await service.hooks.challenge(hook, dict(request.query_params))
        except BadRequest as error:
            raise Refused(401, "unauthorized", str(error)) from None
        except HookUnusable as error:
            wait = {"Retry-After": str(UNUSABLE_SECONDS)}
            raise Refused(503, "unavailable", str(error), headers=wait) from None
        # plain text that no browser takes for a page
        return Response(
            text, media_type="text/plain", headers={"X-Content-Type-Options": "nosniff"}
        )

    return router


async def _body(request: Request) -> bytes:
    """The body as it came. Raises `Refused` for one that is too large."""
    length = request.headers.get("content-length", "")
    is_too_large = length.isdecimal() and int(length) > BODY_BYTES_MAX
    parts: list[bytes] = []
    size = 0
    try:
        if not is_too_large:
            async for part in request.stream():
                size += len(part)
                is_too_large = size > BODY_BYTES_MAX
                if is_too_large:
                    break
                parts.append(part)
    except ClientDisconnect:
        raise Refused(
            400, "incomplete_body", "the connection ended before the body was complete"
        ) from None
    if is_too_large:
        raise Refused(
            413,
            "body_too_large",
            f"the body has more than {BODY_BYTES_MAX:,} bytes, which is the limit of hooks",
        )
    return b"".join(parts)


def _headers(request: Request) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _check_type(hook: CompiledHook, raw: RawRequest) -> None:
    """A page of another site can send forms and texts here, and no signature would stop it."""
    if hook.document.verify == "none":
        media_type = raw.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != JSON_TYPE:
            detail = "send the body as JSON, with the header 'Content-Type: application/json'"
            raise Refused(415, "unsupported_media_type", detail)


def _is_from_here(request: Request) -> bool:
    client = request.client
    return client is not None and is_loopback(client.host) and not was_forwarded(request.scope)


async def _enter(storage: RateLimitStorage, hook: CompiledHook, who: str) -> None:
    """Count a request. Raises `Refused` over the hook's rate limit.

    By address before the signature is checked, so that nobody without the secret can shut the
    sender out; and all that are signed together.
    """
    if hook.document.rate_limit == OFF:
        return
    limit = parse_limit(hook.document.rate_limit)
    key = limit.key_for("hook", f"{hook.id}/{who}")
    entered = await storage.enter(key, limit.amount, limit.seconds)
    if not entered.let_in:
        seconds = max(1, round(entered.reset_seconds + 0.5))
        raise Refused(
            429,
            "rate_limited",
            f"this hook takes {hook.document.rate_limit}; wait for {seconds} s",
            headers={"Retry-After": str(seconds)},
        )


def _audit_line(request: Request) -> AuditLine | None:
    """The line that is written with an execution that is started."""
    skipped = request.scope.pop(AUDIT, None)
    line = line_of(request.scope, 202)
    request.scope[AUDIT] = skipped
    return line


def _noted(handling: Handling) -> dict[str, Any]:
    execution_id = handling.answer.execution_id
    noted = {"outcome": handling.outcome}
    return noted if execution_id is msgspec.UNSET else {**noted, "execution_id": execution_id}
