"""Room for large values: who waits, who is let in, and that nobody is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from penstock.config import Settings
from penstock.embedded import Engine
from penstock.worker import attempt as attempts
from penstock.worker.registry import Handler, Registry
from penstock.worker.room import Room
from tests.waiting import let_others_run

MIB = 1024 * 1024


def test_who_has_no_room_waits_until_somebody_leaves():
    async def work() -> None:
        room = Room(10)
        await room.enter(6)
        waiting = asyncio.create_task(room.enter(5))
        await let_others_run()
        assert not waiting.done()
        room.leave(6)
        await waiting
        assert room.used == 5

    asyncio.run(work())


def test_one_that_is_larger_than_the_room_is_let_in_alone():
    async def work() -> None:
        room = Room(10)
        await room.enter(1)
        large = asyncio.create_task(room.enter(50))
        small = asyncio.create_task(room.enter(1))
        await let_others_run()
        assert not large.done()
        assert not small.done(), "the large one would wait for ever if small ones went past it"
        room.leave(1)
        await large
        room.leave(50)
        await small
        assert room.used == 1

    asyncio.run(work())


def test_one_that_gives_up_makes_way_for_those_behind_it():
    async def work() -> None:
        room = Room(10)
        await room.enter(9)
        large = asyncio.create_task(room.enter(50))
        small = asyncio.create_task(room.enter(1))
        await let_others_run()
        large.cancel()
        await small
        assert room.used == 10
        late = asyncio.create_task(room.enter(2))
        await let_others_run()
        late.cancel()
        room.leave(10)  # at the same moment
        await let_others_run()
        assert room.used == 0

    asyncio.run(work())


def test_tasks_with_large_configs_run_a_few_at_a_time():
    running, peak = 0, 0

    async def look(config: dict[str, str]) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await let_others_run()
        running -= 1
        return len(config["x"])

    size = 4 * MIB
    nodes = [
        {"id": f"n{i}", "handler": "look", "config": {"x": "{{ input.s }}"}} for i in range(40)
    ]

    async def work() -> None:
        handlers = Registry([Handler("look", look)])
        async with Engine("memory://", settings=Settings(), registry=handlers) as engine:
            handle = await engine.start({"name": "large", "nodes": nodes}, input={"s": "x" * size})
            result = await handle.result()
            assert set(result.outputs.values()) == {size}, result.error
            assert peak <= attempts.ROOM_BYTES // size

    asyncio.run(work())


def test_outputs_that_a_handler_never_looks_at_are_not_fetched():
    async def give() -> msgspec.Raw:
        return msgspec.Raw(b'"' + b"x" * (5 * MIB) + b'"')

    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "handler": "give"} for i in range(60)]
    nodes += [{"id": "end", "handler": "noop", "dependencies": [f"n{i}" for i in range(60)]}]

    async def work() -> None:
        handlers = Registry([Handler("give", give)])
        async with Engine("memory://", settings=Settings(), registry=handlers) as engine:
            result = await (await engine.start({"name": "large", "nodes": nodes})).result()
            assert result.outputs["end"] is not None, result.error

    asyncio.run(work())


def test_a_task_with_more_inputs_than_a_worker_can_take_fails_and_says_why():
    async def give() -> msgspec.Raw:
        return msgspec.Raw(b'"' + b"x" * (5 * MIB) + b'"')

    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "handler": "give"} for i in range(60)]
    nodes += [
        {"id": "end", "handler": "penstock.aggregate", "dependencies": [f"n{i}" for i in range(60)]}
    ]

    async def work() -> None:
        handlers = Registry([Handler("give", give)])
        async with Engine("memory://", settings=Settings(), registry=handlers) as engine:
            result = await (await engine.start({"name": "large", "nodes": nodes})).result()
            assert result.error is not None
            assert result.error["category"] == "too_large"
            assert "outputs of its dependencies" in result.error["message"]

    asyncio.run(work())


def test_a_config_that_multiplies_what_it_refers_to_fails_its_node():
    nodes = [
        {"id": "a", "handler": "echo", "config": {f"k{i}": "{{ input.s }}" for i in range(50)}}
    ]

    async def work() -> None:
        async with Engine("memory://", settings=Settings()) as engine:
            handle = await engine.start({"name": "large", "nodes": nodes}, input={"s": "x" * MIB})
            result = await handle.result()
            assert result.error is not None
            assert result.error["category"] == "config"
            assert "has more than 16,777,216 bytes" in result.error["message"]

    asyncio.run(work())
