"""What only the file can do: outlive the process, be locked, be something else than expected."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from penstock.contract.facts import (
    Owner,
    begin,
    dead_letter,
    ended,
    new_intent,
    queued,
    started,
    submitted,
    task,
)
from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Commands, NodeRun, Transition
from penstock.engine.events import Blob
from penstock.engine.states import NodeState
from penstock.errors import NotOpen, SchemaMismatch, StoreError, StoreLocked
from penstock.stores.base import Intent, ReusedOutput, Stored
from penstock.stores.records import (
    ApiKey,
    AuditLine,
    AuditSearch,
    DeadLetterSearch,
    Search,
    WorkflowRow,
)
from penstock.stores.sqlite import SCHEMA_VERSION, SqliteStores, preparing
from penstock.stores.sqlite.lock import LockFile
from tests.contract.upgrading import make_file_of_schema_3

HOLDER = """
import sys
from pathlib import Path
from penstock.stores.sqlite import SqliteStores
stores = SqliteStores(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_everything_committed_is_there_after_the_file_is_opened_again(tmp_path: Path) -> None:
    run = NodeRun("a", NodeState.QUEUED, 2, 1.0)
    line = Transition(2, 1.0, "a", "PENDING", "QUEUED", 2, "why")
    active = Commands(
        "active",
        nodes={"a": run},
        history=[line],
        outputs={"b": b"1", "c": Blob("k", 9)},
        logs=[("a", 1, "line")],
        wake_at=77.0,
        timer_changed=True,
        dead_letters=[dead_letter("active")],
    )

    async def write(stores: SqliteStores) -> None:
        owner = await begin(stores, "active", "over")
        await stores.cold.executions.record_intents(
            [new_intent("waiting", labels={"a": 1}, idempotency_key="key", request_hash="hash")]
        )
        await owner.commit(active, ended("over"))
        await stores.cold.definitions.put_workflow("report", "hash", b"text", 5.0)
        await stores.cold.definitions.remember_handlers({"resize": HandlerDefaults(queue="gpu")})

    async def read(stores: SqliteStores) -> None:
        record = started("active").record
        assert record is not None
        history = [*started("active").history, line]
        expected = Stored(record, active.nodes, active.outputs, 2, history, active.logs)
        assert (await stores.hot.load(["active", "waiting"])) == {"active": expected}
        assert await stores.cold.executions.execution("active") == expected
        assert await stores.cold.executions.started(0) == ["active", "waiting"]
        assert [
            execution.execution_id for execution in await stores.cold.executions.search(Search())
        ] == [
            "waiting",
            "over",
            "active",
        ]
        assert await stores.hot.due(0, 77.0, 10) == ["active"]
        assert [
            row.dead_letter
            for row in await stores.cold.dead_letters.dead_letters(DeadLetterSearch())
        ] == [dead_letter("active")]
        assert await stores.cold.executions.record_intents(
            [new_intent("x", idempotency_key="key", request_hash="hash")]
        ) == ["waiting"]
        version = await stores.cold.definitions.get_workflow("report")
        assert version is not None
        assert (version.version, version.document, version.created_at) == (1, b"text", 5.0)
        assert await stores.cold.definitions.known_handlers() == {
            "resize": HandlerDefaults(queue="gpu")
        }

    _in_turn(tmp_path, write, read, read)


def test_every_book_is_there_after_the_file_is_opened_again(tmp_path: Path) -> None:
    key = ApiKey("k1", "first", ("read",), b"hash", 1.0)
    line = AuditLine(1.0, "k1", "first", "start", "executions/1", "::1", 201, {"a": 1}, 1)
    waiting = Intent(
        submitted("waiting", labels={"a": 1}).record,
        "k",
        "h",
        "old",
        [ReusedOutput("a", b"1")],
        waits=True,
    )

    async def write(stores: SqliteStores) -> None:
        owner = await begin(stores, "over")
        await owner.commit(
            ended("over", dead_letters=[dead_letter("over", "a"), dead_letter("over", "b")])
        )
        await stores.cold.dead_letters.close_dead_letters([1], "retried", 2.0, "again")
        await stores.cold.executions.record_intents([waiting, submitted("late", created_at=10.0)])
        for content in ("one", "two"):
            await stores.cold.definitions.put_workflow("kept", content, b"text", 1.0)
        await stores.cold.definitions.put_workflow("gone", "one", b"text", 1.0)
        await stores.cold.definitions.set_alias("kept", "stable", {1: 90, 2: 10})
        await stores.cold.definitions.delete_workflow("gone")
        await stores.cold.api_keys.put_key(key)
        await stores.cold.audit_log.write_audit([line])

    async def read(stores: SqliteStores) -> None:
        assert await stores.cold.api_keys.keys() == [key]
        assert await stores.cold.audit_log.audit(AuditSearch()) == [line]
        assert await stores.cold.definitions.workflows() == [
            WorkflowRow("kept", 2, 2, 1.0, 1.0, {"stable": {1: 90, 2: 10}})
        ]
        rows = await stores.cold.dead_letters.dead_letters(DeadLetterSearch(closed=True))
        assert [(row.dead_letter.node_id, row.closed, row.retried_as) for row in rows] == [
            ("b", None, None),
            ("a", "retried", "again"),
        ]
        assert await stores.cold.executions.intent("waiting") == waiting
        assert await stores.cold.executions.started(0) == ["late"]
        for wanted in (
            Search(labels={"a": "1"}),
            Search(retry_of="old"),
            Search(states=("PENDING",), since=11.0),
        ):
            assert [row.execution_id for row in await stores.cold.executions.search(wanted)] == [
                "waiting"
            ]
        # created long before the one that it was stored after: how far that is has to be known
        # again
        assert [
            row.execution_id for row in await stores.cold.executions.search(Search(until=11.0))
        ] == ["late"]
        assert [part.execution_id for part in await stores.cold.executions.read_commits((0,))] == [
            "over",
            "over",
        ]

    async def go_on(stores: SqliteStores) -> None:
        await stores.cold.executions.trigger("waiting", None, {})
        owner = await Owner.of(stores)
        await owner.commit(started("waiting"))
        assert [part.execution_id for part in await stores.cold.executions.read_commits((2,))] == [
            "waiting"
        ]
        numbers = [row.n for row in await stores.cold.executions.search(Search())]
        assert numbers == sorted(set(numbers), reverse=True)

    _in_turn(tmp_path, write, read, read, go_on)


def test_an_execution_that_was_triggered_begins_after_the_file_is_opened_again(
    tmp_path: Path,
) -> None:
    async def write(stores: SqliteStores) -> None:
        await stores.cold.executions.record_intents(
            [new_intent("one", waits=True), new_intent("two", waits=True), new_intent("three")]
        )
        await stores.cold.executions.trigger("one", b"[1]", {})
        await stores.cold.executions.request_control("two", "cancel")

    async def go_on(stores: SqliteStores) -> None:
        assert await stores.cold.executions.started(0) == ["one", "two", "three"]
        assert await stores.hot.load(["one", "two", "three"]) == {}
        intent = await stores.cold.executions.intent("one")
        assert intent is not None
        assert intent.record.input == b"[1]"
        owner = await Owner.of(stores)
        await owner.commit(started("one"), ended("two"), started("three"))
        assert sorted(await stores.hot.load(["one", "three"])) == ["one", "three"]

    _in_turn(tmp_path, write, go_on)


def test_an_execution_goes_on_after_its_file_is_opened_again(tmp_path: Path) -> None:
    async def write(stores: SqliteStores) -> None:
        await begin(stores, "e1", "e2")

    async def go_on(stores: SqliteStores) -> None:
        assert len(await stores.hot.load(["e1", "e2"])) == 2
        owner = await Owner.of(stores)
        await owner.commit(queued(task("e1")), queued(task("e2")))
        loaded = await stores.hot.load(["e1", "e2"])
        assert {tuple(stored.runs) for stored in loaded.values()} == {("fetch",)}
        await stores.cold.executions.record_intents([new_intent("e3")])
        await owner.commit(started("e3"))
        assert [line.seq for line in (await stores.hot.load(["e1"]))["e1"].history] == [1, 2]

    _in_turn(tmp_path, write, go_on)


def test_a_closed_store_is_one_complete_file(tmp_path: Path) -> None:
    async def write(stores: SqliteStores) -> None:
        await begin(stores, "e1")

    async def read(stores: SqliteStores) -> None:
        assert await stores.cold.executions.started(0) == ["e1"]

    _in_turn(tmp_path / "store.db", write)
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "store.db", tmp_path / "copy" / "store.db")
    _in_turn(tmp_path / "copy" / "store.db", read)


def test_a_closed_store_says_so_to_whoever_reads_or_writes(tmp_path: Path) -> None:
    async def scenario() -> None:
        stores = SqliteStores(tmp_path / "store.db")
        await stores.open()
        await stores.close()
        with pytest.raises(NotOpen, match="can be read"):
            await stores.cold.api_keys.keys()
        with pytest.raises(NotOpen, match="can be written"):
            await stores.cold.api_keys.revoke_key("key", 1.0)

    asyncio.run(scenario())


def test_a_file_that_another_process_has_open_is_refused_with_that_process_id(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked, match=rf"{path} is in use by process {holder.pid}\b"):
            SqliteStores(path)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    _in_turn(path, _look)


def test_a_file_that_an_earlier_version_has_open_is_refused(tmp_path: Path) -> None:
    """It only knows the lock on the file beside it, which has the name that was given."""
    path, link = tmp_path / "store.db", tmp_path / "link.db"
    link.symlink_to(path)
    for name in (path, link):
        earlier = LockFile(name.with_name(name.name + ".lock"))
        with pytest.raises(StoreLocked, match=rf"{name} is in use by process {os.getpid()}\b"):
            SqliteStores(link)
        earlier.release()
    _in_turn(link, _look)


def test_a_file_that_this_process_has_open_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    async def open_again(stores: SqliteStores) -> None:
        with pytest.raises(StoreLocked, match=str(os.getpid())):
            SqliteStores(stores.path)

    _in_turn(tmp_path / "store.db", open_again, open_again)


def test_a_store_keeps_its_id_for_ever(tmp_path: Path) -> None:
    path, ids = tmp_path / "store.db", set()
    for _ in range(2):
        asyncio.run(SqliteStores(path).close())
        with closing(sqlite3.connect(path)) as connection:
            ids.update(
                connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchall()
            )
    assert len(ids) == 1


def test_a_store_of_another_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
        )
        connection.execute("INSERT INTO meta VALUES ('schema', '99')")
    connection.close()
    for _ in range(2):
        with pytest.raises(
            SchemaMismatch, match=rf"{path} has schema 99; this version of Penstock uses \d+"
        ):
            SqliteStores(path)
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.close()
    assert tables == [("meta",)]


def test_a_file_of_the_schema_before_is_brought_up_to_date_once(tmp_path: Path) -> None:
    path, gpu = tmp_path / "store.db", HandlerDefaults(queue="gpu")
    make_file_of_schema_3(path)

    async def read(stores: SqliteStores) -> None:
        handlers = await stores.cold.definitions.known_handlers()
        assert handlers["old"] == HandlerDefaults()  # what it asked for wasn't kept then
        await stores.cold.definitions.remember_handlers({"new": gpu})
        assert await stores.cold.definitions.known_handlers() == {**handlers, "new": gpu}

    _in_turn(path, read, read)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall() == [
            (SCHEMA_VERSION,)
        ]


def test_a_file_that_an_earlier_version_left_half_opened_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def fill(stores: SqliteStores) -> None:
        await stores.cold.executions.record_intents([new_intent("e1")])

    async def read(stores: SqliteStores) -> None:
        assert await stores.cold.executions.started(0) == ["e1"]

    _in_turn(path, fill)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE stretch (data BLOB)")
    _in_turn(path, read, read)
    with closing(sqlite3.connect(path)) as connection:
        assert (
            connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'stretch'").fetchall()
            == []
        )


def test_a_file_that_cant_be_upgraded_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    _in_turn(path, _look)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'schema'")
        before = connection.execute("SELECT name FROM sqlite_schema").fetchall()
    updates = {"2": "CREATE TABLE half (a);\nCREATE TABLE half (a);"}
    monkeypatch.setattr(preparing, "UPDATES", updates)
    for _ in range(2):
        with pytest.raises(StoreError, match="half already exists"):
            SqliteStores(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == before
        assert connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall() == [
            ("2",)
        ]


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"a letter to my aunt " * 100)
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{path} can't be opened as a SQLite file"):
            SqliteStores(path)
    assert path.read_bytes() == b"a letter to my aunt " * 100


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=rf"the folder {tmp_path / 'nowhere'} doesn't exist; create it"
    ):
        SqliteStores(tmp_path / "nowhere" / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreError, match=str(tmp_path / "store.db")):
        SqliteStores(tmp_path / "store.db")


def test_only_its_account_may_read_the_files_of_a_store(tmp_path: Path) -> None:
    async def look(stores: SqliteStores) -> None:
        await stores.cold.executions.record_intents([new_intent("e1")])
        await stores.blobs.put(b"x" * 1000)
        files = await asyncio.to_thread(lambda: list(tmp_path.rglob("*")))
        assert {file.name for file in files} >= {
            f"store.db{end}" for end in ("", "-wal", "-shm", ".lock", ".claims")
        }
        assert {
            file.name: oct(file.stat().st_mode & 0o077)
            for file in files
            if file.stat().st_mode & 0o077
        } == {}

    before = os.umask(0o022)
    try:
        _in_turn(tmp_path / "store.db", look)
    finally:
        os.umask(before)


def test_a_blob_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that points to it may be committed next, and must not survive a power cut alone."""
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(file: int) -> None:
        kind = "directory" if os.path.isdir(f"/proc/self/fd/{file}") else "file"  # noqa: PTH112 -- of a descriptor
        steps.append(f"fsync {kind}")
        fsync(file)

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(path, target)

    async def put(stores: SqliteStores) -> None:
        monkeypatch.setattr(os, "fsync", noted_fsync)
        monkeypatch.setattr(Path, "rename", noted_rename)
        await stores.blobs.put(b"x" * 1000)

    _in_turn(tmp_path / "store.db", put)
    assert steps[:2] == ["fsync file", "rename"]
    assert "fsync directory" in steps[2:]


def _in_turn(path: Path, *visits: object) -> None:
    """Each visit opens the file anew, in a loop of its own."""
    if path.is_dir():
        path /= "store.db"
    for visit in visits:
        asyncio.run(_visit(path, visit))


async def _visit(path: Path, visit: object) -> None:
    stores = SqliteStores(path)
    try:
        await visit(stores)  # type: ignore[operator]
    finally:
        await stores.close()


async def _look(stores: SqliteStores) -> None:
    assert await stores.cold.executions.started(0) == []
