"""The contract suite on the journal store, and tests of what only this store guarantees."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from penstock_journal import JournalStores

import penstock
from penstock.contract import contract_tests
from penstock.contract.waiting import until
from penstock.errors import StoreLocked
from penstock.stores.hooks import Delivery, Handled, HookRow
from penstock.stores.records import Search


def new_stores(folder: Path) -> JournalStores:
    return JournalStores(folder / "store.journal")


globals().update(contract_tests({"journal": new_stores}))

DOCUMENT = {
    "name": "two",
    "nodes": {"a": {"handler": "noop"}, "b": {"handler": "noop", "needs": ["a"]}},
}


def test_every_execution_ends_whenever_the_process_was_killed(tmp_path: Path) -> None:
    """Any prefix of the journal can be opened, even one that ends within an entry.

    A prefix is what a crash at that moment leaves.
    """
    journal = tmp_path / "work.journal"

    async def run() -> int:
        async with penstock.Engine(f"journal:///{journal}") as engine:
            execution = await engine.start(DOCUMENT)
            bytes_when_started = journal.stat().st_size
            await execution.result()
            return bytes_when_started

    async def go_on(copy: Path) -> list[str]:
        async with penstock.Engine(f"journal:///{copy}") as engine:
            rows = await engine.stores.cold.executions.search(Search())
            return [str((await engine.result(row.execution_id)).state) for row in rows]

    bytes_when_started = asyncio.run(run())
    data = journal.read_bytes()
    for size in range(bytes_when_started, len(data) + 1, 97):
        copy = tmp_path / f"{size}.journal"
        copy.write_bytes(data[:size])
        assert asyncio.run(go_on(copy)) == ["COMPLETED"], size


def test_signals_are_in_the_journal(tmp_path: Path) -> None:
    """Also one that came before its node waited, and one for a correlation."""
    first = {"id": "first", "handler": "signal", "config": {"name": "go"}}
    second = {
        "id": "second",
        "handler": "signal",
        "config": {"name": "paid", "correlation": "order-7"},
        "depends_on": ["first"],
    }

    async def start() -> str:
        async with penstock.Engine(f"journal:///{tmp_path}/work.journal") as engine:
            execution = await engine.start({"name": "patient", "nodes": [first, second]})
            assert not (await engine.post_signal("paid", "order-7"))["delivered"]
            return execution.id

    async def send(execution_id: str) -> None:
        async with penstock.Engine(f"journal:///{tmp_path}/work.journal") as engine:
            assert (await engine.signal(execution_id, "go"))["number"] == 1

    async def go_on(execution_id: str) -> str:
        async with penstock.Engine(f"journal:///{tmp_path}/work.journal") as engine:
            return str((await engine.result(execution_id, timeout=30)).state)

    execution_id = asyncio.run(start())
    asyncio.run(send(execution_id))
    assert asyncio.run(go_on(execution_id)) == "COMPLETED"


def test_schedules_are_in_the_journal(tmp_path: Path) -> None:
    """With their slots, and the executions that these have started."""

    async def start() -> dict[str, str]:
        async with penstock.Engine(f"journal:///{tmp_path}/work.journal") as engine:
            await engine.put_workflow(DOCUMENT)
            await engine.put_schedule("ticking", {"workflow": "two", "when": {"every_seconds": 1}})

            async def first_slot() -> list[dict[str, str]]:
                return [slot async for slot in engine.slots("ticking")]

            slots = await until(first_slot)
            await engine.pause_schedule("ticking")
            first: dict[str, str] = slots[-1]
            return first

    async def read() -> tuple[bool, dict[str, str], str]:
        async with penstock.Engine(f"journal:///{tmp_path}/work.journal") as engine:
            schedule = await engine.schedule("ticking")
            slots = [slot async for slot in engine.slots("ticking")]
            result = await engine.result(slots[-1]["execution_id"], timeout=30)
            return schedule["paused"], slots[-1], str(result.state)

    first = asyncio.run(start())
    assert asyncio.run(read()) == (True, first, "COMPLETED")


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    async def open_twice() -> None:
        first, second = new_stores(tmp_path), new_stores(tmp_path)
        await first.open()
        with pytest.raises(StoreLocked, match="used by another process"):
            await second.open()
        await first.close()

    asyncio.run(open_twice())


def test_hooks_are_in_the_journal(tmp_path: Path) -> None:
    """With what changes them later, and the messages that they have had."""
    delivery = Delivery(hook_id="shop", at=1.0, status=202, outcome="started", request=b"r")

    async def main() -> None:
        stores = new_stores(tmp_path)
        await stores.open()
        for document in (b"{}", b"[]"):
            await stores.cold.hooks.put(HookRow("shop", document, 1.0, 1.0))
        await stores.cold.hooks.claim("shop", b"message", 1.0)
        await stores.cold.hooks.record(delivery, Handled(b"message", b"answer"))
        await stores.close()

        stores = new_stores(tmp_path)
        await stores.open()
        assert (await stores.cold.hooks.get("shop")).document == b"[]"
        assert (await stores.cold.hooks.claim("shop", b"message", 2.0)).answer == b"answer"
        (listed,) = await stores.cold.hooks.deliveries("shop", 2.0)
        assert listed.request == b"r"
        await stores.close()

    asyncio.run(main())
