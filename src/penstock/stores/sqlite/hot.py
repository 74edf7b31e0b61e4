"""The hot store on SQLite: one partition, one owner (the lock file is the lease), facts in the file.

What is in the file: the changes of each execution and its timer. What isn't: the inbox and the queue of tasks. Both can
be made again from the executions (`orchestrator.recovery`), so a task costs one row in a shared commit.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from msgspec import structs

from penstock.engine.commands import Commands
from penstock.engine.events import AnyEvent, TaskFailed, TaskLost, TaskReturned, TaskSucceeded
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced
from penstock.stores import codec
from penstock.stores.base import Commit, Lease, Stored
from penstock.stores.inbox import Inbox
from penstock.stores.reports import report_of
from penstock.stores.sqlite.claims import Claims
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer, insert_many
from penstock.stores.task_queue import Key, MemoryTaskQueue, key_of

FEW_EXECUTIONS = 4
RECENT_COMMITS = 16
SMALL_BYTES = 8192
TASK_ENDS = (TaskSucceeded, TaskFailed, TaskReturned, TaskLost)


def _passing() -> float:
    """Seconds that pass whatever the host's clock is set to; also while the machine sleeps, where that is counted."""
    return (
        time.clock_gettime(time.CLOCK_BOOTTIME)
        if hasattr(time, "CLOCK_BOOTTIME")
        else time.monotonic()
    )


class SqliteHotStore:
    partitions = 1
    tasks_are_durable = False

    def __init__(self, writer: Writer, reader: Reader, claims: Claims) -> None:
        self._writer, self._reader = writer, reader
        self._inbox = Inbox()
        self._lease = Lease(0, "", "", 0, 0)
        self._expires_at = 0.0
        self._writing: asyncio.Future[None] | None = None
        self._offset = time.time() - _passing()
        self._timers: dict[str, float] = {}
        self._timer_heap: list[tuple[float, str]] = []
        self._numbers: dict[str, int] = {}
        """By the id of each active execution, the number that this store gave it."""
        self._recent: deque[str] = deque(maxlen=RECENT_COMMITS)
        """Of which executions the last commits were: those that only wait don't make the store
        busy.
        """
        self._untouched: set[str] = set()
        """Created here, and nothing was written about them since: no need to look."""
        self.queue = SqliteTaskQueue(self, claims)
        for name, wake_at in reader.timers():
            self._set_timer(name, wake_at)

    def now(self) -> float:
        """The store's clock.

        It is the host's when the store was opened, and the time since: one that is set fails
        nothing.
        """
        return _passing() + self._offset

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        lease = self._lease
        if lease.token and lease.owner != owner and self._expires_at > self.now():
            return None
        self._lease = Lease(
            partition, owner, secrets.token_hex(8), lease.commit_number, lease.position
        )
        self._expires_at = self.now() + seconds
        return structs.replace(self._lease)

    async def renew(self, lease: Lease, seconds: float) -> bool:
        if lease.token != self._lease.token:
            return False
        self._expires_at = self.now() + seconds
        return True

    async def release(self, lease: Lease) -> None:
        if lease.token == self._lease.token:
            self._lease.token = ""

    async def append(self, events: Sequence[AnyEvent], *, own: bool = False) -> None:  # noqa: ARG002
        self._inbox.append(events)

    def append_now(self, events: Iterable[AnyEvent]) -> None:
        self._inbox.append(events)

    async def receive(
        self,
        partition: int,  # noqa: ARG002
        after: int,
        limit: int,
        timeout_seconds: float,
    ) -> list[tuple[int, AnyEvent]]:
        if self._inbox.last <= after:
            await self._inbox.wait(timeout_seconds)
        return self._inbox.after(after, limit)

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        maybe = [name for name in execution_ids if name not in self._untouched]
        if not maybe:
            return {}
        found: dict[str, Stored] = {}
        for name, (stored, n) in (await self._reader.executions(maybe)).items():
            if stored.record.state not in EXECUTION_ENDS:
                self._numbers[name] = n
            if stored.last_seq:
                found[name] = stored
        return found

    def number(self, execution_id: str, n: int) -> None:
        """Note that an execution that is about to begin has the number `n`."""
        self._numbers[execution_id] = n
        self._untouched.add(execution_id)

    async def commit(self, commit: Commit) -> None:
        self._check(commit)
        self._recent.extend(
            [commands.execution_id for commands in commit.changes[-RECENT_COMMITS:]]
        )
        rows = self._rows(commit)
        updates = self._updates(commit.changes)

        def job(connection: sqlite3.Connection) -> None:
            _write(connection, rows, updates)

        if (rows or updates) and not (
            self._is_small(rows) and self._writer.now(job, one_statement=not updates)
        ):
            # its effects must show whenever it is written, so nobody asks once more whether the
            # file is still there
            written = self._writing = self._writer.submit(job, is_answered=False)
            written.add_done_callback(lambda done: None if done.exception() else self._show(commit))
            # once it is on its way it happens, also if the caller is cancelled: its effects must
            # show then too
            await asyncio.shield(written)
        else:
            self._show(commit)

    def _show(self, commit: Commit) -> None:
        """The effects of a commit, once it is durable."""
        self._lease.commit_number += 1
        self._lease.position = commit.position
        self.queue.remove_claims(self._inbox.trim(commit.position))
        self.queue.apply(commit.changes)
        for commands in commit.changes:
            if commands.timer_changed:
                self._set_timer(commands.execution_id, commands.wake_at)
            if commands.finished:
                self._timers.pop(commands.execution_id, None)
                self._numbers.pop(commands.execution_id, None)

    def _rows(self, commit: Commit) -> list[tuple[int, bytes]]:
        numbers, untouched = self._numbers, self._untouched
        rows: list[tuple[int, bytes]] = []
        for commands, data in zip(commit.changes, commit.data, strict=True):
            if data:
                rows.append((numbers[commands.execution_id], data))
                untouched.discard(commands.execution_id)
        return rows

    def _is_small(self, rows: list[tuple[int, bytes]]) -> bool:
        return (
            len(rows) <= 1 and sum(len(data) for _, data in rows) < SMALL_BYTES and self._is_quiet()
        )

    def _is_quiet(self) -> bool:
        """Whether few executions exist, or only few of them go on."""
        return len(self._numbers) <= FEW_EXECUTIONS or len(set(self._recent)) <= FEW_EXECUTIONS

    def _check(self, commit: Commit) -> None:
        self.check(commit.token)
        under_way = self._writing is not None and not self._writing.done()
        if under_way or commit.commit_number != self._lease.commit_number:
            raise Fenced(f"the store has moved on from commit {commit.commit_number}")

    def check(self, token: str) -> None:
        if not token or token != self._lease.token:
            raise Fenced("the store belongs to another owner now")

    def _updates(self, changes: Sequence[Commands]) -> _Updates:
        updates = _Updates()
        for commands in changes:
            name = commands.execution_id
            if commands.finished and commands.record is not None:
                n = self._numbers[name]
                updates.ended.append((commands.record.finished_at, str(commands.record.state), n))
                if report := report_of(commands):
                    updates.reports.append((n, report.decode()))
                if name in self._timers:
                    updates.timers.append((n, None))
            elif commands.timer_changed:
                updates.timers.append((self._numbers[name], commands.wake_at))
            if commands.paused is not None and not commands.finished:
                state = ExecutionState.PAUSED if commands.paused else ExecutionState.RUNNING
                updates.states.append((str(state), self._numbers[name]))
            for letter in commands.dead_letters:
                category = letter.attempts[-1].error.category if letter.attempts else ""
                updates.letters.append(
                    (self._numbers[name], letter.handler, category, codec.encode(letter))
                )
        return updates

    async def due(self, partition: int, now: float, limit: int) -> list[str]:  # noqa: ARG002
        found: list[str] = []
        while self._timer_heap and self._timer_heap[0][0] <= now and len(found) < limit:
            wake_at, name = heappop(self._timer_heap)
            if self._timers.get(name) == wake_at:
                found.append(name)
        for name in found:  # still due until a commit says otherwise
            heappush(self._timer_heap, (self._timers[name], name))
        return found

    async def next_due(self, partition: int) -> float | None:  # noqa: ARG002
        while (
            self._timer_heap and self._timers.get(self._timer_heap[0][1]) != self._timer_heap[0][0]
        ):
            heappop(self._timer_heap)
        return self._timer_heap[0][0] if self._timer_heap else None

    async def active(self, partition: int) -> list[str]:  # noqa: ARG002
        return await self._reader.started(changed=True)

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        return set(await self.load(execution_ids))

    def check_open(self) -> None:
        """Raises `StoreError` if the file is gone or the store closed.

        Events go no further than this process.
        """
        self._writer.check_open()

    async def attend(self, name: str, seconds: float, about: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        return [name]  # the lock file keeps others out

    async def depart(self, name: str) -> None:
        """Nobody is told."""

    def _set_timer(self, name: str, wake_at: float | None) -> None:
        if wake_at is None:
            self._timers.pop(name, None)
        else:
            self._timers[name] = wake_at
            heappush(self._timer_heap, (wake_at, name))


class _Updates:
    def __init__(self) -> None:
        self.ended: list[tuple[float | None, str, int]] = []
        self.states: list[tuple[str, int]] = []
        self.timers: list[tuple[int, float | None]] = []
        self.letters: list[tuple[int, str, str, bytes]] = []
        self.reports: list[tuple[int, str]] = []

    def __bool__(self) -> bool:
        return bool(self.ended or self.states or self.timers or self.letters)


def _write(
    connection: sqlite3.Connection, rows: list[tuple[int, bytes]], updates: _Updates
) -> None:
    insert_many(connection, "INSERT INTO changes (n, change)", rows)
    _write_ended(connection, updates.ended)
    for state in updates.states:
        connection.execute("UPDATE executions SET state = ? WHERE n = ?", state)
    for n, wake_at in updates.timers:
        if wake_at is None:
            connection.execute("DELETE FROM timers WHERE n = ?", (n,))
        else:
            connection.execute(
                "INSERT OR REPLACE INTO timers (n, wake_at) VALUES (?, ?)", (n, wake_at)
            )
    insert_many(connection, "INSERT INTO letters (n, handler, category, letter)", updates.letters)
    insert_many(connection, "INSERT OR REPLACE INTO reports (n, report)", updates.reports)


def _write_ended(
    connection: sqlite3.Connection, ended: list[tuple[float | None, str, int]]
) -> None:
    """Write executions that have ended, in few statements.

    What one batch ended has one time, so there are few groups.
    """
    groups: dict[tuple[float | None, str], list[int]] = {}
    for at, state, n in ended:
        groups.setdefault((at, state), []).append(n)
    batch_size = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - 2
    for common, numbers in groups.items():
        for start in range(0, len(numbers), batch_size):
            some = numbers[start : start + batch_size]
            marks = ",".join("?" * len(some))
            connection.execute(
                f"UPDATE executions SET ended_at = ?, state = ? WHERE n IN ({marks})",  # noqa: S608 -- marks only
                (*common, *some),
            )


class SqliteTaskQueue(MemoryTaskQueue):
    """The task queue in memory, with a note on disk of tasks that workers have claimed."""

    def __init__(self, store: SqliteHotStore, claims: Claims) -> None:
        super().__init__(store.append_now, store.now)
        self._store, self._claims = store, claims

    def orphans(self) -> set[Key]:
        return self._claims.left_over

    def disown(self, keys: Iterable[Key]) -> None:
        self._claims.remove(keys)

    def begin(self, key: Key) -> None:
        self._claims.add(key)

    def on_given_up(self, key: Key) -> None:
        self._claims.remove((key,))

    def remove_claims(self, events: Iterable[AnyEvent]) -> None:
        """Remove claims of tasks whose outcomes are on disk.

        Only now is a crash no longer the task's fault.
        """
        self._claims.remove([key_of(event) for event in events if isinstance(event, TASK_ENDS)])

    def check_owner(self, partition: int, token: str) -> None:  # noqa: ARG002 -- there is one
        self._store.check(token)

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        self.check_owner(partition, token)
        return self.lose(worker_id, lambda _name: True)
