"""Histories and the commit feed: every line once, in order, from any cursor on."""

import asyncio
from itertools import islice

from penstock.contract.facts import Owner, begin, ended, new_execution_ids, new_intent, started
from penstock.engine.commands import AttemptFailure, Commands, NodeRun, Transition
from penstock.engine.events import TaskError
from penstock.engine.states import NodeState
from penstock.stores.base import Stores, partition_of
from penstock.stores.records import FeedCursor, FeedEntry, advance


async def test_history_goes_on_after_any_line(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    lines = [*started(execution_id).history, *_lines(2, 9)]
    await owner.commit(Commands(execution_id, history=lines[1:4]))
    await owner.commit(Commands(execution_id, logs=[("a", 1, "a commit without a line")]))
    await owner.commit(Commands(execution_id, history=lines[4:5]))
    await owner.commit(Commands(execution_id, history=lines[5:]))
    assert await stores.cold.executions.history(execution_id) == lines
    for after in range(12):
        assert await stores.cold.executions.history(execution_id, after) == lines[after:], after


async def test_what_is_new_is_read_without_the_rest(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    lines = [*started(execution_id).history, *_lines(2, 7)]
    failure = AttemptFailure(1, 2.0, TaskError("http", "500"), "worker-1")
    first = NodeRun("a", NodeState.COMPLETED, 1)
    failed = NodeRun("b", NodeState.FAILED, 1)
    await owner.commit(
        Commands(execution_id, nodes={"a": first}, outputs={"a": b"1"}, history=lines[1:3])
    )
    await owner.commit(Commands(execution_id, logs=[("a", 1, "a commit without a line")]))
    await owner.commit(
        Commands(execution_id, nodes={"b": failed}, history=lines[3:5], failures=[("b", failure)])
    )
    await owner.commit(Commands(execution_id, outputs={"c": b"3"}, history=lines[5:]))

    read = stores.cold.executions.since
    for after in range(10):
        stored = await read(execution_id, after)
        assert stored is not None
        assert stored.history == lines[after:], after
        assert stored.record.workflow == "report"
        assert list(stored.runs) == ["a"] * (after < 3) + ["b"] * (after < 5), after
        assert list(stored.outputs) == ["a"] * (after < 3) + ["c"] * (after < 7), after
        if after < 5:
            assert stored.runs["b"].failures == [failure]


async def test_nothing_is_new_of_what_has_not_begun(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await cold.executions.record_intents([new_intent(execution_id)])
    stored = await cold.executions.since(execution_id, 0)
    assert stored is not None
    assert (stored.record.workflow, stored.history, stored.runs) == ("report", [], {})
    for unknown in ("unknown", "", "half \ud800"):
        assert await cold.executions.since(unknown, 0) is None


async def test_history_of_what_has_not_begun_is_empty_and_of_the_unknown_none(
    stores: Stores,
) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await cold.executions.record_intents([new_intent(execution_id)])
    assert await cold.executions.history(execution_id) == []
    for unknown in ("unknown", "", "half \ud800"):
        assert await cold.executions.history(unknown) is None


async def test_the_feed_has_what_each_commit_told_in_the_order_of_commits(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.executions.read_commits(await cold.executions.commits_end()) == []
    assert await cold.executions.read_commits(await _start(stores)) == []

    execution_ids = new_execution_ids(stores)
    a = next(execution_ids)
    b = next(execution_ids)
    owner = await begin(stores, a, b)
    without_line = Commands(b, logs=[("a", 1, "a commit without a line")])
    await owner.commit(without_line, Commands(a, history=_lines(2, 4)))
    await owner.commit(ended(b))
    feed_entries = await cold.executions.read_commits(await _start(stores))
    lines = [(feed_entry.execution_id, feed_entry.lines) for feed_entry in feed_entries]
    assert lines == [
        (a, started(a).history),
        (b, started(b).history),
        (a, _lines(2, 4)),
        (b, ended(b).history),
    ]

    positions = [feed_entry.position for feed_entry in feed_entries]
    assert positions == sorted(set(positions))

    end = await cold.executions.commits_end()
    assert advance(end, feed_entries) == end
    assert await cold.executions.read_commits(end) == []


async def test_the_feed_goes_on_after_any_position(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    for number in range(2, 20):
        quiet = number % 3 == 0
        history = [] if quiet else _lines(number, number)
        await owner.commit(Commands(execution_id, logs=[("a", 1, "…")], history=history))

    start = await _start(stores)
    everything = await stores.cold.executions.read_commits(start)
    assert len(everything) == 13

    positions: set[int] = set()
    for feed_entry in everything:
        positions.update(range(feed_entry.position - 1, feed_entry.position + 2))

    for after in positions:
        cursor = advance(start, [FeedEntry(after, execution_id, [], everything[0].partition)])
        expected = [feed_entry for feed_entry in everything if feed_entry.position > after]
        assert await stores.cold.executions.read_commits(cursor) == expected, after

    assert await _pages(stores, 2) == everything


async def test_a_place_before_the_beginning_is_the_beginning_and_one_far_ahead_has_nothing(
    stores: Stores,
) -> None:
    cold = stores.cold
    await begin(stores, next(new_execution_ids(stores)))
    start = await _start(stores)
    everything = await cold.executions.read_commits(start)
    assert everything != []
    assert await cold.executions.read_commits(tuple(-1 for _ in start)) == everything
    assert await cold.executions.read_commits(tuple(2**70 for _ in start)) == []


async def test_who_follows_the_feed_while_others_commit_sees_every_line_once(
    stores: Stores,
) -> None:
    execution_ids = list(islice(new_execution_ids(stores), 20))
    owner = await begin(stores, *execution_ids)
    seen: list[FeedEntry] = []

    async def follow() -> None:
        start = await _start(stores)
        while len(seen) < 120:
            seen.extend(await stores.cold.executions.read_commits(advance(start, seen), 7))
            await asyncio.sleep(0)

    async def write() -> None:
        for number in range(2, 7):
            changes = [
                Commands(execution_id, history=_lines(number, number))
                for execution_id in execution_ids
            ]
            await owner.commit(*changes)

    async with asyncio.timeout(20):
        await asyncio.gather(follow(), write())

    assert seen == await stores.cold.executions.read_commits(await _start(stores))

    seqs: dict[str, list[int]] = {execution_id: [] for execution_id in execution_ids}
    for feed_entry in seen:
        seqs[feed_entry.execution_id] += [line.seq for line in feed_entry.lines]

    for execution_id in execution_ids:
        assert seqs[execution_id] == list(range(1, 7))


async def test_the_feed_is_of_all_partitions_and_each_partition_is_read_on_by_itself(
    stores: Stores,
) -> None:
    cold = stores.cold
    owners = [await Owner.of(stores, partition) for partition in range(stores.hot.partitions)]
    execution_ids = [f"e{number}" for number in range(24)]
    for execution_id in execution_ids:
        await cold.executions.record_intents([new_intent(execution_id)])
        await owners[partition_of(execution_id, len(owners))].commit(started(execution_id))

    everything = await cold.executions.read_commits(await _start(stores))
    partitions = len(await cold.executions.commits_end())
    assert partitions in {1, len(owners)}
    assert {feed_entry.partition for feed_entry in everything} <= set(range(partitions))

    for partition in range(partitions):
        mine = [feed_entry for feed_entry in everything if feed_entry.partition == partition]
        expected = [
            execution_id
            for execution_id in execution_ids
            if partition_of(execution_id, partitions) == partition
        ]
        positions = [feed_entry.position for feed_entry in mine]
        assert [feed_entry.execution_id for feed_entry in mine] == expected
        assert positions == sorted(set(positions))

    for limit in (1, 3, 7):
        pages = await _pages(stores, limit)
        assert sorted(pages, key=_order) == sorted(everything, key=_order)


async def _start(stores: Stores) -> FeedCursor:
    return tuple(0 for _ in await stores.cold.executions.commits_end())


def _order(feed_entry: FeedEntry) -> tuple[int, int]:
    return feed_entry.partition, feed_entry.position


async def _pages(stores: Stores, limit: int) -> list[FeedEntry]:
    feed_entries: list[FeedEntry] = []
    cursor = await _start(stores)
    while page := await stores.cold.executions.read_commits(cursor, limit):
        assert len(page) <= limit
        feed_entries += page
        cursor = advance(cursor, page)
    return feed_entries


def _lines(first: int, last: int) -> list[Transition]:
    return [
        Transition(seq, 1000.0 + seq, "a", "PENDING", "QUEUED", 1, "why")
        for seq in range(first, last + 1)
    ]
