"""Positions of events that share an entry."""

import asyncio
import logging

import pytest

from penstock.contract.facts import started, success, task
from penstock.engine.events import ExecutionStarted, TaskFailed
from penstock.stores import codec
from penstock.stores.redis.inbox import LAST, SLOTS, events_of, first_needed, read_after
from penstock.stores.redis.malformed import DroppedEntries
from tests.redis.stores_under_test import NAME, open_stores

START = codec.encode(ExecutionStarted(NAME))


def test_a_position_says_where_to_read_on_and_what_may_go() -> None:
    assert (read_after(0), first_needed(0)) == ("0-0", "1-0")
    half = SLOTS + 3  # the fourth event of the first entry: the entry is read again, and stays
    assert (read_after(half), first_needed(half)) == ("0-0", "1-0")
    done = SLOTS + LAST
    assert (read_after(done), first_needed(done)) == ("1-0", "1-1")
    later = 8 * SLOTS + 3
    assert (read_after(later), first_needed(later)) == ("1-6", "1-7")


def test_the_last_event_of_an_entry_closes_it() -> None:
    dropped = DroppedEntries(60.0)
    entries = [(b"1-0", [b"1", START] * 3), (b"1-1", [b"1", START])]
    positions = [position for position, _ in events_of(entries, 0, dropped)]
    assert positions == [SLOTS, SLOTS + 1, SLOTS + LAST, 2 * SLOTS + LAST]
    assert [position for position, _ in events_of(entries, SLOTS, dropped)] == positions[1:]


@pytest.mark.fault("security", "garbage among the messages in Redis")
def test_garbage_in_an_inbox_is_dropped_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.call(
                "XADD", "penstock:{0}:inbox", "1-*", "1", b"\xc1garbage", "1", START, "1", b"{}"
            )
            await stores.call("XADD", "penstock:{0}:inbox", "1-*", "1", b"garbage alone")
            await stores.hot.append([ExecutionStarted(NAME)])
            received = await stores.hot.receive(0, 0, 10, 0.0)
            assert [event for _, event in received] == [ExecutionStarted(NAME)] * 2
            await stores.commit(started(NAME), position=received[-1][0])
            assert await stores.call("XLEN", "penstock:{0}:inbox") == 0

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "can't be read and is dropped" in caplog.text


@pytest.mark.fault("security", "very much garbage among the messages in Redis")
def test_much_garbage_is_a_line_in_the_log_and_not_a_flood(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            for _ in range(20):
                garbage = [item for number in range(200) for item in ("1", b"\xc1%d" % number)]
                await stores.call("XADD", "penstock:{0}:inbox", "1-*", *garbage)
            await stores.hot.append([ExecutionStarted(NAME)])
            received = await stores.hot.receive(0, 0, 10, 0.0)
            assert [event for _, event in received] == [ExecutionStarted(NAME)]

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert len([record for record in caplog.records if "dropped" in record.getMessage()]) == 1


def test_dropped_entries_are_counted_between_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    counted = DroppedEntries(60.0, lambda: now)
    for now in (0.0, 1.0, 2.0, 59.0, 61.0):  # noqa: B007 -- the clock reads it
        counted.add("a thing", ValueError("x" * 10_000))
    counted.add("another thing", ValueError("y"))
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(" since")[0] for line in lines] == [
        "a thing can't be read and is dropped (1",
        "a thing can't be read and is dropped (4",
        "another thing can't be read and is dropped (1",
    ]
    assert max(map(len, lines)) < 400


def test_a_result_of_a_newer_schema_fails_its_attempt_with_the_reason() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            result = codec.encode(success(task(NAME), "worker-1"))
            unknown = codec.encode(
                ["TaskSucceededTwice", NAME, "fetch", 1, 1, "worker-1", {"new": True}]
            )
            await stores.call("XADD", "penstock:{0}:inbox", "1-*", "2", result, "1", unknown)
            for event in await stores.inbox():
                assert isinstance(event, TaskFailed)
                assert event.retryable
                assert event.error.category == "schema"
                assert (event.execution_id, event.node_id, event.attempt) == (NAME, "fetch", 1)
            assert len(await stores.inbox()) == 2

    asyncio.run(scenario())


def test_entries_of_which_nothing_can_be_read_do_not_stand_in_the_way() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            for _ in range(300):  # more than are read at once
                await stores.call("XADD", "penstock:{0}:inbox", "1-*", "2", START)
            assert await stores.hot.receive(0, 0, 10, 0.0) == []
            waiting = asyncio.create_task(stores.hot.receive(0, 0, 10, 60.0))
            await stores.hot.append([ExecutionStarted(NAME)])
            async with asyncio.timeout(10):
                received = await waiting
            assert [event for _, event in received] == [ExecutionStarted(NAME)]
            await stores.commit(started(NAME), position=received[-1][0])
            assert await stores.call("XLEN", "penstock:{0}:inbox") == 0

    asyncio.run(scenario())


def test_the_length_of_the_inboxes_is_what_no_commit_has_trimmed() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.own()
            assert await stores.fleet.inbox_length() == 0
            await stores.hot.append([ExecutionStarted(NAME)])
            await stores.hot.append([ExecutionStarted("execution-2")])
            assert await stores.fleet.inbox_length() == 2
            received = await stores.hot.receive(0, 0, 10, 0.0)
            await stores.commit(started(NAME), position=received[0][0])
            assert await stores.fleet.inbox_length() == 1

    asyncio.run(scenario())
