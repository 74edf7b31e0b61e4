"""A checkpoint copies what is new since the last one, and what is stored is always the whole."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock.engine.events import PauseRequested, ResumeRequested
from penstock.errors import StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.stores.tiering import Copied, Copy, Written
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import TieredDesk, node

OUTPUT = b'"' + b"x" * 1000 + b'"'


def _chain(length: int) -> list[dict[str, Any]]:
    first = node("n0")
    return [first, *[node(f"n{number}", f"n{number - 1}") for number in range(1, length)]]


async def _step(desk: TieredDesk, owner: PartitionOwner) -> None:
    """Run the tasks that are queued, and no more."""
    await desk.succeed(await desk.fetch(), OUTPUT)
    await desk.drain(owner)


def _size(changes: Sequence[bytes]) -> int:
    return sum(map(len, changes))


def test_many_checkpoints_of_a_long_execution_write_its_changes_once() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        length = 60
        name = await desk.start(_chain(length))
        await desk.drain(owner)
        checkpointer = desk.checkpointer(owner)
        for step in range(1, length):
            await _step(desk, owner)
            checkpointer.dirty.add(name)
            await checkpointer.copy()
            written = desk.stores.rows.written_bytes
            assert written == _size(desk.stores.hot.changes[name]), f"checkpoint {step}"
            assert desk.row(name) == desk.stores.hot.stored(name)

        await _step(desk, owner)
        whole = list(desk.stores.hot.changes[name])
        await desk.archiver(owner).drain()
        assert desk.stores.rows.written_bytes == _size(whole) > length * len(OUTPUT)
        assert desk.stores.rows.changes[name] == whole
        assert desk.row(name).record.state == "COMPLETED"
        assert not desk.stores.hot.copied

    asyncio.run(scenario())


def test_a_new_owner_goes_on_where_the_last_one_ended() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.build(owner)
        name = await desk.start(_chain(4))
        await desk.drain(owner)
        await _step(desk, owner)
        await desk.checkpoint(owner)
        written = desk.stores.rows.written_bytes

        successor = await desk.own()
        assert await desk.build(successor) is None
        await desk.checkpoint(successor)
        assert desk.stores.rows.written_bytes == written, "nothing is new"
        await _step(desk, successor)
        await desk.checkpoint(successor)
        assert desk.stores.rows.written_bytes == _size(desk.stores.hot.changes[name])
        assert desk.row(name) == desk.stores.hot.stored(name)

    asyncio.run(scenario())


def test_what_the_hot_store_did_not_hear_of_is_copied_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An owner that dies between the two steps."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(_chain(5))
        await desk.drain(owner)
        await desk.checkpoint(owner)
        await _step(desk, owner)

        async def die(lease: Any, copied: Mapping[str, Copied]) -> None:
            raise StoreUnavailable(f"gone before {len(copied)} were noted for {lease.owner}")

        with monkeypatch.context() as dying:
            dying.setattr(desk.stores.tiering.hot, "acknowledge_copies", die)
            copying = asyncio.create_task(desk.checkpoint(owner))
            done, _ = await asyncio.wait([copying], timeout=30)
            assert done
            assert isinstance(copying.exception(), StoreUnavailable)

        successor = await desk.own()
        await _step(desk, successor)
        await desk.checkpoint(successor)
        assert desk.row(name) == desk.stores.hot.stored(name)
        assert desk.stores.rows.changes[name] == desk.stores.hot.changes[name]

    asyncio.run(scenario())


def test_what_the_cold_store_refused_is_copied_with_what_comes_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(_chain(4))
        await desk.drain(owner)
        await desk.checkpoint(owner)
        await _step(desk, owner)
        put = desk.stores.rows.put_copies

        async def refuse(
            partition: int, number: int, copies: Sequence[Copy], **named: Any
        ) -> Written:
            if copies:
                raise ValueError("something in it")
            return await put(partition, number, copies, **named)

        with monkeypatch.context() as refusing:
            refusing.setattr(desk.stores.tiering.cold, "put_copies", refuse)
            await desk.checkpoint(owner)
        await _step(desk, owner)
        sent: list[Copy] = []

        async def watch(
            partition: int, number: int, copies: Sequence[Copy], **named: Any
        ) -> Written:
            sent.extend(copies)
            return await put(partition, number, copies, **named)

        monkeypatch.setattr(desk.stores.tiering.cold, "put_copies", watch)
        await desk.checkpoint(owner)
        assert desk.row(name) == desk.stores.hot.stored(name)
        assert [copy.first for copy in sent] == [1], "and nothing had to be sent again"

    asyncio.run(scenario())


def test_a_late_checkpoint_behind_an_archived_pause_changes_nothing_and_the_next_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Archiver and checkpointer read the hot store beside each other."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(_chain(5))
        await desk.drain(owner)
        await desk.checkpoint(owner)
        await _step(desk, owner)

        put = desk.stores.rows.put_copies
        is_first = True

        async def overtaken(
            partition: int, number: int, copies: Sequence[Copy], **named: Any
        ) -> Written:
            nonlocal is_first
            if is_first:
                is_first = False
                await desk.stores.hot.append([PauseRequested(name)])
                await desk.drain(owner)
                await desk.archiver(owner).drain()
                assert desk.row(name).record.state == "PAUSED"
            return await put(partition, number, copies, **named)

        monkeypatch.setattr(desk.stores.tiering.cold, "put_copies", overtaken)
        await desk.checkpoint(owner)
        assert desk.row(name) == desk.stores.hot.stored(name)

        await desk.stores.hot.append([ResumeRequested(name)])
        await desk.drain(owner)
        await desk.archiver(owner).drain()
        assert desk.row(name) == desk.stores.hot.stored(name)
        await desk.work(owner, OUTPUT)
        whole = list(desk.stores.hot.changes[name])
        await desk.archiver(owner).drain()
        assert desk.stores.rows.changes[name] == whole

    asyncio.run(scenario())


def test_the_state_of_an_execution_stays_when_the_newest_changes_do_not_say_it() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(_chain(3))
        await desk.drain(owner)
        await desk.checkpoint(owner)
        before = desk.row(name).record
        await _step(desk, owner)
        tail = (await desk.stores.tiering.hot.tails([name]))[name]
        assert tail.copied is not None
        assert len(tail.changes) == 1
        await desk.checkpoint(owner)
        record = desk.row(name).record
        assert (record.state, record.started_at) == ("RUNNING", before.started_at)
        (unfinished,) = await desk.stores.tiering.cold.unfinished(0)
        assert len(unfinished.changes) == 2

    asyncio.run(scenario())


def test_the_first_checkpoint_after_a_rebuild_replaces_all_of_the_generation_before() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.build(owner)
        name = await desk.start(_chain(6))
        await desk.drain(owner)
        for _ in range(3):
            await _step(desk, owner)
            await desk.checkpoint(owner)

        for _ in range(2):
            generation = desk.row(name).record.generation
            desk.stores.lose_everything()
            owner = await desk.own()
            assert await desk.build(owner) == 1
            await desk.drain(owner)
            await desk.checkpoint(owner)
            assert desk.row(name).record.generation > generation
            assert desk.stores.rows.changes[name] == desk.stores.hot.changes[name]
            await _step(desk, owner)
            await desk.checkpoint(owner)
            assert desk.row(name) == desk.stores.hot.stored(name)

        await desk.work(owner)
        await desk.archiver(owner).drain()
        assert desk.row(name).record.state == "COMPLETED"
        assert {run.state for run in desk.row(name).runs.values()} == {"COMPLETED"}

    asyncio.run(scenario())


def test_a_cold_store_that_has_lost_segments_gets_all_changes_also_of_what_does_not_go_on() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await desk.own()
        await desk.build(owner)
        names = [await desk.start(_chain(4)) for _ in range(2)]
        await desk.drain(owner)
        await desk.checkpoint(owner)
        older = desk.stores.cold_image()
        await _step(desk, owner)
        await desk.checkpoint(owner)
        newer = desk.stores.rows.numbers
        # the number doesn't give it away: two copies came with the same one
        desk.stores.put_cold_back({**older, "numbers": newer})
        assert desk.row(names[0]) != desk.stores.hot.stored(names[0])

        successor = await desk.own()
        assert await desk.build(successor) is None
        checkpointer = desk.checkpointer(successor, metrics)
        checkpointer.dirty.update(names)
        await checkpointer.copy()
        for name in names:
            assert desk.row(name) == desk.stores.hot.stored(name)
        assert metrics.checkpointed == 2

    asyncio.run(scenario())


def test_after_an_older_copy_of_the_cold_store_everything_is_copied_from_its_first_change() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.build(owner)
        older = desk.stores.cold_image()
        name = await desk.start(_chain(4))
        await desk.drain(owner)
        await desk.checkpoint(owner)
        assert name in desk.stores.hot.copied
        desk.stores.put_cold_back(older)

        successor = await desk.own()
        await desk.build(successor)
        assert not desk.stores.hot.copied
        await desk.checkpoint(successor)
        assert desk.row(name) == desk.stores.hot.stored(name)

    asyncio.run(scenario())


def test_changes_that_are_sent_again_as_a_whole_come_with_a_number_that_covers_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit lands while the cold store answers that something is missing."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(_chain(4))
        await desk.drain(owner)
        put = desk.stores.rows.put_copies
        sent: list[tuple[int, int]] = []

        async def answer_missing_once(
            partition: int, number: int, copies: Sequence[Copy], **named: Any
        ) -> Written:
            sent.extend((number, len(copy.changes)) for copy in copies)
            if len(sent) > 1:
                return await put(partition, number, copies, **named)
            await _step(desk, owner)
            return Written(missing=[name])

        monkeypatch.setattr(desk.stores.tiering.cold, "put_copies", answer_missing_once)
        before = owner.lease.commit_number
        await desk.checkpoint(owner)
        assert sent == [(before, 1), (owner.lease.commit_number, 2)]
        assert owner.lease.commit_number > before

    asyncio.run(scenario())
