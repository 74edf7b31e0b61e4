"""The feed of all executions where it has several lanes: one id is a place in all of them."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.commands import Transition
from penstock.service.feed import Feed, NoSuchEvent, _read_id
from penstock.service.readers import Batch, batch_of, of_parts
from penstock.stores.cold import ColdStore
from penstock.stores.records import FeedGap, FeedPart, Place
from tests.service.chronicle import ids
from tests.service.lanes import Lanes
from tests.waiting import let_others_run, until


def feed_of(lanes: Lanes, waiting_max: int = 2000) -> Feed:
    return Feed(cast("ColdStore", lanes), waiting_max=waiting_max)


class Client:
    """Reads a stream as a browser does: has the last id of what arrived, and comes back with it."""

    def __init__(self, feed: Feed, last: str | None) -> None:
        self._feed, self.last = feed, last
        self.got: dict[str, list[int]] = {}

    async def read(self, limit: int = 10**9, pause: int = 0) -> None:
        """Up to so many lines, perhaps the last of them in the middle of a batch."""
        async with aclosing(self._feed.everything(self.last)) as batches:
            async for batch in batches:
                for entry in batch.entries:
                    self.last = entry.id
                    self.got.setdefault(entry.execution_id, []).append(entry.line.seq)
                    limit -= 1
                    if not limit:
                        return
                await let_others_run(pause)


def test_an_id_is_a_position_in_each_lane_with_the_index_in_its_own() -> None:
    async def scenario() -> None:
        lanes = Lanes(3, random.Random(1))
        feed = feed_of(lanes)
        lanes.commit(1, lines=2)
        lanes.commit(2)
        places = await lanes.feed_end()
        [first, second] = sorted(await lanes.feed((0, 0, 0)), key=lambda part: part.lane)
        async with aclosing(feed.everything("0")) as batches:
            batch = Batch([])
            while not batch.entries:
                batch = await anext(batches)
        ours = [entry.id for entry in batch.entries if entry.execution_id == first.execution_id]
        other = second.position if batch.entries[0].execution_id == second.execution_id else 0
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
        lanes = Lanes(3, random.Random(1))
        for lane in range(3):
            lanes.commit(lane)
        with pytest.raises(NoSuchEvent, match=told):
            await anext(feed_of(lanes).everything(name))

    asyncio.run(scenario())


def test_an_id_whose_lane_was_trimmed_is_refused_before_the_stream_begins() -> None:
    async def scenario() -> None:
        lanes = Lanes(2, random.Random(1), retained=3)
        client = Client(feed_of(lanes), "0")
        lanes.commit(0, lines=3)
        lanes.commit(1)
        await client.read(2)
        for _ in range(4):
            lanes.commit(1)
        with pytest.raises(NoSuchEvent, match="isn't kept any more"):
            await client.read(1)
        # the other lane has lost nothing, and what was lost is known to a reader that has had it
        newest = await lanes.feed_end()
        client.last = f"0-{newest[1]}"
        await client.read(3)

    asyncio.run(scenario())


def test_a_reader_whose_lane_is_trimmed_while_it_sleeps_hears_of_it_and_misses_nothing_silently() -> (
    None
):
    async def scenario() -> None:
        lanes = Lanes(2, random.Random(1), retained=5)
        feed = feed_of(lanes, waiting_max=3)
        async with aclosing(feed.everything()) as batches:
            await anext(batches)
            buffer = next(iter(feed._streams))
            for _ in range(3):
                lanes.commit(0)
                feed.hear([])
                await until(lambda: not feed._tail._woken.is_set(), "the tail reads")
            await let_others_run(5)
            buffer.fall_behind()
            for _ in range(20):
                lanes.commit(0)
            with pytest.raises(FeedGap):
                async for _ in batches:
                    pass

    asyncio.run(scenario())


async def _random_clients(luck: random.Random) -> None:
    """Clients that come, pause, are cut off in the middle of a part and come back, while all lanes go on."""
    lanes = Lanes(luck.randrange(1, 5), luck)
    feed = feed_of(lanes, waiting_max=luck.choice([4, 30, 2000]))
    count = len(await lanes.feed_end())
    clients = [Client(feed, "0") for _ in range(3)]
    tasks: list[asyncio.Task[None]] = []

    def go_on() -> None:
        for place, client in enumerate(clients):
            if place == len(tasks):
                tasks.append(asyncio.create_task(client.read(1)))
            elif tasks[place].done():
                tasks[place].result()
                tasks[place] = asyncio.create_task(
                    client.read(luck.randrange(1, 20), luck.randrange(4))
                )

    go_on()
    for _ in range(luck.randrange(10, 60)):
        lanes.commit(luck.randrange(count), parts=luck.randrange(3), lines=luck.randrange(1, 5))
        if luck.random() > 0.2:
            feed.hear([])
        await let_others_run(luck.randrange(6))
        go_on()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for client in clients:
        rest = asyncio.create_task(client.read())
        await until(
            lambda client=client: client.got == lanes.lines or _has_too_much(client, lanes),  # type: ignore[misc]
            "every line",
        )
        rest.cancel()
        await asyncio.wait((rest,))
        assert client.got == lanes.lines


def _has_too_much(client: Client, lanes: Lanes) -> bool:
    return sum(map(len, client.got.values())) >= sum(map(len, lanes.lines.values()))


@pytest.mark.parametrize("seed", range(60))
def test_clients_that_come_and_go_while_lanes_interleave_see_each_line_once(seed: int) -> None:
    asyncio.run(_random_clients(random.Random(seed)))


def test_readers_share_batches_also_where_there_are_lanes() -> None:
    async def scenario() -> None:
        lanes = Lanes(3, random.Random(1))
        feed = feed_of(lanes)
        readers = [feed.everything() for _ in range(3)]
        for reader in readers:
            await anext(reader)
        taking = [asyncio.create_task(_next_lines(reader)) for reader in readers]
        await let_others_run()
        for lane in (2, 0, 1, 0):
            lanes.commit(lane, lines=2)
        feed.hear([])
        batches = await asyncio.gather(*taking)
        assert len({id(batch) for batch in batches}) == 1
        for reader in readers:
            await reader.aclose()

    asyncio.run(scenario())


async def _next_lines(reader: Any) -> Batch:
    while True:
        batch: Batch = await anext(reader)
        if batch.entries:
            return batch


@st.composite
def _parts(draw: st.DrawFn) -> tuple[int, list[FeedPart]]:
    count = draw(st.integers(1, 4))
    ends = [0] * count
    parts = []
    for lane, gap, lines in draw(
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(1, 5), st.integers(1, 4)),
            min_size=1,
            max_size=12,
        )
    ):
        ends[lane] += gap
        told = [Transition(seq, 1.0, "n", "PENDING", "QUEUED", 1) for seq in range(lines)]
        parts.append(FeedPart(ends[lane], f"{lane}:{ends[lane]}", told, lane))
    return count, parts


def _seen(batches: list[Batch]) -> list[tuple[str, int]]:
    return [(entry.execution_id, entry.line.seq) for batch in batches for entry in batch.entries]


def _rest(parts: list[FeedPart], place: Place) -> list[FeedPart]:
    return [part for part in parts if part.position > place[part.lane]]


def _behind(name: str, count: int, parts: list[FeedPart]) -> list[tuple[str, int]]:
    """What a reader gets that goes on behind this id."""
    place, lane, seen = _read_id(name, count)
    half = [part for part in parts if seen and (part.lane, part.position) == (lane, place[lane])]
    return _seen([batch_of(half, place, seen), *of_parts(_rest(parts, place), place)])


@given(_parts(), st.randoms(use_true_random=False))
def test_behind_any_id_comes_exactly_what_was_not_seen_in_whatever_order_the_lanes_are_read(
    drawn: tuple[int, list[FeedPart]], luck: random.Random
) -> None:
    count, parts = drawn
    whole = list(of_parts(parts, (0,) * count))
    seen = _seen(whole)
    assert len(set(ids(whole))) == len(seen)
    in_another_order = sorted(parts, key=lambda part: (part.position, luck.random()))
    for number, name in enumerate(ids(whole), start=1):
        assert sorted(_behind(name, count, in_another_order)) == sorted(seen[number:])


@given(_parts(), st.data())
def test_a_reader_that_is_ahead_of_the_others_gets_the_rest_with_ids_of_its_own(
    drawn: tuple[int, list[FeedPart]], data: st.DataObject
) -> None:
    count, parts = drawn
    ends = [
        max([0, *(part.position for part in parts if part.lane == lane)]) for lane in range(count)
    ]
    place = tuple(data.draw(st.integers(0, end)) for end in ends)
    [batch] = of_parts(parts, (0,) * count)
    mine = batch.seen_from(place)
    assert _seen([mine]) == _seen(list(of_parts(_rest(parts, place), place)))
    assert mine.behind == tuple(map(max, place, ends))
    for number, name in enumerate(ids([mine]), start=1):
        assert _behind(name, count, parts) == _seen([mine])[number:]
    assert batch.seen_from((0,) * count) is batch
