"""The Redis of a store: one server, the master that Sentinels name, or a cluster.

Each partition is on one node of a cluster. `of(partition)` is the shared connection to it; each
blocking call gets a connection of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from redis.crc import key_slot

from penstock.errors import SettingsError, StoreError, StoreUnavailable
from penstock.stores.redis import keys
from penstock.stores.redis.connection.address import parse
from penstock.stores.redis.connection.errors import NotNow
from penstock.stores.redis.connection.link import Link, Locate
from penstock.stores.redis.connection.scripts import script
from penstock.stores.redis.connection.sentinels import Sentinels
from penstock.stores.redis.timing import DEFAULT_TIMING, RedisTiming

log = logging.getLogger("penstock.stores")

FULL = 0.95
"""The share of Redis's `maxmemory` from which on nothing new is accepted."""


class Server:
    def __init__(
        self,
        url: str,
        timing: RedisTiming = DEFAULT_TIMING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoints = parse(url)
        self.timing = timing
        self._clock = clock
        self._sentinels: Sentinels | None = None
        locate: Locate | None = None
        if self.endpoints.sentinels:
            self._sentinels = Sentinels(self.endpoints, timing)
            locate = self._sentinels.master
        self._seeds = [Link(address, timing, locate) for address in self.endpoints.servers]
        self.main = self._seeds[0]
        """The connection to the one server; in a cluster, to the node that answered last."""
        self.partitions = 1
        self._blocking: set[Link] = set()
        self._offset = time.time() - clock()
        self._unanswered_since: float | None = None
        """When the first call was made that Redis hasn't answered.

        It isn't the time of the last answer: a busy process may not have asked for long.
        """
        self._is_full = False
        self._refuses_writes = ""
        self._pulse: asyncio.Task[None] | None = None
        self._is_cluster = False
        self._slots: list[tuple[int, int, Link]] = []
        """In a cluster: ranges of hash slots (first, last), and the node of each."""
        self._nodes: dict[tuple[str, int], Link] = {}

    async def open(self) -> None:
        """Connect.

        Raises `StoreUnavailable`, or `SettingsError` for a server that can't be used.
        """
        server, cluster = await self._first_answer([("INFO", "server"), ("INFO", "cluster")])
        check_version(_fields(server))
        self._is_cluster = _fields(cluster).get("cluster_enabled") == "1"
        if len(self._seeds) > 1 and not self._is_cluster:
            raise SettingsError(
                f"the store names several servers, and Redis at {self.main.address} isn't part of "
                "a cluster; name one server, or let Sentinels say which is the master: "
                "redis+sentinel://host:26379/mymaster/0"
            )
        await self._check_settings()
        await self._beat()
        self._pulse = asyncio.create_task(self._beats())

    async def close(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
            await asyncio.wait((self._pulse,))
        for link in [*self._blocking, *self._nodes.values(), *self._seeds]:
            await link.close()
        if self._sentinels is not None:
            await self._sentinels.close()

    def of(self, partition: int) -> Link:
        """The shared connection to the node of a partition."""
        return self._at(keys.lease(partition)) if self._is_cluster else self.main

    @property
    def fleet(self) -> Link:
        """The connection for what belongs to no partition."""
        return self._at(keys.BEATS) if self._is_cluster else self.main

    @property
    def groups(self) -> Sequence[Sequence[int]]:
        """Partitions that one blocking call can wait for together.

        In a cluster, each partition is a group of its own.
        """
        if self._is_cluster:
            return [[partition] for partition in range(self.partitions)]
        return [range(self.partitions)]

    def _at(self, key: str) -> Link:
        slot = key_slot(key.encode())
        for first, last, link in self._slots:
            if first <= slot <= last:
                return link
        raise StoreUnavailable(
            f"no node of the Redis cluster at {self.endpoints} has slot {slot} now"
        )

    def _read_slots(self, reply: Sequence[Any]) -> None:
        """Read which node of the cluster has which hash slots.

        This is asked every second. A call that went to the wrong node fails and is made again.
        """
        slots: list[tuple[int, int, Link]] = []
        for first, last, (host, port, *_), *_ in reply:
            # a node that doesn't know its own address leaves it out: it is the node that answered
            node = ((host or b"").decode() or self.main.address.host, int(port))
            if node not in self._nodes:
                self._nodes[node] = Link(self.endpoints.servers[0].at(*node), self.timing)
            slots.append((int(first), int(last), self._nodes[node]))
        self._slots = slots

    async def run_script(self, partition: int, name: str, *arguments: Any) -> Any:
        """Run a script on the keys of a partition."""
        return await script(name).run(self.of(partition), keys.lease(partition), *arguments)

    async def ask_script(self, partition: int, name: str, *arguments: Any) -> Any:
        """Run a script that changes nothing: again if the connection broke."""
        return await script(name).ask(self.of(partition), keys.lease(partition), *arguments)

    def blocking(self, partition: int) -> Link:
        """A connection to the node of a partition that nobody else uses."""
        link = self.of(partition).twin()
        self._blocking.add(link)
        return link

    async def drop(self, link: Link) -> None:
        """Close a connection that `blocking` has made."""
        self._blocking.discard(link)
        await link.close()

    def now(self) -> float:
        """Redis's clock, as this process estimates it."""
        return self._clock() + self._offset

    def check_open(self) -> None:
        """Raises `StoreUnavailable` if Redis is known to be away, full or read-only."""
        # in a cluster, another node takes over the partitions of one that is away
        if not self._is_cluster and self.main.failed is not None:
            raise self.main.failed
        since = self._unanswered_since
        silent_seconds = self.timing.silent_seconds
        if since is not None and self._clock() - since > silent_seconds:
            raise StoreUnavailable(
                f"Redis at {self.endpoints} hasn't answered for {silent_seconds:g} s"
            )
        if self._is_full:
            raise StoreUnavailable(
                f"Redis at {self.endpoints} is out of memory; "
                "nothing new is accepted until some is free"
            )
        if self._refuses_writes:
            raise StoreUnavailable(
                f"Redis at {self.endpoints} takes no writes now: {self._refuses_writes}"
            )

    async def _beats(self) -> None:
        while True:
            with contextlib.suppress(StoreError):
                await self._beat()
            await asyncio.sleep(self.timing.pulse_seconds)

    async def _beat(self) -> None:
        if self._sentinels is not None:
            await self._follow_master(self._sentinels)
        calls: list[tuple[Any, ...]] = [("TIME",), ("INFO", "memory")]
        if self._is_cluster:
            calls += [("CLUSTER", "INFO"), ("CLUSTER", "SLOTS")]

        before = self._clock()
        self._unanswered_since = self._unanswered_since or before
        clock, memory, *cluster = await self._first_answer(calls)
        after = self._clock()
        self._unanswered_since = None

        seconds, microseconds = clock
        self._offset = int(seconds) + int(microseconds) / 1e6 - (before + after) / 2
        memory_info = _fields(memory)
        memory_used = int(memory_info.get("used_memory", "0"))
        memory_max = int(memory_info.get("maxmemory", "0"))
        self._is_full = bool(memory_max) and memory_used > FULL * memory_max
        if cluster:
            self._read_slots(cluster[1])
        self._refuses_writes = await self._refusal()

    async def _follow_master(self, sentinels: Sentinels) -> None:
        """Leave a master that was replaced.

        It may still accept writes on its side of a split network.
        """
        # without an answer of a Sentinel, the master is the last one that was named
        with contextlib.suppress(StoreUnavailable):
            master = await sentinels.master()
            for link in (self.main, *self._blocking):
                if link.is_open and link.address != master:
                    log.warning(
                        "Redis: the Sentinels name %s as master now, not %s", master, link.address
                    )
                    link.abort()

    async def _refusal(self) -> str:
        """Why the server accepts no writes, such as a replica; '' if it does.

        A write that changes nothing and needs no memory is tried.
        """
        try:
            async with asyncio.timeout(self.timing.answer_seconds):
                await self.fleet.ask("HDEL", keys.BEATS, "")
        except NotNow as error:
            # in a cluster the key may have moved to another node: the next beat knows which
            return "" if error.code in ("MOVED", "ASK", "TRYAGAIN") else error.text
        except TimeoutError:
            pass  # calls to that node time out by themselves
        return ""

    async def _first_answer(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        """The replies of the first node that answers.

        The node that answered last is asked first, then all others that the URL names or the
        cluster has. A node that is cut off from most of the cluster says so (`cluster_state:fail`);
        its replies count only if no other node answers.
        """
        links = dict.fromkeys((self.main, *self._seeds, *self._nodes.values()))
        if len(links) == 1:
            return await self.main.pipeline(calls)
        second_best: tuple[Link, list[Any]] | None = None
        reasons: list[str] = []
        for link in links:
            try:
                async with asyncio.timeout(self.timing.answer_seconds):
                    answers = await link.pipeline(calls)
            except (StoreUnavailable, TimeoutError) as error:
                reasons.append(str(error) or f"Redis at {link.address} doesn't answer")
                continue
            if ("CLUSTER", "INFO") not in calls or _fields(answers[2]).get("cluster_state") == "ok":
                self.main = link
                return answers
            second_best = second_best or (link, answers)

        if second_best is None:
            raise StoreUnavailable(
                f"no node of the Redis cluster at {self.endpoints} answers: {'; '.join(reasons)}"
            )
        self.main, answers = second_best
        return answers

    async def _check_settings(self) -> None:
        try:
            eviction = await self.main.ask("CONFIG", "GET", "maxmemory-policy")
            persistence = await self.main.ask("CONFIG", "GET", "appendonly")
        except StoreUnavailable:
            raise
        except StoreError:  # managed servers don't allow CONFIG
            log.warning(
                "Redis doesn't show its settings; "
                "make sure that maxmemory-policy is noeviction and AOF is on"
            )
            return

        if eviction and eviction[1] != b"noeviction":
            raise SettingsError(
                f"Redis at {self.endpoints} has maxmemory-policy {eviction[1].decode()}, "
                "which throws data away; set it to noeviction"
            )
        if persistence and persistence[1] != b"yes":
            log.warning(
                "Redis at %s doesn't write an append-only file: after it crashes, executions are "
                "rebuilt from PostgreSQL, and nodes since their last checkpoint run again "
                "(set appendonly to yes to avoid that)",
                self.endpoints,
            )


def check_version(info: dict[str, str]) -> None:
    """Raises `SettingsError` unless the server is Redis 7 or Valkey 8, or newer."""
    if "valkey_version" in info:
        name = "Valkey"
        version = info["valkey_version"]
        major_min = 8
    else:
        name = "Redis"
        version = info.get("redis_version", "")
        major_min = 7
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) < major_min:
        raise SettingsError(
            f"this is {name} {version or 'of an unknown version'}; "
            f"{name} {major_min}.0 or newer is needed"
        )


def _fields(info: bytes) -> dict[str, str]:
    """The fields of an answer to INFO."""
    fields: dict[str, str] = {}
    for line in info.decode(errors="replace").splitlines():
        name, separator, value = line.partition(":")
        if separator:
            fields[name] = value.strip()
    return fields
