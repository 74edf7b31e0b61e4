"""Workflows over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.audit_log import note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, page, text_cursor
from penstock.api.parameters import Path, Query
from penstock.api.raw_path import is_route_word
from penstock.api.routing import Router
from penstock.definition.positions import located
from penstock.definition.problems import Problem
from penstock.errors import InvalidWorkflow
from penstock.service import Service
from penstock.service.workflows import ALIAS, Workflows
from penstock.stores.records import LATEST
from penstock.views import workflows as views
from penstock.views.graphs import WorkflowGraph
from penstock.views.pages import Page

LOCATED_BYTES_MAX = 256 * 1024
"""Of a larger body, the lines of its problems aren't looked up: that takes a while."""
Strict = Annotated[bool, Query(description="Unknown fields are errors.")]
AllowUnknown = Annotated[
    bool, Query(description="Handlers that no worker has registered yet are fine.")
]
WithGraph = Annotated[
    bool, Query(description="Also the nodes and edges of a document without mistakes, as `graph`.")
]
Alias = Annotated[
    str, Path(pattern=f"^{ALIAS.pattern}$", description="Any but `latest`, which moves by itself.")
]
Tag = Annotated[
    str | None, Query(description="A number or an alias; the newest if left out.", max_length=64)
]


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/workflows", tags=["workflows"])
    _put_routes(router, service.workflows, bodies)
    _graph_routes(router, service.workflows)  # before the names, which may contain slashes
    _named_routes(router, service.workflows)
    return router


def _put_routes(router: Router, workflows: Workflows, bodies: Bodies) -> None:
    @router.post(
        "",
        **operation(
            "put_workflow",
            "Store a workflow",
            {201: views.StoredWorkflow, 200: views.StoredWorkflow},
            body=body_schemas.DOCUMENT,
        ),
    )
    async def put_workflow(
        request: Request, strict: Strict = False, allow_unknown_handlers: AllowUnknown = False
    ) -> Response:
        """The same content again is the same version (200); changed content is the next (201)."""
        document, text = await bodies.read_with_text(request, body_schemas.DOCUMENT)
        # for the audit log, if the document is refused
        note(request.scope, f"workflows/{document.get('name', '')}")
        try:
            put = await workflows.put(
                document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
            )
        except InvalidWorkflow as error:
            raise InvalidWorkflow(await in_text(error.problems, text)) from None
        name = put.plan.name
        version = put.stored.version
        note(request.scope, f"workflows/{name}", version=version, created=put.created)
        aliases = await workflows.aliases(name)
        warnings = await in_text(put.warnings, text)
        view = views.stored_workflow_view(put.stored, aliases, warnings, created=put.created)
        return answer(view, 201 if put.created else 200)

    @router.post(
        "/validate",
        **operation(
            "validate_workflow",
            "Check a workflow",
            {200: views.Validation},
            body=body_schemas.DOCUMENT,
        ),
    )
    async def validate(
        request: Request,
        strict: Strict = False,
        allow_unknown_handlers: AllowUnknown = False,
        graph: WithGraph = False,
    ) -> Response:
        """Nothing is stored. A document with mistakes is a good answer too: `valid` is false."""
        document, text = await bodies.read_with_text(request, body_schemas.DOCUMENT)
        view = await workflows.validation(
            document, strict=strict, allow_unknown_handlers=allow_unknown_handlers, graph=graph
        )
        view.problems = await in_text(view.problems, text)
        view.warnings = await in_text(view.warnings, text)
        return answer(view)

    @router.get(
        "",
        **operation(
            "list_workflows",
            "All workflows, by name",
            {200: page_of(views.ListedWorkflow)},
        ),
    )
    async def listed(cursor: Cursor = None, limit: Limit = 50) -> Response:
        rows = await workflows.page(text_cursor(cursor), limit + 1)
        return answer(page(rows, limit, views.listed_workflow_view, lambda row: row.name))

    @router.put(
        "/{name:path}/aliases/{alias}",
        **operation(
            "set_alias",
            "Let an alias mean a version, or several by their shares",
            {200: views.Alias},
            errors=(404,),
            body=body_schemas.ALIAS,
        ),
    )
    async def set_alias(name: str, alias: Alias, request: Request) -> Response:
        body = await bodies.read(request, body_schemas.ALIAS)
        if "weights" in body:
            weights = {int(version): share for version, share in body["weights"].items()}
        else:
            weights = {body["version"]: 100}

        aliases = await workflows.aliases(name)
        old = aliases.get(alias)
        new = views.weights_view(weights)
        note(request.scope, old=views.weights_view(old) if old else None, new=new)
        await workflows.set_alias(name, alias, weights)
        return answer(views.Alias(name=name, alias=alias, weights=new))


def _graph_routes(router: Router, workflows: Workflows) -> None:
    @router.get(
        "/{name:path}/graph",
        **operation(
            "get_workflow_graph",
            "Nodes and edges of a version",
            {200: WorkflowGraph},
            errors=(404,),
        ),
    )
    async def graph(name: str, request: Request, version: Tag = None) -> Response:
        """`name` may be `name@stable` too."""
        if not is_route_word(request, "graph"):
            return await get_version(workflows, f"{name}/graph", version)
        return answer(await workflows.graph(name, version))


def _named_routes(router: Router, workflows: Workflows) -> None:
    @router.get(
        "/{name:path}/versions",
        **operation(
            "list_versions",
            "The versions of a workflow, the newest first",
            {200: page_of(views.Version)},
            errors=(404,),
        ),
    )
    async def versions(name: str, request: Request) -> Response:
        if not is_route_word(request, "versions"):
            return await get(f"{name}/versions", request.query_params.get("version"))
        stored_versions = await workflows.versions(name)
        aliases = await workflows.aliases(name)
        return answer(Page([views.version_view(stored, aliases) for stored in stored_versions]))

    @router.delete(
        "/{name:path}/aliases/{alias}",
        **operation("remove_alias", "Remove an alias", {204: None}, errors=(404,)),
    )
    async def remove_alias(name: str, alias: Alias, request: Request) -> Response:
        if not is_route_word(request, "aliases", -2):
            return await delete(f"{name}/aliases/{alias}", request)
        aliases = await workflows.aliases(name)
        old = aliases.get(alias)
        note(request.scope, old=views.weights_view(old) if old else None)
        await workflows.remove_alias(name, alias)
        return Response(status_code=204)

    @router.get(
        "/{name:path}",
        **operation(
            "get_workflow", "A version of a workflow", {200: views.Workflow}, errors=(404,)
        ),
    )
    async def get(name: str, version: Tag = None) -> Response:
        """`name` may be `name@stable` too."""
        return await get_version(workflows, name, version)

    @router.delete(
        "/{name:path}",
        **operation(
            "delete_workflow", "Delete a workflow with all its versions", {204: None}, errors=(404,)
        ),
    )
    async def delete(name: str, request: Request) -> Response:
        """It can't be started any more; executions of it go on and can be looked at."""
        aliases = await workflows.aliases(name)
        newest = aliases.get(LATEST)
        note(request.scope, f"workflows/{name}", latest=max(newest) if newest else None)
        await workflows.delete(name)
        return Response(status_code=204)


async def get_version(workflows: Workflows, name: str, tag: str | None) -> Response:
    stored, aliases = await workflows.get(name, tag)
    return answer(views.workflow_view(stored, aliases))


async def in_text(problems: Sequence[Problem], text: bytes) -> list[Problem]:
    """The problems with their lines and columns in the body of the request."""
    if not problems or len(text) > LOCATED_BYTES_MAX:
        return list(problems)
    return await asyncio.to_thread(located, problems, text, "json")
