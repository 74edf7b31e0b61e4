"""Items of maps as they end: what is read for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock
from penstock.stores.base import Stored
from penstock.worker.registry import Handler, Registry

ITEMS = 400
"""So many that their history comes in several batches."""


def test_who_follows_a_map_reads_the_whole_execution_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = {"id": "each", "for_each": list(range(ITEMS)), "handler": "noop"}

    async def scenario() -> None:
        async with penstock.Engine(f"sqlite:///{tmp_path / 'work.db'}") as engine:
            execution = await engine.start({"name": "large", "nodes": [each]})
            await execution.result()
            executions = engine.service.stores.cold.executions
            read: list[str] = []
            read_whole = executions.execution

            async def noting(execution_id: str) -> Stored | None:
                read.append(execution_id)
                return await read_whole(execution_id)

            monkeypatch.setattr(executions, "execution", noting)
            batches = [
                batch
                async for batch in engine.service.items.ends(execution.id, "each", 0, follow=True)
            ]
            assert len(batches) > 1
            lines = [line for batch in batches for line in batch]
            assert {line.index for line in lines} == set(range(ITEMS))
            assert all(line.state == "COMPLETED" and line.key for line in lines)
            assert all(line.output is not None for line in lines)
            assert read == [execution.id]

    asyncio.run(scenario())


def test_what_is_still_to_come_is_shown_with_its_output_and_its_error(tmp_path: Path) -> None:
    """Items that end while somebody follows: what is new is read by itself."""
    may_end = asyncio.Event()

    async def slow_item(ctx: penstock.Context) -> dict[str, int | None]:
        if ctx.index == 0:
            return {"first": 0}
        await may_end.wait()
        if ctx.index == 2:
            raise penstock.Terminal("no luck")
        return {"index": ctx.index}

    registry = Registry([Handler("slow_item", slow_item)])
    each = {
        "id": "each", "for_each": [5, 6, 7], "handler": "slow_item", "on_item_failure": "skip",
    }  # fmt: skip

    async def scenario() -> None:
        store = f"sqlite:///{tmp_path / 'work.db'}"
        async with penstock.Engine(store, registry=registry) as engine:
            execution = await engine.start({"name": "live", "nodes": [each]})
            lines = []
            async for batch in engine.service.items.ends(execution.id, "each", 0, follow=True):
                lines += batch
                may_end.set()
            by_index = {line.index: line for line in lines}
            assert sorted(by_index) == [0, 1, 2]
            assert [by_index[index].state for index in range(3)] == [
                "COMPLETED",
                "COMPLETED",
                "FAILED",
            ]
            assert by_index[2].error is not None
            assert by_index[2].error.message == "no luck"
            assert by_index[1].output is not None
            assert all(line.key for line in lines)

    asyncio.run(scenario())
