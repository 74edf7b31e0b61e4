"""Live events from the history.

Every line once and in order, whatever happens between the store and the reader.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sized
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import NotFound, StoreUnavailable
from penstock.service.live_events import LiveEvents, NoSuchEvent, TooManyStreams
from penstock.service.readers import BATCH_LINES, Batch
from tests.service.chronicle import Chronicle, ids, seqs
from tests.waiting import let_others_run, until


def in_a_chronicle(
    scenario: Callable[[Chronicle], Awaitable[None]], path: Path | None = None, **limits: int
) -> None:
    async def main() -> None:
        chronicle = await Chronicle.begin(path, **limits)
        try:
            await scenario(chronicle)
            assert chronicle.live_events.streams == 0
            assert not chronicle.live_events._followers
            assert chronicle.live_events._tail._task is None
        finally:
            await chronicle.end()

    asyncio.run(main())


class Reader:
    """Takes batches as they come, in a task of its own."""

    def __init__(self, batches: AsyncGenerator[Batch, None]) -> None:
        self.got: list[Batch] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.task = asyncio.create_task(self._run(batches))

    async def _run(self, batches: AsyncGenerator[Batch, None]) -> None:
        async with aclosing(batches):
            async for batch in batches:
                self.got.append(batch)
                await self.may_go_on.wait()

    @property
    def seqs(self) -> list[int]:
        return seqs(self.got)

    async def has(self, count: int) -> None:
        await until(lambda: self.task.done() or len(self.seqs) >= count, f"{count} lines")

    async def begun(self) -> None:
        await until(lambda: self.task.done() or self.got, "the first batch")

    async def cancel(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


def stream(live_events: LiveEvents, kind: str) -> AsyncGenerator[Batch, None]:
    return live_events.follow("a") if kind == "follow" else live_events.everything()


def _has_more_than(collected: Sized, count: int) -> bool:
    return len(collected) > count


async def cut(*readers: Reader) -> None:
    for reader in readers:
        await reader.cancel()


def test_stored_lines_come_first_then_new_ones_and_the_stream_ends_with_the_execution() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a", "other")
        await chronicle.commit("a", 3)
        reader = Reader(chronicle.live_events.follow("a"))
        await reader.has(3)
        await chronicle.commit("other", 5)
        await chronicle.commit("a", 2)
        await chronicle.finish("a")
        await reader.task
        assert reader.seqs == [1, 2, 3, 4, 5, 6]
        assert reader.got[-1].ends == ("a", "COMPLETED")

    in_a_chronicle(scenario)


def test_the_lines_of_an_execution_come_in_lists() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 2)
        await chronicle.finish("a")
        got = [[line.seq for line in lines] async for lines in chronicle.live_events.execution("a")]
        assert got == [[1, 2, 3]]

    in_a_chronicle(scenario)


def test_an_execution_without_history_is_followed_from_its_first_line() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        reader = Reader(chronicle.live_events.follow("a"))
        await reader.begun()
        assert reader.seqs == []
        await chronicle.commit("a")
        await chronicle.finish("a")
        await reader.task
        assert reader.seqs == [1, 2]

    in_a_chronicle(scenario)


def test_an_unknown_execution_is_not_found() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        with pytest.raises(NotFound, match="'ghost'"):
            await anext(chronicle.live_events.follow("ghost"))

    in_a_chronicle(scenario)


@pytest.mark.parametrize("when", ["before", "then"])
def test_what_is_committed_around_the_first_reading_comes_once(when: str) -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 2)
        getattr(chronicle.executions, when).append(lambda: chronicle.commit("a", 2))
        reader = Reader(chronicle.live_events.follow("a"))
        await reader.has(4)
        await chronicle.finish("a")
        await reader.task
        assert reader.seqs == [1, 2, 3, 4, 5]

    in_a_chronicle(scenario)


@pytest.mark.parametrize("after", [1, 3, 4])
def test_a_reader_goes_on_behind_the_line_that_it_names(after: int) -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 4)
        reader = Reader(chronicle.live_events.follow("a", after))
        await reader.begun()
        await chronicle.finish("a")
        await reader.task
        assert reader.seqs == list(range(after + 1, 6))

    in_a_chronicle(scenario)


def test_a_reader_that_has_the_last_line_is_told_of_the_end() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.finish("a")
        reader = Reader(chronicle.live_events.follow("a", 1))
        await reader.task
        assert reader.seqs == []
        assert reader.got[-1].ends == ("a", "COMPLETED")

    in_a_chronicle(scenario)


def test_a_line_that_does_not_exist_is_refused() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 2)
        with pytest.raises(NoSuchEvent, match="no event 3"):
            await anext(chronicle.live_events.follow("a", 3))

    in_a_chronicle(scenario)


def test_a_long_history_comes_in_pieces_and_others_get_their_turn_in_between() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 4 * BATCH_LINES)
        await chronicle.finish("a")
        turns: list[int] = []
        reader = Reader(chronicle.live_events.follow("a"))

        async def neighbour() -> None:
            while not reader.task.done():
                turns.append(len(reader.got))
                await asyncio.sleep(0)

        await neighbour()
        assert reader.seqs == list(range(1, 4 * BATCH_LINES + 2))
        assert max(len(batch.feed_lines) for batch in reader.got) == BATCH_LINES
        assert {1, 2, 3} <= set(turns)

    in_a_chronicle(scenario)


def test_a_slow_reader_loses_its_buffer_and_still_gets_every_line_once() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        slow, quick = (
            Reader(chronicle.live_events.follow("a")),
            Reader(chronicle.live_events.follow("a")),
        )
        await slow.begun()
        await quick.begun()
        slow.may_go_on.clear()
        peak = 0
        for _ in range(50):
            await chronicle.commit("a", 10)
            peak = max(peak, chronicle.live_events.waiting)
            await quick.has(chronicle._last["a"])
        await chronicle.finish("a")
        await quick.task
        assert peak <= 2 * 100
        assert len(slow.seqs) < 100
        slow.may_go_on.set()
        await slow.task
        assert slow.seqs == quick.seqs == list(range(1, 502))
        assert (
            chronicle.executions.histories == 3
        )  # one each, and one for what the slow one had lost

    in_a_chronicle(scenario, waiting_max=100)


def test_a_batch_larger_than_the_buffer_fits_if_nothing_waits() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        reader = Reader(chronicle.live_events.follow("a"))
        await reader.begun()
        await chronicle.commit("a", 50)
        await reader.has(50)
        assert chronicle.executions.histories == 1
        await cut(reader)

    in_a_chronicle(scenario, waiting_max=10)


def test_a_commit_that_nobody_told_of_is_found_at_the_next_one() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        reader = Reader(chronicle.live_events.follow("a"))
        await reader.begun()
        await chronicle.commit("a", 2, notifies=False)
        await chronicle.commit("a", 2)
        await reader.has(4)
        await chronicle.finish("a")
        await reader.task
        assert reader.seqs == [1, 2, 3, 4, 5]

    in_a_chronicle(scenario)


def test_an_end_that_nobody_told_of_is_found_when_somebody_looks_again() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        single, all_of_them = (
            Reader(chronicle.live_events.follow("a")),
            Reader(chronicle.live_events.everything()),
        )
        await single.begun()
        await all_of_them.begun()
        await chronicle.finish("a", notifies=False)
        chronicle.live_events.look_again()
        await single.task
        await all_of_them.has(1)
        assert single.seqs == all_of_them.seqs == [1]
        await cut(all_of_them)

    in_a_chronicle(scenario)


def test_readers_share_one_batch_so_that_it_is_encoded_once() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        for kind in ("follow", "everything"):
            readers = [Reader(stream(chronicle.live_events, kind)) for _ in range(10)]
            for reader in readers:
                await reader.begun()
            already = len(readers[0].seqs)
            await chronicle.commit("a")
            for reader in readers:
                await reader.has(already + 1)
            assert len({id(reader.got[-1]) for reader in readers}) == 1
            await cut(*readers)

    in_a_chronicle(scenario)


def test_a_commit_costs_nothing_when_nobody_listens() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        untouched: Any = object()
        chronicle.live_events.on_commit(untouched)

    in_a_chronicle(scenario)


def test_silence_gives_empty_batches() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        readers = [
            Reader(chronicle.live_events.follow("a", idle_seconds=0.001)),
            Reader(chronicle.live_events.everything(idle_seconds=0.001)),
        ]
        for reader in readers:
            await until(partial(_has_more_than, reader.got, 3), "batches without lines")
            assert reader.seqs == []
        await cut(*readers)

    in_a_chronicle(scenario)


def test_there_are_no_more_streams_than_allowed_and_one_that_ends_makes_room() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        readers = [
            Reader(chronicle.live_events.follow("a")),
            Reader(chronicle.live_events.everything()),
        ]
        for reader in readers:
            await reader.begun()
        for refused in (chronicle.live_events.follow("a"), chronicle.live_events.everything()):
            with pytest.raises(TooManyStreams, match="2 event streams"):
                await anext(refused)
        await readers[0].cancel()
        another = Reader(chronicle.live_events.follow("a"))
        await another.begun()
        await cut(another, readers[1])

    in_a_chronicle(scenario, streams_max=2)


def test_closing_ends_all_streams_and_lets_none_begin() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        readers = [
            Reader(chronicle.live_events.follow("a")),
            Reader(chronicle.live_events.everything()),
        ]
        for reader in readers:
            await reader.begun()
        await chronicle.commit("a")
        chronicle.live_events.close()
        for reader in readers:
            await reader.task
        assert readers[0].seqs == [1]
        with pytest.raises(StoreUnavailable, match="stopping"):
            await anext(chronicle.live_events.follow("a"))

    in_a_chronicle(scenario)


def test_the_feed_of_all_begins_now_and_has_the_order_of_commits() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a", "b")
        await chronicle.commit("a", 3)
        reader = Reader(chronicle.live_events.everything())
        await reader.begun()
        await chronicle.commit("b", 2)
        await chronicle.commit("a")
        await chronicle.finish("b")
        await reader.has(4)
        got = [
            (entry.execution_id, entry.line.seq)
            for batch in reader.got
            for entry in batch.feed_lines
        ]
        assert got == [("b", 1), ("b", 2), ("a", 4), ("b", 3)]
        assert [name.partition(".")[2] for name in ids(reader.got)] == ["0", "1", "0", "0"]
        await cut(reader)

    in_a_chronicle(scenario)


def test_the_feed_of_all_goes_on_behind_any_of_its_ids() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a", "b")
        for name in ("a", "b", "a", "b"):
            await chronicle.commit(name, 3)
        whole = Reader(chronicle.live_events.everything("0"))
        await whole.has(12)
        names = ids(whole.got)
        assert len(set(names)) == 12
        for index, name in enumerate(names):
            rest = Reader(chronicle.live_events.everything(name))
            await rest.begun()
            await rest.has(11 - index)
            await cut(rest)
            assert ids(rest.got) == names[index + 1 :]
        await cut(whole)

    in_a_chronicle(scenario)


@pytest.mark.parametrize(
    "name", ["99.0", "99", "x", "1.", "1.0.0", "-1.0", "", "\u0661.0", "1" * 30]
)
def test_an_id_that_the_feed_of_all_does_not_have_is_refused(name: str) -> None:
    async def scenario(chronicle: Chronicle) -> None:
        with pytest.raises(NoSuchEvent):
            await anext(chronicle.live_events.everything(name))

    in_a_chronicle(scenario)


def test_the_store_is_read_once_for_all_who_follow_everything() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        readers = [Reader(chronicle.live_events.everything()) for _ in range(50)]
        for reader in readers:
            await reader.begun()
        await chronicle.commit("a", 5)
        for reader in readers:
            await reader.has(5)
        assert chronicle.executions.feeds <= 2
        await cut(*readers)

    in_a_chronicle(scenario)


def test_a_slow_reader_of_everything_goes_back_to_the_store() -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        slow, quick = (
            Reader(chronicle.live_events.everything()),
            Reader(chronicle.live_events.everything()),
        )
        await slow.begun()
        await quick.begun()
        slow.may_go_on.clear()
        for count in range(1, 41):
            await chronicle.commit("a", 10)
            await quick.has(count * 10)
            assert chronicle.live_events.waiting <= 2 * 100
        assert len(slow.seqs) < 100
        slow.may_go_on.set()
        await slow.has(400)
        assert slow.seqs == quick.seqs == list(range(1, 401))
        assert ids(slow.got) == ids(quick.got)
        await cut(slow, quick)

    in_a_chronicle(scenario, waiting_max=100)


def test_a_store_that_fails_ends_the_streams_and_the_next_one_begins_anew() -> None:
    async def broken() -> None:
        raise StoreUnavailable("the disk is away")

    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        readers = [Reader(chronicle.live_events.everything()) for _ in range(2)]
        for reader in readers:
            await reader.begun()
        chronicle.executions.before.append(broken)
        await chronicle.commit("a")
        for reader in readers:
            with pytest.raises(StoreUnavailable, match="the disk is away"):
                await reader.task
        another = Reader(chronicle.live_events.everything("0"))
        await another.has(1)
        assert another.seqs == [1]
        await cut(another)

    in_a_chronicle(scenario)


@pytest.mark.parametrize("kind", ["follow", "everything"])
def test_a_reader_cancelled_at_any_moment_leaves_nothing_behind(kind: str) -> None:
    async def scenario(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a")
        for turns in range(12):
            reader = Reader(stream(chronicle.live_events, kind))
            await let_others_run(turns)
            await cut(reader)
            assert chronicle.live_events.streams == 0

    in_a_chronicle(scenario)


async def _random_readers(chronicle: Chronicle, luck: random.Random) -> None:
    """Readers that come, pause, go and come back with their last id.

    Meanwhile there are commits, of which readers are notified or not.
    """
    await chronicle.record_intents("a", "b")
    got: dict[str, list[int]] = {"follow": [], "everything": []}
    last: dict[str, str] = {"follow": "0", "everything": "0"}

    async def read(kind: str, batches: int) -> None:
        live_events = chronicle.live_events
        following = (
            live_events.follow("a", int(last[kind]))
            if kind == "follow"
            else live_events.everything(last[kind])
        )
        async with aclosing(following):
            async for batch in following:
                for entry in batch.feed_lines:
                    last[kind] = entry.id
                    if entry.execution_id == "a":
                        got[kind].append(entry.line.seq)
                await let_others_run(luck.randrange(4))
                batches -= 1
                if not batches:
                    return

    tasks = {kind: asyncio.create_task(read(kind, luck.randrange(1, 6))) for kind in got}
    for _ in range(luck.randrange(5, 30)):
        await chronicle.commit(
            luck.choice("aab"), luck.randrange(1, 6), notifies=luck.random() > 0.1
        )
        await let_others_run(luck.randrange(6))
        for kind, task in tasks.items():
            if task.done():
                await task
                tasks[kind] = asyncio.create_task(read(kind, luck.randrange(1, 6)))
    await chronicle.finish("a")
    for kind, task in tasks.items():
        task.cancel()
        await asyncio.wait((task,))
        rest = asyncio.create_task(read(kind, 10_000))
        await until(
            partial(_has_more_than, got[kind], chronicle._last["a"] - 1), f"all lines by {kind}"
        )
        rest.cancel()
        await asyncio.wait((rest,))
        assert got[kind] == list(range(1, chronicle._last["a"] + 1))


@pytest.mark.parametrize("seed", range(30))
def test_readers_that_come_and_go_at_random_miss_nothing_and_get_nothing_twice(seed: int) -> None:
    in_a_chronicle(lambda chronicle: _random_readers(chronicle, random.Random(seed)), waiting_max=8)


def test_ids_hold_across_a_restart_on_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    got: list[tuple[str, int]] = []

    async def first(chronicle: Chronicle) -> None:
        await chronicle.record_intents("a", "b")
        reader = Reader(chronicle.live_events.everything())
        await reader.begun()
        await chronicle.commit("a", 3)
        await chronicle.commit("b", 2)
        await reader.has(5)
        await cut(reader)
        got.extend((entry.id, entry.line.seq) for batch in reader.got for entry in batch.feed_lines)

    async def second(chronicle: Chronicle) -> None:
        await chronicle.commit("b", 2)
        reader, single = (
            Reader(chronicle.live_events.everything(got[2][0])),
            Reader(chronicle.live_events.follow("a", 2)),
        )
        await reader.has(4)
        await chronicle.finish("a")
        await reader.has(5)
        await single.task
        assert [(entry.id, entry.line.seq) for batch in reader.got for entry in batch.feed_lines][
            :2
        ] == got[3:]
        assert reader.seqs == [1, 2, 3, 4, 4]
        assert single.seqs == [3, 4]
        await cut(reader)

    in_a_chronicle(first, path)
    in_a_chronicle(second, path)
