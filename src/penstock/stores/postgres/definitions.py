"""Workflow versions, aliases and known handlers."""

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
SELECT_KNOWN = (
    f"{SELECT_VERSION} WHERE name = %s AND (content_hash = %s AND NOT deleted OR content_hash = %s)"
)
SELECT_ROWS = """
    SELECT listed.name, latest, versions, first_one.created_at, newest.created_at
    FROM (
      SELECT name, max(version) AS latest, min(version) AS first, count(*) AS versions FROM workflows
      WHERE NOT deleted AND name > %s GROUP BY name ORDER BY name LIMIT %s
    ) AS listed
    JOIN workflows AS newest ON newest.name = listed.name AND newest.version = latest
    JOIN workflows AS first_one ON first_one.name = listed.name AND first_one.version = first
    ORDER BY listed.name
"""
# versions of one name are numbered by one at a time, whichever process asks; the first number says
# whose lock it is
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
        known = await self._database.rows(
            f"{SELECT_VERSION} WHERE name = %s AND content_hash = %s AND NOT deleted",
            (name, content_hash),
        )
        if known:
            return WorkflowVersion(*known[0])
        async with self._database.transaction() as connection:
            return await _put(connection, name, content_hash, document, now)

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        known = await self._database.rows(
            SELECT_KNOWN, (name, content_hash, inline_hash(content_hash))
        )
        if known:
            return WorkflowVersion(*known[0])
        async with self._database.transaction() as connection:
            return await _put_inline(connection, name, content_hash, document, now)

    async def put_version_back(self, version: WorkflowVersion) -> bool:
        # one of an inline document is known to its executions only
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
        found = await self.get_workflow(version.name, version.version)
        return found is not None and found.content_hash == version.content_hash

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        which, values = (
            ("NOT deleted", (name,)) if version is None else ("version = %s", (name, version))
        )
        rows = await self._database.rows(
            f"{SELECT_VERSION} WHERE name = %s AND {which} ORDER BY version DESC LIMIT 1", values
        )
        return WorkflowVersion(*rows[0]) if rows else None

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        found = {
            row[0]: WorkflowRow(*row)
            for row in await self._database.rows(SELECT_ROWS, (after or "", limit))
        }
        statement = (
            "SELECT name, alias, weights FROM aliases WHERE name = ANY(%s) ORDER BY name, alias"
        )
        for name, alias, weights in (
            await self._database.rows(statement, (list(found),)) if found else ()
        ):
            row = found[name]
            row.aliases = {**row.aliases, alias: _weights_decoder.decode(weights)}
        return list(found.values())

    async def versions(self, name: str) -> list[WorkflowVersion]:
        rows = await self._database.rows(
            f"{SELECT_VERSION} WHERE name = %s AND NOT deleted ORDER BY version DESC", (name,)
        )
        return [WorkflowVersion(*row) for row in rows]

    async def delete_workflow(self, name: str) -> bool:
        # one statement: the second part happens whether or not anybody reads its answer
        done = await self._database.change(
            "WITH gone AS (DELETE FROM aliases WHERE name = %s) "
            "UPDATE workflows SET deleted = true WHERE name = %s AND NOT deleted",
            (name, name),
        )
        return done > 0

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
            await connection.execute(
                PUT_ALIAS, (name, alias, msgspec.json.encode(weights).decode())
            )

    async def remove_alias(self, name: str, alias: str) -> bool:
        return (
            await self._database.change(
                "DELETE FROM aliases WHERE name = %s AND alias = %s", (name, alias)
            )
            > 0
        )

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        rows = encoded(handlers)
        async with self._database.connection() as connection:
            await connection.execute(
                PUT_HANDLERS, ([name for name, _ in rows], [data for _, data in rows])
            )

    async def known_handlers(self) -> dict[str, HandlerDefaults]:
        return decoded(await self._database.rows("SELECT name, defaults FROM handlers"))


async def _put(
    connection: Connection, name: str, content_hash: str, document: bytes, now: float
) -> WorkflowVersion:
    await connection.execute(LOCK_NAME, (name,))
    statement = "UPDATE workflows SET deleted = false WHERE name = %s AND content_hash = %s"
    if not (await connection.execute(statement, (name, content_hash))).rowcount:
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
    row: tuple[Any, ...] | None
    row = await (await connection.execute(SELECT_KNOWN, (name, content_hash, key))).fetchone()
    if row is None:
        await connection.execute(INSERT_VERSION, (name, key, now, True, document, name))
        row = await (await connection.execute(SELECT_KNOWN, (name, content_hash, key))).fetchone()
    assert row is not None  # noqa: S101 -- it was written just now
    return WorkflowVersion(*row)
