"""The writer of the SQLite file: one thread.

Jobs that arrive while the thread is busy share the next transaction, and so one fsync.

When the store is nearly idle, the caller writes a small job itself (`now`): handing it to the
thread and back costs half as much again as the fsync, and the caller has nothing else to do
meanwhile.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import NotOpen, StoreError, StoreUnavailable
from penstock.stores.sqlite.watching import FileWatch

Job = Callable[[sqlite3.Connection], Any]


class Submitted(NamedTuple):
    job: Job
    future: asyncio.Future[Any]
    is_answered: bool
    """Whether a caller relies on the result: then the file must still be there afterwards."""


LOG_PAGES = 1000
"""Pages in the write-ahead log after which SQLite copies them into the file and begins it anew."""
QUICK_SECONDS = 0.001
UNAVAILABLE = ("disk is full", "disk I/O error", "readonly", "unable to open", "locked")


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
    connection.execute("PRAGMA cache_size=-32000")
    return connection


def insert_many(
    connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows with as few statements as possible: `INSERT … VALUES (…), (…)`.

    `executemany` releases the interpreter's lock for each row and, with a busy event loop beside
    it, waits up to 5 ms to get it back: 1,000 rows could take seconds. One statement of many rows
    releases it once.
    """
    if not rows:
        return
    row_text = "(" + ",".join("?" * len(rows[0])) + ")"
    batch_size = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(rows[0])
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        connection.execute(
            f"{statement} VALUES {','.join([row_text] * len(batch))}",
            list(chain.from_iterable(batch)),
        )


class Writer:
    def __init__(self, path: Path, watch: FileWatch | None = None) -> None:
        """Without a `watch`, nobody checks that the file is still there."""
        self._path = path
        self._watch = watch
        self._connection = connect(path)
        self._jobs: queue.SimpleQueue[Submitted | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seconds = 0.0
        """How long a transaction takes: a running mean."""
        self._turn = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="penstock-writer", daemon=True)
        self._thread.start()
        self.commits = 0

    def submit(self, job: Job, *, is_answered: bool = True) -> asyncio.Future[Any]:
        """Run `job` in the next transaction; the future is done when it is on disk.

        Raises `NotOpen`, or `StoreUnavailable` if the file is gone.
        """
        self.check_open()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put(Submitted(job, future, is_answered))
        return future

    def now(self, job: Job, *, one_statement: bool = False) -> bool:
        """Run `job` in a transaction of its own, in the caller's thread.

        Returns False, and doesn't run it, if the disk is slow or the writer's thread is busy. A job
        of one statement needs no `BEGIN` and no `COMMIT`: a statement by itself is a transaction.
        """
        self.check_open()
        if (
            self._seconds > QUICK_SECONDS
            or not self._jobs.empty()
            or not self._turn.acquire(blocking=False)
        ):
            return False
        try:
            self._transaction([job], explicit=not one_statement)
        except Exception as error:
            raise _explain(error, self._path) from error
        finally:
            self._turn.release()
        return True

    def check_open(self) -> None:
        """Raises `StoreError` if `submit` would."""
        if self._is_closed:  # a job behind the last one would never be run
            raise NotOpen(f"{self._path} has been closed; nothing can be written to it any more")
        self._raise_if_gone()

    async def close(self) -> None:
        """Close the writer; what was submitted before is written first."""
        if self._is_closed:
            return
        self._end()
        try:
            await asyncio.to_thread(self._thread.join)
        finally:
            self.close_now()

    def close_now(self) -> None:
        """Close the writer, blocking; for callers without a loop."""
        self._end()
        self._thread.join()
        self._connection.close()

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._jobs.put(None)

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                break
            self._write(batch)

    def _next_batch(self) -> list[Submitted] | None:
        first = self._jobs.get()
        if first is None:
            return None
        batch = [first]
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is None:
                self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _write(self, batch: list[Submitted]) -> None:
        try:
            with self._turn:
                results = self._transaction([submitted.job for submitted in batch])
        except Exception as error:  # noqa: BLE001 -- a job's error is its caller's, and the thread goes on
            if len(batch) > 1:
                for submitted in batch:  # one bad job must not fail the rest of its batch
                    self._write([submitted])
                return
            self._answer([(batch[0].future, None, _explain(error, self._path))])
            return

        lost = None
        if any(submitted.is_answered for submitted in batch):
            lost = self._check_files()
        self._answer(
            [
                (submitted.future, result, lost if submitted.is_answered else None)
                for submitted, result in zip(batch, results, strict=True)
            ]
        )

    def _raise_if_gone(self) -> None:
        if self._watch is not None:
            self._watch.raise_if_gone()

    def _check_files(self) -> StoreUnavailable | None:
        """Look at the store's files now; answers the error if one of them is lost."""
        try:
            if self._watch is not None:
                self._watch.look()
        except StoreUnavailable as error:
            return error
        return None

    def _transaction(self, jobs: list[Job], *, explicit: bool = True) -> list[Any]:
        connection = self._connection
        began = time.perf_counter()
        self._raise_if_gone()

        if explicit:
            connection.execute("BEGIN IMMEDIATE")
        try:
            results = [job(connection) for job in jobs]
            if explicit:
                connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

        self.commits += 1
        self._seconds += (time.perf_counter() - began - self._seconds) / 8
        return results

    def _answer(self, answers: list[tuple[asyncio.Future[Any], Any, Exception | None]]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: list[tuple[asyncio.Future[Any], Any, Exception | None]]) -> None:
    for future, result, error in answers:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def _explain(error: Exception, path: Path) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    text = str(error)
    if any(word in text for word in UNAVAILABLE):
        return StoreUnavailable(
            f"{path} can't be written: {text}; nothing was lost, and Penstock tries again"
        )
    return StoreError(f"{path}: {text}")
