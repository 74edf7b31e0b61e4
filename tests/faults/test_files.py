"""The SQLite file through links, deleted, moved or replaced under a running service (G1, G2)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp
import pytest

from penstock.contract.facts import new_intent
from penstock.errors import StoreLocked, StoreUnavailable
from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.sqlite import SqliteStores
from penstock.stores.sqlite.lock import StoreLock, identity_of
from penstock.stores.sqlite.purging import purge
from tests.acceptance.lives import ROOT
from tests.acceptance.served import Life
from tests.faults.table import Fault
from tests.waiting import PATIENCE_SECONDS, until

HOLDER = """
import asyncio, sys
from pathlib import Path
from penstock.stores.sqlite import SqliteStores
from penstock.contract.facts import new_intent

async def main():
    stores = SqliteStores(Path(sys.argv[1]))
    await stores.cold.executions.record_intents([new_intent(name) for name in sys.argv[2:]])
    blob = await stores.blobs.put(b"a large value")
    print("open", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


def by_symbolic_link(path: Path) -> Path:
    link = path.with_name("link.db")
    link.symlink_to(path)
    return link


def by_link_to_link(path: Path) -> Path:
    link = path.with_name("second.db")
    link.symlink_to(by_symbolic_link(path).name)
    return link


def by_linked_folder(path: Path) -> Path:
    folder = path.parent.with_name(path.parent.name + "-linked")
    folder.symlink_to(path.parent)
    return folder / path.name


def by_hard_link(path: Path) -> Path:
    link = path.with_name("hard.db")
    link.hardlink_to(path)
    return link


def by_hard_link_elsewhere(path: Path) -> Path:
    folder = path.parent.with_name(path.parent.name + "-elsewhere")
    folder.mkdir()
    link = folder / path.name
    link.hardlink_to(path)
    return link


def by_relative_path(path: Path) -> Path:
    return Path(os.path.relpath(path))


def by_detour(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


WAYS = (
    by_symbolic_link,
    by_link_to_link,
    by_linked_folder,
    by_hard_link,
    by_hard_link_elsewhere,
    by_relative_path,
    by_detour,
)


@contextmanager
def holder(path: Path, *execution_ids: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has the file open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), *execution_ids],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.fault(
    "files", "a second process on the SQLite file through links and other paths, in both directions"
)
def test_a_file_has_one_owner_whatever_name_it_is_opened_by(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = 0

    def assert_refused(name: Path, process: subprocess.Popen[str]) -> None:
        nonlocal refused
        for call in (lambda: SqliteStores(name), lambda: purge(name, 1.0)):
            with pytest.raises(StoreLocked, match=rf"in use by process {process.pid}\b"):
                call()
            refused += 1

    for number, way in enumerate(WAYS if fault.is_full else fault.choices().sample(WAYS, 2)):
        path = tmp_path / str(number) / "store.db"
        path.parent.mkdir()
        asyncio.run(SqliteStores(path).close())
        with holder(tmp_path / way(path)) as process:
            assert_refused(path, process)
    path = tmp_path / "store" / "store.db"
    path.parent.mkdir()
    with holder(path) as process:
        for way in WAYS[1:]:  # which makes the first one, too
            assert_refused(way(path), process)
        assert_refused(path.rename(tmp_path / "moved.db"), process)
    fault.shows(ways=len(WAYS), second_processes_refused=refused, two_owners=0)


def delete(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.rename(path)


def replace_everything(path: Path) -> None:
    """As somebody does who restores a backup without stopping the service."""
    for file in path.parent.glob("store.db*"):
        if file.is_file():
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content)


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def delete_log(path: Path) -> None:
    path.with_name("store.db-wal").unlink()


def delete_index(path: Path) -> None:
    path.with_name("store.db-shm").unlink()


def delete_large_values(path: Path) -> None:
    shutil.rmtree(path.with_name("store.db.blobs"))


def replace_large_values(path: Path) -> None:
    delete_large_values(path)
    path.with_name("store.db.blobs").mkdir()


HARMS = (
    delete,
    replace,
    replace_everything,
    move,
    move_folder,
    delete_log,
    delete_index,
    delete_large_values,
    replace_large_values,
)


@pytest.mark.parametrize("harm", HARMS)
def test_nothing_is_accepted_when_a_file_of_the_store_is_gone(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "a" / "store.db"
    path.parent.mkdir()

    async def main() -> None:
        stores = SqliteStores(path)
        await stores.blobs.put(b"a large value")
        await stores.cold.executions.record_intents(
            [new_intent("e1", idempotency_key="k", request_hash="h")]
        )
        await stores.cold.definitions.put_workflow("report", "hash", b"text", 1.0)
        stores.hot.check_open()
        harm(path)
        with pytest.raises(StoreUnavailable, match="in use; what is written now would be lost"):
            await stores.cold.executions.record_intents([new_intent("e2")])
        for call in (
            lambda: stores.cold.executions.record_intents([new_intent("e3")]),
            lambda: stores.cold.executions.key_use("", "k"),
            lambda: stores.cold.definitions.put_workflow("report", "hash", b"text", 1.0),
            lambda: stores.cold.executions.request_control("e1", "cancel"),
        ):
            with pytest.raises(StoreUnavailable):
                await call()
        with pytest.raises(StoreUnavailable):
            stores.hot.check_open()
        await stores.close()

    asyncio.run(main())


def test_a_file_that_is_put_back_is_written_to_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a" / "store.db"
    path.parent.mkdir()

    def is_open(stores: SqliteStores) -> bool:
        try:
            stores.hot.check_open()
        except StoreUnavailable:
            return False
        return True

    async def main() -> None:
        stores = SqliteStores(path)
        await stores.cold.executions.record_intents([new_intent("e1")])
        path.parent.rename(tmp_path / "b")
        await until(lambda: not is_open(stores))
        (tmp_path / "b").rename(path.parent)
        await until(lambda: is_open(stores))
        await stores.cold.executions.record_intents([new_intent("e2")])
        await stores.close()
        assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
        stores = SqliteStores(path)
        assert await stores.cold.executions.started(0) == ["e1", "e2"]
        await stores.close()

    asyncio.run(main())


def test_a_large_value_is_not_put_into_a_new_folder_when_the_old_one_is_gone(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        blobs = DirectoryBlobs(tmp_path / "blobs")
        await blobs.put(b"one")
        shutil.rmtree(tmp_path / "blobs")
        with pytest.raises(StoreUnavailable, match="can't be written"):
            await blobs.put(b"two")

    asyncio.run(main())


@pytest.mark.fault(
    "files",
    "the SQLite file, its log, its folder or its large values go away under a running service",
)
def test_a_service_whose_files_are_gone_refuses_at_once_and_says_so(
    fault: Fault, tmp_path: Path
) -> None:
    harms = HARMS if fault.is_full else fault.choices().sample(HARMS, 1)
    slowest, refused = 0.0, 0

    async def main(harm: Callable[[Path], None], folder: Path) -> None:
        nonlocal slowest, refused
        with Life(folder) as life:
            async with aiohttp.ClientSession(await life.ready()) as session:

                async def post() -> int:
                    flow = {
                        "nodes": [{"id": "a", "handler": "echo", "config": {"text": "x" * 300_000}}]
                    }
                    async with session.post(
                        "/api/v1/executions?wait=5", json={"definition": flow}
                    ) as response:
                        return response.status

                async def health(part: str = "") -> tuple[int, str]:
                    async with session.get(f"/health{part}") as response:
                        return response.status, await response.text()

                assert await post() == 201
                await until((folder / "store.db.blobs").exists)
                assert (await health("/ready"))[0] == 200
                harm(folder / "store.db")
                began = time.monotonic()
                for _ in range(5):
                    assert await post() == 503, "it answered for what will be lost"
                    refused += 1
                await until(lambda: _is_unavailable(health))
                slowest = max(slowest, time.monotonic() - began)
                status, text = await health()
                assert status == 503
                assert "while it was in use" in text
                assert (await health("/live"))[0] == 200
            code, log = await life.stop()
            assert code == 0, log
            assert "while it was in use" in log

    for number, harm in enumerate(harms):
        folder = tmp_path / str(number)
        folder.mkdir()
        asyncio.run(main(harm, folder))
    assert slowest < (1.0 if fault.is_full else PATIENCE_SECONDS)
    fault.shows(
        ways=len(harms), refused=refused, accepted_and_lost=0, slowest_notice_seconds=slowest
    )


async def _is_unavailable(health: Callable[[str], Awaitable[tuple[int, str]]]) -> bool:
    return (await health("/ready"))[0] == 503


@pytest.mark.parametrize("way", [by_symbolic_link, by_hard_link, by_hard_link_elsewhere])
def test_what_a_killed_process_left_is_found_by_every_name_of_the_file(
    way: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's log, like our large values, stands beside one name only."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a" / "store.db"
    path.parent.mkdir()
    with holder(path, "e1", "e2") as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    async def look(name: Path) -> None:
        stores = SqliteStores(name)
        assert await stores.cold.executions.started(0) == ["e1", "e2"]
        blob = await stores.blobs.put(b"a large value")
        assert await stores.blobs.get(blob) == b"a large value"
        await stores.close()

    other = way(path)
    asyncio.run(look(other))
    asyncio.run(look(path))
    assert [folder.name for folder in tmp_path.rglob("*.blobs")] == ["store.db.blobs"]


def test_a_second_store_on_the_file_in_one_process_leaves_the_locks_of_the_first(
    tmp_path: Path,
) -> None:
    """Closing any descriptor of a file ends all POSIX locks of the process on it.

    SQLite's too.
    """
    path = tmp_path / "store.db"
    program = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM meta').fetchall()"
    )

    async def main() -> None:
        stores = SqliteStores(path)
        link = by_hard_link(path)
        for name in (path, link):
            with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
                SqliteStores(name)
        await stores.cold.executions.record_intents([new_intent("e1")])
        # another program looks: if it took itself for the last one it would remove the log
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", program, str(path)], check=True
        )
        assert path.with_name("store.db-wal").exists()
        await stores.cold.executions.record_intents([new_intent("e2")])
        await stores.close()

    asyncio.run(main())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM executions").fetchall() == [(2,)]


def test_a_file_that_is_replaced_while_it_is_being_locked_is_not_taken_for_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    asyncio.run(SqliteStores(path).close())
    other = tmp_path / "other.db"
    asyncio.run(SqliteStores(other).close())
    real_open = os.open

    def open_and_replace(name: Path, *flags: int) -> int:
        file = real_open(name, *flags)
        if name == path and other.exists():
            other.rename(path)
        return file

    monkeypatch.setattr(os, "open", open_and_replace)
    lock = StoreLock(path)
    assert lock.identity == identity_of(path)
    lock.release()
