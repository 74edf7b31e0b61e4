"""Statistics over HTTP: how the store and its workflows do, for charts."""

from __future__ import annotations

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from penstock.api.bodies import answer
from penstock.api.describing import operation
from penstock.api.parameters import Query
from penstock.api.raw_path import is_route_word
from penstock.api.routing import Router
from penstock.api.workflows import get_version
from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.views.statistics import Stats, WorkflowStats

WEEK_SECONDS = 7 * 24 * 3600
Seconds = Annotated[int, Query(ge=60, le=WEEK_SECONDS, description="How far back.")]
Buckets = Annotated[int, Query(ge=1, le=200, description="In how many parts of the same width.")]
Sample = Annotated[
    int, Query(ge=1, le=500, description="How many executions to read at most: the newest.")
]
Tag = Annotated[
    str | None, Query(description="A number or an alias; all versions if left out.", max_length=64)
]


def routes(service: Service, fleet: Fleet) -> Router:
    router = Router()

    @router.get(
        "/stats",
        tags=["system"],
        **operation("get_stats", "How all of it does", {200: Stats}),
    )
    async def stats(seconds: Seconds = 3600, buckets: Buckets = 60) -> Response:
        """Executions by when they were created and the state that they are in now.

        Computed every 2 seconds at most.
        """
        return answer(await service.statistics.overview(seconds, buckets, fleet))

    @router.get(
        "/workflows/{name:path}/stats",
        tags=["workflows"],
        **operation(
            "get_workflow_stats",
            "How a workflow and its nodes do",
            {200: WorkflowStats},
            errors=(404,),
        ),
    )
    async def workflow_stats(
        name: str, request: Request, version: Tag = None, sample: Sample = 200
    ) -> Response:
        """Of its newest executions that have ended. Computed every 5 seconds at most."""
        if not is_route_word(request, "stats"):
            return await get_version(service.workflows, f"{name}/stats", version)
        return answer(await service.statistics.workflow(name, version, sample))

    return router
