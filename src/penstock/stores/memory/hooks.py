"""Hooks, deliveries and messages in memory."""

from __future__ import annotations

from itertools import count

import msgspec

from penstock.stores import codec
from penstock.stores.hooks import (
    DELIVERIES_MAX,
    REQUEST_SECONDS,
    Delivery,
    Handled,
    HookRow,
    MessageClaim,
    is_free,
    without_old_request,
)

_deliveries = msgspec.msgpack.Decoder(Delivery)


class _Message(msgspec.Struct):
    claimed_at: float
    answer: bytes | None = None


class MemoryHooks:
    def __init__(self) -> None:
        self._hooks: dict[str, HookRow] = {}
        self._ids = count(1)
        self._deliveries: dict[int, bytes] = {}
        self._messages: dict[tuple[str, bytes], _Message] = {}

    async def put(self, hook: HookRow) -> bool:
        earlier = self._hooks.get(hook.id)
        created_at = earlier.created_at if earlier else hook.created_at
        self._hooks[hook.id] = msgspec.structs.replace(hook, created_at=created_at)
        return earlier is None

    async def get(self, hook_id: str) -> HookRow | None:
        return self._hooks.get(hook_id)

    async def hooks(self) -> list[HookRow]:
        return [self._hooks[hook_id] for hook_id in sorted(self._hooks)]

    async def delete(self, hook_id: str) -> bool:
        if self._hooks.pop(hook_id, None) is None:
            return False
        for delivery in self._of(hook_id):
            del self._deliveries[delivery.id]
        for key in [key for key in self._messages if key[0] == hook_id]:
            del self._messages[key]
        return True

    async def claim(self, hook_id: str, message: bytes, now: float) -> MessageClaim:
        earlier = self._messages.get((hook_id, message))
        if earlier is not None:
            is_answered = earlier.answer is not None
            if not is_free(earlier.claimed_at, now, is_answered=is_answered):
                return MessageClaim(is_mine=False, answer=earlier.answer)
        self._messages[hook_id, message] = _Message(now)
        return MessageClaim(is_mine=True)

    async def release(self, hook_id: str, message: bytes, claimed_at: float) -> None:
        claimed = self._messages.get((hook_id, message))
        if claimed is not None and claimed == _Message(claimed_at):
            del self._messages[hook_id, message]

    async def record(self, delivery: Delivery, handled: Handled | None = None) -> int | None:
        hook_id = delivery.hook_id
        if hook_id not in self._hooks:
            return None
        number = next(self._ids)
        self._deliveries[number] = codec.encode(msgspec.structs.replace(delivery, id=number))
        for old in self._of(hook_id)[DELIVERIES_MAX:]:
            del self._deliveries[old.id]
        if handled is not None:
            message = self._messages.get((hook_id, handled.message))
            if message is not None:
                message.answer = handled.answer
        return number

    async def deliveries(
        self, hook_id: str, now: float, before: int | None = None, limit: int = 50
    ) -> list[Delivery]:
        matching = [
            without_old_request(delivery, now)
            for delivery in self._of(hook_id)
            if before is None or delivery.id < before
        ]
        return matching[:limit]

    async def delivery(self, hook_id: str, delivery_id: int, now: float) -> Delivery | None:
        for delivery in self._of(hook_id):
            if delivery.id == delivery_id:
                return without_old_request(delivery, now)
        return None

    async def forget(self, now: float) -> int:
        old_requests = 0
        for number, data in self._deliveries.items():
            delivery = _deliveries.decode(data)
            if delivery.request is not None and now - delivery.at > REQUEST_SECONDS:
                delivery.request = None
                self._deliveries[number] = codec.encode(delivery)
                old_requests += 1
        old_messages = [
            key
            for key, message in self._messages.items()
            if is_free(message.claimed_at, now, is_answered=True)
        ]
        for key in old_messages:
            del self._messages[key]
        return old_requests + len(old_messages)

    def _of(self, hook_id: str) -> list[Delivery]:
        """The deliveries of a hook, the newest first."""
        decoded = [_deliveries.decode(data) for data in reversed(self._deliveries.values())]
        return [delivery for delivery in decoded if delivery.hook_id == hook_id]
