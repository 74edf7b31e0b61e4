"""A reader of the SQLite file, with a connection and a thread of its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from penstock.errors import NotOpen
from penstock.stores import codec
from penstock.stores.base import Stored
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.writer import connect

SQL = statements_beside(__file__)

Answer = TypeVar("Answer")

UNKNOWABLE = (OverflowError, UnicodeEncodeError)
"""Errors of binding a value that SQLite can't hold: no stored row has it."""


class Reader:
    def __init__(self, path: Path, connect: Callable[[Path], sqlite3.Connection] = connect) -> None:
        self._path = path
        self._connection = connect(path)
        self._is_closed = False
        self._lock = threading.Lock()
        # not the loop's own pool: slow searches would occupy all its threads
        self._thread = ThreadPoolExecutor(1, "penstock-reader")

    async def run(self, job: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Run several statements that see the same state of the file."""
        return await self._in_thread(self._snapshot, job)

    async def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return await self._in_thread(self.rows_now, statement, values)

    def rows_now(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except UNKNOWABLE:
                return []

    def timers(self) -> list[tuple[str, float]]:
        return self.rows_now(SQL.select_timers)

    async def started(self) -> list[str]:
        """Executions that should run and haven't ended."""
        rows = await self.rows(SQL.select_started)
        return [execution_id for (execution_id,) in rows]

    async def begun(self) -> list[str]:
        """Executions that have begun and haven't ended."""
        rows = await self.rows(SQL.select_begun)
        return [execution_id for (execution_id,) in rows]

    async def executions(self, execution_ids: Collection[str]) -> dict[str, tuple[Stored, int]]:
        """Each execution that there is, and its number."""
        return await self._in_thread(self._executions, list(execution_ids))

    def _executions(self, execution_ids: list[str]) -> dict[str, tuple[Stored, int]]:
        executions: dict[str, tuple[Stored, int]] = {}
        for execution_id in execution_ids:
            loaded = self._load(execution_id)
            if loaded is not None:
                executions[execution_id] = loaded
        return executions

    def _load(self, execution_id: str) -> tuple[Stored, int] | None:
        rows = self.rows_now(SQL.select_execution, (execution_id,))
        if not rows:
            return None
        n, intent = rows[0]
        record = codec.decode_record(intent)
        change_rows = self.rows_now(SQL.select_changes, (n,))
        changes = [codec.decode_change(data) for (data,) in change_rows]
        return codec.fold(record, changes), n

    def _snapshot(self, job: Callable[[sqlite3.Connection], Answer]) -> Answer:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                return job(self._connection)
            finally:
                self._connection.execute("COMMIT")

    async def _in_thread(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        if self._is_closed:
            raise NotOpen(f"{self._path} has been closed; nothing can be read from it any more")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(cancel_futures=True)
        with self._lock:
            self._connection.close()
