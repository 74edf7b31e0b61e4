"""The history of one execution and the feed of all: every line once, in order, from any place on."""

import asyncio

from penstock.engine.commands import Commands, Transition
from penstock.stores.base import Stores, partition_of
from penstock.stores.records import FeedPart
from tests.contract.facts import Owner, begin, ended, execution_ids, new, started
from tests.contract.suite import on_every_store


@on_every_store
async def test_history_goes_on_after_any_line(stores: Stores) -> None:
    name = next(execution_ids(stores))
    owner = await begin(stores, name)
    lines = [*started(name).history, *_lines(2, 9)]
    await owner.commit(Commands(name, history=lines[1:4]))
    await owner.commit(Commands(name, logs=[("a", 1, "a commit without a line")]))
    await owner.commit(Commands(name, history=lines[4:5]))
    await owner.commit(Commands(name, history=lines[5:]))
    assert await stores.cold.history(name) == lines
    for after in range(12):
        assert await stores.cold.history(name, after) == lines[after:], after


@on_every_store
async def test_history_of_what_has_not_begun_is_empty_and_of_the_unknown_none(stores: Stores) -> None:
    name = next(execution_ids(stores))
    await stores.cold.create([new(name)])
    assert await stores.cold.history(name) == []
    for unknown in ("unknown", "", "half \ud800"):
        assert await stores.cold.history(unknown) is None


@on_every_store
async def test_the_feed_has_what_each_commit_told_in_the_order_of_commits(stores: Stores) -> None:
    assert await stores.cold.feed_end() == 0
    assert await stores.cold.feed(0) == []
    names = execution_ids(stores)
    a, b = next(names), next(names)
    owner = await begin(stores, a, b)
    await owner.commit(Commands(b, logs=[("a", 1, "a commit without a line")]), Commands(a, history=_lines(2, 4)))
    await owner.commit(ended(b))
    parts = await stores.cold.feed(0)
    told = [(part.execution_id, part.lines) for part in parts]
    assert told == [
        (a, started(a).history), (b, started(b).history), (a, _lines(2, 4)), (b, ended(b).history),
    ]  # fmt: skip
    positions = [part.position for part in parts]
    assert positions == sorted(set(positions))
    assert await stores.cold.feed_end() == positions[-1]


@on_every_store
async def test_the_feed_goes_on_after_any_position(stores: Stores) -> None:
    name = next(execution_ids(stores))
    owner = await begin(stores, name)
    for number in range(2, 20):
        quiet = number % 3 == 0
        await owner.commit(Commands(name, logs=[("a", 1, "…")], history=[] if quiet else _lines(number, number)))
    everything = await stores.cold.feed(0)
    assert len(everything) == 13
    for after in range(await stores.cold.feed_end() + 2):
        assert await stores.cold.feed(after) == [part for part in everything if part.position > after]
    assert await _pages(stores, 2) == everything
    assert await stores.cold.feed(-1) == everything
    assert await stores.cold.feed(2**70) == []


@on_every_store
async def test_who_follows_the_feed_while_others_commit_sees_every_line_once(stores: Stores) -> None:
    names = [name for name, _ in zip(execution_ids(stores), range(20), strict=False)]
    owner = await begin(stores, *names)
    seen: list[FeedPart] = []

    async def follow() -> None:
        while len(seen) < 120:
            seen.extend(await stores.cold.feed(seen[-1].position if seen else 0, 7))
            await asyncio.sleep(0)

    async def write() -> None:
        for number in range(2, 7):
            await owner.commit(*(Commands(name, history=_lines(number, number)) for name in names))

    async with asyncio.timeout(20):
        await asyncio.gather(follow(), write())
    assert seen == await stores.cold.feed(0)
    for name in names:
        assert [line.seq for part in seen if part.execution_id == name for line in part.lines] == list(range(1, 7))


@on_every_store
async def test_the_feed_is_of_all_partitions(stores: Stores) -> None:
    for number in range(8):
        name = f"e{number}"
        await stores.cold.create([new(name)])
        owner = await Owner.of(stores, partition_of(name, stores.hot.partitions), f"owner-{number}")
        await owner.commit(started(name))
        await stores.hot.release(owner.lease)
    assert [part.execution_id for part in await stores.cold.feed(0)] == [f"e{number}" for number in range(8)]


async def _pages(stores: Stores, limit: int) -> list[FeedPart]:
    parts: list[FeedPart] = []
    while page := await stores.cold.feed(parts[-1].position if parts else 0, limit):
        assert len(page) <= limit
        parts += page
    return parts


def _lines(first: int, last: int) -> list[Transition]:
    return [Transition(seq, 1000.0 + seq, "a", "PENDING", "QUEUED", 1, "why") for seq in range(first, last + 1)]
