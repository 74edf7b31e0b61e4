"""The hot store on SQLite: one partition and one owner (the lock file is the lease).

The file has the changes of each execution and its timer. The inbox and the task queue are only in
memory: both can be made again from the executions (`orchestrator.recovery`), so a task costs one
row in a shared commit.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush

from msgspec import structs

from penstock.engine.events import (
    AnyEvent,
    SignalReceived,
    TaskFailed,
    TaskLost,
    TaskReturned,
    TaskSucceeded,
)
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced
from penstock.stores import codec
from penstock.stores.base import Lease, Stored
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.fleet import OrchestratorDetails
from penstock.stores.matching import last_category
from penstock.stores.memory.inbox import Inbox
from penstock.stores.memory.task_queue import MemoryTaskQueue
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite import children, waits
from penstock.stores.sqlite.claims import Claims
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer, insert_many
from penstock.stores.task_keys import Key, key_of

SQL = statements_beside(__file__)

FEW_EXECUTIONS = 4
RECENT_COMMITS = 16
SMALL_BYTES = 8192
TASK_ENDS = frozenset({TaskSucceeded, TaskFailed, TaskReturned, TaskLost})

IntentColumns = tuple[bytes, bytes | None, str | None]
"""The columns `intent`, `rest` and `retry_of` of an execution's row."""


def _steady_seconds() -> float:
    """Seconds on a clock that nobody can set.

    It also counts while the machine sleeps, where the system has such a clock.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class SqliteHotStore:
    partitions = 1

    def __init__(self, writer: Writer, reader: Reader, claims: Claims, numbers: Numbers) -> None:
        self._writer = writer
        self._reader = reader
        self._new_numbers = numbers
        self._inbox = Inbox()
        self._lease = Lease(0, "", "", 0, 0)
        self._expires_at = 0.0
        self._writing: asyncio.Future[None] | None = None
        self._offset = time.time() - _steady_seconds()
        self._timers: dict[str, float] = {}
        self._timer_heap: list[tuple[float, str]] = []
        self._numbers: dict[str, int] = {}
        """Numbers that this store gave to active executions, by execution id."""
        self._recent: deque[str] = deque(maxlen=RECENT_COMMITS)
        """Executions of the last commits: those that only wait don't make the store busy."""
        self._unbegun: dict[str, IntentColumns] = {}
        """What was recorded here of executions that have no changes yet: it needn't be read."""
        self._pending: set[str] = set()
        """Executions whose row says PENDING. Their first commit makes it RUNNING."""
        self.queue = SqliteTaskQueue(self, claims)
        for execution_id, wake_at in reader.timers():
            self._set_timer(execution_id, wake_at)

    def now(self) -> float:
        """The store's clock: the host's when the store was opened, plus the time since.

        So nothing fails when somebody sets the host's clock.
        """
        return _steady_seconds() + self._offset

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
        maybe_stored = [
            execution_id for execution_id in execution_ids if execution_id not in self._unbegun
        ]
        if not maybe_stored:
            return {}

        executions: dict[str, Stored] = {}
        for execution_id, (stored, n) in (await self._reader.executions(maybe_stored)).items():
            if stored.record.state not in EXECUTION_ENDS:
                self._numbers[execution_id] = n
            if stored.last_seq:
                executions[execution_id] = stored
            else:
                self._pending.add(execution_id)
        return executions

    def note_recorded(self, execution_id: str, n: int, intent: IntentColumns) -> None:
        """Note what was recorded of an execution that is about to begin, and its number `n`."""
        self._numbers[execution_id] = n
        self._unbegun[execution_id] = intent
        self._pending.add(execution_id)

    def unbegun_intent(self, execution_id: str) -> IntentColumns | None:
        """The intent of an execution that was recorded here and has no changes yet."""
        return self._unbegun.get(execution_id)

    async def commit(self, plan: CommitPlan) -> None:
        self._check(plan)
        self._recent.extend([execution_id for execution_id, _ in plan.changes[-RECENT_COMMITS:]])
        rows = self._rows(plan)
        updates = self._updates(plan)

        def job(connection: sqlite3.Connection) -> None:
            _write(connection, rows, updates)

        is_written = not rows and not updates
        if not is_written and self._is_small(rows):
            is_written = self._writer.now(job, one_statement=not updates)
        if is_written:
            self._apply(plan, updates)
            return

        # not answered: once it is written its effects must apply, even if the file is lost by then
        written = self._writing = self._writer.submit(job, is_answered=False)
        written.add_done_callback(
            lambda done: None if done.exception() else self._apply(plan, updates)
        )
        # a submitted job is written also if the caller is cancelled, so its effects must apply then
        await asyncio.shield(written)

    def _apply(self, plan: CommitPlan, updates: _Updates) -> None:
        """Apply the effects of a commit that is durable."""
        self._lease.commit_number += 1
        self._lease.position = plan.position
        self.queue.remove_claims(self._inbox.trim(plan.position))
        self.queue.apply(plan)
        if self._pending:
            self._pending.difference_update([execution_id for execution_id, _ in plan.changes])
        for execution_id, wake_at in plan.timers_set:
            self._set_timer(execution_id, wake_at)
        for execution_id in plan.timers_cleared:
            self._set_timer(execution_id, None)
        if updates.signals:
            self._inbox.append(updates.signals)
        if updates.sends:
            self._deliver(updates)
        for ended in plan.ended:
            self._timers.pop(ended.execution_id, None)
            self._numbers.pop(ended.execution_id, None)

    def _deliver(self, updates: _Updates) -> None:
        """Let what was sent have its effects: it is written."""
        events, recorded = updates.delivered
        for n, execution_id, _, _, _, _, _, retry_of, _, record, rest in recorded:
            self.note_recorded(execution_id, n, (record, rest, retry_of))
        if updates.lead is not None:
            self._new_numbers.lead_written(updates.lead)
        self._inbox.append(events)

    def _rows(self, plan: CommitPlan) -> list[tuple[int, bytes]]:
        numbers = self._numbers
        if self._unbegun:
            for execution_id, _ in plan.changes:
                self._unbegun.pop(execution_id, None)
        return [(numbers[execution_id], change) for execution_id, change in plan.changes]

    def _is_small(self, rows: list[tuple[int, bytes]]) -> bool:
        if len(rows) > 1:
            return False
        size = sum(len(data) for _, data in rows)
        return size < SMALL_BYTES and self._is_quiet()

    def _is_quiet(self) -> bool:
        """Whether few executions are active, or few of them had a commit lately."""
        return len(self._numbers) <= FEW_EXECUTIONS or len(set(self._recent)) <= FEW_EXECUTIONS

    def _check(self, plan: CommitPlan) -> None:
        self.check(plan.token)
        under_way = self._writing is not None and not self._writing.done()
        if under_way or plan.commit_number != self._lease.commit_number:
            raise Fenced(f"the store has moved on from commit {plan.commit_number}")

    def check(self, token: str) -> None:
        if not token or token != self._lease.token:
            raise Fenced("the store belongs to another owner now")

    def _updates(self, plan: CommitPlan) -> _Updates:  # noqa: C901 -- one list after another
        numbers = self._numbers
        updates = _Updates()
        if self._pending:
            updates.begun = self._begun(plan)
        for ended in plan.ended:
            n = numbers[ended.execution_id]
            updates.ended.append((ended.finished_at, str(ended.state), n))
            if ended.report:
                updates.reports.append((n, ended.report.decode()))
            if ended.execution_id in self._timers:
                updates.timers.append((n, None))
        for execution_id, wake_at in plan.timers_set:
            updates.timers.append((numbers[execution_id], wake_at))
        for execution_id in plan.timers_cleared:
            updates.timers.append((numbers[execution_id], None))
        for execution_id in plan.paused:
            updates.states.append((str(ExecutionState.PAUSED), numbers[execution_id]))
        for execution_id in plan.resumed:
            updates.states.append((str(ExecutionState.RUNNING), numbers[execution_id]))
        updates.waits = waits.numbered(plan.waits, numbers)
        if plan.sends:
            updates.sends = children.prepared(plan.sends, self._new_numbers)
            updates.lead = self._new_numbers.new_lead()
        for dead_letter in plan.dead_letters:
            n = numbers[dead_letter.execution_id]
            category = last_category(dead_letter)
            row = (n, dead_letter.handler, category, codec.encode(dead_letter))
            updates.dead_letters.append(row)
        return updates

    def _begun(self, plan: CommitPlan) -> list[int]:
        """Numbers of executions that begin with this commit, and don't end with it."""
        ended = {ended.execution_id for ended in plan.ended}
        return [
            self._numbers[execution_id]
            for execution_id, _ in plan.changes
            if execution_id in self._pending and execution_id not in ended
        ]

    async def due(self, partition: int, now: float, limit: int) -> list[str]:  # noqa: ARG002
        due: list[str] = []
        while self._timer_heap and self._timer_heap[0][0] <= now and len(due) < limit:
            wake_at, execution_id = heappop(self._timer_heap)
            if self._timers.get(execution_id) == wake_at:
                due.append(execution_id)
        for execution_id in due:  # it stays due until a commit changes its timer
            heappush(self._timer_heap, (self._timers[execution_id], execution_id))
        return due

    async def next_due(self, partition: int) -> float | None:  # noqa: ARG002
        while self._timer_heap:
            wake_at, execution_id = self._timer_heap[0]
            if self._timers.get(execution_id) == wake_at:
                return wake_at
            heappop(self._timer_heap)  # outdated
        return None

    async def active(self, partition: int) -> list[str]:  # noqa: ARG002
        return await self._reader.begun()

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        return set(await self.load(execution_ids))

    def check_open(self) -> None:
        """Raises `StoreError` if the file is gone or the store closed."""
        self._writer.check_open()

    async def announce(self, name: str, seconds: float, about: OrchestratorDetails) -> list[str]:  # noqa: ARG002
        return [name]  # the lock file keeps others out

    async def deregister(self, name: str) -> None:
        """Nothing to do: there are no other members."""

    def _set_timer(self, execution_id: str, wake_at: float | None) -> None:
        if wake_at is None:
            self._timers.pop(execution_id, None)
        else:
            self._timers[execution_id] = wake_at
            heappush(self._timer_heap, (wake_at, execution_id))


class _Updates:
    """Rows that a commit writes beside its changes."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[tuple[float | None, str, int]] = []
        self.states: list[tuple[str, int]] = []
        self.timers: list[tuple[int, float | None]] = []
        self.dead_letters: list[tuple[int, str, str, bytes]] = []
        self.reports: list[tuple[int, str]] = []
        self.waits: list[waits.NumberedChange] = []
        self.signals: list[SignalReceived] = []
        """Signals that nodes which begin to wait get at once; known once it is written."""
        self.sends: list[children.PreparedSend] = []
        self.lead: float | None = None
        """Of the numbers of new children."""
        self.delivered: children.Delivered = children.NOTHING
        """What follows from what was sent; known once it is written."""

    def __bool__(self) -> bool:
        return any(value for value in vars(self).values() if value is not self.delivered)


def _write(
    connection: sqlite3.Connection, rows: list[tuple[int, bytes]], updates: _Updates
) -> None:
    insert_many(connection, SQL.insert_changes, rows)
    _write_begun(connection, updates.begun)
    _write_ended(connection, updates.ended)

    for state in updates.states:
        connection.execute(SQL.set_state, state)
    for n, wake_at in updates.timers:
        if wake_at is None:
            connection.execute(SQL.delete_timer, (n,))
        else:
            connection.execute(SQL.put_timer, (n, wake_at))

    insert_many(
        connection,
        SQL.insert_dead_letters,
        updates.dead_letters,
    )
    insert_many(connection, SQL.put_reports, updates.reports)
    updates.signals = waits.write(connection, updates.waits)
    if updates.sends:
        updates.delivered = children.write(connection, updates.sends, updates.lead)


def _write_begun(connection: sqlite3.Connection, numbers: list[int]) -> None:
    batch_size = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    for start in range(0, len(numbers), batch_size):
        batch = numbers[start : start + batch_size]
        marks = ",".join("?" * len(batch))
        # one that was read while its first commit was written may be further
        statement = f"""
            UPDATE executions SET state = 'RUNNING' WHERE n IN ({marks}) AND state = 'PENDING'
        """  # noqa: S608 -- marks only
        connection.execute(statement, batch)


def _write_ended(
    connection: sqlite3.Connection, ended: list[tuple[float | None, str, int]]
) -> None:
    """Write executions that have ended, with one statement per time and state.

    All executions that one batch of events ended have the same time.
    """
    groups: dict[tuple[float | None, str], list[int]] = {}
    for at, state, n in ended:
        groups.setdefault((at, state), []).append(n)
    batch_size = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - 2
    for (at, state), numbers in groups.items():
        for start in range(0, len(numbers), batch_size):
            batch = numbers[start : start + batch_size]
            marks = ",".join("?" * len(batch))
            statement = f"""
                UPDATE executions SET ended_at = ?, state = ?, phase = 'ended' WHERE n IN ({marks})
            """  # noqa: S608 -- marks only
            connection.execute(statement, (at, state, *batch))


class SqliteTaskQueue(MemoryTaskQueue):
    """The task queue in memory, with a note on disk of tasks that workers have claimed."""

    def __init__(self, store: SqliteHotStore, claims: Claims) -> None:
        super().__init__(store.append_now, store.now)
        self._store = store
        self._claims = claims

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

        Until then, a crash of the process costs them an attempt.
        """
        self._claims.remove(
            [
                key_of(event)  # type: ignore[arg-type]  # all of TASK_ENDS have one
                for event in events
                if type(event) in TASK_ENDS
            ]
        )

    def check_owner(self, partition: int, token: str) -> None:  # noqa: ARG002 -- there is one
        self._store.check(token)

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        self.check_owner(partition, token)
        return self.lose(worker_id, lambda _name: True)
