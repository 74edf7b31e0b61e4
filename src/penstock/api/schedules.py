"""Schedules over HTTP."""

from __future__ import annotations

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from penstock.api import body_schemas
from penstock.api.access import CALLER, Caller
from penstock.api.audit_log import note
from penstock.api.bodies import Bodies, answer
from penstock.api.describing import operation, page_of
from penstock.api.paging import Cursor, Limit, page, text_cursor
from penstock.api.parameters import Query
from penstock.api.routing import Router
from penstock.schedules.model import Outcome
from penstock.service import Service
from penstock.service.schedules import NEXT_MAX, Schedules
from penstock.views.pages import Page
from penstock.views.schedules import (
    PutScheduleView,
    ScheduleView,
    SlotItem,
    UpcomingSlot,
    schedule_view,
    slot_item,
    upcoming_views,
)
from penstock.views.starts import Started, started_view

Count = Annotated[int, Query(ge=1, le=NEXT_MAX, description="How many.")]


def routes(service: Service, bodies: Bodies) -> Router:
    router = Router(prefix="/schedules", tags=["schedules"])
    _stored_routes(router, service.schedules, bodies)
    _control_routes(router, service.schedules, bodies)
    _slot_routes(router, service.schedules)
    return router


def _stored_routes(router: Router, schedules: Schedules, bodies: Bodies) -> None:
    @router.get(
        "",
        **operation("list_schedules", "All schedules, by name", {200: page_of(ScheduleView)}),
    )
    async def listed(cursor: Cursor = None, limit: Limit = 50) -> Response:
        rows = await schedules.page(text_cursor(cursor), limit + 1)
        return answer(page(rows, limit, schedule_view, lambda row: row.name))

    @router.put(
        "/{name}",
        **operation(
            "put_schedule",
            "Store a schedule",
            {201: PutScheduleView, 200: PutScheduleView},
            errors=(404, 409),
            body=body_schemas.SCHEDULE,
        ),
    )
    async def put(name: str, request: Request) -> Response:
        """A new one (201), or in place of the one of this name (200).

        A changed `when` counts from now on; slots that are due already still start.
        """
        body = await bodies.read(request, body_schemas.SCHEDULE)
        stored = await schedules.put(name, body)
        note(request.scope, workflow=stored.schedule.definition.workflow, created=stored.created)
        view = PutScheduleView(created=stored.created, schedule=schedule_view(stored.schedule))
        return answer(view, 201 if stored.created else 200)

    @router.get(
        "/{name}",
        **operation("get_schedule", "A schedule", {200: ScheduleView}, errors=(404,)),
    )
    async def get(name: str) -> Response:
        return answer(schedule_view(await schedules.get(name)))

    @router.delete(
        "/{name}",
        **operation("delete_schedule", "Delete a schedule", {204: None}, errors=(404,)),
    )
    async def delete(name: str) -> Response:
        """With what is known of its slots; executions that it has started go on."""
        await schedules.delete(name)
        return Response(status_code=204)


def _control_routes(router: Router, schedules: Schedules, bodies: Bodies) -> None:
    @router.post(
        "/{name}/pause",
        **operation(
            "pause_schedule",
            "Start no more slots",
            {200: ScheduleView},
            errors=(404, 409),
            body=body_schemas.PAUSE_SCHEDULE,
            body_required=False,
        ),
    )
    async def pause(name: str, request: Request) -> Response:
        body = await bodies.read(request, body_schemas.PAUSE_SCHEDULE, empty={})
        return answer(schedule_view(await schedules.pause(name, body.get("reason"))))

    @router.post(
        "/{name}/resume",
        **operation("resume_schedule", "Start slots again", {200: ScheduleView}, errors=(404, 409)),
    )
    async def resume(name: str) -> Response:
        """What was missed meanwhile is caught up as `catchup` says."""
        return answer(schedule_view(await schedules.resume(name)))

    @router.post(
        "/{name}/trigger",
        **operation("trigger_schedule", "Start an execution now", {201: Started}, errors=(404,)),
    )
    async def trigger(name: str, request: Request) -> Response:
        """As a slot of this moment would. It is none of the schedule's slots, and moves none."""
        caller: Caller = request.scope.get(CALLER, Caller())
        record = await schedules.trigger(name, caller.key_id)
        note(request.scope, execution_id=record.execution_id)
        return answer(started_view(record), 201)


def _slot_routes(router: Router, schedules: Schedules) -> None:
    @router.get(
        "/{name}/slots",
        **operation(
            "list_slots",
            "What has become of its slots, the newest first",
            {200: page_of(SlotItem)},
            errors=(404,),
        ),
    )
    async def slots(
        name: str,
        outcome: Annotated[Outcome | None, Query(description="Only with this outcome.")] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        """Of the last 90 days."""
        rows = await schedules.slots(
            name, outcome=outcome, before=text_cursor(cursor), limit=limit + 1
        )
        return answer(page(rows, limit, slot_item, lambda row: row.slot))

    @router.get(
        "/{name}/next",
        **operation(
            "list_next_slots", "When it starts next", {200: page_of(UpcomingSlot)}, errors=(404,)
        ),
    )
    async def upcoming(name: str, count: Count = 10) -> Response:
        """As if it weren't paused. Slots around a change of the clock have a `note`."""
        return answer(Page(upcoming_views(await schedules.next(name, count))))
