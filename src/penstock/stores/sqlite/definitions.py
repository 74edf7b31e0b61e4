"""Workflow versions, aliases and known handlers in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import NotFound
from penstock.stores.base import WorkflowVersion, inline_hash
from penstock.stores.handlers import decoded, encoded
from penstock.stores.records import Weights, WorkflowRow
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer, insert_many

SQL = statements_beside(__file__)


_weights_decoder = msgspec.json.Decoder(Weights)


class SqliteDefinitions:
    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def put_workflow(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        self._writer.check_open()  # also if nothing is written: the caller relies on the answer
        rows = await self._reader.rows(
            SQL.select_listed,
            (name, content_hash),
        )
        if rows:
            return WorkflowVersion(*rows[0])
        row = await self._writer.submit(
            lambda connection: _put(connection, name, content_hash, document, now)
        )
        return WorkflowVersion(*row)

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        rows = await self._reader.rows(
            SQL.select_known, (name, content_hash, inline_hash(content_hash))
        )
        if rows:
            return WorkflowVersion(*rows[0])
        row = await self._writer.submit(
            lambda connection: _put_inline(connection, name, content_hash, document, now)
        )
        return WorkflowVersion(*row)

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        if version is None:
            rows = await self._reader.rows(SQL.select_latest, (name,))
        else:
            rows = await self._reader.rows(SQL.select_by_number, (name, version))
        return WorkflowVersion(*rows[0]) if rows else None

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        def read(connection: sqlite3.Connection) -> list[WorkflowRow]:
            rows = connection.execute(SQL.select_workflows, (after or "", limit)).fetchall()
            workflows = [WorkflowRow(*row) for row in rows]
            for workflow in workflows:
                workflow.aliases = _aliases(connection, workflow.name)
            return workflows

        return await self._reader.run(read)

    async def versions(self, name: str) -> list[WorkflowVersion]:
        rows = await self._reader.rows(SQL.select_versions, (name,))
        return [WorkflowVersion(*row) for row in rows]

    async def delete_workflow(self, name: str) -> bool:
        def write(connection: sqlite3.Connection) -> bool:
            connection.execute(SQL.delete_aliases, (name,))
            done = connection.execute(SQL.delete_versions, (name,))
            return done.rowcount > 0

        return bool(await self._writer.submit(write))

    async def aliases(self, name: str) -> dict[str, Weights]:
        return await self._reader.run(lambda connection: _aliases(connection, name))

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        data = msgspec.json.encode(weights)

        def write(connection: sqlite3.Connection) -> None:
            for version in sorted(weights):
                if not _exists(connection, name, version):
                    raise NotFound(f"there is no workflow {name}@{version} in this store")
            connection.execute(SQL.put_alias, (name, alias, data))

        await self._writer.submit(write)

    async def remove_alias(self, name: str, alias: str) -> bool:
        done = await self._writer.submit(
            lambda connection: connection.execute(SQL.delete_alias, (name, alias)).rowcount
        )
        return bool(done)

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        rows = encoded(handlers)
        await self._writer.submit(
            lambda connection: insert_many(connection, SQL.put_handlers, rows)
        )

    async def known_handlers(self) -> dict[str, HandlerDefaults]:
        return decoded(await self._reader.rows(SQL.select_handlers))


def _put(
    connection: sqlite3.Connection, name: str, content_hash: str, document: bytes, now: float
) -> tuple[object]:
    done = connection.execute(SQL.undelete_version, (name, content_hash))
    if not done.rowcount:
        connection.execute(SQL.insert_version, (name, content_hash, now, 0, document))
    row: tuple[object] = connection.execute(SQL.select_by_hash, (name, content_hash)).fetchone()
    return row


def _put_inline(
    connection: sqlite3.Connection, name: str, content_hash: str, document: bytes, now: float
) -> tuple[object]:
    key = inline_hash(content_hash)
    row: tuple[object] | None = connection.execute(
        SQL.select_known, (name, content_hash, key)
    ).fetchone()
    if row is None:
        connection.execute(SQL.insert_version, (name, key, now, 1, document))
        row = connection.execute(SQL.select_known, (name, content_hash, key)).fetchone()
    assert row is not None  # noqa: S101 -- it was written just now
    return row


def _exists(connection: sqlite3.Connection, name: str, version: int) -> bool:
    try:
        return connection.execute(SQL.has_version, (name, version)).fetchone() is not None
    except UNKNOWABLE:
        return False


def _aliases(connection: sqlite3.Connection, name: str) -> dict[str, Weights]:
    rows = connection.execute(SQL.select_aliases, (name,)).fetchall()
    return {alias: _weights_decoder.decode(weights) for alias, weights in rows}
