"""Posts in PostgreSQL, and how they meet open waits.

A post and a wait may be written at the same moment, by the API and by the archiver. Both hold a
lock on their correlation until they have committed, so one of them sees the other.
"""

from __future__ import annotations

from penstock.engine.events import SignalReceived
from penstock.stores import codec
from penstock.stores.postgres.database import Connection, Database
from penstock.stores.postgres.texts import digest, escaped
from penstock.stores.posts import (
    EXPIRED_AT_ONCE,
    Delivered,
    Post,
    delivery_key,
    is_satisfied,
    posts_in,
    signal_of,
    waits_in,
)
from penstock.stores.sql.statements import statements_beside
from penstock.stores.waits import OpenWait

SQL = statements_beside(__file__)


class PostgresPosts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, post: Post) -> Delivered:
        async with self._database.transaction() as connection:
            await lock(connection, post.correlation)
            return await _put(connection, post)


async def lock(connection: Connection, correlation: str) -> None:
    """Lock a correlation until the transaction ends."""
    number = int.from_bytes(digest("correlation", correlation)[:8], "big", signed=True)
    await connection.execute(SQL.lock_correlation, (number,))


async def _put(connection: Connection, post: Post) -> Delivered:
    signals: list[SignalReceived] = []
    correlation = escaped(post.correlation)
    cursor = await connection.execute(SQL.select_waits, (correlation,), binary=True)
    rows = await cursor.fetchall()
    values = (correlation, post.expires_at, codec.encode(post))
    cursor = await connection.execute(SQL.insert_post, values, binary=True)
    inserted = await cursor.fetchone()
    post_id = inserted[0] if inserted else 0
    for n, wait in waits_in(rows, post):
        signal = await _deliver(connection, n, wait, post_id, post)
        if signal is not None:
            signals.append(signal)
            if not post.to_all:
                break
    is_kept = post.to_all or not signals
    if not is_kept:
        await connection.execute(SQL.delete_post, (post_id,))
    await connection.execute(SQL.delete_expired, (post.at, EXPIRED_AT_ONCE))
    return Delivered(signals, is_kept)


async def meet(connection: Connection, n: int, wait: OpenWait) -> list[SignalReceived]:
    """Give a node that has begun to wait the posts that came before it.

    Its correlation is locked.
    """
    if wait.correlation is None or wait.kind != "signal":
        return []
    values = (escaped(wait.correlation), wait.since)
    cursor = await connection.execute(SQL.select_posts, values, binary=True)
    rows = await cursor.fetchall()
    signals: list[SignalReceived] = []
    for post_id, post in posts_in(rows, wait):
        signal = await _deliver(connection, n, wait, post_id, post)
        if signal is not None:
            signals.append(signal)
            if not post.to_all:
                await connection.execute(SQL.delete_post, (post_id,))
    return signals


async def _deliver(
    connection: Connection, n: int, wait: OpenWait, post_id: int, post: Post
) -> SignalReceived | None:
    """Store a post as a signal to an execution; None if the node has got its signal already."""
    await connection.execute(SQL.lock_execution, (n,))
    key = digest(delivery_key(wait, post_id))
    cursor = await connection.execute(SQL.select_delivered, (n, key), binary=True)
    if await cursor.fetchone():
        return None
    cursor = await connection.execute(SQL.next_number, (n,), binary=True)
    counted = await cursor.fetchone()
    number = counted[0] if counted else 1
    values = (
        n,
        number,
        post.at,
        escaped(post.name),
        escaped(post.correlation),
        escaped(post.sender),
        key,
        post.payload,
    )
    await connection.execute(SQL.insert_signal, values)
    if is_satisfied(wait):
        await connection.execute(SQL.delete_wait, (n, escaped(wait.node_id)))
    return signal_of(post, wait.execution_id, number)
