"""Live events over HTTP: Server-Sent Events that a client can resume where they broke off.

A stream waits for its client in a task of its own, so a slow client delays nobody. It ends with its
execution, when the client disconnects, when the service stops, after an hour, and within seconds
after its key was revoked. The client then reconnects with the last id that it has, and misses
nothing. The number of streams per key, or per address without a key, is limited.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Annotated, Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.api.access import CALLER, RECHECK, Caller
from penstock.api.describing import operation
from penstock.api.parameters import Header, Query
from penstock.api.problems import Refused
from penstock.api.rate_limit import who
from penstock.api.routing import Router
from penstock.api.timing import ApiTiming
from penstock.definition.document_fields import REGION_DEPTH_MAX
from penstock.errors import StoreError
from penstock.service.item_events import ItemEvents, Selection
from penstock.service.keys import includes
from penstock.service.live_events import LiveEvents, NoSuchEvent, TooManyStreams
from penstock.service.readers import Batch, FeedLine
from penstock.views.executions import live_event, live_items

log = logging.getLogger("penstock.api")

STREAMS_PER_CALLER_MAX = 100
FULL_SECONDS = "5"
"""The `Retry-After` for a client that is over the limit."""
END_ID = "end"
"""The id of the last event.

Browsers reconnect when a stream has ended; with this id they get a 204, which makes them stop.
"""

BEGINNING = b"retry: 1000\n\n"
HEARTBEAT = b": still here\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
SEQ = r"^([0-9]{1,18}|end)?$"
EVENT_ID = r"^([0-9]{1,18}([.-][0-9]{1,18}){0,256})?$"
HEADER = "The last id that the client has; goes before `after`."
QUERY = "As `Last-Event-ID`, for who can't set headers."
DEPTH = (
    "How many maps and loops deep. What is deeper comes as events `items`: the counts of a map's"
    " items, at most twice a second. With 0, a map is one node. Default: everything."
)
UNDER = "Only what is inside of this map, loop or item, such as `each[17]`."
EXAMPLE = (
    "id: 17\nevent: transition\n"
    'data: {"seq":17,"at":"2026-01-31T12:00:00.000Z","node_id":"letter","from":"QUEUED",'
    '"to":"COMPLETED","attempt":1,"reason":null,"execution_id":"0192"}\n\n'
)

EVENT = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["transition", "items", "end"]},
        "data": {"type": "string"},
    },
}


def events_routes(live_events: LiveEvents, item_events: ItemEvents, timing: ApiTiming) -> Router:
    router = Router(tags=["events"])
    idle = timing.idle_seconds
    callers: Counter[str] = Counter()

    @router.get(
        "/executions/{execution_id}/events",
        **_operation("follow_execution", "Its events as they happen", 404),
    )
    async def follow_execution(
        execution_id: str,
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern=SEQ, description=HEADER)
        ] = None,
        after: Annotated[str | None, Query(pattern=SEQ, description=QUERY)] = None,
        depth: Annotated[int | None, Query(ge=0, le=REGION_DEPTH_MAX, description=DEPTH)] = None,
        under: Annotated[
            str | None, Query(min_length=1, max_length=1024, description=UNDER)
        ] = None,
    ) -> Response:
        event_id = last_event_id or after or "0"
        if event_id == END_ID:
            return Response(status_code=204)
        seq = int(event_id)
        selection = Selection(depth, under)
        if selection.is_everything:
            batches = live_events.follow(execution_id, seq, idle_seconds=idle)
        else:
            batches = item_events.follow(execution_id, seq, selection=selection, idle_seconds=idle)
        return EventStream(batches, timing, callers)

    @router.get(
        "/events", **_operation("follow_all", "The events of all executions as they happen")
    )
    async def follow_all(
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern=EVENT_ID, description=HEADER)
        ] = None,
        after: Annotated[str | None, Query(pattern=EVENT_ID, description=QUERY)] = None,
        nodes: Annotated[
            bool, Query(description="Also the changes of nodes, not only of executions.")
        ] = True,
    ) -> Response:
        batches = live_events.everything(last_event_id or after or None, idle_seconds=idle)
        return EventStream(batches, timing, callers, nodes=nodes)

    return router


def _operation(name: str, summary: str, *errors: int) -> dict[str, Any]:
    options = operation(name, summary, {200: None}, errors=errors)
    stream = {"schema": {"type": "string"}, "itemSchema": EVENT, "example": EXAMPLE}
    content = {EventStream.media_type: stream}
    options["responses"][200]["content"] = content
    if errors:
        options["responses"][204] = {"description": "The client has had the last event"}
    return options


class EventStream(Response):
    """A stream of Server-Sent Events, for as long as its client reads."""

    media_type = "text/event-stream"

    def __init__(
        self,
        batches: AsyncGenerator[Batch, None],
        timing: ApiTiming,
        callers: Counter[str],
        *,
        nodes: bool = True,
    ) -> None:
        """`callers` counts the open streams of each caller.

        Without `nodes`, only the changes of executions are sent.
        """
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self._batches = batches
        self._timing = timing
        self._callers = callers
        self._encode = encode if nodes else encode_bare

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._batches):
            with self._counted(who(scope.get(CALLER, Caller()))):
                await self._serve(scope, receive, send)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        if self._callers[name] >= STREAMS_PER_CALLER_MAX:
            raise Refused(
                429,
                "too_many_streams",
                f"{STREAMS_PER_CALLER_MAX} event streams of this caller are open,"
                " which is the limit",
                headers={"Retry-After": FULL_SECONDS},
            )
        self._callers[name] += 1
        try:
            yield
        finally:
            self._callers[name] -= 1
            if not self._callers[name]:
                del self._callers[name]

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await self._first()
        stop = asyncio.Event()
        sending = asyncio.create_task(self._send(first, send, stop))
        disconnect = asyncio.create_task(_wait_for_disconnect(receive))
        recheck = asyncio.create_task(_set_when_refused(scope, stop, self._timing.recheck_seconds))
        try:
            await asyncio.wait((sending, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            tasks = (sending, disconnect, recheck)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _first(self) -> Batch:
        """The first batch. It raises what is wrong, before anything has been sent."""
        try:
            return await anext(self._batches)
        except TooManyStreams as error:
            raise Refused(
                503, "too_many_streams", str(error), headers={"Retry-After": FULL_SECONDS}
            ) from None
        except NoSuchEvent as error:
            raise Refused(
                422, "invalid_request", f"{error}; leave the id out to begin anew"
            ) from None

    async def _send(self, first: Batch, send: Send, stop: asyncio.Event) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        try:
            async with asyncio.timeout(self._timing.stream_seconds_max):
                await _until_stopped(self._send_batches(first, send), stop)
        except TimeoutError:
            pass  # the client reconnects
        except (StoreError, NoSuchEvent) as error:
            log.warning("a stream of events ends early: %s", error)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timing.last_word_seconds):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_batches(self, first: Batch, send: Send) -> None:
        await _send_text(BEGINNING + self._encode(first), send)
        if first.ends:
            return

        idle_seconds = self._timing.idle_seconds
        clock = asyncio.get_running_loop().time
        sent_at = clock()
        skipped_id = ""
        """The id of the last line that was left out since."""
        async for batch in self._batches:
            text = self._encode(batch)
            if batch.feed_lines and not text:
                # nothing in it for this client, so a heartbeat may be due
                skipped_id = batch.feed_lines[-1].id
                if clock() - sent_at < idle_seconds:
                    continue
            await _send_text(text or _heartbeat(skipped_id), send)
            sent_at = clock()
            skipped_id = ""


async def _until_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def _set_when_refused(scope: Scope, stop: asyncio.Event, recheck_seconds: float) -> None:
    """Set `stop` when the caller, who was allowed when the stream began, isn't any more."""
    recheck: Callable[[], Awaitable[Caller]] | None = scope.get(RECHECK)
    while recheck is not None:
        await asyncio.sleep(recheck_seconds)
        with suppress(StoreError):  # while the store is unavailable, nothing is revoked
            caller = await recheck()
            if not includes(caller.scopes, "read"):
                stop.set()
                return


def _heartbeat(event_id: str) -> bytes:
    """A heartbeat.

    With an id, a client that reconnects doesn't go through the lines left out before it again.
    """
    if not event_id:
        return HEARTBEAT
    return b"%bid: %b\n\n" % (HEARTBEAT[:-1], event_id.encode())


async def _send_text(text: bytes, send: Send) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return


_encoder = msgspec.json.Encoder()


def encode(batch: Batch) -> bytes:
    """A batch as Server-Sent Events, encoded once for all readers."""
    if batch.encoded is None:
        lines = _events(batch.feed_lines)
        skipped = b"id: %b\n\n" % batch.skipped_id.encode() if batch.skipped_id else b""
        batch.encoded = _counts(batch) + lines + skipped + _end(batch)
    return batch.encoded


def encode_bare(batch: Batch) -> bytes:
    """A batch as `encode` has it, without the lines of nodes.

    The ids are the same, so a client can continue after each of them.
    """
    if batch.bare is None:
        of_executions = [feed_line for feed_line in batch.feed_lines if not feed_line.line.node_id]
        batch.bare = _events(of_executions) + _end(batch)
    return batch.bare


def _counts(batch: Batch) -> bytes:
    """The counts of a batch. They are no lines of the history, and have no ids."""
    texts: list[bytes] = []
    for counts in batch.counts:
        view = live_items(counts.execution_id, counts.node_id, counts.items)
        data = _encoder.encode(view)
        texts.append(b"event: items\ndata: %b\n\n" % data)
    return b"".join(texts)


def _events(feed_lines: Sequence[FeedLine]) -> bytes:
    texts: list[bytes] = []
    for feed_line in feed_lines:
        event_id = feed_line.id.encode()
        data = _encoder.encode(live_event(feed_line.line, feed_line.execution_id))
        texts.append(b"id: %b\nevent: transition\ndata: %b\n\n" % (event_id, data))
    return b"".join(texts)


def _end(batch: Batch) -> bytes:
    if batch.ends is None:
        return b""
    data = msgspec.json.encode(batch.ends._asdict())
    return b"id: %b\nevent: end\ndata: %b\n\n" % (END_ID.encode(), data)
