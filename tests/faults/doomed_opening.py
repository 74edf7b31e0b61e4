"""Processes that are killed while they open, upgrade or close a store, or have no room for it.

`python -m tests.faults.doomed_opening FOLDER SEED POINTS KILLS` prints JSON: what was done, and
every problem. Each process is a fork of this one, so that hundreds of them take seconds. POINTS is
how many failpoints of each kind of file are tried (0: every one), KILLS how often a process is
killed at a random moment.

A failpoint is a step: each statement and each connection of SQLite, each call that changes a file.
They are counted in a life that isn't killed, so a new step is a new failpoint by itself.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.contract.facts import begin, new_intent
from penstock.errors import StoreUnavailable
from penstock.stores.sqlite import SCHEMA_VERSION, SqliteStores
from tests.contract.upgrading import make_file_of_schema_3

CALLS = (
    "open",
    "write",
    "pwrite",
    "fsync",
    "close",
    "ftruncate",
    "posix_fallocate",
    "mkdir",
    "rename",
    "unlink",
)
STATEMENTS = ("execute", "executescript", "executemany", "commit", "rollback", "close")
NAME = "store.db"
BEFORE = ("e1", "e2", "e3")
"""Executions that a file has before anything happens to it."""
REFUSED = 3
"""The exit code of a process that was told that there is no room."""
ROOM = (
    0,
    1,
    100,
    4096,
    4097,
    20_000,
    33_000,
    100_000,
    300_000,
    600_000,
    1_000_000,
    4_000_000,
    4_600_000,
)
"""Bytes that a file may have: the limit on its size stands for a full disk."""


def make_new(_path: Path) -> None:
    """There is no file yet."""


def make_closed(path: Path) -> None:
    asyncio.run(_fill(path))


def make_killed(path: Path) -> None:
    """Its last process was killed: everything is in the log."""

    async def fill_and_die() -> None:
        await begin(SqliteStores(path), *BEFORE)
        os.kill(os.getpid(), signal.SIGKILL)

    _in_process(lambda: asyncio.run(fill_and_die()))


def make_old(path: Path) -> None:
    """Of the schema before the last one."""
    make_file_of_schema_3(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, execution_id in zip(("unbegun", "running", "paused"), BEFORE, strict=True):
            rename = "UPDATE executions SET id = ? WHERE id = ?"
            connection.execute(rename, (execution_id, name))


def make_damaged(path: Path) -> None:
    """As versions up to 0.1.0 left it when they were killed while they opened it."""
    make_closed(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE stretch (data BLOB)")
        connection.execute("INSERT INTO stretch VALUES (zeroblob(4000000))")


FILES: dict[str, Callable[[Path], None]] = {
    "new": make_new,
    "closed": make_closed,
    "killed": make_killed,
    "old": make_old,
    "damaged": make_damaged,
}


async def _fill(path: Path) -> None:
    stores = SqliteStores(path)
    await begin(stores, *BEFORE)
    await stores.close()


def live(folder: Path) -> None:
    """Open the store, accept an execution, close it."""

    async def main() -> None:
        stores = SqliteStores(folder / NAME)
        if await stores.cold.executions.intent("accepted") is None:
            await stores.cold.executions.record_intents([new_intent("accepted")])
        (folder / "accepted").touch()
        await stores.close()

    asyncio.run(main())


def judge(folder: Path) -> None:
    """Open it again, twice; everything must be there. Raises `AssertionError`."""

    async def main() -> None:
        stores = SqliteStores(folder / NAME)
        started = set(await stores.cold.executions.started(0))
        missing = {*(() if (folder / "was new").exists() else BEFORE)} - started
        assert not missing, f"missing: {missing}"
        if (folder / "accepted").exists():
            assert "accepted" in started, "an execution that was accepted is missing"
        await stores.close()

    for _ in range(2):
        asyncio.run(main())
    with closing(sqlite3.connect(folder / NAME)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall() == [
            (SCHEMA_VERSION,)
        ]
        assert not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'stretch'"
        ).fetchall()


def arm(pass_step: Callable[[str], None]) -> None:
    """Call `pass_step` before each step of this process."""
    for name in CALLS:
        setattr(os, name, _armed(getattr(os, name), functools.partial(pass_step, f"os.{name}")))

    class Doomed(sqlite3.Connection):
        """Each statement is a step."""

    for name in STATEMENTS:
        call = getattr(sqlite3.Connection, name)
        setattr(Doomed, name, _armed(call, functools.partial(pass_step, f"sqlite3.{name}")))
    connect = functools.partial(sqlite3.connect, factory=Doomed)
    vars(sqlite3)["connect"] = _armed(connect, functools.partial(pass_step, "sqlite3.connect"))


def _armed(call: Callable[..., Any], pass_step: Callable[[], None]) -> Callable[..., Any]:
    def made(*arguments: Any, **named: Any) -> Any:
        pass_step()
        return call(*arguments, **named)

    return made


def count_steps(folder: Path) -> None:
    steps: list[str] = []
    arm(steps.append)
    live(folder)
    (folder / "steps").write_text(json.dumps(steps), encoding="utf-8")


def die_at(step: int, folder: Path) -> None:
    passed = 0

    def pass_step(_name: str) -> None:
        nonlocal passed
        passed += 1
        if passed > step:
            os.kill(os.getpid(), signal.SIGKILL)

    arm(pass_step)
    live(folder)


def live_without_room(size: int, folder: Path) -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard_limit))
    try:
        live(folder)
    except StoreUnavailable:
        os._exit(REFUSED)


def live_again_and_again(folder: Path) -> None:
    while True:
        live(folder)


def _in_process(work: Callable[[], None]) -> int:
    """How a fork of this process ended that does this."""
    pid = _fork(work)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 -- the process ends here
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


class Trial:
    """All that is done to one kind of file."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root = root / kind
        self.kind = kind
        self.problems: list[str] = []
        self.kills = self.refusals = 0
        template = self.root / "template"
        template.mkdir(parents=True)
        FILES[kind](template / NAME)
        if kind == "new":
            (template / "was new").touch()

    def copy(self, name: str) -> Path:
        folder = self.root / name
        shutil.copytree(self.root / "template", folder)
        return folder

    def judge(self, folder: Path, what: str) -> None:
        if _in_process(lambda: judge(folder)) != 0:
            self.problems.append(f"{self.kind} file, {what}: it can't be used afterwards")
        shutil.rmtree(folder)

    def kill_at_points(self, points: int, choose: random.Random) -> int:
        folder = self.copy("counted")
        assert _in_process(lambda: count_steps(folder)) == 0, (
            "it couldn't even be opened undisturbed"
        )
        steps = json.loads((folder / "steps").read_text(encoding="utf-8"))
        shutil.rmtree(folder)
        every = list(range(len(steps)))
        chosen = sorted(choose.sample(every, min(points, len(every)))) if points else every
        for step in chosen:
            folder = self.copy(f"step-{step}")
            code = _in_process(functools.partial(die_at, step, folder))
            if code != -signal.SIGKILL:
                self.problems.append(
                    f"{self.kind} file: it didn't die at step {step}, {steps[step]}, but with "
                    f"{code}"
                )
            self.kills += code == -signal.SIGKILL
            self.judge(folder, f"killed before step {step}, {steps[step]}")
        return len(chosen)

    def kill_at_random(self, kills: int, choose: random.Random) -> None:
        for number in range(kills):
            folder = self.copy(f"random-{number}")
            pid = _fork(functools.partial(live_again_and_again, folder))
            end = time.monotonic() + choose.random() * 0.1
            while time.monotonic() < end:
                pass
            os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if code != -signal.SIGKILL:
                self.problems.append(
                    f"{self.kind} file: opened again and again it ended with {code}"
                )
            self.kills += code == -signal.SIGKILL
            self.judge(folder, f"killed at a random moment, number {number}")

    def fill_the_disk(self) -> None:
        for size in ROOM:
            folder = self.copy(f"room-{size}")
            code = _in_process(functools.partial(live_without_room, size, folder))
            if code not in (0, REFUSED):
                self.problems.append(
                    f"{self.kind} file, room for {size} bytes: it ended with {code}"
                )
            self.refusals += code == REFUSED
            self.judge(folder, f"opened with room for {size} bytes")


def main() -> None:
    root, seed, points, kills = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    choose = random.Random(seed)
    trials = [Trial(root, kind) for kind in FILES]
    tried = 0
    for trial in trials:
        tried += trial.kill_at_points(points, choose)
        trial.kill_at_random(kills, choose)
        trial.fill_the_disk()
    report = {
        "points": tried,
        "kills": sum(trial.kills for trial in trials),
        "refusals": sum(trial.refusals for trial in trials),
        "problems": [problem for trial in trials for problem in trial.problems],
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
