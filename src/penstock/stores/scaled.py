"""Redis in front of PostgreSQL: active executions are read from Redis, all else from PostgreSQL."""

from __future__ import annotations

import logging
from itertools import chain
from typing import NamedTuple

from msgspec import structs

from penstock.config import Settings, hide_password
from penstock.engine.commands import Transition
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import NotFound, SchemaMismatch, SettingsError, StoreUnavailable
from penstock.stores.base import BlobStore, ControlRequest, Stored, check_controllable, partition_of
from penstock.stores.object_blobs import (
    DEFAULT_BLOB_TIMING,
    ObjectBlobs,
    ObjectBlobTiming,
    is_object_store,
)
from penstock.stores.partial import history_of
from penstock.stores.postgres.blobs import PostgresBlobs, ReferencedObjects
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.cold_tier import PostgresColdTier
from penstock.stores.postgres.copying import PostgresCopies
from penstock.stores.postgres.counting import PostgresCounts
from penstock.stores.postgres.database import Database, Row
from penstock.stores.postgres.executions import PostgresExecutions
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
from penstock.stores.redis.connection import Server
from penstock.stores.redis.fleet import RedisFleet
from penstock.stores.redis.hot import RedisHotStore, stored_of, stored_since
from penstock.stores.redis.hot_tier import RedisHotTier
from penstock.stores.redis.queue import RedisTaskQueue
from penstock.stores.redis.timing import DEFAULT_TIMING, RedisTiming
from penstock.stores.tiering import Copy, last_record, summary_from
from penstock.stores.topology import Topology

log = logging.getLogger("penstock.stores")

WIDE = 500
"""Rows in a page of a search, of which some may not match in the end."""
UNHEARD_EXECUTIONS_MAX = 20_000
"""How many executions a count asks Redis about."""
PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)


class ScaledTiering(NamedTuple):
    hot: RedisHotTier
    cold: PostgresColdTier


class ScaledExecutions(PostgresExecutions):
    """The executions of a scaled-out installation.

    An execution that Redis has is read from there: PostgreSQL has only its intent or a checkpoint.
    """

    hot: RedisHotStore
    commit_feed: RedisCommitFeed

    def __init__(self, database: Database, copies: PostgresCopies) -> None:
        super().__init__(database)
        self._copies = copies

    async def execution(self, execution_id: str) -> Stored | None:
        try:
            hot_changes = await self.hot.changes([execution_id])
        except StoreUnavailable:
            stored = await super().execution(execution_id)
            if stored is not None and stored.record.state in EXECUTION_ENDS:
                return stored  # a finished execution doesn't change any more
            raise
        if execution_id in hot_changes:
            return stored_of(execution_id, hot_changes[execution_id])
        return await super().execution(execution_id)

    async def since(self, execution_id: str, after: int) -> Stored | None:
        try:
            hot_changes = await self.hot.changes([execution_id])
        except StoreUnavailable:
            if await self.execution(execution_id) is None:  # raises, unless it has ended
                return None
            return await super().since(execution_id, after)
        if execution_id not in hot_changes:
            return await super().since(execution_id, after)
        return stored_since(execution_id, hot_changes[execution_id], after)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """Record a control request, unless the execution has ended according to Redis.

        PostgreSQL gets the end of an execution a moment later than those who read Redis.
        """
        hot_changes = await self.hot.changes([execution_id])
        newest = last_record(hot_changes.get(execution_id, []))
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
            hot_changes = await self.hot.changes([execution_id])
        except StoreUnavailable:
            stored = await self.execution(execution_id)  # raises, unless it has ended
            if stored is None:
                return None
            return [line for line in stored.history if line.seq > after]
        if execution_id not in hot_changes:
            return await super().history(execution_id, after)
        lines = chain.from_iterable(map(history_of, hot_changes[execution_id]))
        return [line for line in lines if line.seq > after]

    async def _write_again(self, execution_id: str) -> bool:
        """Write the row of an execution again, from Redis; False if Redis doesn't have it.

        A PostgreSQL that was restored from an older backup may not have it. The owner would write
        it too, with its next copy.
        """
        hot_changes = await self.hot.changes([execution_id])
        changes = hot_changes.get(execution_id, [])
        summary = summary_from(changes)
        if summary is None:
            return False
        log.error(
            "PostgreSQL has lost execution %s; its row is written again from Redis", execution_id
        )
        partition = partition_of(execution_id, self.partitions)
        written = await self._copies.write_again(partition, [Copy(execution_id, summary, changes)])
        return bool(written.rewritten)

    async def search(self, search: Search) -> list[ExecutionRow]:
        """Executions that a search finds.

        One that has begun and was never copied is PENDING in PostgreSQL, so Redis is asked.
        """
        if search.states and not {PENDING, RUNNING} & set(search.states):
            return await super().search(search)
        wide = structs.replace(search, limit=max(search.limit, WIDE))
        if RUNNING in search.states:
            wide.states = tuple({*search.states, PENDING})

        matching: list[ExecutionRow] = []
        while len(matching) < search.limit:
            rows = await super().search(wide)
            await self._correct_pending([row for row in rows if row.state == PENDING])
            matching += [row for row in rows if not search.states or row.state in search.states]
            if len(rows) < wide.limit:
                break
            wide.before = rows[-1].n
        return matching[: search.limit]

    async def _correct_pending(self, rows: list[ExecutionRow]) -> None:
        """Show PENDING executions that have begun in Redis as RUNNING."""
        if not rows:
            return
        try:
            begun = await self.hot.beginnings([row.execution_id for row in rows])
        except StoreUnavailable:
            return  # PostgreSQL's last state is shown
        for row in rows:
            if row.execution_id in begun:
                row.state = RUNNING
                row.started_at = begun[row.execution_id].started_at

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        return await self.commit_feed.read_commits(after, limit)

    async def commits_end(self) -> FeedCursor:
        return await self.commit_feed.commits_end()


class ScaledCounts(PostgresCounts):
    """The counts of a scaled-out installation: Redis says which executions have begun."""

    hot: RedisHotStore

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
        begun_rows = await self._begun(2 * limit)
        begun = min(len(begun_rows), counts[PENDING])
        counts[PENDING] -= begun
        counts[RUNNING] += begun
        return {state: min(count, limit) for state, count in counts.items()}

    async def _begun(self, limit: int) -> list[Row]:
        """The newest executions that have begun in Redis and have no copy in PostgreSQL."""
        rows = await self.unheard(min(limit, UNHEARD_EXECUTIONS_MAX))
        try:
            begun_ids = await self.hot.known([row[0] for row in rows])
        except StoreUnavailable:
            return []  # PostgreSQL's last state is shown
        return [row for row in rows if row[0] in begun_ids]


class ScaledColdStore(PostgresColdStore):
    """The cold store of a scaled-out installation: PostgreSQL, behind Redis.

    Before Redis is attached, everything but executions and counts can be used.
    """

    executions: ScaledExecutions
    counts: ScaledCounts

    def __init__(
        self,
        database_url: str,
        *,
        partitions: int | None = None,
        objects: ObjectBlobs | None = None,
    ) -> None:
        super().__init__(database_url, partitions=partitions, objects=objects)
        self.executions = ScaledExecutions(self.database, self.copies)
        self.counts = ScaledCounts(self.database)

    def attach(self, hot: RedisHotStore, commit_feed: RedisCommitFeed) -> None:
        self.executions.hot = hot
        self.executions.commit_feed = commit_feed
        self.counts.hot = hot


class ScaledStores:
    hot: RedisHotStore
    queue: RedisTaskQueue
    commit_feed: RedisCommitFeed
    tiering: ScaledTiering
    fleet: RedisFleet

    topology = Topology(is_tiered=True, is_shared=True, tasks_are_durable=True)

    def __init__(
        self,
        store: str,
        settings: Settings,
        redis_timing: RedisTiming = DEFAULT_TIMING,
        blob_timing: ObjectBlobTiming = DEFAULT_BLOB_TIMING,
    ) -> None:
        if settings.database is None:
            raise SettingsError(
                f"the store {hide_password(store)} needs a PostgreSQL beside it: "
                "set PENSTOCK_DATABASE=postgresql://…"
            )
        self.server = Server(store, redis_timing)
        self._is_open = False
        """Whether the parts exist that need to know the number of partitions."""
        self._heartbeat_seconds = settings.heartbeat_seconds
        self.objects = _objects(settings.blobs, blob_timing)
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
        self.commit_feed = RedisCommitFeed(self.server, partitions)
        self.cold.attach(self.hot, self.commit_feed)
        cold_tier = PostgresColdTier(self.cold)
        self.tiering = ScaledTiering(RedisHotTier(self.server, self.hot), cold_tier)
        self.fleet = RedisFleet(self.server, partitions)
        self._is_open = True

    async def _claim(self) -> None:
        """Mark this Redis as the one of this store. Raises if it is that of another store."""
        fleet = self.server.fleet
        # read first: a Redis that is full refuses to write
        if await fleet.ask("GET", keys.STORE) is None:
            await fleet.call("SET", keys.STORE, keys.mark(self.cold.store_id), "NX")

        mark = await fleet.ask("GET", keys.STORE)
        store_id, _, layout = mark.decode().partition(" ")
        if store_id != self.cold.store_id:
            raise SettingsError(
                f"Redis at {self.server.endpoints} belongs to another Penstock database "
                f"({store_id}, and this one is {self.cold.store_id}); "
                "use another database number (redis://…/1), or empty it if that store is gone"
            )
        if layout != str(keys.LAYOUT):
            raise SchemaMismatch(
                f"Redis at {self.server.endpoints} is laid out by another version of Penstock "
                f"({layout or 'unknown'}; this one uses {keys.LAYOUT})"
            )

    async def forget(self, before: float) -> int:
        return (await purge(self.cold, before)).executions

    async def close(self) -> None:
        if self._is_open:
            await self.queue.close()
        await self.server.close()
        await self.cold.close()


def _objects(blobs: str | None, timing: ObjectBlobTiming) -> ObjectBlobs | None:
    """The object store that PENSTOCK_BLOBS names; None if large values are in PostgreSQL."""
    if blobs is None:
        return None
    if not is_object_store(blobs):
        raise SettingsError(
            f"PENSTOCK_BLOBS is the folder {blobs!r}, which other machines don't see; "
            "with Redis, large values are in PostgreSQL (leave it out) "
            "or in an object store (s3://bucket/folder)"
        )
    return ObjectBlobs(blobs, timing)
