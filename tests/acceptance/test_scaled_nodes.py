"""A Redis node dies under real roles that were configured with it.

Another node takes over, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.errors import StoreUnavailable
from penstock.local import RedisServer
from penstock.stores.redis.connection import Server
from tests.acceptance import works
from tests.acceptance.plant import PARTITIONS, Client, Plant
from tests.faults.table import Fault
from tests.redis.topologies import (
    Cluster,
    Watched,
    doctor_finds,
    limit_is_shared,
    serves,
    small_cluster,
    watched_redis,
)
from tests.servers import database_url, open_folder
from tests.waiting import until

STARTS_SECONDS_MAX = 10.0
"""After the death of a node, something new is accepted within this time: FAULTS, topology."""


@contextmanager
def roles_on(redis: Any) -> Iterator[Plant]:
    with open_folder() as folder:
        roles = Plant(folder, redis, database_url(PARTITIONS), None, environ={})
        try:
            roles.staff(orchestrators=2, workers=2, apis=0)
            yield roles
        finally:
            roles.close()


async def submit_again(client: Client) -> int:
    """One more execution, however often it is refused; answers how often that was."""
    refused = 0

    async def is_accepted() -> bool:
        nonlocal refused
        try:
            await client.submit(works.diamond())
        except StoreUnavailable:
            refused += 1
            return False
        return True

    await until(is_accepted, "something new is accepted", seconds=60)
    return refused


def lose_a_node(fault: Fault, redis: Cluster | Watched, named: RedisServer) -> None:
    async def scenario(roles: Plant) -> None:
        async with roles.client() as client:
            await client.submit(works.diamond(), fault.size(short=20, full=500))
            named.kill()
            killed_at = refused_at = time.monotonic()
            for _ in range(fault.size(short=40, full=400)):
                if await submit_again(client):
                    refused_at = time.monotonic()
            await client.until_ended()
            assert await submit_again(client) == 0, "nobody asks for the dead node any more"
            seconds = round(refused_at - killed_at, 1)
            fault.shows(accepted=len(client.accepted), seconds_until_accepted=seconds)
            if fault.is_full:
                assert seconds <= STARTS_SECONDS_MAX

    with roles_on(redis) as roles:
        asyncio.run(scenario(roles))


@pytest.mark.timeout(240)
@pytest.mark.fault("topology", "kill -9 of the node of a Redis Cluster that the setting names")
def test_a_cluster_goes_on_when_its_named_node_dies(fault: Fault):
    with small_cluster() as cluster:
        lose_a_node(fault, cluster, cluster.masters[0])
        asyncio.run(opens_without_its_first_seed(cluster))
        assert doctor_finds(cluster.url)


async def opens_without_its_first_seed(cluster: Cluster) -> None:
    server = Server(cluster.url)
    await server.open()
    assert await serves(server)
    await server.close()
    assert await limit_is_shared(cluster.url)


@pytest.mark.timeout(240)
@pytest.mark.fault("topology", "kill -9 of the master that Redis Sentinels watch")
def test_sentinels_replace_a_dead_master(fault: Fault):
    with watched_redis() as watched:
        lose_a_node(fault, watched, watched.master)
