"""Each partition's commits as a partition of the commit feed."""

import asyncio

import pytest

from penstock.contract.facts import started
from penstock.engine.commands import Commands, Transition
from penstock.stores.records import FeedGap
from penstock.stores.redis.commit_feed import RedisCommitFeed
from penstock.stores.redis.commits import FEED_SLOTS as SLOTS
from tests.redis.stores_under_test import open_stores


def _line(name: str, seq: int) -> Commands:
    return Commands(name, history=[Transition(seq, 1.0, "a", "PENDING", "QUEUED", 1)])


def test_a_commits_lines_can_be_read_on_from_anywhere_in_it() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            assert await commit_feed.commits_end() == (0,)
            await stores.commit(*(started(f"execution-{number}") for number in range(3)))
            await stores.commit()
            await stores.commit(_line("execution-1", 2))
            parts = await commit_feed.read_commits((0,))
            assert [part.position for part in parts] == [SLOTS, SLOTS + 1, SLOTS + 2, 3 * SLOTS]
            assert await commit_feed.read_commits((SLOTS + 1,)) == parts[2:]
            assert await commit_feed.read_commits(await commit_feed.commits_end()) == []
            assert parts[-1].lines == [Transition(2, 1.0, "a", "PENDING", "QUEUED", 1)]

    asyncio.run(scenario())


def test_a_place_behind_which_something_was_trimmed_is_refused() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            for seq in range(1, 5):
                await stores.commit(_line("execution-1", seq))
            await stores.call("XTRIM", "penstock:{0}:events", "MAXLEN", "2")
            # everything behind it is there
            assert len(await commit_feed.read_commits((2 * SLOTS + SLOTS - 1,))) == 2
            with pytest.raises(FeedGap):
                await commit_feed.read_commits((SLOTS + SLOTS - 1,))

    asyncio.run(scenario())


def test_commits_without_history_take_no_room_in_the_feed_and_make_no_gap() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            await stores.commit(_line("execution-1", 1))
            cursor = await commit_feed.commits_end()
            await stores.commit()
            await stores.commit()
            await stores.commit(_line("execution-1", 2))
            assert await stores.call("XLEN", "penstock:{0}:events") == 2
            await stores.call("XTRIM", "penstock:{0}:events", "MAXLEN", "1")
            assert [part.position for part in await commit_feed.read_commits(cursor)] == [4 * SLOTS]

    asyncio.run(scenario())


def test_a_place_in_the_middle_of_a_commit_that_was_trimmed_is_refused() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            await stores.commit(_line("execution-1", 1), _line("execution-2", 1))
            await stores.commit(_line("execution-1", 2))
            await stores.call("XTRIM", "penstock:{0}:events", "MAXLEN", "1")
            assert len(await commit_feed.read_commits((SLOTS + 1,))) == 1
            with pytest.raises(FeedGap):
                await commit_feed.read_commits((SLOTS,))

    asyncio.run(scenario())


def test_a_subscription_begins_with_what_is_committed_next() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            await stores.commit(_line("execution-1", 1))
            subscription = commit_feed.subscribe()
            assert await anext(subscription) == []
            await stores.commit(_line("execution-1", 2))
            async with asyncio.timeout(10):
                assert [part.lines[0].seq for part in await anext(subscription)] == [2]
            for seq in range(3, 6):
                await stores.commit(_line("execution-1", seq))
            await stores.call("XTRIM", "penstock:{0}:events", "MAXLEN", "1")
            with pytest.raises(FeedGap):
                await anext(subscription)
            await subscription.aclose()  # type: ignore[attr-defined]

    asyncio.run(scenario())


@pytest.mark.parametrize("before", [0, 2])
def test_whoever_begins_after_a_partition_was_built_again_has_missed_nothing(before: int) -> None:
    """A new store is built once, so this is everybody's first call."""

    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            for seq in range(before):
                await stores.commit(_line("execution-1", seq))
            await stores.tier.mark_built(stores.lease, "store", 1000)
            stores.lease.commit_number = 1000
            end = await commit_feed.commits_end()
            subscription = commit_feed.subscribe()
            assert await anext(subscription) == []
            await stores.commit(_line("execution-1", 7))
            async with asyncio.timeout(10):
                assert [part.lines[0].seq for part in await anext(subscription)] == [7]
            assert [part.lines[0].seq for part in await commit_feed.read_commits(end)] == [7]
            await subscription.aclose()  # type: ignore[attr-defined]

    asyncio.run(scenario())


def test_entries_of_the_feed_that_are_not_ours_are_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            commit_feed = RedisCommitFeed(stores.server, 1)
            await stores.commit(_line("execution-1", 1))
            for number in range(20):  # more than a page
                await stores.call(
                    "XADD", "penstock:{0}:events", f"1-{number + 5}", "x", b"\xc1garbage"
                )
            await stores.commit(_line("execution-1", 2))
            parts = await commit_feed.read_commits((0,))
            assert [line.seq for part in parts for line in part.lines] == [1, 2]
            assert [part.position for part in await commit_feed.read_commits((SLOTS,))] == [
                2 * SLOTS
            ]

    asyncio.run(scenario())
    assert (
        len(
            [
                record
                for record in caplog.records
                if "feed of commits can't be read" in record.getMessage()
            ]
        )
        <= 1
    )
