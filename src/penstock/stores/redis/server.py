"""The Redis that a store is on: one server, or a cluster of which each partition is on one node.

`of(partition)` is the connection that everybody shares; whoever waits in a blocking call gets one of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Any

from redis.crc import key_slot

from penstock.errors import SettingsError, StoreError, StoreUnavailable
from penstock.stores.redis import keys
from penstock.stores.redis.address import parse
from penstock.stores.redis.wire import Link, NotNow

log = logging.getLogger("penstock.stores")

PULSE_SECONDS = 1.0
SILENT_SECONDS = 3.0
FULL = 0.95
"""Of the memory that Redis may use: from here on nothing new is accepted."""


class Server:
    def __init__(self, url: str) -> None:
        self.address = parse(url)
        self.main = Link(self.address)
        self.partitions = 1
        self._blocking: set[Link] = set()
        self._offset = time.time() - time.monotonic()
        self._heard_at = 0.0
        self._is_full = False
        self._refuses_writes = ""
        self._pulse: asyncio.Task[None] | None = None
        self._is_cluster = False
        self._slots: list[tuple[int, int, Link]] = []
        """Of a cluster: from which slot to which is on which node."""
        self._nodes: dict[tuple[str, int], Link] = {}

    async def open(self) -> None:
        """Raises `StoreUnavailable`, or `SettingsError` for a server that can't be used."""
        check_version(_fields(await self.main.ask("INFO", "server")))
        self._is_cluster = _fields(await self.main.ask("INFO", "cluster")).get("cluster_enabled") == "1"
        await self._check_settings()
        await self._beat()
        self._pulse = asyncio.create_task(self._beats())

    async def close(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
            await asyncio.wait((self._pulse,))
        for link in [*self._blocking, *self._nodes.values(), self.main]:
            await link.close()

    def of(self, partition: int) -> Link:
        return self._at(keys.lease(partition)) if self._is_cluster else self.main

    @property
    def fleet(self) -> Link:
        """For what belongs to no partition."""
        return self._at(keys.BEATS) if self._is_cluster else self.main

    @property
    def groups(self) -> Sequence[Sequence[int]]:
        """Partitions that one blocking call can wait for together: in a cluster, none with any other."""
        return [[each] for each in range(self.partitions)] if self._is_cluster else [range(self.partitions)]

    def _at(self, key: str) -> Link:
        slot = key_slot(key.encode())
        for first, last, link in self._slots:
            if first <= slot <= last:
                return link
        raise StoreUnavailable(f"no node of the Redis cluster at {self.address} has slot {slot} now")

    async def _look_around(self) -> None:
        """Which node has what. Asked all the time: whoever went to the wrong one tries again by itself."""
        slots: list[tuple[int, int, Link]] = []
        (found,) = await self._first_that_answers([("CLUSTER", "SLOTS")])
        for first, last, (host, port, *_), *_ in found:
            node = ((host or b"").decode() or self.address.host, int(port))
            if node not in self._nodes:
                self._nodes[node] = Link(self.address.at(*node))
            slots.append((int(first), int(last), self._nodes[node]))
        self._slots = slots

    def blocking(self, partition: int) -> Link:
        link = Link(self.of(partition).address)
        self._blocking.add(link)
        return link

    async def drop(self, link: Link) -> None:
        self._blocking.discard(link)
        await link.close()

    def now(self) -> float:
        """Redis's clock, as far as it can be known here."""
        return time.monotonic() + self._offset

    def check_open(self) -> None:
        """Raises `StoreUnavailable` if Redis is known to be away, full or read-only."""
        if self.main.failed is not None:
            raise self.main.failed
        if time.monotonic() - self._heard_at > SILENT_SECONDS:
            raise StoreUnavailable(f"Redis at {self.address} hasn't answered for {SILENT_SECONDS:g} s")
        if self._is_full:
            raise StoreUnavailable(
                f"Redis at {self.address} is out of memory; nothing new is accepted until some is free"
            )
        if self._refuses_writes:
            raise StoreUnavailable(f"Redis at {self.address} takes no writes now: {self._refuses_writes}")

    async def _beats(self) -> None:
        while True:
            with contextlib.suppress(StoreError):
                await self._beat()
            await asyncio.sleep(PULSE_SECONDS)

    async def _beat(self) -> None:
        before = time.monotonic()
        clock, memory = await self._first_that_answers([("TIME",), ("INFO", "memory")])
        after = time.monotonic()
        self._heard_at = after
        if self._is_cluster:
            await self._look_around()
        self._offset = int(clock[0]) + int(clock[1]) / 1e6 - (before + after) / 2
        used = _fields(memory)
        most = int(used.get("maxmemory", "0"))
        self._is_full = bool(most) and int(used.get("used_memory", "0")) > FULL * most
        self._refuses_writes = await self._refusal()

    async def _refusal(self) -> str:
        """Why it takes no writes, as a replica doesn't; found by one that changes nothing, and needs no memory."""
        try:
            await self.fleet.ask("HDEL", keys.BEATS, "")
        except NotNow as error:
            return error.text
        return ""

    async def _first_that_answers(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        """The node that the URL names, or another of its cluster."""
        others = list(self._nodes.values())
        for link in (self.main, *others):
            try:
                return await link.pipeline(calls)
            except StoreUnavailable:
                if not others:
                    raise
        raise StoreUnavailable(f"no node of the Redis cluster at {self.address} answers")

    async def _check_settings(self) -> None:
        try:
            found = await self.main.ask("CONFIG", "GET", "maxmemory-policy")
            kept = await self.main.ask("CONFIG", "GET", "appendonly")
        except StoreUnavailable:
            raise
        except StoreError:  # managed servers don't tell
            log.warning("Redis doesn't show its settings; see to it that maxmemory-policy is noeviction and AOF is on")
            return
        if found and found[1] != b"noeviction":
            raise SettingsError(
                f"Redis at {self.address} has maxmemory-policy {found[1].decode()}, which throws data away; "
                "set it to noeviction"
            )
        if kept and kept[1] != b"yes":
            log.warning(
                "Redis at %s doesn't write an append-only file: after a crash of it, executions are built again from "
                "PostgreSQL, and steps since their last checkpoint run again (appendonly yes keeps them)", self.address,
            )  # fmt: skip


def check_version(info: dict[str, str]) -> None:
    """Redis 7 or Valkey 8 are needed."""
    name, least, version = "Redis", 7, info.get("redis_version", "")
    if "valkey_version" in info:
        name, least, version = "Valkey", 8, info["valkey_version"]
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) < least:
        raise SettingsError(f"this is {name} {version or 'of an unknown version'}; {name} {least}.0 or newer is needed")


def _fields(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines() if ":" in line)
    return {name: value.strip() for name, _, value in lines}
