"""Claims: the record of the tasks that a worker has.

A handler that kills its process must cost its node an attempt.
"""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from penstock.contract.facts import begin, queued, stop, success, task
from penstock.engine.commands import Commands
from penstock.stores.sqlite import SqliteStores
from penstock.stores.sqlite.claims import GROW_SLOTS, SLOT_BYTES, Claims
from penstock.stores.task_keys import Key, key_of

DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from penstock.stores.sqlite import SqliteStores
from penstock.stores.task_keys import key_of
from penstock.contract.facts import begin, queued, task

async def main():
    stores = SqliteStores(Path(sys.argv[1]))
    owner = await begin(stores, "e1")
    await owner.commit(queued(*(task("e1", f"n{number}") for number in range(10))))
    for given in await stores.queue.fetch("worker-1", {"echo"}, 4):
        stores.queue.begin(key_of(given))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_what_was_fetched_is_known_after_a_kill_and_what_was_not_is_not(tmp_path: Path) -> None:
    died = subprocess.run(
        [sys.executable, "-c", DIES, str(tmp_path / "store.db")], check=False, timeout=60
    )
    assert died.returncode == -signal.SIGKILL

    async def look() -> None:
        stores = SqliteStores(tmp_path / "store.db")
        assert set(stores.queue.orphans()) == {("e1", f"n{number}", 1, 1) for number in range(4)}
        await stores.close()

    asyncio.run(look())


def test_an_outcome_is_struck_off_when_it_is_committed_and_not_before(tmp_path: Path) -> None:
    async def report(stores: SqliteStores) -> None:
        owner = await begin(stores, "e1")
        tasks = [
            task("e1", node) for node in ("committed", "reported", "stopped", "held", "returned")
        ]
        await owner.commit(queued(*tasks))
        for fetched_task in await stores.queue.fetch("worker-1", {"echo"}, 10):
            stores.queue.begin(key_of(fetched_task))
        await stores.queue.report("worker-1", [success(tasks[0], "worker-1")])
        owner.position = (await stores.hot.receive(0, 0, 10, 0.0))[-1][0]
        await owner.commit()
        await owner.commit(Commands("e1", stops=[stop(tasks[2])]))
        await stores.queue.report("worker-1", [success(tasks[1], "worker-1")])
        await stores.queue.leave("worker-1", [tasks[4]])

    assert _orphans_after(tmp_path, report) == {
        key_of(task("e1", node)) for node in ("reported", "held")
    }


def test_a_task_that_was_taken_back_stays_noted_until_its_loss_is_committed(tmp_path: Path) -> None:
    async def take_back(stores: SqliteStores) -> None:
        owner = await begin(stores, "e1")
        await owner.commit(queued(task("e1")))
        for fetched_task in await stores.queue.fetch("worker-1", {"echo"}, 10):
            stores.queue.begin(key_of(fetched_task))
        assert await stores.queue.reap(0, owner.lease.token, "worker-1") == 1

    assert _orphans_after(tmp_path, take_back) == {key_of(task("e1"))}


def test_what_was_disowned_is_forgotten(tmp_path: Path) -> None:
    async def claim_task(stores: SqliteStores) -> None:
        owner = await begin(stores, "e1")
        await owner.commit(queued(task("e1", "a"), task("e1", "b")))
        for fetched_task in await stores.queue.fetch("worker-1", {"echo"}, 10):
            stores.queue.begin(key_of(fetched_task))

    async def disown(stores: SqliteStores) -> None:
        stores.queue.disown([key_of(task("e1", "a"))])

    _orphans_after(tmp_path, claim_task)
    assert _orphans_after(tmp_path, disown) == {key_of(task("e1", "b"))}


def test_the_file_grows_with_what_is_held_and_keeps_all_of_it(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    keys: list[Key] = [
        (f"execution-{number}", "é" * 256, 1, number) for number in range(3 * GROW_SLOTS)
    ]
    for key in keys:
        claims.add(key)
    for key in keys[::2]:
        claims.remove([key])
    claims.close()
    again = Claims(tmp_path / "claims")
    assert again.left_over == set(keys[1::2])
    for number in range(GROW_SLOTS):
        again.add(("new", "n", 1, number))
    again.close()
    assert len(_reopened(tmp_path / "claims").left_over) == len(keys[1::2]) + GROW_SLOTS


def test_the_longest_key_fits_its_slot(tmp_path: Path) -> None:
    longest = ("0" * 36, "🦀" * 256, 2**31, 2**31)
    claims = Claims(tmp_path / "claims")
    for attempt in range(3):
        claims.add((*longest[:3], attempt))
    claims.close()
    assert _reopened(tmp_path / "claims").left_over == {
        (*longest[:3], attempt) for attempt in range(3)
    }


def test_a_note_that_was_half_written_does_not_exist(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    claims.add(("e1", "a", 1, 1))
    claims.close()
    data = bytearray((tmp_path / "claims").read_bytes())
    start = next(at for at in range(0, len(data), SLOT_BYTES) if data[at : at + 2] != b"\0\0")
    for spoiled in (b"\0\0", b"\xff\xff", b"\x05\x00\xc1\xc1\xc1\xc1\xc1"):
        broken = data.copy()
        broken[start : start + len(spoiled)] = spoiled
        (tmp_path / "claims").write_bytes(broken)
        assert _reopened(tmp_path / "claims").left_over == set()


def test_the_file_has_its_room_on_disk_before_it_is_needed(tmp_path: Path) -> None:
    """A write into a hole of a memory map on a full disk kills the process.

    It raises no error that could be caught.
    """
    claims = Claims(tmp_path / "claims")
    for number in range(GROW_SLOTS + 1):
        claims.add(("e1", "n", 1, number))
    claims.close()
    size = (tmp_path / "claims").stat()
    assert size.st_blocks * 512 >= size.st_size


def _reopened(path: Path) -> Claims:
    claims = Claims(path)
    claims.close()
    return claims


def _orphans_after(folder: Path, visit: object) -> set[Key]:
    async def scenario() -> set[Key]:
        stores = SqliteStores(folder / "store.db")
        await visit(stores)  # type: ignore[operator]
        await stores.close()
        again = SqliteStores(folder / "store.db")
        orphans = set(again.queue.orphans())
        await again.close()
        return orphans

    return asyncio.run(scenario())
