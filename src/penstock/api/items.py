"""Nodes inside of items over HTTP, in pages, and items as they end, as a stream of lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from penstock.api.bodies import answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, encode, number_cursor
from penstock.api.parameters import Query
from penstock.api.raw_path import is_route_word
from penstock.api.routing import Router
from penstock.service import Service
from penstock.views.nodes import ItemLine, ListedNode
from penstock.views.pages import Page

NDJSON = "application/x-ndjson"
STATES = "^(PENDING|QUEUED|RUNNING|RETRYING|WAITING|COMPLETED|FAILED|SKIPPED|CANCELLED)$"


def routes(service: Service) -> Router:
    router = Router(prefix="/executions", tags=["executions"])

    @router.get(
        "/{execution_id}/nodes",
        **operation(
            "list_nodes",
            "Its nodes, or those inside of a map",
            {200: page_of(ListedNode)},
            errors=(404,),
        ),
    )
    async def nodes(
        execution_id: str,
        under: Annotated[
            str | None, Query(description="A map, a loop or an item, such as `each[17]`.")
        ] = None,
        state: Annotated[str | None, Query(pattern=STATES)] = None,
        cursor: Cursor = None,
        limit: Limit = 100,
    ) -> Response:
        """Inside of a map, only what has begun is listed."""
        position = number_cursor(cursor) or 0
        listed = await service.items.nodes(execution_id, under, state, position, limit + 1)
        has_next = len(listed) > limit
        return answer(Page(listed[:limit], encode(position + limit) if has_next else None))

    @router.get(
        "/{execution_id}/nodes/{node_id:path}/items",
        **_stream_operation(),
    )
    async def items(
        execution_id: str,
        node_id: str,
        request: Request,
        follow: Annotated[
            bool, Query(description="Go on until the map has ended; else what there is now.")
        ] = False,
        after: Annotated[int, Query(ge=0, description="`seq` of the last line so far.")] = 0,
    ) -> Response:
        """One line of JSON for each item, in the order of their ends."""
        if not is_route_word(request, "items"):
            return answer(await service.nodes.view(execution_id, f"{node_id}/items"))
        await service.items.check(execution_id, node_id)
        batches = service.items.ends(execution_id, node_id, after, follow=follow)
        return StreamingResponse(_encoded(batches), media_type=NDJSON)

    return router


def _stream_operation() -> dict[str, Any]:
    summary = "The items of a map, as they end"
    options = operation("follow_items", summary, {200: None}, errors=(404,))
    options["responses"][200]["content"] = {NDJSON: {"schema": {"type": "string"}}}
    return options


async def _encoded(batches: AsyncGenerator[list[ItemLine], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(batches):
        async for batch in batches:
            yield b"".join(msgspec.json.encode(item) + b"\n" for item in batch)
