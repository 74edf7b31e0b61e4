"""Redis in front of PostgreSQL: what is active is read from the one, everything else from the other."""

from __future__ import annotations

import logging
from typing import NamedTuple

from msgspec import structs

from penstock.config import Settings, hide_password
from penstock.engine.commands import Transition
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import NotFound, SchemaMismatch, SettingsError, StoreUnavailable
from penstock.stores.base import BlobStore, ControlRequest, Stored, check_controllable, partition_of
from penstock.stores.object_blobs import ObjectBlobs, is_object_store
from penstock.stores.partial import history_of, record_of
from penstock.stores.postgres.blobs import PostgresBlobs, ReferencedObjects
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.database import Row
from penstock.stores.postgres.retention import purge
from penstock.stores.records import (
    CountRow,
    Counts,
    ExecutionRow,
    FeedCursor,
    FeedEntry,
    Search,
    Window,
)
from penstock.stores.redis import keys
from penstock.stores.redis.commit_feed import RedisCommitFeed
from penstock.stores.redis.hot import RedisHotStore, stored_of
from penstock.stores.redis.hot_tier import RedisHotTier
from penstock.stores.redis.queue import RedisTaskQueue
from penstock.stores.redis.server import Server
from penstock.stores.tiering import Copy, summary_from

log = logging.getLogger("penstock.stores")

WIDE = 500
"""Rows in a page that some may have to be left out of."""
UNHEARD_EXECUTIONS_MAX = 20_000
"""How many executions a count asks Redis about."""
PENDING, RUNNING = str(ExecutionState.PENDING), str(ExecutionState.RUNNING)


class ScaledTiering(NamedTuple):
    hot: RedisHotTier
    cold: ScaledColdStore


class ScaledColdStore(PostgresColdStore):
    """An execution that Redis has is read from there: PostgreSQL has only its intent or a checkpoint."""

    hot: RedisHotStore
    commit_feed: RedisCommitFeed

    async def execution(self, execution_id: str) -> Stored | None:
        try:
            found = await self.hot.changes([execution_id])
        except StoreUnavailable:
            stored = await super().execution(execution_id)
            if stored is not None and stored.record.state in EXECUTION_ENDS:
                return stored  # that doesn't change any more
            raise
        if execution_id in found:
            return stored_of(execution_id, found[execution_id])
        return await super().execution(execution_id)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """PostgreSQL hears of an end a moment after everybody else.

        An execution whose end was seen must not be controlled.
        """
        found = await self.hot.changes([execution_id])
        records = (record_of(change) for change in reversed(found.get(execution_id, [])))
        newest = next((record for record in records if record is not None), None)
        if newest is not None and newest.state in EXECUTION_ENDS:
            check_controllable(execution_id, newest.state, request, waits=False)
        try:
            await super().request_control(execution_id, request)
        except NotFound:
            if not await self._write_again(execution_id):
                raise
            await super().request_control(execution_id, request)

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        try:
            found = await self.hot.changes([execution_id])
        except StoreUnavailable:
            stored = await self.execution(execution_id)  # raises, unless it has ended
            return None if stored is None else [line for line in stored.history if line.seq > after]
        if execution_id not in found:
            return await super().history(execution_id, after)
        lines = [line for change in found[execution_id] for line in history_of(change)]
        return [line for line in lines if line.seq > after]

    async def _write_again(self, execution_id: str) -> bool:
        """A PostgreSQL that was put back to an older copy may not know what runs; its owner's next copy comes later."""
        changes = (await self.hot.changes([execution_id])).get(execution_id, [])
        summary = summary_from(changes)
        if summary is None:
            return False
        log.error(
            "PostgreSQL has lost execution %s; its row is written again from Redis", execution_id
        )
        partition = partition_of(execution_id, self.partitions)
        written = await self.write_again(partition, [Copy(execution_id, summary, changes)])
        return bool(written.rewritten)

    async def search(self, search: Search) -> list[ExecutionRow]:
        """What has begun and was never copied is PENDING in PostgreSQL; Redis knows better."""
        if search.states and not {PENDING, RUNNING} & set(search.states):
            return await super().search(search)
        wide = structs.replace(search, limit=max(search.limit, WIDE))
        if RUNNING in search.states:
            wide.states = tuple({*search.states, PENDING})
        found: list[ExecutionRow] = []
        while len(found) < search.limit:
            rows = await super().search(wide)
            await self._look_closer([row for row in rows if row.state == PENDING])
            found += [row for row in rows if not search.states or row.state in search.states]
            if len(rows) < wide.limit:
                break
            wide.before = rows[-1].n
        return found[: search.limit]

    async def _look_closer(self, rows: list[ExecutionRow]) -> None:
        try:
            begun = await self.hot.beginnings([row.execution_id for row in rows]) if rows else {}
        except StoreUnavailable:
            return  # then as it was heard of last
        for row in rows:
            if row.execution_id in begun:
                row.state, row.started_at = RUNNING, begun[row.execution_id].started_at

    async def count_created(self, window: Window, limit: int) -> Counts:
        counts = await super().count_created(window, limit)
        rows = {(row.workflow, row.state, row.bucket): row for row in counts.rows}
        for execution_id, workflow, created_at in await self._begun(limit):
            bucket = window.bucket_of(created_at)
            pending = rows.get((workflow, PENDING, bucket))
            if created_at >= window.since and pending is not None and pending.count:
                pending.count -= 1
                none_yet = CountRow(workflow, RUNNING, bucket, 0, execution_id)
                rows.setdefault((workflow, RUNNING, bucket), none_yet).count += 1
        return Counts([row for row in rows.values() if row.count], counts.truncated)

    async def count_active(self, limit: int) -> dict[str, int]:
        counts = await self.heard_of(limit)
        begun = min(len(await self._begun(2 * limit)), counts[PENDING])
        counts = {**counts, PENDING: counts[PENDING] - begun, RUNNING: counts[RUNNING] + begun}
        return {state: min(count, limit) for state, count in counts.items()}

    async def _begun(self, limit: int) -> list[Row]:
        """Of the newest that PostgreSQL has heard nothing of, those that Redis has."""
        rows = await self.unheard(min(limit, UNHEARD_EXECUTIONS_MAX))
        try:
            known = await self.hot.known([row[0] for row in rows])
        except StoreUnavailable:
            return []  # then as it was heard of last
        return [row for row in rows if row[0] in known]

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        return await self.commit_feed.read_commits(after, limit)

    async def commits_end(self) -> FeedCursor:
        return await self.commit_feed.commits_end()


class ScaledStores:
    hot: RedisHotStore
    queue: RedisTaskQueue
    commit_feed: RedisCommitFeed
    tiering: ScaledTiering

    def __init__(self, store: str, settings: Settings) -> None:
        if settings.database is None:
            raise SettingsError(
                f"the store {hide_password(store)} needs a PostgreSQL beside it: set PENSTOCK_DATABASE=postgresql://…"
            )
        self.server = Server(store)
        self._heartbeat_seconds = settings.heartbeat_seconds
        self.objects = _objects(settings.blobs)
        self.cold = ScaledColdStore(
            settings.database, partitions=settings.partitions, objects=self.objects
        )
        self.blobs: BlobStore = PostgresBlobs(self.cold.database)
        if self.objects is not None:
            self.blobs = ReferencedObjects(self.cold.database, self.objects)

    async def open(self) -> None:
        """Raises `StoreUnavailable`, `SettingsError` or `SchemaMismatch`, with what to do."""
        try:
            await self.cold.open()
            await self.server.open()
            await self._claim()
            if self.objects is not None:
                await self.objects.check()
        except BaseException:
            await self.close()
            raise
        partitions = self.cold.partitions
        self.hot = RedisHotStore(self.server, partitions)
        self.queue = RedisTaskQueue(self.server, partitions, self._heartbeat_seconds)
        self.cold.hot = self.hot
        self.cold.commit_feed = self.commit_feed = RedisCommitFeed(self.server, partitions)
        self.tiering = ScaledTiering(RedisHotTier(self.server, self.hot), self.cold)

    async def _claim(self) -> None:
        """This Redis belongs to one store, and says to which."""
        fleet = self.server.fleet
        if (
            await fleet.ask("GET", keys.STORE) is None
        ):  # asked first: a Redis that is full refuses the other
            await fleet.call("SET", keys.STORE, keys.mark(self.cold.store_id), "NX")
        store_id, _, layout = (await fleet.ask("GET", keys.STORE)).decode().partition(" ")
        if store_id != self.cold.store_id:
            raise SettingsError(
                f"Redis at {self.server.endpoints} belongs to another Penstock database ({store_id}, and this one is "
                f"{self.cold.store_id}); use another database number (redis://…/1), or empty it if that store is gone"
            )
        if layout != str(keys.LAYOUT):
            raise SchemaMismatch(
                f"Redis at {self.server.endpoints} is laid out by another version of Penstock "
                f"({layout or 'unknown'}; this one uses {keys.LAYOUT})"
            )

    async def forget(self, before: float) -> int:
        return (await purge(self.cold, before)).executions

    async def close(self) -> None:
        if hasattr(self, "queue"):
            await self.queue.close()
        await self.server.close()
        await self.cold.close()


def _objects(blobs: str | None) -> ObjectBlobs | None:
    """Where PENSTOCK_BLOBS says that large values are; None: in PostgreSQL."""
    if blobs is None:
        return None
    if not is_object_store(blobs):
        raise SettingsError(
            f"PENSTOCK_BLOBS is the folder {blobs!r}, which other machines don't see; with Redis, large values are in "
            "PostgreSQL (leave it out) or in an object store (s3://bucket/folder)"
        )
    return ObjectBlobs(blobs)
