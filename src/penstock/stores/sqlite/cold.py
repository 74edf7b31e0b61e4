"""The cold store on SQLite: definitions, intents, what has ended. The same file as the hot store."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from penstock.engine.commands import DeadLetter, ExecutionRecord
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict
from penstock.stores import codec
from penstock.stores.base import NewExecution, Stored, Wish, WorkflowVersion, check_steerable
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.reader import HAS_CHANGES, Reader
from penstock.stores.sqlite.writer import Writer, insert_many

SELECT_VERSION = "SELECT name, version, content_hash, document, created_at FROM workflows"
NEW_EXECUTION = (
    "INSERT INTO executions (n, id, workflow, version, state, created_at, intent, labels, idempotency_key, "
    "request_hash, retry_of)"
)


class SqliteColdStore:
    def __init__(self, hot: SqliteHotStore, writer: Writer, reader: Reader) -> None:
        self._hot, self._writer, self._reader = hot, writer, reader
        self._fresh: dict[str, NewExecution] = {}
        """Created here and about to be started: the owner needn't read them back."""
        self._next_n = reader.rows_now("SELECT coalesce(max(n), 0) + 1 FROM executions")[0][0]

    async def put_workflow(self, name: str, content_hash: str, document: bytes, now: float) -> WorkflowVersion:
        known = await self._reader.rows(f"{SELECT_VERSION} WHERE name = ? AND content_hash = ?", (name, content_hash))
        if known:
            return WorkflowVersion(*known[0])

        def write(connection: sqlite3.Connection) -> int:
            (version,) = connection.execute(
                "SELECT coalesce(max(version), 0) + 1 FROM workflows WHERE name = ?", (name,)
            ).fetchone()
            row = (name, version, content_hash, document, now)
            connection.execute("INSERT OR IGNORE INTO workflows VALUES (?, ?, ?, ?, ?)", row)
            return int(
                connection.execute(
                    "SELECT version FROM workflows WHERE name = ? AND content_hash = ?", (name, content_hash)
                ).fetchone()[0]
            )

        version = await self._writer.submit(write)
        return WorkflowVersion(name, version, content_hash, document, now)

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        rows = await self._reader.rows(
            f"{SELECT_VERSION} WHERE name = ? AND (? IS NULL OR version = ?) ORDER BY version DESC LIMIT 1",
            (name, version, version),
        )
        return WorkflowVersion(*rows[0]) if rows else None

    async def create(self, executions: Sequence[NewExecution]) -> list[str]:
        rows = [self._row(new) for new in executions]
        keyed = any(new.idempotency_key is not None for new in executions)
        known: dict[str, str] = await self._writer.submit(lambda connection: _create(connection, rows, keyed=keyed))
        for row, new in zip(rows, executions, strict=True):
            if row[1] not in known:
                self._hot.number(str(row[1]), int(str(row[0])))
                self._fresh[str(row[1])] = new
        return [known.get(new.record.execution_id, new.record.execution_id) for new in executions]

    def _row(self, new: NewExecution) -> tuple[object, ...]:
        n, self._next_n = self._next_n, self._next_n + 1
        record = new.record
        labels = msgspec.json.encode(record.labels) if record.labels else None
        return (
            n, record.execution_id, record.workflow, record.version, str(ExecutionState.RUNNING), record.created_at,
            codec.encode(record), labels, new.idempotency_key, new.request_hash or None, new.retry_of,
        )  # fmt: skip

    async def steer(self, execution_id: str, wish: Wish) -> None:
        def write(connection: sqlite3.Connection) -> None:
            row = connection.execute("SELECT state FROM executions WHERE id = ?", (execution_id,)).fetchone()
            check_steerable(execution_id, row[0] if row else None)
            connection.execute("UPDATE executions SET wish = ? WHERE id = ?", (wish, execution_id))

        await self._writer.submit(write)

    async def wishes(self, partition: int) -> dict[str, Wish]:  # noqa: ARG002
        rows = await self._reader.rows("SELECT id, wish FROM executions WHERE ended_at IS NULL AND wish IS NOT NULL")
        return dict(rows)

    async def started(self, partition: int) -> list[str]:  # noqa: ARG002
        return await self._reader.started()

    async def execution(self, execution_id: str) -> Stored | None:
        found = await self._reader.executions([execution_id])
        return found[execution_id][0] if found else None

    async def intent(self, execution_id: str) -> NewExecution | None:
        if execution_id in self._fresh:
            return self._fresh.pop(execution_id)
        rows = await self._reader.rows(
            "SELECT n, intent, idempotency_key, request_hash, retry_of FROM executions WHERE id = ?",
            (execution_id,),
        )
        if not rows:
            return None
        n, intent, key, request_hash, retry_of = rows[0]
        self._hot.number(execution_id, n)
        return NewExecution(codec.decode_record(intent), key, request_hash or "", retry_of)

    async def executions(self, state: ExecutionState | None = None, limit: int = 100) -> list[ExecutionRecord]:
        wanted = {None: "1", ExecutionState.PENDING: f"state = 'RUNNING' AND NOT {HAS_CHANGES}"}.get(state, "state = ?")
        if state == ExecutionState.RUNNING:
            wanted += f" AND {HAS_CHANGES}"  # a row is RUNNING from the start: the second write is saved
        values = (str(state), limit) if "?" in wanted else (limit,)
        statement = f"SELECT id FROM executions WHERE {wanted} ORDER BY n DESC LIMIT ?"  # noqa: S608 -- our own words
        rows = await self._reader.rows(statement, values)
        found = [await self.execution(row[0]) for row in rows]
        return [stored.record for stored in found if stored is not None]

    async def dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        rows = await self._reader.rows("SELECT letter FROM letters ORDER BY id DESC LIMIT ?", (limit,))
        return [codec.decode_letter(row[0]) for row in rows]

    async def remember_handlers(self, names: Collection[str]) -> None:
        rows = [(name,) for name in sorted(names)]
        await self._writer.submit(lambda connection: insert_many(connection, "INSERT OR IGNORE INTO handlers", rows))

    async def known_handlers(self) -> set[str]:
        return {row[0] for row in await self._reader.rows("SELECT name FROM handlers")}


def _create(connection: sqlite3.Connection, rows: list[tuple[object, ...]], *, keyed: bool) -> dict[str, str]:
    """Answers, for rows whose idempotency key is known, the execution that it made."""
    if not keyed:
        insert_many(connection, NEW_EXECUTION, rows)
        return {}
    known: dict[str, str] = {}
    for row in rows:
        key, request_hash = row[8], row[9]
        found = connection.execute(
            "SELECT id, request_hash FROM executions WHERE idempotency_key = ?", (key,)
        ).fetchone()
        if found is None:
            insert_many(connection, NEW_EXECUTION, [row])
        elif found[1] != request_hash:
            raise Conflict(f"the idempotency key {key!r} was used for another request; use a new key")
        else:
            known[str(row[1])] = found[0]
    return known
