"""The commit feed where it has several partitions: one id is a cursor in all of them."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.commands import Transition
from penstock.service.live_events import LiveEvents, NoSuchEvent, _read_id
from penstock.service.readers import Batch, batch_of, of_feed_entries
from penstock.stores.cold import Executions
from penstock.stores.records import FeedCursor, FeedEntry, FeedGap
from tests.service.chronicle import ids
from tests.service.feed_partitions import FeedPartitions
from tests.waiting import let_others_run, until


def live_events_of(partitions: FeedPartitions, waiting_max: int = 2000) -> LiveEvents:
    return LiveEvents(cast("Executions", partitions), waiting_max=waiting_max)


class Client:
    """Reads a stream as a browser does: has the last id of what arrived, and comes back with it."""

    def __init__(self, live_events: LiveEvents, last: str | None) -> None:
        self._live_events = live_events
        self.last = last
        self.got: dict[str, list[int]] = {}

    async def read(self, limit: int = 10**9, pause: int = 0) -> None:
        """Up to so many lines, perhaps the last of them in the middle of a batch."""
        async with aclosing(self._live_events.everything(self.last)) as batches:
            async for batch in batches:
                for entry in batch.feed_lines:
                    self.last = entry.id
                    self.got.setdefault(entry.execution_id, []).append(entry.line.seq)
                    limit -= 1
                    if not limit:
                        return
                await let_others_run(pause)


def test_an_id_is_a_position_in_each_partition_with_the_index_in_its_own() -> None:
    async def scenario() -> None:
        partitions = FeedPartitions(3, random.Random(1))
        live_events = live_events_of(partitions)
        partitions.commit(1, lines=2)
        partitions.commit(2)
        places = await partitions.commits_end()
        [first, second] = sorted(
            await partitions.read_commits((0, 0, 0)), key=lambda part: part.partition
        )
        async with aclosing(live_events.everything("0")) as batches:
            batch = Batch([])
            while not batch.feed_lines:
                batch = await anext(batches)
        ours = [entry.id for entry in batch.feed_lines if entry.execution_id == first.execution_id]
        other = second.position if batch.feed_lines[0].execution_id == second.execution_id else 0
        assert ours == [f"0-{first.position}.0-{other}", f"0-{first.position}.1-{other}"]
        assert places == (0, first.position, second.position)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("1", "1 positions where this store has 3"),
        ("1.0", "1 positions"),
        ("1-1", "2 positions"),
        ("1-1-1-1", "4 positions"),
        ("-".join(["1"] * 5000), "isn't the id"),
        ("99-0-0", "no event 99-0-0 yet"),
        ("0-0-99.0", "no event 0-0-99.0 yet"),
        ("1.0-0-0", "no event 1.0-0-0;"),
        ("1.0-1.0-1", "isn't the id"),
        ("1.-1-1", "isn't the id"),
        ("1--1", "isn't the id"),
        ("-1-1-1", "isn't the id"),
        ("1-1-1-", "isn't the id"),
        ("1 -1-1", "isn't the id"),
        ("1-1-\u0661", "isn't the id"),
        ("1-1-" + "1" * 19, "isn't the id"),
        ("", "isn't the id"),
    ],
)
def test_an_id_of_another_store_or_of_the_future_is_refused(name: str, told: str) -> None:
    async def scenario() -> None:
        partitions = FeedPartitions(3, random.Random(1))
        for partition in range(3):
            partitions.commit(partition)
        with pytest.raises(NoSuchEvent, match=told):
            await anext(live_events_of(partitions).everything(name))

    asyncio.run(scenario())


def test_an_id_whose_partition_was_trimmed_is_refused_before_the_stream_begins() -> None:
    async def scenario() -> None:
        partitions = FeedPartitions(2, random.Random(1), retained=3)
        client = Client(live_events_of(partitions), "0")
        partitions.commit(0, lines=3)
        partitions.commit(1)
        await client.read(2)
        for _ in range(4):
            partitions.commit(1)
        with pytest.raises(NoSuchEvent, match="isn't kept any more"):
            await client.read(1)
        # the other partition has lost nothing, and a reader that has had what was lost goes on
        newest = await partitions.commits_end()
        client.last = f"0-{newest[1]}"
        await client.read(3)

    asyncio.run(scenario())


def test_a_reader_whose_partition_is_trimmed_while_it_sleeps_misses_nothing_silently() -> None:
    async def scenario() -> None:
        partitions = FeedPartitions(2, random.Random(1), retained=5)
        live_events = live_events_of(partitions, waiting_max=3)
        async with aclosing(live_events.everything()) as batches:
            await anext(batches)
            buffer = next(iter(live_events._streams))
            for _ in range(3):
                partitions.commit(0)
                live_events.on_remote_commit([])
                await until(lambda: not live_events._tail._woken.is_set(), "the tail reads")
            await let_others_run(5)
            buffer.fall_behind()
            for _ in range(20):
                partitions.commit(0)
            with pytest.raises(FeedGap):
                async for _ in batches:
                    pass

    asyncio.run(scenario())


async def _random_clients(luck: random.Random) -> None:
    """Clients that come, pause, are cut off in the middle and come back.

    All partitions go on meanwhile.
    """
    partitions = FeedPartitions(luck.randrange(1, 5), luck)
    live_events = live_events_of(partitions, waiting_max=luck.choice([4, 30, 2000]))
    count = len(await partitions.commits_end())
    clients = [Client(live_events, "0") for _ in range(3)]
    tasks: list[asyncio.Task[None]] = []

    def go_on() -> None:
        for index, client in enumerate(clients):
            if index == len(tasks):
                tasks.append(asyncio.create_task(client.read(1)))
            elif tasks[index].done():
                tasks[index].result()
                tasks[index] = asyncio.create_task(
                    client.read(luck.randrange(1, 20), luck.randrange(4))
                )

    go_on()
    for _ in range(luck.randrange(10, 60)):
        partitions.commit(
            luck.randrange(count), parts=luck.randrange(3), lines=luck.randrange(1, 5)
        )
        if luck.random() > 0.2:
            live_events.on_remote_commit([])
        await let_others_run(luck.randrange(6))
        go_on()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for client in clients:
        rest = asyncio.create_task(client.read())
        await until(
            lambda client=client: (
                client.got == partitions.lines or _has_too_much(client, partitions)
            ),  # type: ignore[misc]
            "every line",
        )
        rest.cancel()
        await asyncio.wait((rest,))
        assert client.got == partitions.lines


def _has_too_much(client: Client, partitions: FeedPartitions) -> bool:
    return sum(map(len, client.got.values())) >= sum(map(len, partitions.lines.values()))


@pytest.mark.parametrize("seed", range(60))
def test_clients_that_come_and_go_while_partitions_interleave_see_each_line_once(seed: int) -> None:
    asyncio.run(_random_clients(random.Random(seed)))


def test_readers_share_batches_also_where_there_are_partitions() -> None:
    async def scenario() -> None:
        partitions = FeedPartitions(3, random.Random(1))
        live_events = live_events_of(partitions)
        readers = [live_events.everything() for _ in range(3)]
        for reader in readers:
            await anext(reader)
        taking = [asyncio.create_task(_next_lines(reader)) for reader in readers]
        await let_others_run()
        for partition in (2, 0, 1, 0):
            partitions.commit(partition, lines=2)
        live_events.on_remote_commit([])
        batches = await asyncio.gather(*taking)
        assert len({id(batch) for batch in batches}) == 1
        for reader in readers:
            await reader.aclose()

    asyncio.run(scenario())


async def _next_lines(reader: Any) -> Batch:
    while True:
        batch: Batch = await anext(reader)
        if batch.feed_lines:
            return batch


@st.composite
def _parts(draw: st.DrawFn) -> tuple[int, list[FeedEntry]]:
    count = draw(st.integers(1, 4))
    ends = [0] * count
    parts = []
    for partition, gap, lines in draw(
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(1, 5), st.integers(1, 4)),
            min_size=1,
            max_size=12,
        )
    ):
        ends[partition] += gap
        transitions = [Transition(seq, 1.0, "n", "PENDING", "QUEUED", 1) for seq in range(lines)]
        parts.append(
            FeedEntry(ends[partition], f"{partition}:{ends[partition]}", transitions, partition)
        )
    return count, parts


def _seen(batches: list[Batch]) -> list[tuple[str, int]]:
    return [(entry.execution_id, entry.line.seq) for batch in batches for entry in batch.feed_lines]


def _rest(parts: list[FeedEntry], cursor: FeedCursor) -> list[FeedEntry]:
    return [part for part in parts if part.position > cursor[part.partition]]


def _behind(name: str, count: int, parts: list[FeedEntry]) -> list[tuple[str, int]]:
    """What a reader gets that goes on behind this id."""
    cursor, partition, seen = _read_id(name, count)
    half = [
        part
        for part in parts
        if seen and (part.partition, part.position) == (partition, cursor[partition])
    ]
    return _seen([batch_of(half, cursor, seen), *of_feed_entries(_rest(parts, cursor), cursor)])


@given(_parts(), st.randoms(use_true_random=False))
def test_behind_any_id_comes_exactly_what_was_not_seen_in_whatever_order_the_partitions_are_read(
    drawn: tuple[int, list[FeedEntry]], luck: random.Random
) -> None:
    count, parts = drawn
    whole = list(of_feed_entries(parts, (0,) * count))
    seen = _seen(whole)
    assert len(set(ids(whole))) == len(seen)
    in_another_order = sorted(parts, key=lambda part: (part.position, luck.random()))
    for number, name in enumerate(ids(whole), start=1):
        assert sorted(_behind(name, count, in_another_order)) == sorted(seen[number:])


@given(_parts(), st.data())
def test_a_reader_that_is_ahead_of_the_others_gets_the_rest_with_ids_of_its_own(
    drawn: tuple[int, list[FeedEntry]], data: st.DataObject
) -> None:
    count, parts = drawn
    ends = [
        max([0, *(part.position for part in parts if part.partition == partition)])
        for partition in range(count)
    ]
    cursor = tuple(data.draw(st.integers(0, end)) for end in ends)
    [batch] = of_feed_entries(parts, (0,) * count)
    mine = batch.seen_from(cursor)
    assert _seen([mine]) == _seen(list(of_feed_entries(_rest(parts, cursor), cursor)))
    assert mine.next_cursor == tuple(map(max, cursor, ends))
    for number, name in enumerate(ids([mine]), start=1):
        assert _behind(name, count, parts) == _seen([mine])[number:]
    assert batch.seen_from((0,) * count) is batch
