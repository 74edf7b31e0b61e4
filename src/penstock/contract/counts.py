"""Counts for charts: they agree with a search, and no store counts more than it was asked to."""

import random
from collections import Counter
from itertools import islice

from penstock.contract.facts import (
    Owner,
    begin,
    dead_letter,
    ended,
    new_execution_ids,
    over,
    running,
    submitted,
)
from penstock.engine.states import ExecutionState
from penstock.stores.base import Intent, Stores
from penstock.stores.records import Counts, DeadLetterSearch, Search, Window

WINDOW = Window(since=1000.0, bucket_seconds=10.0, buckets=6)
MANY = 10_000


async def test_executions_are_counted_by_workflow_state_and_bucket(stores: Stores) -> None:
    times = (999.9, 1000.0, 1009.9, 1010.0, 1025.0, 1059.9)
    intents = await _submit(stores, *(("one", at) for at in times))
    intents += await _submit(stores, ("two", 1025.0), ("two", 1026.0))
    owner = await Owner.of(stores)
    await owner.commit(*(running(intent) for intent in intents))
    await owner.commit(over(intents[1]), over(intents[2]), over(intents[3], ExecutionState.FAILED))
    await owner.commit(
        over(intents[6], ExecutionState.CANCELLED), running(intents[7], ExecutionState.PAUSED)
    )
    counts = await stores.cold.counts.count_created(WINDOW, MANY)
    assert _groups(counts) == {
        ("one", "COMPLETED", 0): 2,
        ("one", "FAILED", 1): 1,
        ("one", "RUNNING", 2): 1,
        ("one", "RUNNING", 5): 1,
        ("two", "CANCELLED", 2): 1,
        ("two", "PAUSED", 2): 1,
    }
    assert not counts.truncated

    examples = {(row.workflow, row.state, row.bucket): row.example for row in counts.rows}
    completed_ids = {intent.record.execution_id for intent in intents[1:3]}
    assert examples["one", "FAILED", 1] == intents[3].record.execution_id
    assert examples["one", "COMPLETED", 0] in completed_ids


async def test_what_nobody_has_begun_counts_as_pending_and_what_has_begun_as_running(
    stores: Stores,
) -> None:
    cold = stores.cold
    intents = await _submit(stores, *[("one", 1000.0)] * 5)
    waits = submitted("waits", created_at=1001.0, workflow="one")
    waits.waits = True
    await cold.executions.record_intents([waits])
    owner = await Owner.of(stores)
    await owner.commit(running(intents[0]), running(intents[1]))
    await owner.commit(running(intents[1], ExecutionState.PAUSED))
    assert _groups(await cold.counts.count_created(WINDOW, MANY)) == {
        ("one", "PENDING", 0): 4,
        ("one", "RUNNING", 0): 1,
        ("one", "PAUSED", 0): 1,
    }
    assert await cold.counts.count_active(MANY) == {"PENDING": 4, "RUNNING": 1, "PAUSED": 1}


async def test_a_store_without_anything_counts_nothing(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.counts.count_created(WINDOW, MANY) == Counts([])
    assert await cold.counts.count_active(MANY) == {"PENDING": 0, "RUNNING": 0, "PAUSED": 0}
    assert await cold.counts.count_dead_letters(MANY) == 0


async def test_what_a_clock_that_is_ahead_has_made_counts_in_the_last_bucket(
    stores: Stores,
) -> None:
    await _submit(stores, ("one", 1060.0), ("one", 5000.0))
    assert _groups(await stores.cold.counts.count_created(WINDOW, MANY)) == {
        ("one", "PENDING", 5): 2
    }


async def test_a_clock_that_was_set_back_moves_nothing_to_another_bucket(stores: Stores) -> None:
    times = (1055.0, 1005.0, 1025.0, 900.0, 1005.0)
    await _submit(stores, *(("one", at) for at in times))
    assert _groups(await stores.cold.counts.count_created(WINDOW, MANY)) == {
        ("one", "PENDING", 0): 2,
        ("one", "PENDING", 2): 1,
        ("one", "PENDING", 5): 1,
    }


async def test_of_many_executions_the_newest_are_counted_and_it_says_so(stores: Stores) -> None:
    cold = stores.cold
    await _submit(stores, *(("one", 1000.0 + second) for second in range(30)))
    counts = await cold.counts.count_created(WINDOW, 15)
    assert _groups(counts) == {("one", "PENDING", 1): 5, ("one", "PENDING", 2): 10}
    assert counts.truncated
    assert not (await cold.counts.count_created(WINDOW, 30)).truncated

    late = Window(since=1015.0, bucket_seconds=10.0, buckets=2)
    assert not (await cold.counts.count_created(late, 15)).truncated, "the rest is from before"


async def test_a_window_has_all_that_was_created_in_it_however_long_the_past_is(
    stores: Stores,
) -> None:
    await _submit(stores, *(("one", 1000.0 + second) for second in range(5000)))
    for first in (0, 500, 2400, 3900, 4940, 4999, 6000):
        window = Window(since=1000.0 + first, bucket_seconds=1000.0, buckets=5)
        counts = await stores.cold.counts.count_created(window, MANY)
        assert sum(_groups(counts).values()) == max(0, 5000 - first), first
        assert not counts.truncated


async def test_active_executions_are_counted_up_to_what_was_asked(stores: Stores) -> None:
    intents = await _submit(stores, *[("one", 1000.0)] * 12)
    owner = await Owner.of(stores)
    await owner.commit(*(running(intent) for intent in intents[:8]))
    await owner.commit(*(running(intent, ExecutionState.PAUSED) for intent in intents[:4]))
    assert await stores.cold.counts.count_active(4) == {"PENDING": 4, "RUNNING": 4, "PAUSED": 4}

    await owner.commit(*(over(intent) for intent in intents[:8]))
    assert await stores.cold.counts.count_active(3) == {"PENDING": 3, "RUNNING": 0, "PAUSED": 0}


async def test_open_dead_letters_are_counted_up_to_what_was_asked(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    dead_letters = [dead_letter(execution_id, node_id) for node_id in "abcd"]
    await owner.commit(ended(execution_id, ExecutionState.FAILED, dead_letters=dead_letters))
    assert await cold.counts.count_dead_letters(1) == 1
    assert await cold.counts.count_dead_letters(4) == 4
    assert await cold.counts.count_dead_letters(MANY) == 4

    (first, *_) = await cold.dead_letters.dead_letters(DeadLetterSearch())
    await cold.dead_letters.close_dead_letters([first.id], "dropped", 5.0)
    assert await cold.counts.count_dead_letters(MANY) == 3


async def test_counts_say_what_a_search_says(stores: Stores) -> None:
    choose = random.Random(5)
    workflows_and_times = [(choose.choice("ab"), 980.0 + number) for number in range(90)]
    intents = await _submit(stores, *workflows_and_times)
    owner = await Owner.of(stores)
    await owner.commit(*(running(intent) for intent in intents[::2]))
    await owner.commit(*(over(intent, choose.choice([*ENDS])) for intent in intents[::4]))
    rows = await stores.cold.executions.search(Search(since=WINDOW.since, limit=MANY))
    expected = Counter(
        (row.workflow, str(row.state), WINDOW.bucket_of(row.created_at)) for row in rows
    )
    assert _groups(await stores.cold.counts.count_created(WINDOW, MANY)) == expected
    assert len(expected) > 20


ENDS = (ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.CANCELLED)


async def _submit(stores: Stores, *workflows_and_times: tuple[str, float]) -> list[Intent]:
    """An execution of each workflow and time, in this order, all in one partition."""
    before = len(await stores.cold.executions.search(Search(limit=MANY)))
    execution_ids = islice(new_execution_ids(stores), before, before + len(workflows_and_times))
    intents = [
        submitted(execution_id, workflow=workflow, created_at=at)
        for execution_id, (workflow, at) in zip(execution_ids, workflows_and_times, strict=True)
    ]
    await stores.cold.executions.record_intents(intents)
    return intents


def _groups(counts: Counts) -> dict[tuple[str, str, int], int]:
    groups = {(row.workflow, str(row.state), row.bucket): row.count for row in counts.rows}
    assert len(groups) == len(counts.rows), "each group is there once"
    return groups


async def test_what_has_not_ended_is_counted_by_workflow(stores: Stores) -> None:
    intents = await _submit(
        stores, ("one", 1000.0), ("one", 1000.0), ("two", 1000.0), ("two", 1000.0)
    )
    waits = submitted("waits", created_at=1001.0, workflow="one")
    waits.waits = True
    await stores.cold.executions.record_intents([waits])
    owner = await Owner.of(stores)
    await owner.commit(*(running(intent) for intent in intents))
    await owner.commit(running(intents[0], ExecutionState.PAUSED))
    assert await stores.cold.counts.count_unfinished() == {"one": 2, "two": 2}
