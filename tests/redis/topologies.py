"""Redis servers that stand in for each other: a cluster with a replica, a master with Sentinels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from penstock.api.redis_rate_limit import RedisRateLimitStorage
from penstock.cli.checking import check_servers
from penstock.config import Settings
from penstock.errors import StoreError
from penstock.local import RedisServer
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Server
from tests.redis.cluster import SLOTS
from tests.servers import open_folder
from tests.waiting import until_now

PASSWORD = "the-same-on-every-node"
SENTINEL_PASSWORD = "of-the-sentinels"
MASTER_NAME = "mymaster"
NODE_TIMEOUT_MS = 1000
HOST = "127.0.0.1"
PARTITIONS = 16
"""Enough for every node of a small cluster to have some."""


class Sentinel(RedisServer):
    name = "Sentinel"

    def __init__(self, folder: Path, master_port: int) -> None:
        super().__init__(folder, append_only=None, extra=("--sentinel",))
        self._master_port = master_port

    def _settings(self) -> list[str]:
        return [
            f"bind {HOST}",
            f"port {self.port}",
            f"requirepass {self.password()}",
            f"sentinel sentinel-pass {self.password()}",
            f"sentinel monitor {MASTER_NAME} {HOST} {self._master_port} 2",
            f"sentinel auth-pass {MASTER_NAME} {PASSWORD}",
            f"sentinel down-after-milliseconds {MASTER_NAME} 500",
            f"sentinel failover-timeout {MASTER_NAME} 3000",
        ]


@dataclass
class Watched:
    """A master, its replica, and three Sentinels that watch them."""

    master: RedisServer
    replica: RedisServer
    sentinels: list[Sentinel]

    @property
    def url(self) -> str:
        hosts = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://:{PASSWORD}@{hosts}/{MASTER_NAME}/0?sentinel_password={SENTINEL_PASSWORD}"


@contextmanager
def watched_redis() -> Iterator[Watched]:
    with open_folder() as folder, ExitStack() as stack:
        master, replica = (
            stack.enter_context(_server(folder / name)) for name in ("master", "replica")
        )
        with client_of(replica) as client:
            client.replicaof(HOST, str(master.port))
            until_now(
                lambda: client.info("replication").get("master_link_status") == "up",
                "the replica to follow",
            )
        sentinels = [
            stack.enter_context(_sentinel(folder / f"s{number}", master)) for number in range(3)
        ]
        for sentinel in sentinels:
            with client_of(sentinel) as client:
                until_now(partial(_knows_others, client), "the Sentinels to know each other")
        yield Watched(master, replica, sentinels)


def _knows_others(client: redis.Redis) -> bool:
    sentinels: Any = client.sentinel_sentinels(MASTER_NAME)
    replicas: Any = client.sentinel_slaves(MASTER_NAME)
    return len(sentinels) == 2 and len(replicas) == 1


def _sentinel(folder: Path, master: RedisServer) -> Sentinel:
    folder.mkdir()
    (folder / "password").write_text(SENTINEL_PASSWORD)
    return Sentinel(folder, master.port)


def _server(folder: Path, *, cluster: bool = False, extra: tuple[str, ...] = ()) -> RedisServer:
    folder.mkdir()
    (folder / "password").write_text(PASSWORD)
    return RedisServer(
        folder, append_only=None, cluster=cluster, extra=("--masterauth", PASSWORD, *extra)
    )


def client_of(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url)


@dataclass
class Cluster:
    """Three masters with all slots, and a replica of the first."""

    masters: list[RedisServer]
    replica: RedisServer

    @property
    def url(self) -> str:
        """The first master, then another one."""
        hosts = ",".join(f"{HOST}:{server.port}" for server in self.masters[:2])
        return f"redis://:{PASSWORD}@{hosts}"


@contextmanager
def small_cluster() -> Iterator[Cluster]:
    extra = ("--cluster-node-timeout", str(NODE_TIMEOUT_MS))
    with open_folder() as folder, ExitStack() as stack:
        servers = [
            stack.enter_context(_server(folder / str(number), cluster=True, extra=extra))
            for number in range(4)
        ]
        clients: list[Any] = [stack.enter_context(client_of(server)) for server in servers]
        for number, client in enumerate(clients[:3]):
            first, last = number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
        for client in clients[1:]:
            client.execute_command("CLUSTER", "MEET", HOST, servers[0].port)
        until_now(lambda: all(map(_is_whole, clients)), "the cluster to be whole")
        first_id = clients[0].execute_command("CLUSTER", "MYID").decode()
        clients[3].execute_command("CLUSTER", "REPLICATE", first_id)
        until_now(
            lambda: clients[3].info("replication").get("master_link_status") == "up",
            "the replica to follow",
        )
        until_now(
            lambda: all(_has_replica(client) for client in clients),
            "every node to know of the replica",
        )
        yield Cluster(servers[:3], servers[3])


def _is_whole(client: Any) -> bool:
    said = client.execute_command("CLUSTER", "INFO")
    text = said.decode() if isinstance(said, bytes) else str(said)
    return "cluster_state:ok" in text and "cluster_known_nodes:4" in text


def _has_replica(client: Any) -> bool:
    said = client.execute_command("CLUSTER", "NODES")
    return "slave" in (said.decode() if isinstance(said, bytes) else str(said))


async def serves(server: Server) -> bool:
    """Whether something new is accepted, and every partition can be written."""
    try:
        server.check_open()
        for partition in range(PARTITIONS):
            await server.of(partition).call("HDEL", keys.lease(partition), "")
    except StoreError:
        return False
    return True


async def limit_is_shared(url: str) -> bool:
    """Two processes with the same rate limit count together."""
    first, second = RedisRateLimitStorage.at(url), RedisRateLimitStorage.at(url)
    await first.enter("key", 10, 60)
    entered = await second.enter("key", 10, 60)
    await first.close()
    await second.close()
    return entered.used == 2


def doctor_finds(url: str) -> bool:
    checks = check_servers(Settings.load({"store": url}, environ={}))
    return ("Redis", "ok") in [(check.name, check.outcome) for check in checks]
