"""Streams of live events that resume after a broken connection, without gap or repeat."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import msgspec

from penstock.client.sse import EventParser, ServerEvent
from penstock.client.transport import Patience, Throttled, Transport
from penstock.errors import Unreachable

END = "end"


async def follow(
    transport: Transport, path: str, last_id: str | None = None
) -> AsyncGenerator[dict[str, Any], None]:
    """The data of each event, until the server says that no more will come."""
    patience = Patience(transport.retry_seconds, repeatable=True)
    while True:
        try:
            async with transport.stream(path, last_id) as stream:
                async for event in _events(stream, patience):
                    patience.progressed()
                    if event.kind == END:
                        return
                    if event.id is None or event.id != last_id:
                        last_id = event.id or last_id
                        yield msgspec.json.decode(event.data)
        except (Unreachable, Throttled) as error:
            await patience.wait(error)


async def follow_lines(
    transport: Transport, path: str, *, follow: bool
) -> AsyncGenerator[dict[str, Any], None]:
    """Lines of JSON with a `seq`, from the first on; a broken connection is taken up again."""
    patience = Patience(transport.retry_seconds, repeatable=True)
    after = 0
    while True:
        query = f"?after={after}&follow={str(follow).lower()}"
        try:
            async with transport.stream(f"{path}{query}", None) as stream:
                patience.answered()
                while line := await stream.readline():
                    patience.progressed()
                    item = msgspec.json.decode(line)
                    after = item["seq"]
                    yield item
                return
        except (Unreachable, Throttled) as error:
            await patience.wait(error)


async def _events(stream: aiohttp.StreamReader, patience: Patience) -> AsyncIterator[ServerEvent]:
    """Events of one connection, which must not end before the event that says so."""
    parser = EventParser()
    async for piece in stream.iter_any():
        patience.answered()
        for event in parser.feed(piece):
            yield event
    raise Unreachable("the server ended a stream of events too early; look at its log")
