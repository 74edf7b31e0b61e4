"""Routes: functions that answer requests, each for a method and a path.

    router = Router(prefix="/executions", tags=["executions"])

    @router.get("/{execution_id}", **operation("get_execution", "An execution", …))
    async def get(execution_id: str, nodes: Nodes = True) -> Response: ...

The function gets its arguments from the request (`parameters`), and the request itself where an
argument is annotated so. A route without a description isn't in the OpenAPI document.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Receive, Scope, Send

from penstock.api.bodies import invalid_request
from penstock.api.parameters import Parameters

ENDPOINT = "penstock.endpoint"
"""The key in a request's ASGI scope for the `Route` that answers it."""

Endpoint = Callable[..., Awaitable[Response]]
EndpointT = TypeVar("EndpointT", bound=Endpoint)


class Route:
    """A function that answers the requests for a method and a path."""

    def __init__(
        self, method: str, path: str, endpoint: Endpoint, description: dict[str, Any]
    ) -> None:
        """`description` has the members of the route's operation in the OpenAPI document."""
        self.method = method
        self.path = path
        self.endpoint = endpoint
        self.description = description
        self.methods = frozenset({method})
        self.path_regex, self.path_format, names = compile_path(path)
        self.parameters = Parameters(endpoint, frozenset(names))

    async def answer(self, request: Request) -> Response:
        arguments, mistakes = self.parameters.read(request)
        if mistakes:
            raise invalid_request(mistakes)
        return await self.endpoint(**arguments)

    def describe(self) -> dict[str, Any]:
        """The route's operation in the OpenAPI document."""
        responses = self.description["responses"]
        described = {
            **self.description,
            "responses": {str(status): response for status, response in responses.items()},
        }
        text = inspect.getdoc(self.endpoint)
        if text:
            described.setdefault("description", text)
        parameters = [parameter.describe() for parameter in self.parameters]
        if parameters:
            described["parameters"] = parameters
        return described


class Router(BaseRoute):
    """Routes, as one route of a Starlette application."""

    def __init__(
        self, *, prefix: str = "", tags: Iterable[str] = (), route_class: type[Route] = Route
    ) -> None:
        self.routes: list[Route] = []
        self._prefix = prefix
        self._tags = list(tags)
        self._route_class = route_class
        self._by_method: dict[str, list[tuple[str, Route]]] = {}
        """Routes by method, each with the part of its path before the first parameter.

        A request's path is compared with that part first, which rules out most routes.
        """

    def get(self, path: str, **description: Any) -> Callable[[EndpointT], EndpointT]:
        return self._decorator("GET", path, description)

    def post(self, path: str, **description: Any) -> Callable[[EndpointT], EndpointT]:
        return self._decorator("POST", path, description)

    def put(self, path: str, **description: Any) -> Callable[[EndpointT], EndpointT]:
        return self._decorator("PUT", path, description)

    def delete(self, path: str, **description: Any) -> Callable[[EndpointT], EndpointT]:
        return self._decorator("DELETE", path, description)

    def _decorator(
        self, method: str, path: str, description: dict[str, Any]
    ) -> Callable[[EndpointT], EndpointT]:
        def register(endpoint: EndpointT) -> EndpointT:
            self.add(method, path, endpoint, **description)
            return endpoint

        return register

    def add(self, method: str, path: str, endpoint: Endpoint, **description: Any) -> None:
        if description and self._tags:
            description = {"tags": self._tags, **description}
        self._append(self._route_class(method, self._prefix + path, endpoint, description))

    def include(self, router: Router, *, prefix: str = "") -> None:
        """Add the routes of another router, after those that are there."""
        for route in router.routes:
            path = prefix + route.path
            self._append(type(route)(route.method, path, route.endpoint, route.description))

    def _append(self, route: Route) -> None:
        start, _, _ = route.path.partition("{")
        self.routes.append(route)
        self._by_method.setdefault(route.method, []).append((start, route))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """The first route for the request's method and path."""
        if scope["type"] != "http":
            return Match.NONE, {}
        path = path_of(scope)
        for start, route in self._by_method.get(scope["method"], ()):
            if path.startswith(start):
                match = route.path_regex.match(path)
                if match:
                    return Match.FULL, {ENDPOINT: route, "path_params": match.groupdict()}
        for route in self.routes:
            if route.path_regex.match(path):
                return Match.PARTIAL, {ENDPOINT: route}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: Route = scope[ENDPOINT]
        if scope["method"] != route.method:
            raise HTTPException(405, headers={"Allow": route.method})
        response = await route.answer(Request(scope, receive, send))
        await response(scope, receive, send)


def path_of(scope: Scope) -> str:
    """The path as routes have it: without the path that the app is mounted under."""
    path: str = scope["path"]
    root = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path


def routes_of(app: Starlette) -> Iterator[Any]:
    """All routes of an application, in the order in which they are tried."""
    for route in app.routes:
        if isinstance(route, Router):
            yield from route.routes
        else:
            yield route
