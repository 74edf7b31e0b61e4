"""The SQLite file through links, deleted, moved or replaced under a running service (G1, G2)."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from penstock.errors import StoreLocked
from penstock.stores.sqlite import SqliteStores
from penstock.stores.sqlite.lock import StoreLock, identity_of
from penstock.stores.sqlite.purging import purge
from tests.acceptance.lives import ROOT
from tests.contract.facts import new
from tests.faults.table import Fault

HOLDER = """
import asyncio, sys
from pathlib import Path
from penstock.stores.sqlite import SqliteStores
from tests.contract.facts import new

async def main():
    stores = SqliteStores(Path(sys.argv[1]))
    await stores.cold.create([new(name) for name in sys.argv[2:]])
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


WAYS = (by_symbolic_link, by_link_to_link, by_linked_folder, by_hard_link, by_hard_link_elsewhere, by_relative_path,
        by_detour)  # fmt: skip


@contextmanager
def holder(path: Path, *execution_ids: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has the file open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), *execution_ids],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.fault("files", "a second process on the SQLite file through links and other paths, in both directions")
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
        assert await stores.cold.started(0) == ["e1", "e2"]
        blob = await stores.blobs.put(b"a large value")
        assert await stores.blobs.get(blob) == b"a large value"
        await stores.close()

    other = way(path)
    asyncio.run(look(other))
    asyncio.run(look(path))
    assert [each.name for each in tmp_path.rglob("*.blobs")] == ["store.db.blobs"]


def test_a_second_store_on_the_file_in_one_process_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Closing any descriptor of a file ends all POSIX locks that a process has on it, SQLite's too."""
    path = tmp_path / "store.db"
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM meta').fetchall()"

    async def main() -> None:
        stores = SqliteStores(path)
        link = by_hard_link(path)
        for name in (path, link):
            with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
                SqliteStores(name)
        await stores.cold.create([new("e1")])
        # another program looks: if it took itself for the last one it would remove the log
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program, str(path)], check=True)
        assert path.with_name("store.db-wal").exists()
        await stores.cold.create([new("e2")])
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

    def open_and_replace(name: Path, *more: int) -> int:
        file = real_open(name, *more)
        if name == path and other.exists():
            other.rename(path)
        return file

    monkeypatch.setattr(os, "open", open_and_replace)
    lock = StoreLock(path)
    assert lock.identity == identity_of(path)
    lock.release()
