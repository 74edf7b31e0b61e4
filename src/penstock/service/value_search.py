"""The search for a text in the inputs or outputs of executions.

Executions are read from the newest on. One page reads at most `INPUTS_MAX` inputs, or the outputs
of at most `OUTPUTS_MAX` executions, and takes `value_search_seconds` at most; the cursor continues
after the last one that was read. So a page costs the same on a store of any size.
"""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

import msgspec
from msgspec import structs

from penstock.engine.events import Blob
from penstock.service.timing import ServiceTiming
from penstock.stores.base import Stores
from penstock.stores.blobs import fetch_outputs
from penstock.stores.matching import lowered
from penstock.stores.records import ExecutionRow, Search
from penstock.views import executions as views

Place = Literal["input", "output"]
INPUTS_MAX = 2_000
OUTPUTS_MAX = 300
BATCH = 100
VALUE_BYTES_MAX = 1024 * 1024
"""Larger values aren't searched: each would have to be read from the blob store."""
EXCERPT_CHARACTERS = 60
"""Characters of the value on each side of the text that was found."""


class ValueMatch(NamedTuple):
    """An execution with the text in its input or in the output of one of its nodes."""

    row: ExecutionRow
    node_id: str | None
    """The node of the output; None for an input."""
    excerpt: str


class ValuePage(NamedTuple):
    matches: list[ValueMatch]
    next_before: int | None
    """Where the next page begins; None: there is none."""
    searched: int
    """How many executions were read."""
    searched_until: float | None
    """When the oldest execution that was read was created."""


class ValueSearch:
    """Searches inputs and outputs of executions."""

    def __init__(self, stores: Stores, timing: ServiceTiming) -> None:
        self._stores = stores
        self._seconds_max = timing.value_search_seconds

    async def page(self, place: Place, text: str, search: Search, limit: int) -> ValuePage:
        """A page of matches, the newest first; `search` says which executions are read."""
        wanted = lowered(text)
        scanned_max = INPUTS_MAX if place == "input" else OUTPUTS_MAX
        deadline = time.monotonic() + self._seconds_max
        matches: list[ValueMatch] = []
        searched = 0
        last: ExecutionRow | None = None

        while searched < scanned_max and time.monotonic() < deadline:
            size = min(BATCH, scanned_max - searched)
            rows = await self._stores.cold.executions.search(structs.replace(search, limit=size))
            inputs = await self._inputs(rows) if place == "input" else {}
            for row in rows:
                last = row
                searched += 1
                if place == "input":
                    match = _match(row, None, inputs.get(row.execution_id, b""), wanted)
                else:
                    match = await self._output_match(row, wanted)
                if match is not None:
                    matches.append(match)
                if len(matches) == limit or time.monotonic() > deadline:
                    return ValuePage(matches, row.n, searched, row.created_at)

            if len(rows) < size:
                return ValuePage(matches, None, searched, last.created_at if last else None)
            search = structs.replace(search, before=rows[-1].n)
        return ValuePage(matches, search.before, searched, last.created_at if last else None)

    async def _inputs(self, rows: list[ExecutionRow]) -> dict[str, bytes]:
        intents = await self._stores.cold.executions.intents([row.execution_id for row in rows])
        return {
            execution_id: await self._text(intent.record.input)
            for execution_id, intent in intents.items()
        }

    async def _output_match(self, row: ExecutionRow, wanted: str) -> ValueMatch | None:
        stored = await self._stores.cold.executions.execution(row.execution_id)
        if stored is None:
            return None
        for node_id, output in stored.outputs.items():
            match = _match(row, node_id, await self._text(output), wanted)
            if match is not None:
                return match
        return None

    async def _text(self, value: bytes | Blob) -> bytes:
        """A value as JSON; of a value that is too large nothing."""
        if isinstance(value, Blob):
            if value.size > VALUE_BYTES_MAX:
                return b""
            texts = await fetch_outputs({"": value}, self._stores.blobs)
            return texts[""]
        return value if len(value) <= VALUE_BYTES_MAX else b""


def _match(row: ExecutionRow, node_id: str | None, data: bytes, wanted: str) -> ValueMatch | None:
    text = _readable(data)
    at = lowered(text).find(wanted)
    if at < 0:
        return None
    start = max(0, at - EXCERPT_CHARACTERS)
    end = at + len(wanted) + EXCERPT_CHARACTERS
    excerpt = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return ValueMatch(row, node_id, excerpt)


def _readable(data: bytes) -> str:
    """The JSON text, with its characters as they are instead of escaped."""
    if not data:
        return ""
    if b"\\u" in data:
        return msgspec.json.encode(msgspec.json.decode(data)).decode()
    return data.decode()


def match_view(match: ValueMatch) -> views.ValueMatch:
    listed = structs.asdict(views.listed_view(match.row))
    return views.ValueMatch(**listed, node_id=match.node_id, excerpt=match.excerpt)
