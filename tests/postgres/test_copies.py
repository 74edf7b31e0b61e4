"""What comes from the hot store: late, twice, out of order.

The row and the changes only go forward.
"""

import asyncio

import pytest
from msgspec import structs

from penstock.contract.facts import dead_letter, record
from penstock.engine.commands import AttemptFailure, DeadLetter
from penstock.engine.events import TaskError, Value
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict, Fenced
from penstock.stores.postgres import copying, searching
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.records import DeadLetterSearch, Search
from penstock.stores.tiering import REBUILD_JUMP, ColdStoreWentBack, Copy, Written
from tests.postgres.opened import change_of, copy_of, new_intent, shown, with_store
from tests.waiting import until

RUNNING, PAUSED = ExecutionState.RUNNING, ExecutionState.PAUSED
COMPLETED, FAILED = ExecutionState.COMPLETED, ExecutionState.FAILED


@with_store
async def test_an_archive_ends_an_execution_and_has_its_history(store: PostgresColdStore) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.copies.put_copies(0, 5, [copy_of("a", COMPLETED, 3)])
    assert await shown(store, "a") == ("COMPLETED", 1, 3)
    assert await shown(store, "b") == ("PENDING", 1, 0)
    assert [line.seq for line in await store.executions.history("a", 1) or []] == [2, 3]
    recent = await store.executions.since("a", 2)
    assert recent is not None
    assert (recent.record.state, [line.seq for line in recent.history]) == (COMPLETED, [3])
    assert await store.executions.history("b") == []
    assert await store.executions.history("unknown") is None
    assert await store.executions.started(0) == ["b"]
    intents = await store.executions.intents(["a", "b", "unknown", "a\x00", "half \ud800"])
    assert {name: str(intent.record.state) for name, intent in intents.items()} == {
        "a": "COMPLETED",
        "b": "PENDING",
    }
    with pytest.raises(Conflict, match="COMPLETED"):
        await store.executions.request_control("a", "cancel")


@with_store
async def test_where_nearly_everything_has_ended_an_archive_still_finds_its_rows_by_id(
    store: PostgresColdStore,
) -> None:
    names = [f"e{number}" for number in range(2000)]
    await store.executions.record_intents([new_intent(name) for name in names])
    await store.copies.put_copies(0, 1, [copy_of(name, COMPLETED, 3) for name in names])
    await store.database.change("ANALYZE executions")
    merged = copying._merge([copy_of(name, COMPLETED, 3) for name in names[:500]])
    async with store.database.connection() as connection:
        cursor = await connection.execute(
            "EXPLAIN " + copying.SQL.update_rows, copying._row_columns(merged)
        )
        plan = "\n".join(row[0] for row in await cursor.fetchall())
    assert "by_id" in plan, plan
    assert "by_state" not in plan, plan  # that would read all that is active, for each batch


@with_store
async def test_a_search_reads_from_indexes_in_order_and_without_rows_of_other_workflows(
    store: PostgresColdStore,
) -> None:
    names = [f"e{number}" for number in range(2000)]
    waiting = [f"w{number}" for number in range(500)]
    await store.executions.record_intents([new_intent(name) for name in names])
    await store.executions.record_intents([new_intent(name, waits=True) for name in waiting])
    await store.copies.put_copies(0, 1, [copy_of(name, COMPLETED, 3) for name in names[:1900]])
    await store.copies.put_copies(0, 2, [copy_of(name, PAUSED, 2) for name in names[1950:]])
    await store.database.change("ANALYZE executions")

    async def plan_of(search: Search) -> str:
        query = searching.statement_of(search)
        assert query is not None
        rows = await store.database.rows("EXPLAIN (COSTS OFF) " + query[0], query[1], prepare=False)
        return "\n".join(row[0] for row in rows)

    for state in ("PAUSED", "COMPLETED", "FAILED"):
        plan = await plan_of(Search(workflow="other", states=(state,)))
        assert "by_workflow" in plan, plan
        assert "by_state" not in plan, plan
        assert "Sort" not in plan, plan
    # those that wait and those that are about to begin
    plan = await plan_of(Search(workflow="other", states=("PENDING",)))
    assert "by_workflow" in plan, plan
    assert "by_state" in plan, plan
    for state in ("RUNNING", "COMPLETED"):
        plan = await plan_of(Search(states=(state,)))
        assert "by_state" in plan, plan
        assert "Sort" not in plan, plan


@with_store
async def test_the_intent_of_an_execution_that_was_archived_says_that_it_has_ended(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.copies.put_copies(0, 1, [copy_of("a", COMPLETED, 2), copy_of("b", RUNNING, 2)])
    states = {
        name: str(intent.record.state)
        for name, intent in (await store.executions.intents(["a", "b"])).items()
    }
    assert states == {"a": "COMPLETED", "b": "PENDING"}


@with_store
async def test_a_late_checkpoint_does_not_undo_an_archive(store: PostgresColdStore) -> None:
    await store.executions.record_intents([new_intent("a")])
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 2)])
    assert await shown(store, "a") == ("RUNNING", 1, 2)
    await store.copies.put_copies(0, 2, [copy_of("a", FAILED, 4)])
    for late in (
        copy_of("a", RUNNING, 3),
        copy_of("a", RUNNING, 9),
        copy_of("a", RUNNING, 1, generation=2),
    ):
        await store.copies.put_copies(0, 3, [late])
        assert await shown(store, "a") == ("FAILED", 1, 4)
    await store.copies.put_copies(0, 3, [copy_of("a", COMPLETED, 9, generation=2)])
    assert await shown(store, "a") == ("FAILED", 1, 4)
    assert await store.copies.unfinished(0) == []


@with_store
async def test_copies_of_a_lower_generation_or_revision_change_nothing(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a")])
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 5, generation=2)])
    for late in (
        copy_of("a", COMPLETED, 9),
        copy_of("a", PAUSED, 4, generation=2),
        copy_of("a", PAUSED, 5, generation=2),
    ):
        await store.copies.put_copies(0, 1, [late])
        assert await shown(store, "a") == ("RUNNING", 2, 5)
    (unfinished,) = await store.copies.unfinished(0)
    assert (unfinished.execution_id, unfinished.generation, len(unfinished.changes)) == ("a", 2, 5)
    await store.copies.put_copies(0, 1, [copy_of("a", COMPLETED, 6, generation=2)])
    assert await shown(store, "a") == ("COMPLETED", 2, 6)


@with_store
async def test_a_summary_without_changes_leaves_those_that_are_stored_and_they_may_follow(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 2)])
    await store.copies.put_copies(0, 1, [copy_of("a", PAUSED, 3, changes=False)])
    assert await shown(store, "a") == ("RUNNING", 1, 2)
    assert [
        row.execution_id for row in await store.executions.search(Search(states=("PAUSED",)))
    ] == ["a"]
    await store.copies.put_copies(0, 1, [copy_of("a", PAUSED, 3)])
    assert await shown(store, "a") == ("PAUSED", 1, 3)
    await store.copies.put_copies(0, 1, [copy_of("b", FAILED, 4, changes=False)])
    assert await shown(store, "b") == ("FAILED", 1, 0)
    await store.copies.put_copies(0, 1, [copy_of("b", FAILED, 4)])
    assert await shown(store, "b") == ("FAILED", 1, 4)


@with_store
async def test_changes_of_an_earlier_generation_do_not_follow_a_summary(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    summaries = [copy_of("a", RUNNING, 2, generation=2, changes=False)]
    summaries.append(copy_of("b", FAILED, 4, generation=2, changes=False))
    await store.copies.put_copies(0, 1, summaries)
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 5), copy_of("b", RUNNING, 4)])
    assert [await store.executions.history(name) for name in ("a", "b")] == [[], []]


@with_store
async def test_a_copy_adds_what_is_new_and_what_is_read_is_all_of_it(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.copies.put_copies(0, 1, [copy_of("b", RUNNING, 3)])
    for first, revision in ((0, 2), (2, 5), (5, 6)):
        written = await store.copies.put_copies(
            0, 1, [copy_of("a", RUNNING, revision, first=first)]
        )
        assert written == Written()
    assert await _segments(store, "a") == [(1, 0, 2), (1, 2, 5), (1, 5, 6)]
    (unfinished, _) = await store.copies.unfinished(0)
    assert unfinished.changes == copy_of("a", RUNNING, 6).changes

    await store.copies.put_copies(0, 2, [copy_of("a", COMPLETED, 9, first=6)])
    assert await shown(store, "a") == ("COMPLETED", 1, 9)
    assert [line.seq for line in await store.executions.history("a") or []] == list(range(1, 10))
    assert await _segments(store, "b") == [(1, 0, 3)]


@with_store
async def test_a_copy_that_does_not_begin_where_a_segment_ends_is_answered_as_missing(
    store: PostgresColdStore,
) -> None:
    names = ["behind", "never copied", "divided otherwise", "nothing new", "fits"]
    await store.executions.record_intents([new_intent(name) for name in names])
    copied = [copy_of(name, RUNNING, 3) for name in names if name != "never copied"]
    await store.copies.put_copies(0, 1, copied)
    tails = [
        copy_of("behind", RUNNING, 6, first=5),
        copy_of("never copied", RUNNING, 6, first=3),
        copy_of("divided otherwise", RUNNING, 6, first=2),
        copy_of("nothing new", RUNNING, 5, first=5),
        copy_of("fits", RUNNING, 6, first=3),
    ]
    written = await store.copies.put_copies(0, 2, tails)
    assert (list(written.rewritten), list(written.missing)) == ([], sorted(names[:-1]))
    for name in names[:-1]:
        stored = [] if name == "never copied" else [(1, 0, 3)]
        assert await _segments(store, name) == stored
    assert await _segments(store, "fits") == [(1, 0, 3), (1, 3, 6)]

    whole = [copy_of(name, RUNNING, 6) for name in names]
    assert (await store.copies.put_copies(0, 3, whole)).missing == ()
    for name in names[:-1]:
        assert await _segments(store, name) == [(1, 0, 6)]
    assert await _segments(store, "fits") == [(1, 0, 3), (1, 3, 6)]


@with_store
async def test_a_copy_that_was_sent_again_with_more_replaces_what_came_behind_its_first_change(
    store: PostgresColdStore,
) -> None:
    """The hot store may not have heard how far an execution was copied."""
    await store.executions.record_intents([new_intent("a")])
    for first, revision in ((0, 2), (2, 4), (4, 5)):
        await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, revision, first=first)])
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 8, first=2)])
    assert await _segments(store, "a") == [(1, 0, 2), (1, 2, 8)]
    for late in (copy_of("a", RUNNING, 7, first=5), copy_of("a", RUNNING, 7, first=2)):
        assert await store.copies.put_copies(0, 1, [late]) == Written(), "it is outdated"
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 8)])
    assert await _segments(store, "a") == [(1, 0, 2), (1, 2, 8)], "nothing new"
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 9)])
    assert await _segments(store, "a") == [(1, 0, 9)]
    assert await shown(store, "a") == ("RUNNING", 1, 9)


@with_store
async def test_the_first_copy_of_a_new_generation_replaces_all_of_the_old_one(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    for first, revision in ((0, 2), (2, 4), (4, 9)):
        copies = [copy_of(name, RUNNING, revision, first=first) for name in ("a", "b")]
        await store.copies.put_copies(0, 1, copies)
    await store.copies.put_copies(0, 2, [copy_of("a", RUNNING, 3, generation=2)])
    assert await _segments(store, "a") == [(2, 0, 3)]
    assert await _segments(store, "b") == [(1, 0, 2), (1, 2, 4), (1, 4, 9)]
    for revision, first in ((12, 9), (3, 2)):
        late = copy_of("a", RUNNING, revision, first=first)
        assert await store.copies.put_copies(0, 2, [late]) == Written(), "it is outdated"
    assert await _segments(store, "a") == [(2, 0, 3)]
    # its tail is of the new generation, and none of the old one comes before it
    tail = copy_of("b", RUNNING, 12, first=9, generation=2)
    assert (await store.copies.put_copies(0, 2, [tail])).missing == ("b",)


@with_store
async def test_many_checkpoints_of_a_long_execution_write_its_changes_once(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a")])
    output: dict[str, Value] = {"node": b'"' + b"x" * 2000 + b'"'}
    sizes: list[int] = []
    for first in range(0, 200, 5):
        copy = copy_of("a", RUNNING, first + 5, first=first, outputs=output)
        await store.copies.put_copies(0, 1, [copy])
        sizes.append(sum(map(len, copy.changes)))

    rows = await store.database.rows(
        "SELECT octet_length(changes), count(*) OVER (PARTITION BY segments.xmin::text) "
        "FROM segments ORDER BY first"
    )
    assert len(rows) == len(sizes)
    for (length, written_together), size in zip(rows, sizes, strict=True):
        assert size < length < size + 100
        assert written_together == 1, "each row is as its own transaction wrote it"
    assert await shown(store, "a") == ("RUNNING", 1, 200)


@with_store
async def test_changes_are_stored_by_id_however_many_there_are(store: PostgresColdStore) -> None:
    names = [f"e{number}" for number in range(2000)]
    await store.executions.record_intents([new_intent(name) for name in names])
    await store.copies.put_copies(0, 1, [copy_of(name, COMPLETED, 3) for name in names])
    await store.database.change("ANALYZE executions")
    await store.database.change("ANALYZE segments")
    merged = copying._merge([copy_of(name, COMPLETED, 4, first=3) for name in names[:500]])
    async with store.database.connection() as connection:
        cursor = await connection.execute(
            "EXPLAIN " + copying.SQL.put_segments, copying._segment_columns(merged)
        )
        plan = "\n".join(row[0] for row in await cursor.fetchall())
    assert "Seq Scan on segments" not in plan, plan


@with_store
async def test_several_copies_of_one_execution_in_one_call_are_as_one_after_another(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    copies = [
        copy_of("a", PAUSED, 2),
        copy_of("a", RUNNING, 3, changes=False),
        copy_of("b", COMPLETED, 2),
    ]
    await store.copies.put_copies(
        0, 1, [*copies, copy_of("b", RUNNING, 9), copy_of("b", RUNNING, 1)]
    )
    rows = {row.execution_id: row.state for row in await store.executions.search(Search())}
    assert rows == {"a": "RUNNING", "b": "COMPLETED"}
    assert [len(unfinished.changes) for unfinished in await store.copies.unfinished(0)] == [2]
    assert await shown(store, "b") == ("COMPLETED", 1, 2)


@with_store
async def test_of_several_copies_in_one_call_an_older_one_changes_nothing(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.copies.put_copies(0, 1, [copy_of("a", PAUSED, 5), copy_of("a", RUNNING, 3)])
    await store.copies.put_copies(
        0, 2, [copy_of("b", PAUSED, 2, generation=2), copy_of("b", RUNNING, 3)]
    )
    assert await shown(store, "a") == ("PAUSED", 1, 5)
    assert await shown(store, "b") == ("PAUSED", 2, 2)


@with_store
async def test_what_has_begun_no_longer_waits_whatever_its_record_says(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a")])
    await store.copies.put_copies(0, 1, [copy_of("a", ExecutionState.PENDING, 1)])
    with pytest.raises(Conflict, match="can be triggered"):
        await store.executions.trigger("a", None, {})
    assert [unfinished.execution_id for unfinished in await store.copies.unfinished(0)] == ["a"]


@with_store
async def test_an_execution_without_a_row_gets_one_from_its_copy(store: PostgresColdStore) -> None:
    """Its row is gone because an older copy of the database was restored.

    Nothing else has a record of it any more.
    """
    lost = copy_of("lost", COMPLETED, 3, dead_letters=[dead_letter("lost")])
    new_record = record(
        "lost", COMPLETED, started_at=1001.0, finished_at=1009.0, labels={"order": 17}
    )
    new_record.retry_of, new_record.idempotency = "first", ("key-1", "order-17", "hash")
    lost.changes = [change_of(new_record, seq, {"a": b"1"}) for seq in (1, 2, 3)]
    await store.executions.record_intents([new_intent("there")])
    written = await store.copies.put_copies(0, 7, [lost, copy_of("there", RUNNING, 2)])
    assert (list(written.rewritten), list(written.missing)) == (["lost"], [])
    assert await shown(store, "lost") == ("COMPLETED", 1, 3)
    assert [
        row.dead_letter.execution_id
        for row in await store.dead_letters.dead_letters(DeadLetterSearch())
    ] == ["lost"]
    (row,) = await store.executions.search(Search(labels={"order": "17"}))
    assert (row.execution_id, row.state, row.retry_of) == ("lost", "COMPLETED", "first")
    key_use = await store.executions.key_use("key-1", "order-17")
    assert key_use is not None
    assert (key_use.execution_id, key_use.request_hash) == ("lost", "hash")
    intent = await store.executions.intent("lost")
    assert intent is not None
    assert (intent.idempotency_key, intent.retry_of, intent.record.input) == (
        "order-17",
        "first",
        new_record.input,
    )
    assert await store.copies.put_copies(0, 8, [lost]) == Written(), "it is there now"
    assert len(await store.dead_letters.dead_letters(DeadLetterSearch())) == 1


@with_store
async def test_a_checkpoint_without_a_row_gets_one_that_can_be_cancelled_and_rebuilt(
    store: PostgresColdStore,
) -> None:
    assert list(
        (await store.copies.put_copies(0, 7, [copy_of("lost", RUNNING, 2, generation=5)])).rewritten
    ) == ["lost"]
    await store.executions.request_control("lost", "cancel")
    assert [
        (unfinished.execution_id, unfinished.generation)
        for unfinished in await store.copies.unfinished(0)
    ] == [("lost", 5)]
    claimed = await store.claims.claim(0, "orchestrator-1", "server-1")
    assert claimed is not None
    assert await store.claims.begin_rebuild(0, claimed.term, 0) == 6, (
        "greater than all that the hot store has"
    )


@with_store
async def test_a_copy_that_is_not_whole_and_has_no_row_is_answered_as_missing(
    store: PostgresColdStore,
) -> None:
    only_dead_letters = Copy("a", None, [], [dead_letter("a")])
    copies = [copy_of("b", PAUSED, 3, changes=False), only_dead_letters, copy_of("c", RUNNING, 2)]
    copies.append(copy_of("d", RUNNING, 6, first=3))
    written = await store.copies.put_copies(0, 7, copies)
    assert (list(written.rewritten), list(written.missing)) == (["c"], ["a", "b", "d"])
    assert await store.dead_letters.dead_letters(DeadLetterSearch(closed=True)) == []
    assert await store.executions.execution("a") is None
    assert await _commit_number(store) == 7


@with_store
async def test_a_database_that_knows_less_than_it_has_acknowledged_takes_no_copies(
    store: PostgresColdStore,
) -> None:
    await store.copies.put_copies(0, 5, [])
    with pytest.raises(ColdStoreWentBack, match="older backup"):
        await store.copies.put_copies(0, 9, [copy_of("a", RUNNING, 2)], cold_number=6)
    assert (await _commit_number(store), await store.executions.execution("a")) == (5, None)
    await store.copies.put_copies(0, 9, [copy_of("a", RUNNING, 2)], cold_number=5)


@with_store
async def test_copies_that_come_during_a_rebuild_are_refused_when_it_is_known(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a")])
    async with store.database.transaction() as rebuilding:
        await rebuilding.execute("UPDATE partitions SET commit_number = %s", (REBUILD_JUMP,))
        copying_late = asyncio.create_task(
            store.copies.put_copies(0, 5, [copy_of("a", COMPLETED, 3)])
        )

        async def is_waiting() -> bool:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            return bool((await store.database.rows(waiting))[0][0])

        await until(is_waiting, "it waits")
    with pytest.raises(Fenced):
        await copying_late
    assert await shown(store, "a") == ("PENDING", 1, 0)


@with_store
async def test_a_version_that_is_lost_is_put_back_under_its_number(
    store: PostgresColdStore,
) -> None:
    first = await store.definitions.put_workflow("flow", "hash-1", b"{}", 1.0)
    lost = structs.replace(first, version=3, content_hash="hash-3")
    assert await store.definitions.put_version_back(lost)
    assert await store.definitions.get_workflow("flow", 3) == lost
    assert not await store.definitions.put_version_back(structs.replace(lost, content_hash="other"))
    assert (await store.definitions.put_workflow("flow", "hash-4", b"{}", 2.0)).version == 4


@with_store
async def test_the_commit_number_never_goes_down(store: PostgresColdStore) -> None:
    assert await _commit_number(store) == 0
    for number, expected in ((5, 5), (3, 5), (5, 5), (2**40, 2**40)):
        await store.copies.put_copies(0, number, [])
        assert await _commit_number(store) == expected


@with_store
async def test_each_generation_is_greater_than_the_last(store: PostgresColdStore) -> None:
    claimed = await store.claims.claim(0, "orchestrator-1", "server-1")
    assert claimed is not None
    assert [await store.claims.begin_rebuild(0, claimed.term, 0) for _ in range(3)] == [2, 3, 4]


@with_store
async def test_a_dead_letter_is_stored_once_and_closed_ones_stay_closed(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a")])
    only_dead_letters = Copy("a", None, [], [dead_letter("a", "p"), dead_letter("a", "q")])
    for _ in range(2):
        await store.copies.put_copies(0, 1, [only_dead_letters])
    rows = await store.dead_letters.dead_letters(DeadLetterSearch())
    assert [(row.id, row.dead_letter.node_id) for row in rows] == [(2, "q"), (1, "p")]
    await store.dead_letters.close_dead_letters([1], "dropped", 5.0)
    await store.copies.put_copies(
        0,
        1,
        [
            copy_of(
                "a",
                FAILED,
                3,
                dead_letters=[*only_dead_letters.dead_letters, dead_letter("a", "r")],
            )
        ],
    )
    assert [
        row.dead_letter.node_id for row in await store.dead_letters.dead_letters(DeadLetterSearch())
    ] == [
        "r",
        "q",
    ]
    assert await store.executions.execution("a") is not None


@with_store
async def test_texts_that_handlers_choose_do_not_stop_an_archive(store: PostgresColdStore) -> None:
    error = TaskError("odd\x00category", "boom \x00", detail={"\x00": "\x00"})
    await store.executions.record_intents([new_intent("a")])
    copy = copy_of(
        "a",
        FAILED,
        3,
        dead_letters=[DeadLetter("a", "n\x00", "h\x00", 1.0, [AttemptFailure(1, 1.0, error)])],
    )
    assert copy.summary is not None
    copy.summary.error, copy.summary.error_node_id = error, "n\x00"
    await store.copies.put_copies(0, 1, [copy])
    (row,) = await store.executions.search(Search())
    assert (row.error, row.error_node_id) == (error, "n\x00")
    for search in (DeadLetterSearch(category="odd\x00category"), DeadLetterSearch(handler="h\x00")):
        (stored,) = await store.dead_letters.dead_letters(search)
        assert stored.dead_letter == copy.dead_letters[0]
    assert await store.dead_letters.dead_letters(DeadLetterSearch(category="odd")) == []


@with_store
async def test_what_is_unfinished_comes_in_pages_by_id_without_what_waits_or_has_ended(
    store: PostgresColdStore,
) -> None:
    names = [f"e{number:03}" for number in range(250)]
    await store.executions.record_intents(
        [new_intent(name, waits=name == "e007") for name in reversed(names)]
    )
    await store.copies.put_copies(
        0,
        1,
        [copy_of("e008", COMPLETED, 2), copy_of("e009", RUNNING, 2), copy_of("e010", PAUSED, 3)],
    )
    seen: list[str] = []
    while page := await store.copies.unfinished(0, seen[-1] if seen else "", 100):
        seen += [unfinished.execution_id for unfinished in page]
    assert seen == [name for name in names if name not in ("e007", "e008")]
    first = {
        unfinished.execution_id: unfinished
        for unfinished in await store.copies.unfinished(0, "e008", 3)
    }
    assert [len(first[name].changes) for name in ("e009", "e010", "e011")] == [2, 3, 0]
    assert first["e011"].generation == 1


@with_store
async def test_copies_of_a_store_that_was_built_again_since_are_refused_as_a_whole(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a")])
    await store.copies.put_copies(0, 5, [])
    await store.copies.put_copies(0, 5 + REBUILD_JUMP, [])
    for late in ([copy_of("a", COMPLETED, 9, dead_letters=[dead_letter("a")])], []):
        with pytest.raises(Fenced, match="rebuilt since commit 300"):
            await store.copies.put_copies(0, 300, late)
    assert await shown(store, "a") == ("PENDING", 1, 0)
    assert await store.dead_letters.dead_letters(DeadLetterSearch()) == []
    assert await _commit_number(store) == 5 + REBUILD_JUMP


@with_store
async def test_dead_letters_that_come_after_the_retry_are_closed_as_those_that_came_before(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents(
        [new_intent("a"), new_intent("b"), new_intent("again", retry_of="a", created_at=1234.0)]
    )
    await store.copies.put_copies(
        0,
        1,
        [
            copy_of("a", FAILED, 3, dead_letters=[dead_letter("a")]),
            copy_of("b", FAILED, 3, dead_letters=[dead_letter("b")]),
        ],
    )
    assert [
        row.dead_letter.execution_id
        for row in await store.dead_letters.dead_letters(DeadLetterSearch())
    ] == ["b"]
    (row,) = await store.dead_letters.dead_letters(DeadLetterSearch(execution_id="a", closed=True))
    assert (row.closed, row.closed_at, row.retried_as) == ("retried", 1234.0, "again")


@with_store
async def test_a_control_request_stands_until_the_hot_store_says_that_it_was_fulfilled(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.executions.request_control("a", "pause")
    await store.executions.request_control("b", "cancel")
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 2), copy_of("b", PAUSED, 2)])
    assert await store.executions.control_requests(0) == {"a": "pause", "b": "cancel"}
    await store.copies.put_copies(0, 1, [copy_of("a", PAUSED, 3)])
    assert await store.executions.control_requests(0) == {"b": "cancel"}
    await store.executions.request_control("a", "resume")
    assert await store.executions.control_requests(0) == {"a": "resume", "b": "cancel"}
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 4)])
    assert await store.executions.control_requests(0) == {"b": "cancel"}


@with_store
async def test_what_a_copy_came_of_has_begun_and_is_not_to_be_started(
    store: PostgresColdStore,
) -> None:
    await store.executions.record_intents([new_intent("a"), new_intent("b")])
    await store.copies.put_copies(0, 1, [copy_of("a", RUNNING, 2)])
    assert await store.executions.started(0) == ["b"]
    assert [unfinished.execution_id for unfinished in await store.copies.unfinished(0)] == [
        "a",
        "b",
    ]


async def _commit_number(store: PostgresColdStore) -> int:
    ((number,),) = await store.database.rows("SELECT commit_number FROM partitions")
    return int(number)


async def _segments(store: PostgresColdStore, name: str) -> list[tuple[int, int, int]]:
    """Generation, first and until of the segments of an execution."""
    statement = """
        SELECT segments.generation, first, until FROM segments JOIN executions USING (n)
        WHERE id = %s ORDER BY segments.generation, first
    """
    return [tuple(row) for row in await store.database.rows(statement, (name,))]
