"""A shortcut past FastAPI for two frequent calls: start an execution, get an execution.

FastAPI spends four fifths of such a request on finding the route and preparing the call. A request
without parameters skips that and calls the same functions; all other requests go through FastAPI,
and so does the OpenAPI document. Access was checked before (`auth.Access`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.api.bodies import Bodies, answer
from penstock.api.executions import start_one
from penstock.api.problems import answer_to
from penstock.service import Service

EXECUTIONS = "/api/v1/executions"
ONE_EXECUTION = EXECUTIONS + "/"
KEY_HEADER = b"idempotency-key"

Call = Callable[[Request], Awaitable[Response]]


class Shortcut:
    """Answers the two frequent calls without FastAPI."""

    def __init__(self, app: ASGIApp, *, service: Service, bodies: Bodies) -> None:
        self._app = app
        self._service = service
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = None
        if scope["type"] == "http" and not scope["query_string"]:
            call = self._find_call(scope)
        if call is None:
            await self._app(scope, receive, send)
            return

        try:
            response = await call(Request(scope, receive))
        except Exception as error:  # noqa: BLE001 -- answered as by the app's exception handlers
            response = answer_to(error)
        await response(scope, receive, send)

    def _find_call(self, scope: Scope) -> Call | None:
        method: str = scope["method"]
        path: str = scope["path"]
        if method == "POST" and path == EXECUTIONS:
            has_key = any(name == KEY_HEADER for name, _ in scope["headers"])
            return None if has_key else self._start
        if method == "GET" and path.startswith(ONE_EXECUTION) and "/" not in _execution_id(path):
            return self._get
        return None

    async def _start(self, request: Request) -> Response:
        return await start_one(self._service, self._bodies, request)

    async def _get(self, request: Request) -> Response:
        execution_id = _execution_id(request.scope["path"])
        return answer(await self._service.executions.view(execution_id))


def _execution_id(path: str) -> str:
    return path[len(ONE_EXECUTION) :]
