"""The OpenAPI document, made from routes, their descriptions, parameters and views."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from types import new_class
from typing import Any

import msgspec

from penstock.api.body_schemas import BODIES
from penstock.api.parameters import REFERENCE
from penstock.api.problems import MEDIA_TYPE
from penstock.api.routing import Route
from penstock.views.pages import Page
from penstock.views.problems import ProblemDocument

ERRORS = {
    400: "The body isn't JSON, or a parameter can't be read",
    401: "No API key, or not a valid one",
    403: "The key's scope doesn't allow it, or the request comes from a foreign page",
    404: "There is none",
    408: "The request didn't come in time",
    409: "The state doesn't allow it",
    413: "The body is too large, or has more items than the rate limit allows at once",
    414: "The URL is too long",
    415: "The body isn't application/json",
    421: "The request is for another host",
    422: "The request, the document or the input is wrong; `problems` has every reason",
    431: "The headers are too large, or too many",
    429: "Too many requests; `Retry-After` says when",
    500: "Something broke in the service",
    503: "The store can't be reached now; `Retry-After` says when",
}
ALWAYS = (400, 401, 403, 408, 414, 421, 429, 431, 500, 503)
WITH_BODY = (413, 415, 422)

View = type[msgspec.Struct]
_views: dict[str, View] = {"ProblemDocument": ProblemDocument}
"""What routes answer with, by the name of its schema."""


@cache
def page_of(item: View) -> View:
    """The type of a page of a list, with a name of its own for its schema."""
    page: View = new_class(f"{item.__name__}Page", (Page[item],))  # type: ignore[valid-type]
    return page


def operation(  # noqa: PLR0913 -- the parts of a description
    operation_id: str,
    summary: str,
    answers: Mapping[int, View | None],
    *,
    errors: tuple[int, ...] = (),
    body: Mapping[str, Any] | None = None,
    body_required: bool = True,
) -> dict[str, Any]:
    """The description of a route, for its decorator."""
    responses: dict[int | str, dict[str, Any]] = {}
    for status, view in answers.items():
        responses[status] = {"description": summary}
        if view is not None:
            content = {"application/json": {"schema": _reference_to(view)}}
            responses[status]["content"] = content

    error_statuses = {*ALWAYS, *errors, 422}
    if body is not None:
        error_statuses.update(WITH_BODY)
    for status in sorted(error_statuses):
        responses[status] = {
            "description": ERRORS[status],
            "content": {MEDIA_TYPE: {"schema": _reference_to(ProblemDocument)}},
        }

    description: dict[str, Any] = {
        "operationId": operation_id,
        "summary": summary,
        "responses": responses,
    }
    if body is not None:
        content = {"application/json": {"schema": {"$ref": REFERENCE.format(name=body["title"])}}}
        description["requestBody"] = {"required": body_required, "content": content}
    return description


def _reference_to(view: View) -> dict[str, str]:
    name = view.__name__
    if _views.setdefault(name, view) is not view:
        raise TypeError(f"two views are called {name}: {view!r} and {_views[name]!r}")
    return {"$ref": REFERENCE.format(name=name)}


def _view_schemas() -> dict[str, dict[str, Any]]:
    """The schemas of all answers, by name."""
    views = [_views[name] for name in sorted(_views)]
    _, schemas = msgspec.json.schema_components(views, ref_template=REFERENCE)
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = " ".join(inspect.cleandoc(schema["description"]).split())
        for field in schema["properties"].values():
            # it would say that the field may be missing, and is null then
            if field.get("default", ...) is None:
                del field["default"]
    return dict(sorted(schemas.items()))


def openapi_document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """The OpenAPI document of those routes that have a description."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for route in routes:
        if route.description:
            paths.setdefault(route.path_format, {})[route.method.lower()] = route.describe()
            for parameter in route.parameters:
                schemas.update(parameter.schemas())
    schemas.update(_view_schemas())
    for body in BODIES:
        schemas[body["title"]] = body
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock",
            "summary": "Durable workflows over HTTP",
            "description": "Start, watch and control executions of workflows."
            " Errors are RFC 9457 problem documents.",
            "version": version,
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }
