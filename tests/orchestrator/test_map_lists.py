"""An owner has a limited amount of lists of maps in memory."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from penstock.engine.events import Blob, TaskSucceeded
from penstock.orchestrator.owner import PartitionOwner
from penstock.stores.task_keys import key_of
from tests.orchestrator.desk import Desk, node

INLINE_BYTES = 1000
ITEMS = [f"item {index}" + "." * 50 for index in range(30)]
LIST = json.dumps(ITEMS).encode()
ONE_LIST_BYTES = len(LIST) + 64 * len(ITEMS)


def flow() -> list[dict[str, Any]]:
    each = node("each", "list", for_each="{{ list }}", max_parallel=1, config={"x": "{{ item }}"})
    return [node("list"), each]


async def begin(desk: Desk, owner: PartitionOwner, count: int = 1) -> list[str]:
    """Executions whose maps have opened their first items."""
    names = [await desk.start(flow()) for _ in range(count)]
    await desk.drain(owner)
    blob = await desk.stores.blobs.put(LIST)
    tasks = [task for task in await desk.fetch() if task.node_id == "list"]
    await desk.report(*[TaskSucceeded(*key_of(task), "worker-1", desk.now, blob) for task in tasks])
    await desk.drain(owner)
    return names


def lists_in_memory(owner: PartitionOwner) -> list[str]:
    return [
        name
        for name, execution in owner._cache.items()
        if any(region.values is not None for region in execution.regions.values())
    ]


def note_fetches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[Blob]:
    fetched: list[Blob] = []
    get = desk.stores.blobs.get

    async def noting(blob: Blob) -> bytes:
        fetched.append(blob)
        return await get(blob)

    monkeypatch.setattr(desk.stores.blobs, "get", noting)
    return fetched


def test_the_list_that_was_used_least_recently_leaves_memory() -> None:
    async def scenario() -> None:
        desk = Desk(INLINE_BYTES, list_bytes_max=2 * ONE_LIST_BYTES)
        owner = await desk.own()
        names = [name for _ in range(3) for name in await begin(desk, owner)]
        assert set(lists_in_memory(owner)) == set(names[1:])
        assert owner._map_lists._total == 2 * ONE_LIST_BYTES

    asyncio.run(scenario())


def test_lists_are_fetched_again_as_often_as_they_must_be_and_no_item_is_mistaken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two maps take turns, with room for one list."""

    async def run(list_bytes_max: int) -> tuple[list[tuple[str, Any]], int]:
        desk = Desk(INLINE_BYTES, list_bytes_max=list_bytes_max)
        fetched = note_fetches(desk, monkeypatch)
        owner = await desk.own()
        names = await begin(desk, owner, 2)
        tasks = await desk.work(owner)
        assert [await desk.state(name) for name in names] == ["COMPLETED", "COMPLETED"]
        assert owner._map_lists._total == 0
        return [(task.node_id, task.config) for task in tasks], len(fetched)

    async def scenario() -> None:
        with_one, often = await run(ONE_LIST_BYTES)
        with_both, rarely = await run(2 * ONE_LIST_BYTES)
        assert sorted(with_one) == sorted(with_both)
        assert rarely == 2
        assert often > len(ITEMS)

    asyncio.run(scenario())


def test_a_list_beyond_the_limit_is_used_and_let_go_of() -> None:
    async def scenario() -> None:
        desk = Desk(INLINE_BYTES, list_bytes_max=ONE_LIST_BYTES - 1)
        owner = await desk.own()
        (name,) = await begin(desk, owner)
        assert lists_in_memory(owner) == []
        assert len(await desk.work(owner)) == len(ITEMS)
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_what_left_memory_isnt_counted() -> None:
    async def scenario() -> None:
        desk = Desk(INLINE_BYTES)
        owner = await desk.own()
        await begin(desk, owner)
        assert owner._map_lists._total == ONE_LIST_BYTES
        for _ in range(2):
            desk.now += desk.timing.rest_seconds
            await owner._let_go_in_time()
        assert not owner._cache
        assert owner._map_lists._total == 0

    asyncio.run(scenario())


def test_lists_of_executions_that_rest_are_let_go_of_too() -> None:
    async def scenario() -> None:
        desk = Desk(INLINE_BYTES, list_bytes_max=ONE_LIST_BYTES)
        owner = await desk.own()
        (first,) = await begin(desk, owner)
        desk.now += desk.timing.rest_seconds
        await owner._let_go_in_time()
        await begin(desk, owner)
        (region,) = owner._resting[first].regions.values()
        assert region.values is None

    asyncio.run(scenario())
