"""A Redis whose node dies is served by another one.

A cluster, and a master that Sentinels watch.
"""

import asyncio

import pytest

from penstock.errors import SettingsError, StoreUnavailable
from penstock.stores.redis.connection import Link, Server
from penstock.stores.redis.connection.address import Address, parse
from penstock.stores.redis.timing import DEFAULT_TIMING
from tests.redis.topologies import client_of, doctor_finds, limit_is_shared, serves, watched_redis
from tests.servers import redis_server
from tests.waiting import until


def test_several_servers_that_are_no_cluster_are_refused() -> None:
    with redis_server(append_only=None) as first, redis_server(append_only=None) as second:
        url = f"redis://:{first.password()}@127.0.0.1:{first.port},127.0.0.1:{second.port}/0"

        async def scenario() -> None:
            server = Server(url)
            with pytest.raises(SettingsError, match="isn't part of a cluster"):
                await server.open()
            await server.close()

        asyncio.run(scenario())


def test_a_master_that_was_replaced_is_left_although_it_answers() -> None:
    """Cut off from its Sentinels, an old master would go on taking writes."""
    with watched_redis() as watched:

        async def scenario() -> None:
            server = Server(watched.url)
            await server.open()
            with client_of(watched.sentinels[0]) as client:
                client.execute_command("SENTINEL", "FAILOVER", "mymaster")
            await until(lambda: server.main.address.port == watched.replica.port, "the new master")
            await until(lambda: serves(server), "the new master to answer")
            await server.close()
            assert await limit_is_shared(watched.url)
            unknown = Server(watched.url.replace("/mymaster", "/another"))
            with pytest.raises(StoreUnavailable, match="no Sentinel"):
                await unknown.open()
            await unknown.close()

        asyncio.run(scenario())
        assert doctor_finds(watched.url)


def test_a_server_that_was_demoted_is_not_used_as_master() -> None:
    with redis_server(append_only=None) as server:
        with client_of(server) as client:
            client.replicaof("127.0.0.1", "1")
        address = parse(server.url).servers[0]

        async def named_as_master() -> Address:
            return address

        async def scenario() -> None:
            link = Link(address, DEFAULT_TIMING, named_as_master)
            with pytest.raises(StoreUnavailable, match="it is a slave, not the master"):
                await link.call("PING")
            await link.close()

        asyncio.run(scenario())


def test_a_url_may_name_seeds_or_sentinels() -> None:
    seeds = parse("redis://user:secret@one:7000,two:7001,three")
    assert [(server.host, server.port) for server in seeds.servers] == [
        ("one", 7000),
        ("two", 7001),
        ("three", 6379),
    ]
    assert {server.password for server in seeds.servers} == {"secret"}

    watched = parse("redis+sentinel://user:secret@one,two:26380/orders/3?sentinel_password=other")
    assert [(sentinel.host, sentinel.port) for sentinel in watched.sentinels] == [
        ("one", 26379),
        ("two", 26380),
    ]
    assert {sentinel.password for sentinel in watched.sentinels} == {"other"}
    assert (watched.master_name, watched.servers[0].db, watched.servers[0].password) == (
        "orders",
        3,
        "secret",
    )
    assert "secret" not in str(watched)
    assert "other" not in str(watched)


def test_sentinels_need_the_name_of_the_master() -> None:
    with pytest.raises(SettingsError, match="name of the master"):
        parse("redis+sentinel://one:26379")
