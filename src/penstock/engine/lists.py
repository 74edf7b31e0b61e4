"""The lists of maps that are under way, in memory: how much they take, and letting go of them.

A list follows from recorded values, so `regions.has_values` can look it up again whenever an item
needs it. Its items are views into one text: they keep all of a large output in memory, of which the
execution itself has only the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.events import Blob
from penstock.engine.outputs import scope_around

if TYPE_CHECKING:
    import msgspec

    from penstock.engine.items import Region
    from penstock.engine.state import Execution

ITEM_BYTES = 64
"""What an item of a list takes beside its text: an object, and its place in the list."""


def set_values(execution: Execution, region: Region, values: list[msgspec.Raw]) -> None:
    """Give a region its list, or a loop what its last round carried on."""
    others = (execution.list_bytes or 0) - region.list_bytes
    region.values = values
    region.list_bytes = _bytes_of(execution, region, values)
    execution.list_bytes = others + region.list_bytes


def _bytes_of(execution: Execution, region: Region, values: list[msgspec.Raw]) -> int:
    text_bytes = _bytes_of_large_outputs(execution, region)
    if not text_bytes:
        text_bytes = sum([memoryview(value).nbytes for value in values])
    return text_bytes + ITEM_BYTES * len(values)


def _bytes_of_large_outputs(execution: Execution, region: Region) -> int:
    """The sizes of the large outputs that a map's list is in: all of their texts stay in memory."""
    plan = region.plan
    if plan.source is None:
        return 0
    scope = scope_around(execution, region)
    size = 0
    for name in plan.needs:
        address = scope.address(name)
        value = None if address is None else execution.outputs.get(address)
        if isinstance(value, Blob):
            size += value.size
    return size


def drop_values(execution: Execution, region: Region) -> None:
    """Let go of one list. Whoever needs it next looks it up again."""
    if execution.list_bytes is not None:
        execution.list_bytes -= region.list_bytes
    region.values = None
    region.list_bytes = 0


def let_go(execution: Execution, bytes_max: int) -> None:
    """Let go of lists, of those that began first, until the others take no more than `bytes_max`.

    Not while an event is handled: an item that starts has its list.
    """
    regions = execution.regions.values()
    # regions that ended with a cancel are still counted
    size = sum([region.list_bytes for region in regions])
    execution.list_bytes = size
    for region in regions:
        if size <= bytes_max:
            return
        size -= region.list_bytes
        drop_values(execution, region)
