"""Reading from the file, beside the writer, on a connection and in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from penstock.stores import codec
from penstock.stores.base import Stored
from penstock.stores.sqlite.writer import connect

HAS_CHANGES = "EXISTS (SELECT 1 FROM changes WHERE changes.n = executions.n)"


class Reader:
    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._lock = threading.Lock()

    async def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return await asyncio.to_thread(self.rows_now, statement, values)

    def rows_now(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def timers(self) -> list[tuple[str, float]]:
        return self.rows_now("SELECT id, wake_at FROM timers JOIN executions USING (n)")

    async def started(self, *, changed: bool = False) -> list[str]:
        """Executions that haven't ended; with `changed`, only those that have begun."""
        having = f"AND {HAS_CHANGES}" if changed else ""
        rows = await self.rows(f"SELECT id FROM executions WHERE ended_at IS NULL {having} ORDER BY n")  # noqa: S608
        return [row[0] for row in rows]

    async def executions(self, execution_ids: Collection[str]) -> dict[str, tuple[Stored, int]]:
        """Each execution that there is, and its number."""
        return await asyncio.to_thread(self._executions, list(execution_ids))

    def _executions(self, execution_ids: list[str]) -> dict[str, tuple[Stored, int]]:
        found = ((name, self._execution(name)) for name in execution_ids)
        return {name: loaded for name, loaded in found if loaded is not None}

    def _execution(self, execution_id: str) -> tuple[Stored, int] | None:
        found = self.rows_now("SELECT n, intent FROM executions WHERE id = ?", (execution_id,))
        if not found:
            return None
        n, intent = found[0]
        rows = self.rows_now("SELECT change FROM changes WHERE n = ? ORDER BY id", (n,))
        return codec.fold(codec.decode_record(intent), [codec.decode_change(change) for (change,) in rows]), n

    def close(self) -> None:
        with self._lock:
            self._connection.close()
