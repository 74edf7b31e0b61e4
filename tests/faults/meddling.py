"""Proxies that meddle with messages.

Messages come ten times and in any order, or wake nobody.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from typing import Any

import redis.asyncio as redis_client

from penstock.stores.redis.connection import script
from tests.faults.proxies import RedisProxy, exchange, is_call_of

TIMES = 10
NOTHING = b"*-1\r\n"
TaskLocation = tuple[bytes, bytes, bytes]
"""Inbox, stream, entry."""


class Repeater(RedisProxy):
    """Puts each message of the role into the inbox ten times, the copies shuffled.

    That a task has started is passed on only after its result. `drain` puts in what is still held
    back.
    """

    def __init__(self, url: str, choose: random.Random) -> None:
        super().__init__(url, choose)
        self._direct = redis_client.Redis.from_url(url)
        self._collected: defaultdict[bytes, list[bytes]] = defaultdict(list)
        self._begun: dict[TaskLocation, bytes] = {}
        self.messages = self.copies = self.overtaken = 0

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        await self._direct.aclose()

    async def _make(
        self, call: list[bytes], answers: asyncio.StreamReader, upstream: asyncio.StreamWriter
    ) -> bytes:
        if is_call_of(call, script("report")):
            return await self._report(call, answers, upstream)
        if is_call_of(call, script("append")):
            self._collect(call[3], call[5::2])
        elif call[0] == b"XADD" and call[1].endswith(b":inbox"):
            self._collect(call[1], call[4::2])
        reply = await exchange(call, answers, upstream)
        await self._repeat()
        return reply

    async def _report(
        self, call: list[bytes], answers: asyncio.StreamReader, upstream: asyncio.StreamWriter
    ) -> bytes:
        inbox, how = call[3].removesuffix(b"lease") + b"inbox", call[6]
        items = list(zip(call[7::3], call[8::3], call[9::3], strict=True))
        if how == b"started":
            self._begun.update(((inbox, stream, entry), event) for stream, entry, event in items)
            return b":%d\r\n" % len(items)
        reply = await exchange(call, answers, upstream)
        self._collect(inbox, [event for *_, event in items])
        for stream, entry, _ in items:
            begun = self._begun.pop((inbox, stream, entry), None)
            if begun is not None:
                self._collect(inbox, [begun])
                self.overtaken += 1
        await self._repeat()
        return reply

    def _collect(self, inbox: bytes, events: list[bytes]) -> None:
        self.messages += len(events)
        self._collected[inbox] += events * (TIMES - 1)

    async def _repeat(self, share: float = 0.5) -> None:
        """Some of what is kept, whichever: the rest comes later."""
        for inbox in list(self._collected):
            collected = self._collected[
                inbox
            ]  # now: while some were put elsewhere, another call may have taken of these
            self._choose.shuffle(collected)
            count = round(share * len(collected) + 0.5) if collected else 0
            batch, self._collected[inbox] = collected[:count], collected[count:]
            await self._put(inbox, batch)

    async def _put(self, inbox: bytes, events: list[bytes]) -> None:
        if events:
            self.copies += len(events)
            pipeline = self._direct.pipeline(transaction=False)
            for event in events:  # an entry for each: two of one entry could never be apart
                pipeline.execute_command("XADD", inbox, "1-*", b"1", event)
            await pipeline.execute()

    async def drain(self) -> None:
        await self._repeat(1.0)


class Deafener(RedisProxy):
    """A role behind it is never woken: its blocking reads end when their time is over.

    What it reads from an inbox then, it finds by looking; of tasks it isn't told at all.
    """

    dropped = 0

    async def _make(
        self, call: list[bytes], answers: asyncio.StreamReader, upstream: asyncio.StreamWriter
    ) -> bytes:
        words: list[Any] = [word.upper() for word in call[:6]]
        if call[0] != b"XREAD" or b"BLOCK" not in words:
            return await exchange(call, answers, upstream)
        at = words.index(b"BLOCK")
        await asyncio.sleep(int(call[at + 1]) / 1000)
        reply = await exchange(call[:at] + call[at + 2 :], answers, upstream)
        is_wakeup = reply != NOTHING
        self.dropped += is_wakeup
        return NOTHING if any(word.endswith(b":wake") for word in call) else reply
