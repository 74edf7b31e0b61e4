"""The search in inputs and outputs over HTTP."""

from __future__ import annotations

from typing import Annotated

from starlette.responses import Response

from penstock.api.bodies import answer
from penstock.api.describing import operation
from penstock.api.paging import Cursor, Limit, Moment, encode, moment, number_cursor
from penstock.api.parameters import Query
from penstock.api.routing import Router
from penstock.service import Service
from penstock.service.value_search import Place, match_view
from penstock.stores.records import Search
from penstock.views.executions import ValueMatches
from penstock.views.times import time_text

Text = Annotated[
    str, Query(min_length=1, max_length=200, description="Part of the value, written as JSON.")
]
In = Annotated[
    Place, Query(alias="in", description="The execution's input, or its nodes' outputs.")
]
Filter = Annotated[str | None, Query(max_length=1024)]


def routes(service: Service) -> Router:
    router = Router(prefix="/search", tags=["executions"])

    @router.get(
        "",
        **operation(
            "search_values",
            "Executions with a text in their input or in an output, the newest first",
            {200: ValueMatches},
        ),
    )
    async def search(  # noqa: PLR0913, PLR0917 -- the filters
        text: Text,
        place: In = "input",
        workflow: Filter = None,
        since: Moment = None,
        until: Moment = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        """One page reads 2,000 inputs or the outputs of 300 executions, for 2 seconds at most.

        So a page may have fewer items than `limit`, or none, although another one follows. Values
        over 1 MiB aren't searched.
        """
        which = Search(
            workflow=workflow,
            since=moment(since, "since"),
            until=moment(until, "until"),
            before=number_cursor(cursor),
        )
        value_page = await service.value_search.page(place, text, which, limit)
        following = value_page.next_before
        searched_until = value_page.searched_until
        view = ValueMatches(
            items=[match_view(match) for match in value_page.matches],
            next_cursor=None if following is None else encode(following),
            searched=value_page.searched,
            searched_until=None if searched_until is None else time_text(searched_until),
        )
        return answer(view)

    return router
