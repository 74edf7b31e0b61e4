"""The search for errors over HTTP."""

from __future__ import annotations

from typing import Annotated

from starlette.responses import Response

from penstock.api.bodies import answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, Moment, encode, moment, number_cursor
from penstock.api.parameters import Query
from penstock.api.routing import Router
from penstock.service import Service
from penstock.service.failures import FailureSearch
from penstock.views.dead_letters import Failure, failure_view
from penstock.views.pages import Page

Filter = Annotated[str | None, Query(max_length=1024)]


def routes(service: Service) -> Router:
    router = Router(prefix="/errors", tags=["dead letters"])

    @router.get(
        "",
        **operation(
            "list_errors",
            "Nodes that failed for good, and why, the newest first",
            {200: page_of(Failure)},
        ),
    )
    async def listed(  # noqa: PLR0913, PLR0917 -- the filters
        workflow: Filter = None,
        node_id: Filter = None,
        handler: Filter = None,
        category: Filter = None,
        text: Annotated[
            str | None, Query(max_length=200, description="Part of the message.")
        ] = None,
        since: Moment = None,
        until: Moment = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        """Also those that were retried since.

        A page may have fewer items than `limit` although another one follows.
        """
        search = FailureSearch(
            workflow=workflow,
            node_id=node_id,
            handler=handler,
            category=category,
            text=text or None,
            since=moment(since, "since"),
            until=moment(until, "until"),
            before=number_cursor(cursor),
            limit=limit,
        )
        failure_page = await service.failures.page(search)
        next_before = failure_page.next_before
        items = [failure_view(row) for row in failure_page.rows]
        return answer(Page(items, None if next_before is None else encode(next_before)))

    return router
