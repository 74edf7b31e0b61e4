"""A shortcut past FastAPI for two frequent calls: start an execution, look at one.

Of what such a request costs in FastAPI, four fifths are finding the route and preparing the call. A
plain one, without parameters, goes past that to the same functions; anything else takes the usual
way, and so does everything about the OpenAPI document. Who may call was decided before
(`auth.Access`).
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
        self._app, self._service, self._bodies = app, service, bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._call(scope) if scope["type"] == "http" and not scope["query_string"] else None
        if call is None:
            await self._app(scope, receive, send)
            return
        try:
            response = await call(Request(scope, receive))
        except Exception as error:  # noqa: BLE001 -- whatever it is has an answer, as on the usual way
            response = answer_to(error)
        await response(scope, receive, send)

    def _call(self, scope: Scope) -> Call | None:
        path: str = scope["path"]
        if path == EXECUTIONS and scope["method"] == "POST":
            return None if any(name == KEY_HEADER for name, _ in scope["headers"]) else self._start
        if (
            scope["method"] == "GET"
            and path.startswith(ONE_EXECUTION)
            and "/" not in path[len(ONE_EXECUTION) :]
        ):
            return self._look
        return None

    async def _start(self, request: Request) -> Response:
        return await start_one(self._service, self._bodies, request)

    async def _look(self, request: Request) -> Response:
        return answer(
            await self._service.executions.view(request.scope["path"][len(ONE_EXECUTION) :])
        )
