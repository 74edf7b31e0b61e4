"""Inboxes: ordered, readable from any position, and trimmed by commits (G5).

A waiting reader is woken; nothing polls on the happy path.
"""

import asyncio

from penstock.contract.facts import Owner, new_execution_ids
from penstock.contract.waiting import let_others_run
from penstock.engine import events as ev
from penstock.engine.events import AnyEvent, Blob, ExecutionStarted, TaskError
from penstock.stores.base import Stores, partition_of

LONG_SECONDS = 60.0


async def test_events_come_in_the_order_in_which_they_went_in(stores: Stores) -> None:
    hot = stores.hot
    events = _numbered(stores, 5)
    await hot.append(events[:2])
    await hot.append(events[2:])
    received = await hot.receive(0, 0, 100, 0.0)
    assert [event for _, event in received] == events

    positions = [position for position, _ in received]
    assert positions == sorted(set(positions))
    assert positions[0] > 0


async def test_no_more_events_come_than_were_asked_for(stores: Stores) -> None:
    hot = stores.hot
    events = _numbered(stores, 5)
    await hot.append(events)
    first = await hot.receive(0, 0, 2, 0.0)
    last_position, _ = first[-1]
    rest = await hot.receive(0, last_position, 100, 0.0)
    assert [event for _, event in first + rest] == events


async def test_what_was_not_committed_can_be_read_again(stores: Stores) -> None:
    hot = stores.hot
    await hot.append(_numbered(stores, 3))
    received = await hot.receive(0, 0, 100, 0.0)
    again = await hot.receive(0, 0, 100, 0.0)
    assert received == again


async def test_a_commit_trims_and_the_rest_can_be_read_from_any_position(stores: Stores) -> None:
    hot = stores.hot
    events = _numbered(stores, 6)
    await hot.append(events)
    received = await hot.receive(0, 0, 100, 0.0)
    owner = await Owner.of(stores)
    owner.position, _ = received[2]
    await owner.commit()

    remaining = await hot.receive(0, 0, 100, 0.0)
    assert remaining == received[3:]

    for index in range(3, 6):
        position, _ = received[index - 1]
        remaining = await hot.receive(0, position, 100, 0.0)
        assert remaining == received[index:]
    last_position, _ = received[-1]
    remaining = await hot.receive(0, last_position, 100, 0.0)
    assert remaining == []


async def test_a_position_is_never_given_twice(stores: Stores) -> None:
    hot = stores.hot
    await hot.append(_numbered(stores, 3))
    owner = await Owner.of(stores)
    received = await hot.receive(0, 0, 100, 0.0)
    last_position, _ = received[-1]
    owner.position = last_position
    await owner.commit()
    await hot.append(_numbered(stores, 1))
    ((position, _),) = await hot.receive(0, 0, 100, 0.0)
    assert position > owner.position


async def test_a_reader_waits_for_the_first_event_and_is_woken_by_it(stores: Stores) -> None:
    reading = asyncio.create_task(stores.hot.receive(0, 0, 100, LONG_SECONDS))
    await let_others_run()
    assert not reading.done()

    (event,) = _numbered(stores, 1)
    await stores.hot.append([event])
    async with asyncio.timeout(5):
        received = await reading
        assert [event for _, event in received] == [event]


async def test_a_reader_past_the_end_waits_for_what_comes_after_its_position(
    stores: Stores,
) -> None:
    hot = stores.hot
    first, second = _numbered(stores, 2)
    await hot.append([first])
    ((position, _),) = await hot.receive(0, 0, 100, 0.0)
    reading = asyncio.create_task(hot.receive(0, position, 100, LONG_SECONDS))
    await let_others_run()
    assert not reading.done()

    await hot.append([second])
    async with asyncio.timeout(5):
        received = await reading
        assert [event for _, event in received] == [second]


async def test_a_reader_gives_up_after_its_time(stores: Stores) -> None:
    async with asyncio.timeout(5):
        received = await stores.hot.receive(0, 0, 100, 0.01)
        assert received == []

        received = await stores.hot.receive(0, 0, 100, 0.0)
        assert received == []


async def test_a_reader_that_was_cancelled_takes_nothing_with_it(stores: Stores) -> None:
    hot = stores.hot
    reading = asyncio.create_task(hot.receive(0, 0, 100, LONG_SECONDS))
    await let_others_run()
    events = _numbered(stores, 2)
    await hot.append(events)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    received = await hot.receive(0, 0, 100, 0.0)
    assert [event for _, event in received] == events


async def test_each_event_is_in_the_inbox_of_its_executions_partition(stores: Stores) -> None:
    hot = stores.hot
    execution_ids = [f"execution-{number}" for number in range(50)]
    await hot.append([ExecutionStarted(execution_id) for execution_id in execution_ids])
    for partition in range(hot.partitions):
        received = await hot.receive(partition, 0, 100, 0.0)
        expected = [
            execution_id
            for execution_id in execution_ids
            if partition_of(execution_id, hot.partitions) == partition
        ]
        assert [event.execution_id for _, event in received] == expected


async def test_every_kind_of_event_comes_out_as_it_went_in(stores: Stores) -> None:
    kinds = ev.AnyEvent.__args__
    samples = _one_of_each(next(new_execution_ids(stores)))
    events = [event for event in samples if type(event) in kinds]
    assert {type(event) for event in events} == set(kinds)
    assert len(events) == len(kinds) + 1

    await stores.hot.append(events)
    received = await stores.hot.receive(0, 0, 100, 0.0)
    assert [event for _, event in received] == events


def _numbered(stores: Stores, count: int) -> list[AnyEvent]:
    execution_ids = new_execution_ids(stores)
    return [ExecutionStarted(next(execution_ids)) for _ in range(count)]


def _one_of_each(execution_id: str) -> list[AnyEvent]:
    key = (execution_id, "fetch", 1, 2, "worker-1")
    error = TaskError(
        "http", "é \n 500", "HTTPError", {"status": 500, "body": [1.5, None, True]}, "Traceback …"
    )
    return [
        ev.ExecutionStarted(execution_id),
        ev.TaskStarted(*key, 12.5),
        ev.TaskSucceeded(*key, 12.5, b'{"a":[1]}', "a line\nanother"),
        ev.TaskSucceeded(*key, 12.5, Blob("ab12", 300_000)),
        ev.TaskFailed(*key, 12.5, error, retryable=False, retry_after=3.0, logs="line"),
        ev.TaskLost(*key),
        ev.TaskReturned(*key),
        ev.TimerFired(execution_id),
        ev.CancelRequested(execution_id, "by hand"),
        ev.PauseRequested(execution_id),
        ev.ResumeRequested(execution_id),
        ev.Continued(execution_id),
        ev.ExecutionBroke(execution_id, "KeyError: 'x'"),
        ev.ChildEnded(execution_id, "a", 2, "child-1", "FAILED", None, error),
        ev.SignalReceived(execution_id, 3, "paid", b'{"amount":7}', "order-7", "key_7", 12.5),
    ]


async def test_two_who_wait_for_the_same_inbox_are_both_woken(stores: Stores) -> None:
    """An owner that lost its lease unnoticed must not keep events from its successor."""
    hot = stores.hot
    old = asyncio.create_task(hot.receive(0, 0, 100, LONG_SECONDS))
    new = asyncio.create_task(hot.receive(0, 0, 100, LONG_SECONDS))
    await let_others_run()
    short = asyncio.create_task(hot.receive(0, 0, 100, 0.01))
    async with asyncio.timeout(5):
        received = await short
        assert received == []

    events = _numbered(stores, 1)
    await hot.append(events)
    async with asyncio.timeout(5):
        received = await old
        assert [event for _, event in received] == events

        received = await new
        assert [event for _, event in received] == events
