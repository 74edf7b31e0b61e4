"""Workflow versions, aliases and known handlers in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import NotFound
from penstock.stores.base import INLINE, WorkflowVersion, inline_hash
from penstock.stores.handlers import decoded, encoded
from penstock.stores.postgres.database import Connection, Database
from penstock.stores.records import Weights, WorkflowRow
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)


_weights_decoder = msgspec.json.Decoder(Weights)


class PostgresDefinitions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_workflow(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        rows = await self._database.rows(
            SQL.select_listed,
            (name, content_hash),
        )
        if rows:
            return WorkflowVersion(*rows[0])
        async with self._database.transaction() as connection:
            return await _put(connection, name, content_hash, document, now)

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        rows = await self._database.rows(
            SQL.select_known, (name, content_hash, inline_hash(content_hash))
        )
        if rows:
            return WorkflowVersion(*rows[0])
        async with self._database.transaction() as connection:
            return await _put_inline(connection, name, content_hash, document, now)

    async def put_version_back(self, version: WorkflowVersion) -> bool:
        # the version of an inline document is visible to its executions only
        is_hidden = version.content_hash.startswith(INLINE)
        values = (
            version.name,
            version.version,
            version.content_hash,
            version.created_at,
            is_hidden,
            version.document,
        )
        async with self._database.transaction() as connection:
            await connection.execute(SQL.lock_name, (version.name,))
            await connection.execute(SQL.put_version_back, values)
        stored = await self.get_workflow(version.name, version.version)
        return stored is not None and stored.content_hash == version.content_hash

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        if version is None:
            rows = await self._database.rows(SQL.select_latest, (name,))
        else:
            rows = await self._database.rows(SQL.select_by_number, (name, version))
        return WorkflowVersion(*rows[0]) if rows else None

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        rows = await self._database.rows(SQL.select_workflows, (after or "", limit))
        if not rows:
            return []
        workflows = {row[0]: WorkflowRow(*row) for row in rows}
        for name, alias, weights in await self._database.rows(
            SQL.select_aliases_of, (list(workflows),)
        ):
            workflow = workflows[name]
            workflow.aliases = {**workflow.aliases, alias: _weights_decoder.decode(weights)}
        return list(workflows.values())

    async def versions(self, name: str) -> list[WorkflowVersion]:
        rows = await self._database.rows(SQL.select_versions, (name,))
        return [WorkflowVersion(*row) for row in rows]

    async def delete_workflow(self, name: str) -> bool:
        # one statement: PostgreSQL runs the DELETE although nothing reads from `gone`
        deleted = await self._database.change(
            SQL.delete_workflow,
            (name, name),
        )
        return deleted > 0

    async def aliases(self, name: str) -> dict[str, Weights]:
        rows = await self._database.rows(SQL.select_aliases, (name,))
        return {alias: _weights_decoder.decode(weights) for alias, weights in rows}

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(SQL.lock_name, (name,))
            cursor = await connection.execute(SQL.select_missing, (list(weights), name))
            missing = await cursor.fetchone()
            if missing is not None:
                raise NotFound(f"there is no workflow {name}@{missing[0]} in this store")
            weights_text = msgspec.json.encode(weights).decode()
            await connection.execute(SQL.put_alias, (name, alias, weights_text))

    async def remove_alias(self, name: str, alias: str) -> bool:
        return await self._database.change(SQL.delete_alias, (name, alias)) > 0

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        rows = encoded(handlers)
        names = [name for name, _ in rows]
        defaults = [data for _, data in rows]
        async with self._database.connection() as connection:
            await connection.execute(SQL.put_handlers, (names, defaults))

    async def known_handlers(self) -> dict[str, HandlerDefaults]:
        return decoded(await self._database.rows(SQL.select_handlers))


async def _put(
    connection: Connection, name: str, content_hash: str, document: bytes, now: float
) -> WorkflowVersion:
    await connection.execute(SQL.lock_name, (name,))
    update = await connection.execute(SQL.undelete_version, (name, content_hash))
    if not update.rowcount:
        await connection.execute(
            SQL.insert_version, (name, content_hash, now, False, document, name)
        )
    cursor = await connection.execute(SQL.select_by_hash, (name, content_hash))
    row: tuple[Any, ...] | None = await cursor.fetchone()
    assert row is not None  # noqa: S101 -- it was written two lines above
    return WorkflowVersion(*row)


async def _put_inline(
    connection: Connection, name: str, content_hash: str, document: bytes, now: float
) -> WorkflowVersion:
    await connection.execute(SQL.lock_name, (name,))
    key = inline_hash(content_hash)
    cursor = await connection.execute(SQL.select_known, (name, content_hash, key))
    row: tuple[Any, ...] | None = await cursor.fetchone()
    if row is None:
        await connection.execute(SQL.insert_version, (name, key, now, True, document, name))
        cursor = await connection.execute(SQL.select_known, (name, content_hash, key))
        row = await cursor.fetchone()
    assert row is not None  # noqa: S101 -- it was written just now
    return WorkflowVersion(*row)
