"""Retention: old executions go with everything that belongs to them.

Nothing goes that is still needed.
"""

import asyncio
import hashlib
import time

import psycopg
import pytest
from msgspec import structs

from penstock.contract.facts import dead_letter, submitted
from penstock.engine.events import Blob
from penstock.engine.states import ExecutionState
from penstock.errors import StoreError
from penstock.stores.base import KEY_SECONDS, ReusedOutput
from penstock.stores.postgres.blobs import PostgresBlobs
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.purging import purge as purge_database
from penstock.stores.postgres.retention import Purged, purge, would_go
from penstock.stores.records import AuditLine, AuditSearch, DeadLetterSearch, Search
from tests.postgres.opened import copy_of, new_intent, with_opened, with_store
from tests.servers import database_url
from tests.waiting import until

COMPLETED, FAILED, RUNNING = ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.RUNNING
DAY = 86400.0
NOW = 100 * DAY
BEFORE = NOW - 7 * DAY
OLD, YOUNG = BEFORE - DAY, BEFORE + DAY


@with_store
async def test_what_ended_before_goes_with_all_that_belongs_to_it(store: PostgresColdStore) -> None:
    ends = {"old": OLD, "young": YOUNG, "failed": OLD}
    await store.executions.record_intents(
        [
            new_intent(name, created_at=OLD - 5, labels={"a": "b", "\x00": 1})
            for name in [*ends, "runs", "waits"]
        ]
    )
    copies = [
        copy_of(name, COMPLETED, 3, finished_at=at) for name, at in ends.items() if name != "failed"
    ]
    failed = copy_of("failed", FAILED, 3, finished_at=OLD, dead_letters=[dead_letter("failed")])
    await store.copies.put_copies(0, 1, [*copies, failed, copy_of("runs", RUNNING, 2)])
    assert await would_go(store, BEFORE) == Purged(executions=2)
    assert await purge(store, BEFORE) == Purged(executions=2, dead_letters=1)
    assert {
        row.execution_id for row in await store.executions.search(Search(labels={"a": "b"}))
    } == {
        "young",
        "runs",
        "waits",
    }
    assert await store.dead_letters.dead_letters(DeadLetterSearch(closed=True)) == []
    assert [await store.executions.execution(name) for name in ("old", "failed")] == [None, None]
    async with store.database.connection() as connection:
        for table, expected in (
            ("segments", 2),
            ("labels", 6),
            ("dead_letters", 0),
            ("executions", 3),
        ):
            cursor = await connection.execute(f"SELECT count(*) FROM {table}".encode())  # noqa: S608 -- ours
            assert await cursor.fetchone() == (expected,), table
    assert await purge(store, BEFORE) == Purged()


@with_store
async def test_it_goes_on_batch_by_batch_past_what_stays(store: PostgresColdStore) -> None:
    names = [f"e{number:02}" for number in range(35)]
    await store.executions.record_intents([new_intent(name, created_at=OLD) for name in names])
    ended = [name for number, name in enumerate(names) if number % 7 != 0 and not 10 <= number < 20]
    await store.copies.put_copies(
        0, 1, [copy_of(name, COMPLETED, 2, finished_at=OLD) for name in ended]
    )
    assert await purge(store, BEFORE, batch=4) == Purged(executions=len(ended))
    assert {row.execution_id for row in await store.executions.search(Search())} == set(
        names
    ) - set(ended)


@with_store
async def test_an_execution_stays_as_long_as_a_retry_of_it(store: PostgresColdStore) -> None:
    retries = {"a": "runs", "b": "young", "c": "old"}
    await store.executions.record_intents(
        [new_intent(name, created_at=OLD - 9) for name in retries]
    )
    await store.executions.record_intents(
        [new_intent(f"{name}2", created_at=OLD - 5, retry_of=name) for name in retries]
    )
    await store.copies.put_copies(
        0, 1, [copy_of(name, FAILED, 3, finished_at=OLD - 8) for name in retries]
    )
    await store.copies.put_copies(
        0,
        1,
        [
            copy_of("b2", COMPLETED, 3, finished_at=YOUNG),
            copy_of("c2", COMPLETED, 3, finished_at=OLD),
        ],
    )
    assert await purge(store, BEFORE) == Purged(executions=2)
    assert {row.execution_id for row in await store.executions.search(Search())} == {
        "a",
        "a2",
        "b",
        "b2",
    }
    await store.copies.put_copies(0, 1, [copy_of("a2", COMPLETED, 3, finished_at=OLD)])
    assert await purge(store, BEFORE) == Purged(executions=2)


@with_store
async def test_a_blob_stays_as_long_as_anything_names_it(store: PostgresColdStore) -> None:
    blobs = PostgresBlobs(store.database)
    only_old, shared, reused, running = [
        await blobs.put(text) for text in (b"old", b"shared", b"kept", b"running")
    ]
    first = new_intent("first", created_at=OLD - 9)
    second = new_intent(
        "second",
        created_at=OLD - 9,
        retry_of="first",
        reused=[ReusedOutput("k", reused), ReusedOutput("i", b"inline")],
    )
    await store.executions.record_intents(
        [
            first,
            second,
            new_intent("runs", created_at=OLD - 9),
            new_intent("young", created_at=OLD - 9),
        ]
    )
    outputs = {"a": only_old, "b": shared, "k": reused}
    await store.copies.put_copies(
        0,
        1,
        [
            copy_of("first", FAILED, 3, finished_at=OLD, outputs=outputs),
            copy_of("young", COMPLETED, 3, finished_at=YOUNG, outputs={"s": shared}),
            copy_of("runs", RUNNING, 3, outputs={"r": running}),
        ],
    )
    await _age_blobs(store, OLD - 2 * DAY)
    await store.copies.put_copies(0, 1, [copy_of("second", FAILED, 3, finished_at=YOUNG)])
    assert await purge(store, BEFORE) == Purged()  # the retry is young
    await store.database.change("UPDATE executions SET retry_of = NULL WHERE id = 'second'")
    assert await would_go(store, BEFORE) == Purged(executions=1, blobs=1, blob_bytes=3)
    assert await purge(store, BEFORE) == Purged(executions=1, blobs=1, blob_bytes=3)
    assert [await blobs.get(blob) for blob in (shared, reused, running)] == [
        b"shared",
        b"kept",
        b"running",
    ]
    with pytest.raises(StoreError, match="gone"):
        await blobs.get(only_old)


@with_store
async def test_a_blob_that_was_put_again_stays(store: PostgresColdStore) -> None:
    blobs = PostgresBlobs(store.database)
    again = await blobs.put(b"again")
    await store.executions.record_intents([new_intent("old", created_at=OLD)])
    await store.copies.put_copies(
        0, 1, [copy_of("old", COMPLETED, 3, finished_at=OLD, outputs={"a": again})]
    )
    await _age_blobs(store, OLD - 2 * DAY)
    assert await blobs.put(b"again") == again
    assert await purge(store, BEFORE) == Purged(executions=1)
    assert await blobs.get(again) == b"again"


@with_store
async def test_a_blob_that_nothing_names_goes_unless_a_task_of_something_older_may_have_it(
    store: PostgresColdStore,
) -> None:
    blobs = PostgresBlobs(store.database)
    for text in (b"one", b"two", b"three"):
        await blobs.put(text)
    await _age_blobs(store, OLD)
    await store.executions.record_intents([new_intent("runs", created_at=OLD - DAY)])
    assert await purge(store, BEFORE) == await would_go(store, BEFORE) == Purged()
    await store.copies.put_copies(0, 1, [copy_of("runs", COMPLETED, 3, finished_at=YOUNG)])
    assert await would_go(store, BEFORE) == Purged(blobs=3, blob_bytes=11)
    assert await purge(store, BEFORE, batch=2) == Purged(blobs=3, blob_bytes=11)


@with_store
async def test_old_keys_go_and_the_audit_log_stays(store: PostgresColdStore) -> None:
    times = {"k1": BEFORE - KEY_SECONDS - 1, "k2": BEFORE - 1, "k3": NOW}
    for key, at in times.items():
        intent = submitted(f"of-{key}", created_at=at)
        await store.executions.record_intents(
            [structs.replace(intent, idempotency_key=key, request_hash="h")]
        )
    await store.audit_log.write_audit(
        [AuditLine(OLD + i, "", "", "act", f"o/{i}", "", 200) for i in range(7)]
    )
    await store.audit_log.write_audit([AuditLine(YOUNG, "", "", "act", "o/young", "", 200)])
    assert await purge(store, BEFORE, batch=3) == Purged(keys=1)
    assert [(await store.executions.key_use("", key)) is not None for key in times] == [
        False,
        True,
        True,
    ]
    assert len(await store.audit_log.audit(AuditSearch())) == 8, "it has a retention of its own"


def test_the_command_can_say_what_would_go_without_a_loop() -> None:
    url = database_url(1)

    async def fill(store: PostgresColdStore) -> None:
        await store.executions.record_intents([new_intent("old", created_at=OLD)])
        await store.copies.put_copies(0, 1, [copy_of("old", COMPLETED, 3, finished_at=OLD)])

    asyncio.run(with_opened(url, fill))
    assert purge_database(url, time.time() - BEFORE, dry_run=True).executions == 1
    assert purge_database(url, time.time() - BEFORE)._asdict()["executions"] == 1
    assert purge_database(url, time.time() - BEFORE).executions == 0


@with_store
async def test_several_may_purge_at_once_beside_those_who_create(store: PostgresColdStore) -> None:
    names = [f"e{number:03}" for number in range(200)]
    await store.executions.record_intents([new_intent(name, created_at=OLD) for name in names])
    await store.copies.put_copies(
        0, 1, [copy_of(name, COMPLETED, 2, finished_at=OLD) for name in names]
    )
    creating = (
        store.executions.record_intents([new_intent(f"new-{number}", created_at=NOW)])
        for number in range(20)
    )
    results = await asyncio.gather(*(purge(store, BEFORE, batch=20) for _ in range(3)), *creating)
    assert sum(result.executions for result in results[:3] if isinstance(result, Purged)) == 200
    assert len(await store.executions.started(0)) == 20


@with_store
async def test_a_blob_is_named_by_its_hash(store: PostgresColdStore) -> None:
    blob = await PostgresBlobs(store.database).put(b"x")
    assert blob == Blob(hashlib.sha256(b"x").hexdigest(), 1)


async def _age_blobs(store: PostgresColdStore, at: float) -> None:
    with psycopg.connect(store.database._conninfo) as connection:
        connection.execute("UPDATE blobs SET used_at = %s", (at,))


WAITING_FOR_A_LOCK = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
    "AND datname = current_database()"
)


@with_store
async def test_what_is_triggered_while_it_is_about_to_go_stays(store: PostgresColdStore) -> None:
    await store.executions.record_intents([new_intent("waits", created_at=OLD, waits=True)])
    async with store.database.transaction() as connection:
        await connection.execute("UPDATE executions SET phase = 'started' WHERE id = 'waits'")
        purging = asyncio.create_task(purge(store, BEFORE))

        async def is_blocked() -> bool:
            return bool((await store.database.rows(WAITING_FOR_A_LOCK))[0][0])

        await until(is_blocked)
    assert (await purging).executions == 0
    assert await store.executions.execution("waits") is not None
