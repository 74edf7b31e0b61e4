"""Hooks, deliveries and messages in the file."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from penstock.stores import codec
from penstock.stores.hooks import (
    DELIVERIES_MAX,
    MESSAGE_SECONDS,
    REQUEST_SECONDS,
    Delivery,
    Handled,
    HookRow,
    MessageClaim,
    is_free,
    without_old_request,
)
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer

SQL = statements_beside(__file__)
NEWEST = 2**63 - 1

_deliveries = msgspec.msgpack.Decoder(Delivery)


class SqliteHooks:
    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, hook: HookRow) -> bool:
        is_new: bool = await self._writer.submit(lambda connection: _put(connection, hook))
        return is_new

    async def get(self, hook_id: str) -> HookRow | None:
        rows = await self._reader.rows(SQL.select_hook, (hook_id,))
        return HookRow(*rows[0]) if rows else None

    async def hooks(self) -> list[HookRow]:
        return [HookRow(*row) for row in await self._reader.rows(SQL.select_hooks)]

    async def delete(self, hook_id: str) -> bool:
        was_there: bool = await self._writer.submit(lambda connection: _delete(connection, hook_id))
        return was_there

    async def claim(self, hook_id: str, message: bytes, now: float) -> MessageClaim:
        claim: MessageClaim = await self._writer.submit(
            lambda connection: _claim(connection, hook_id, message, now)
        )
        return claim

    async def release(self, hook_id: str, message: bytes, claimed_at: float) -> None:
        values = (hook_id, message, claimed_at)
        await self._writer.submit(
            lambda connection: connection.execute(SQL.release_message, values).rowcount
        )

    async def record(self, delivery: Delivery, handled: Handled | None = None) -> int | None:
        number: int | None = await self._writer.submit(
            lambda connection: _record(connection, delivery, handled)
        )
        return number

    async def deliveries(
        self, hook_id: str, now: float, before: int | None = None, limit: int = 50
    ) -> list[Delivery]:
        values = (hook_id, NEWEST if before is None else before, limit)
        rows = await self._reader.rows(SQL.select_deliveries, values)
        return [_delivery(row, now) for row in rows]

    async def delivery(self, hook_id: str, delivery_id: int, now: float) -> Delivery | None:
        rows = await self._reader.rows(SQL.select_delivery, (hook_id, delivery_id))
        return _delivery(rows[0], now) if rows else None

    async def forget(self, now: float) -> int:
        forgotten: int = await self._writer.submit(lambda connection: _forget(connection, now))
        return forgotten


def _delivery(row: tuple[Any, ...], now: float) -> Delivery:
    number, request, data = row
    delivery = _deliveries.decode(data)
    delivery.id = number
    delivery.request = request
    return without_old_request(delivery, now)


def _put(connection: sqlite3.Connection, hook: HookRow) -> bool:
    is_new = connection.execute(SQL.select_hook, (hook.id,)).fetchone() is None
    values = (hook.id, hook.document, hook.created_at, hook.updated_at)
    connection.execute(SQL.put_hook, values)
    return is_new


def _delete(connection: sqlite3.Connection, hook_id: str) -> bool:
    was_there = connection.execute(SQL.delete_hook, (hook_id,)).rowcount > 0
    connection.execute(SQL.delete_deliveries, (hook_id,))
    connection.execute(SQL.delete_messages, (hook_id,))
    return was_there


def _claim(
    connection: sqlite3.Connection, hook_id: str, message: bytes, now: float
) -> MessageClaim:
    row = connection.execute(SQL.select_message, (hook_id, message)).fetchone()
    if row is not None:
        claimed_at, answer = row
        if not is_free(claimed_at, now, is_answered=answer is not None):
            return MessageClaim(is_mine=False, answer=answer)
    connection.execute(SQL.claim_message, (hook_id, message, now))
    return MessageClaim(is_mine=True)


def _record(
    connection: sqlite3.Connection, delivery: Delivery, handled: Handled | None
) -> int | None:
    hook_id = delivery.hook_id
    if connection.execute(SQL.select_hook, (hook_id,)).fetchone() is None:
        return None
    data = codec.encode(msgspec.structs.replace(delivery, request=None))
    values = (hook_id, delivery.at, delivery.request, data)
    number = connection.execute(SQL.insert_delivery, values).lastrowid
    connection.execute(SQL.trim_deliveries, (hook_id, hook_id, DELIVERIES_MAX))
    if handled is not None:
        connection.execute(SQL.answer_message, (handled.answer, hook_id, handled.message))
    return number


def _forget(connection: sqlite3.Connection, now: float) -> int:
    requests = connection.execute(SQL.forget_requests, (now - REQUEST_SECONDS,)).rowcount
    messages = connection.execute(SQL.forget_messages, (now - MESSAGE_SECONDS,)).rowcount
    return requests + messages
