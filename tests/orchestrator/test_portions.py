"""Copies are made in portions that memory and a transaction can take.

An execution that is too large stops no other.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.tiering import rebuild
from penstock.orchestrator.tiering.portions import Portions
from penstock.stores.tiering import Copy, Written, summary_from
from tests.orchestrator.desk import TieredDesk, node


def _size(copies: Sequence[Copy]) -> int:
    return sum(len(change) for copy in copies for change in copy.changes)


def _watch(
    desk: TieredDesk,
    monkeypatch: pytest.MonkeyPatch,
    why: Callable[[Sequence[Copy]], Exception | None] | None = None,
) -> list[Sequence[Copy]]:
    """What is put into the cold store, which fails with what `why` answers."""
    put = desk.stores.rows.put_copies
    seen = list[Sequence[Copy]]()

    async def watch(partition: int, number: int, copies: Sequence[Copy], **named: Any) -> Written:
        error = why(copies) if why is not None else None
        if error is not None:
            raise error
        seen.append(copies)
        return await put(partition, number, copies, **named)

    monkeypatch.setattr(desk.stores.tiering.cold, "put_copies", watch)
    return seen


async def _run(desk: TieredDesk, count: int, size: int = 1000) -> tuple[Any, list[str]]:
    """An owner, and executions that have ended with so many bytes each."""
    owner = await desk.own()
    names = [await desk.start([node("a")]) for _ in range(count)]
    await desk.work(owner, b'"' + b"x" * size + b'"')
    return owner, names


def test_archives_are_read_and_put_in_portions_of_so_many_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk(portions=Portions(bytes_max=5000, read_executions_max=8))
        owner, names = await _run(desk, 40)
        seen = _watch(desk, monkeypatch)
        tails = desk.stores.tiering.hot.tails
        counts = list[int]()

        async def count(execution_ids: Collection[str]) -> Any:
            counts.append(len(execution_ids))
            return await tails(execution_ids)

        monkeypatch.setattr(desk.stores.tiering.hot, "tails", count)
        await desk.archiver(owner).drain()
        assert {str(desk.row(name).record.state) for name in names} == {"COMPLETED"}
        assert max(map(_size, seen)) <= 5000
        assert max(map(len, seen)) > 1, "a transaction for each would cost too much"
        assert max(counts) == counts[0] == 8
        assert set(counts[1:]) <= {1, 2, 4, 8}
        assert 4 in counts, "it has learned how large they are"
        assert not desk.stores.hot.changes

    asyncio.run(scenario())


def test_checkpoints_are_put_in_portions_of_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        desk = TieredDesk(portions=Portions(bytes_max=5000))
        owner = await desk.own()
        names = [await desk.start([node("a"), node("b", "a")]) for _ in range(20)]
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'"' + b"x" * 1000 + b'"')
        await desk.drain(owner)
        seen = _watch(desk, monkeypatch)
        await desk.checkpoint(owner)
        assert {str(desk.row(name).record.state) for name in names} == {"RUNNING"}
        assert max(map(_size, seen)) <= 5000

    asyncio.run(scenario())


def test_copies_that_are_too_much_together_are_put_in_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A time-out says that the store is away; but it isn't, if it takes less."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner, names = await _run(desk, 9)
        _watch(
            desk,
            monkeypatch,
            lambda copies: StoreUnavailable("time-out") if len(copies) > 2 else None,
        )
        await desk.archiver(owner).drain()
        assert {str(desk.row(name).record.state) for name in names} == {"COMPLETED"}

    asyncio.run(scenario())


def test_one_that_is_never_taken_is_given_up_and_named_and_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner, names = await _run(desk, 5)
        large = names[2]
        _watch(
            desk,
            monkeypatch,
            lambda copies: (
                StoreUnavailable("time-out")
                if large in {copy.execution_id for copy in copies}
                else None
            ),
        )
        await desk.archiver(owner).drain()
        assert set(desk.stores.hot.changes) == {large}
        assert not desk.stores.hot.boxes[0]

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())
    (record,) = caplog.records
    assert "execution-3 can't be archived" in record.message


def test_an_owner_whose_copies_are_of_a_store_that_was_built_again_since_stops() -> None:
    """Its archive would end an execution that runs in the new generation."""

    async def scenario() -> None:
        desk = TieredDesk()
        zombie = await desk.own("owner-1", seconds=1.0)
        await desk.build(zombie)
        name = await desk.start([node("a")])
        await desk.work(zombie)
        late = desk.cold_writer(zombie)
        copy = desk.stores.hot.changes[name]
        desk.stores.lose_everything()
        await desk.build(await desk.own("owner-2"))
        summary = summary_from(copy)
        assert summary is not None
        assert summary.has_ended
        with pytest.raises(Fenced):
            await late.put([Copy(name, summary, copy)])
        assert desk.row(name).record.state == "PENDING"

    asyncio.run(scenario())


def test_a_rebuild_reads_less_at_once_where_executions_are_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk(portions=Portions(bytes_max=5000, rebuild_executions_first=8))
        owner = await desk.own()
        await desk.build(owner)
        names = [await desk.start([node("a"), node("b", "a")]) for _ in range(30)]
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'"' + b"x" * 1000 + b'"')
        await desk.drain(owner)
        await desk.checkpoint(owner)
        desk.stores.lose_everything()
        unfinished = desk.stores.tiering.cold.unfinished
        counts = list[int]()

        async def count(partition: int, after: str, limit: int) -> Any:
            counts.append(limit)
            return await unfinished(partition, after, limit)

        monkeypatch.setattr(desk.stores.tiering.cold, "unfinished", count)
        owner = await desk.own("owner-2")
        assert await desk.build(owner) == len(names)
        assert max(counts) == 8
        assert set(counts[1:]) <= {2, 4, 8}
        assert len(await desk.work(owner)) == len(names)

    asyncio.run(scenario())


def test_others_get_their_turn_between_large_executions_of_a_rebuild() -> None:
    """The renewal of the lease is one of them."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.build(owner)
        for _ in range(10):
            await desk.start([node("a"), node("b", "a")])
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'"' + b"x" * 1000 + b'"')
        await desk.drain(owner)
        await desk.checkpoint(owner)
        unfinished = await desk.stores.tiering.cold.unfinished(0)
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        await rebuild._from_checkpoints(unfinished, 5, desk.now, 500)
        task.cancel()
        assert turns >= len(unfinished)

    asyncio.run(scenario())
