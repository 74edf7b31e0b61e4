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

SELECT_VERSION = "SELECT name, version, content_hash, document, created_at FROM workflows"
SELECT_LATEST = f"{SELECT_VERSION} WHERE name = %s AND NOT deleted ORDER BY version DESC LIMIT 1"
SELECT_ALIASES = """
    SELECT name, alias, weights FROM aliases WHERE name = ANY(%s) ORDER BY name, alias
"""
SELECT_KNOWN = (
    f"{SELECT_VERSION} WHERE name = %s AND (content_hash = %s AND NOT deleted OR content_hash = %s)"
)
SELECT_ROWS = """
    SELECT listed.name, latest, versions, first_one.created_at, newest.created_at
    FROM (
      SELECT name, max(version) AS latest, min(version) AS first, count(*) AS versions
      FROM workflows
      WHERE NOT deleted AND name > %s GROUP BY name ORDER BY name LIMIT %s
    ) AS listed
    JOIN workflows AS newest ON newest.name = listed.name AND newest.version = latest
    JOIN workflows AS first_one ON first_one.name = listed.name AND first_one.version = first
    ORDER BY listed.name
"""
# One process at a time numbers the versions of a name. The first number tells our locks from those
# of other programs.
LOCK_NAME = "SELECT pg_advisory_xact_lock(70511, hashtext(%s))"
INSERT_VERSION = """
    INSERT INTO workflows (name, version, content_hash, created_at, deleted, document)
    SELECT %s, coalesce(max(version), 0) + 1, %s, %s, %s, %s FROM workflows WHERE name = %s
"""
PUT_VERSION_BACK = """
    INSERT INTO workflows (name, version, content_hash, created_at, deleted, document)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
SELECT_MISSING = """
    SELECT wanted FROM unnest(%s::numeric[]) AS wanted
    WHERE NOT EXISTS (SELECT 1 FROM workflows WHERE name = %s AND version = wanted AND NOT deleted)
    ORDER BY wanted LIMIT 1
"""
PUT_ALIAS = """
    INSERT INTO aliases (name, alias, weights) VALUES (%s, %s, %s)
    ON CONFLICT (name, alias) DO UPDATE SET weights = excluded.weights
"""
PUT_HANDLERS = """
    INSERT INTO handlers (name, defaults) SELECT * FROM unnest(%s::text[], %s::bytea[])
    ON CONFLICT (name) DO UPDATE SET defaults = excluded.defaults
"""

_weights_decoder = msgspec.json.Decoder(Weights)


class PostgresDefinitions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_workflow(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        rows = await self._database.rows(
            f"{SELECT_VERSION} WHERE name = %s AND content_hash = %s AND NOT deleted",
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
            SELECT_KNOWN, (name, content_hash, inline_hash(content_hash))
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
            await connection.execute(LOCK_NAME, (version.name,))
            await connection.execute(PUT_VERSION_BACK, values)
        stored = await self.get_workflow(version.name, version.version)
        return stored is not None and stored.content_hash == version.content_hash

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        if version is None:
            rows = await self._database.rows(SELECT_LATEST, (name,))
        else:
            statement = f"{SELECT_VERSION} WHERE name = %s AND version = %s"
            rows = await self._database.rows(statement, (name, version))
        return WorkflowVersion(*rows[0]) if rows else None

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        rows = await self._database.rows(SELECT_ROWS, (after or "", limit))
        if not rows:
            return []
        workflows = {row[0]: WorkflowRow(*row) for row in rows}
        for name, alias, weights in await self._database.rows(SELECT_ALIASES, (list(workflows),)):
            workflow = workflows[name]
            workflow.aliases = {**workflow.aliases, alias: _weights_decoder.decode(weights)}
        return list(workflows.values())

    async def versions(self, name: str) -> list[WorkflowVersion]:
        rows = await self._database.rows(
            f"{SELECT_VERSION} WHERE name = %s AND NOT deleted ORDER BY version DESC", (name,)
        )
        return [WorkflowVersion(*row) for row in rows]

    async def delete_workflow(self, name: str) -> bool:
        # one statement: PostgreSQL runs the DELETE although nothing reads from `gone`
        deleted = await self._database.change(
            "WITH gone AS (DELETE FROM aliases WHERE name = %s) "
            "UPDATE workflows SET deleted = true WHERE name = %s AND NOT deleted",
            (name, name),
        )
        return deleted > 0

    async def aliases(self, name: str) -> dict[str, Weights]:
        rows = await self._database.rows(
            "SELECT alias, weights FROM aliases WHERE name = %s ORDER BY alias", (name,)
        )
        return {alias: _weights_decoder.decode(weights) for alias, weights in rows}

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(LOCK_NAME, (name,))
            cursor = await connection.execute(SELECT_MISSING, (list(weights), name))
            missing = await cursor.fetchone()
            if missing is not None:
                raise NotFound(f"there is no workflow {name}@{missing[0]} in this store")
            weights_text = msgspec.json.encode(weights).decode()
            await connection.execute(PUT_ALIAS, (name, alias, weights_text))

    async def remove_alias(self, name: str, alias: str) -> bool:
        statement = "DELETE FROM aliases WHERE name = %s AND alias = %s"
        return await self._database.change(statement, (name, alias)) > 0

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        rows = encoded(handlers)
        names = [name for name, _ in rows]
        defaults = [data for _, data in rows]
        async with self._database.connection() as connection:
            await connection.execute(PUT_HANDLERS, (names, defaults))

    async def known_handlers(self) -> dict[str, HandlerDefaults]:
        return decoded(await self._database.rows("SELECT name, defaults FROM handlers"))


async def _put(
    connection: Connection, name: str, content_hash: str, document: bytes, now: float
) -> WorkflowVersion:
    await connection.execute(LOCK_NAME, (name,))
    statement = "UPDATE workflows SET deleted = false WHERE name = %s AND content_hash = %s"
    update = await connection.execute(statement, (name, content_hash))
    if not update.rowcount:
        await connection.execute(INSERT_VERSION, (name, content_hash, now, False, document, name))
    cursor = await connection.execute(
        f"{SELECT_VERSION} WHERE name = %s AND content_hash = %s", (name, content_hash)
    )
    row: tuple[Any, ...] | None = await cursor.fetchone()
    assert row is not None  # noqa: S101 -- it was written two lines above
    return WorkflowVersion(*row)


async def _put_inline(
    connection: Connection, name: str, content_hash: str, document: bytes, now: float
) -> WorkflowVersion:
    await connection.execute(LOCK_NAME, (name,))
    key = inline_hash(content_hash)
    cursor = await connection.execute(SELECT_KNOWN, (name, content_hash, key))
    row: tuple[Any, ...] | None = await cursor.fetchone()
    if row is None:
        await connection.execute(INSERT_VERSION, (name, key, now, True, document, name))
        cursor = await connection.execute(SELECT_KNOWN, (name, content_hash, key))
        row = await cursor.fetchone()
    assert row is not None  # noqa: S101 -- it was written just now
    return WorkflowVersion(*row)
