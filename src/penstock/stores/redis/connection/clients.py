"""redis-py's clients for a store's URL, for the rate limit and `penstock doctor`.

The store itself uses its own connections (`link.Link`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import redis.asyncio
from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection, parse_url
from redis.asyncio.sentinel import SentinelConnectionPool

from penstock.stores.redis.connection.address import Endpoints, first_url, parse

# redis-py has no types for some of what follows
_Sentinel: Any = redis.Sentinel
_AsyncSentinel: Any = redis.asyncio.Sentinel
_ClusterNode: Any = redis.cluster.ClusterNode
_AsyncClusterNode: Any = redis.asyncio.cluster.ClusterNode


def async_client(url: str, **options: Any) -> Any:
    """A `redis.asyncio.Redis`, or a client of the cluster where the URL names several nodes."""
    endpoints = parse(url)
    if endpoints.sentinels:
        sentinel = _AsyncSentinel(**_sentinel_options(endpoints, options))
        return sentinel.master_for(endpoints.master_name, **_options(url), **options)
    if len(endpoints.servers) > 1:
        nodes = [_AsyncClusterNode(server.host, server.port) for server in endpoints.servers]
        return redis.asyncio.RedisCluster(startup_nodes=nodes, **_cluster_options(url), **options)
    return redis.asyncio.Redis.from_url(url, **options)


async def close_client(client: Any) -> None:
    """Close a client that `async_client` made.

    A client of a master doesn't close its connections to the Sentinels itself.
    """
    await client.aclose()
    if isinstance(client, redis.asyncio.Redis):
        pool = client.connection_pool
        if isinstance(pool, SentinelConnectionPool):
            for sentinel in pool.sentinel_manager.sentinels:
                await sentinel.aclose()


@contextmanager
def open_client(url: str, **options: Any) -> Iterator[Any]:
    """A `redis.Redis`, or a client of the cluster that the server is part of."""
    endpoints = parse(url)
    if endpoints.sentinels:
        sentinel = _Sentinel(**_sentinel_options(endpoints, options))
        try:
            with sentinel.master_for(endpoints.master_name, **_options(url), **options) as master:
                yield master
        finally:
            for watcher in sentinel.sentinels:
                watcher.close()
        return
    if len(endpoints.servers) == 1:
        with redis.Redis.from_url(url, **options) as server:
            if not int(server.info("cluster").get("cluster_enabled", 0)):
                yield server
                return
    nodes = [_ClusterNode(server.host, server.port) for server in endpoints.servers]
    with redis.RedisCluster(startup_nodes=nodes, **_cluster_options(url), **options) as cluster:
        yield cluster


def _options(url: str) -> dict[str, Any]:
    """Options that redis-py reads from the URL beside host and port."""
    options: dict[str, Any] = dict(parse_url(first_url(url)))
    kind = options.pop("connection_class", None)
    if kind is SSLConnection:
        options["ssl"] = True
    if kind is UnixDomainSocketConnection:
        options["unix_socket_path"] = options.pop("path")
    for name in ("host", "port"):
        options.pop(name, None)
    return options


def _cluster_options(url: str) -> dict[str, Any]:
    """Options of a cluster's client: it has no numbered databases."""
    options = _options(url)
    options.pop("db", None)
    return options


def _sentinel_options(endpoints: Endpoints, options: dict[str, Any]) -> dict[str, Any]:
    first = endpoints.sentinels[0]
    login = {"username": first.username, "password": first.password, "ssl": first.tls is not None}
    sentinels = [(sentinel.host, sentinel.port) for sentinel in endpoints.sentinels]
    return {"sentinels": sentinels, "sentinel_kwargs": {**login, **options}}
