"""Posts in memory, and how they meet open waits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec

from penstock.engine.events import SignalReceived
from penstock.stores import codec
from penstock.stores.memory.signals import MemorySignals
from penstock.stores.posts import (
    Delivered,
    Post,
    delivery_key,
    is_satisfied,
    meets,
    posts_for,
)
from penstock.stores.signals import NewSignal, received
from penstock.stores.waits import OpenWait

_decoder = msgspec.msgpack.Decoder(Post)


class MemoryPosts:
    def __init__(
        self,
        signals: MemorySignals,
        open_waits: Callable[[], list[OpenWait]],
        close: Callable[[OpenWait], None],
    ) -> None:
        self._signals = signals
        self._open_waits = open_waits
        self._close = close
        self._ids = count(1)
        self._posts: dict[int, bytes] = {}

    async def put(self, post: Post) -> Delivered:
        post_id = next(self._ids)
        signals: list[SignalReceived] = []
        for wait in self._open_waits():
            if not meets(post, wait):
                continue
            signal = self._deliver(wait, post_id, post)
            if signal is not None:
                signals.append(signal)
                if not post.to_all:
                    break
        is_kept = post.to_all or not signals
        if is_kept:
            self._posts[post_id] = codec.encode(post)
        return Delivered(signals, is_kept)

    def meet(self, wait: OpenWait) -> list[SignalReceived]:
        """Give a node that has begun to wait the posts that came before it."""
        if wait.correlation is None or wait.kind != "signal":
            return []
        posts = [(post_id, _decoder.decode(data)) for post_id, data in self._posts.items()]
        live = [(post_id, post) for post_id, post in posts if post.expires_at >= wait.since]
        signals: list[SignalReceived] = []
        for post_id, post in posts_for(wait, live):
            signal = self._deliver(wait, post_id, post)
            if signal is not None:
                signals.append(signal)
                if not post.to_all:
                    del self._posts[post_id]
        return signals

    def _deliver(self, wait: OpenWait, post_id: int, post: Post) -> SignalReceived | None:
        signal = NewSignal(
            execution_id=wait.execution_id,
            name=post.name,
            payload=post.payload,
            correlation=post.correlation,
            sender=post.sender,
            at=post.at,
            idempotency_key=delivery_key(wait, post_id),
        )
        number = self._signals.put_once(signal)
        if number is None:
            return None
        if is_satisfied(wait):
            self._close(wait)
        return received(signal, number)
