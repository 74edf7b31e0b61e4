"""The outputs of a map's items, for a handler that goes through them one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal

PAGE_ITEMS = 200
"""An `async for` gives others a turn after so many items."""

_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class ItemOutputs:
    """The outputs of a map's items, in the order of the items: `for` and `async for` go through it.

    Each is decoded when its turn comes, so a list of 100,000 costs no more than its JSON text.
    """

    __slots__ = ("_raw",)

    def __init__(self, node_id: str, data: bytes) -> None:
        try:
            self._raw = _list_decoder.decode(data)
        except msgspec.ValidationError:
            raise Terminal(
                f"the output of {node_id!r} is no list of items;"
                ' a map has one unless its "output" is counts or none',
                category=ErrorCategory.CONFIG,
            ) from None

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Any]:
        for raw in self._raw:
            yield msgspec.json.decode(raw)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for number, raw in enumerate(self._raw, start=1):
            yield msgspec.json.decode(raw)
            if number % PAGE_ITEMS == 0:
                await asyncio.sleep(0)
