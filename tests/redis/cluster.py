"""A cluster of three nodes, for the tests of one process.

It runs the binary that the other tests use.
"""

from __future__ import annotations

import atexit
import contextlib
from functools import cache
from pathlib import Path
from typing import Any

import redis

from penstock.local import RedisServer
from tests.servers import open_folder
from tests.waiting import until_now

NODES = 3
SLOTS = 16384
PASSWORD = "the-same-on-every-node"


def cluster_url() -> str:
    """An empty cluster.

    It has no numbered databases, so tests use the same one after another.
    """
    for client in _clients():
        client.flushall()
    return _nodes()[0].url


@cache
def _nodes() -> list[RedisServer]:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(open_folder())
    return [stack.enter_context(_node(folder / str(number))) for number in range(NODES)]


def _node(folder: Path) -> RedisServer:
    folder.mkdir()
    (folder / "password").write_text(PASSWORD)
    return RedisServer(folder, append_only=None, cluster=True)


@cache
def _clients() -> list[redis.Redis]:
    """Connected to the nodes, once these know each other."""
    clients = [redis.Redis.from_url(node.url) for node in _nodes()]
    for client in clients:
        atexit.register(client.close)
    for number, client in enumerate(clients):
        first, last = number * SLOTS // NODES, (number + 1) * SLOTS // NODES - 1
        _ask(client, "CLUSTER", "ADDSLOTSRANGE", first, last)
        _ask(client, "CLUSTER", "MEET", "127.0.0.1", _nodes()[0].port)
    until_now(lambda: all(map(_is_whole, clients)), "the cluster to be whole")
    return clients


def _is_whole(client: redis.Redis) -> bool:
    said = str(_ask(client, "CLUSTER", "INFO"))
    return "cluster_state:ok" in said and f"cluster_size:{NODES}" in said


def _ask(client: Any, *words: Any) -> Any:
    """Past redis-py's types, which don't know this method."""
    return client.execute_command(*words)
