"""The document and all logs of an execution over HTTP."""

from __future__ import annotations

import json

from starlette.responses import Response

from penstock.api.bodies import answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, encode, number_cursor
from penstock.api.routing import Router
from penstock.errors import NotFound
from penstock.service import Service
from penstock.views.executions import ExecutionLogItem
from penstock.views.pages import Page
from penstock.views.workflows import ExecutionDefinition


def routes(service: Service) -> Router:
    router = Router(prefix="/executions", tags=["executions"])

    @router.get(
        "/{execution_id}/logs",
        **operation(
            "get_execution_logs",
            "What all its nodes logged, in the order of their starts",
            {200: page_of(ExecutionLogItem)},
            errors=(404,),
        ),
    )
    async def logs(execution_id: str, cursor: Cursor = None, limit: Limit = 200) -> Response:
        """A page has at most 1 MiB of text, unless a single log is longer.

        Attempts that still run are on the last page.
        """
        position = number_cursor(cursor) or 0
        logs = await service.execution_logs.page(execution_id, position, limit)
        following = logs.next_position
        next_cursor = None if following is None else encode(following)
        return answer(Page(logs.logs, next_cursor))

    @router.get(
        "/{execution_id}/definition",
        **operation(
            "get_execution_definition",
            "The document that it runs",
            {200: ExecutionDefinition},
            errors=(404,),
        ),
    )
    async def definition(execution_id: str) -> Response:
        """Also one that was started inline, or whose workflow was deleted since."""
        stored = await service.executions.stored(execution_id)
        record = stored.record
        version = await service.stores.cold.definitions.get_workflow(
            record.workflow, record.version
        )
        if version is None:
            raise NotFound(f"the document of execution {execution_id!r} isn't in this store")
        try:
            await service.workflows.get(record.workflow, str(record.version))
            is_stored = True
        except NotFound:
            is_stored = False
        view = ExecutionDefinition(
            execution_id=execution_id,
            workflow=record.workflow,
            version=record.version,
            definition=json.loads(version.document),
            stored=is_stored,
        )
        return answer(view)

    return router
