"""Hooks, deliveries and messages in PostgreSQL."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.stores import codec
from penstock.stores.hooks import (
    CLAIM_SECONDS,
    DELIVERIES_MAX,
    MESSAGE_SECONDS,
    REQUEST_SECONDS,
    Delivery,
    Handled,
    HookRow,
    MessageClaim,
    without_old_request,
)
from penstock.stores.postgres.database import Database
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)
NEWEST = 2**63 - 1

_deliveries = msgspec.msgpack.Decoder(Delivery)


class PostgresHooks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, hook: HookRow) -> bool:
        values = (hook.id, hook.document, hook.created_at, hook.updated_at)
        async with self._database.connection() as connection:
            cursor = await connection.execute(SQL.put_hook, values, binary=True)
            row = await cursor.fetchone()
        return bool(row and row[0])

    async def get(self, hook_id: str) -> HookRow | None:
        rows = await self._database.rows(SQL.select_hook, (hook_id,))
        return HookRow(*rows[0]) if rows else None

    async def hooks(self) -> list[HookRow]:
        return [HookRow(*row) for row in await self._database.rows(SQL.select_hooks)]

    async def delete(self, hook_id: str) -> bool:
        async with self._database.transaction() as connection:
            cursor = await connection.execute(SQL.delete_hook, (hook_id,))
            await connection.execute(SQL.delete_deliveries, (hook_id,))
            await connection.execute(SQL.delete_messages, (hook_id,))
            return cursor.rowcount > 0

    async def claim(self, hook_id: str, message: bytes, now: float) -> MessageClaim:
        values = (hook_id, message, now, now - CLAIM_SECONDS, now - MESSAGE_SECONDS)
        async with self._database.connection() as connection:
            cursor = await connection.execute(SQL.claim_message, values)
            if await cursor.fetchone():
                return MessageClaim(is_mine=True)
        # one that is given back in between looks as if somebody was still at work on it
        rows = await self._database.rows(SQL.select_answer, (hook_id, message))
        return MessageClaim(is_mine=False, answer=rows[0][0] if rows else None)

    async def release(self, hook_id: str, message: bytes, claimed_at: float) -> None:
        await self._database.change(SQL.release_message, (hook_id, message, claimed_at))

    async def record(self, delivery: Delivery, handled: Handled | None = None) -> int | None:
        hook_id = delivery.hook_id
        data = codec.encode(msgspec.structs.replace(delivery, request=None))
        values = (delivery.at, delivery.request, data, hook_id)
        async with self._database.transaction() as connection:
            cursor = await connection.execute(SQL.insert_delivery, values, binary=True)
            row = await cursor.fetchone()
            if row is None:
                return None
            await connection.execute(SQL.trim_deliveries, (hook_id, hook_id, DELIVERIES_MAX))
            if handled is not None:
                answered = (handled.answer, hook_id, handled.message)
                await connection.execute(SQL.answer_message, answered)
        number: int = row[0]
        return number

    async def deliveries(
        self, hook_id: str, now: float, before: int | None = None, limit: int = 50
    ) -> list[Delivery]:
        values = (hook_id, NEWEST if before is None else before, limit)
        rows = await self._database.rows(SQL.select_deliveries, values)
        return [_delivery(row, now) for row in rows]

    async def delivery(self, hook_id: str, delivery_id: int, now: float) -> Delivery | None:
        rows = await self._database.rows(SQL.select_delivery, (hook_id, delivery_id))
        return _delivery(rows[0], now) if rows else None

    async def forget(self, now: float) -> int:
        requests = await self._database.change(SQL.forget_requests, (now - REQUEST_SECONDS,))
        await self._database.change(SQL.forget_strays)
        messages = await self._database.change(SQL.forget_messages, (now - MESSAGE_SECONDS,))
        return requests + messages


def _delivery(row: tuple[Any, ...], now: float) -> Delivery:
    number, request, data = row
    delivery = _deliveries.decode(data)
    delivery.id = number
    delivery.request = request
    return without_old_request(delivery, now)
