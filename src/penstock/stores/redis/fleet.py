"""Workers as they show themselves in Redis: what they say of themselves, and the tasks on their lists."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import StoreError
from penstock.stores.base import Offer
from penstock.stores.redis import keys
from penstock.stores.redis.scripts import script
from penstock.stores.redis.server import Server

TASKS_BYTES_MAX = 1024 * 1024
"""Of tasks that are read of one partition: their configs may be large, and nobody asks for them
here.
"""


class ShownTask(msgspec.Struct, array_like=True):
    """A task (`engine.commands.Task`), read without making objects of what isn't shown."""

    execution_id: str
    node_id: str
    generation: int
    attempt: int
    handler: str
    queue: str
    config: msgspec.Raw
    inputs: msgspec.Raw
    secrets: msgspec.Raw
    timeout_seconds: float
    idempotency_key: str
    workflow: str


ClaimedTask = tuple[ShownTask, float]
"""A claimed task, and for how many seconds its worker has had it."""
_task = msgspec.msgpack.Decoder(ShownTask)


async def keep_alive(server: Server, worker_id: str) -> None:
    """A heartbeat for a worker that can't send one: it serves what it said last."""
    data = await server.fleet.ask("HGET", keys.WORKERS, worker_id)
    now = server.now()
    said = msgspec.json.decode(data) if data else {"queues": [], "running": 0, "since": now}
    about = msgspec.json.encode({**said, "at": now})
    await script("beat").run(server.fleet, keys.BEATS, worker_id, about)


class _About(msgspec.Struct):
    """What a worker says of itself; the rest of it is only shown."""

    queues: list[str]
    at: float
    handlers: dict[str, HandlerDefaults] | None = None
    since: float | None = None
    every: float | None = None
    """Seconds between two heartbeats."""


_about = msgspec.json.Decoder(_About)


def about_worker(
    queues: Collection[str], handlers: Mapping[str, HandlerDefaults] | None, **more: Any
) -> dict[str, Any]:
    return {"queues": sorted(queues), "handlers": handlers, **more}


async def worker_offers(server: Server) -> list[Offer]:
    beats, about = await server.fleet.pipeline([("HKEYS", keys.BEATS), ("HGETALL", keys.WORKERS)])
    said = dict(zip(about[::2], about[1::2], strict=True))
    return offers_of({name.decode(): said[name] for name in beats if name in said}, server.now())


def offers_of(said: Mapping[str, bytes | str], now: float) -> list[Offer]:
    """Offers of workers, from what they wrote about themselves, by name."""
    offers: list[Offer] = []
    for name, data in said.items():
        with suppress(msgspec.DecodeError):  # of a version that says it otherwise
            it = _about.decode(data)
            silent = max(0.0, now - it.at)
            offers.append(
                Offer(name, set(it.queues), it.handlers, it.since or 0.0, silent, it.every or 0.0)
            )
    return offers


async def worker_details(server: Server, partitions: int, tasks_max: int) -> list[dict[str, Any]]:
    beats, about = await server.fleet.pipeline([("HGETALL", keys.BEATS), ("HGETALL", keys.WORKERS)])
    counts = {
        name.decode(): int(count) for name, count in zip(beats[::2], beats[1::2], strict=True)
    }
    claimed, now, shown = await _claimed_tasks(server, partitions, tasks_max), server.now(), []
    for name, data in zip(about[::2], about[1::2], strict=True):
        worker_id, it = name.decode(), msgspec.json.decode(data)
        if worker_id in counts:
            tasks = sorted(claimed.get(worker_id, ()), key=lambda each: each[1], reverse=True)
            shown.append(
                {
                    "worker_id": worker_id,
                    "queues": it["queues"],
                    "handlers": it.get("handlers"),
                    "running": it["running"],
                    "heartbeats": counts[worker_id],
                    "heartbeat_seconds": it.get("every"),
                    "seconds_since_heartbeat": max(0.0, round(now - it["at"], 3)),
                    "started_at": it.get("since"),
                    "tasks": tasks[:tasks_max],
                }
            )
    return sorted(shown, key=lambda worker: str(worker["worker_id"]))


async def _claimed_tasks(
    server: Server, partitions: int, limit: int
) -> dict[str, list[ClaimedTask]]:
    """Claimed tasks by worker."""
    claimed: dict[str, list[ClaimedTask]] = {}
    for found in await asyncio.gather(*(_lists(server, each, limit) for each in range(partitions))):
        for worker, milliseconds, data in zip(found[::3], found[1::3], found[2::3], strict=True):
            with suppress(msgspec.DecodeError):  # of another version; whoever runs it will say so
                claimed.setdefault(worker.decode(), []).append(
                    (_task.decode(data), int(milliseconds) / 1000)
                )
    return claimed


async def _lists(server: Server, partition: int, limit: int) -> list[Any]:
    """Claimed tasks of a partition.

    An empty list if its node of a cluster is away: others can still be shown.
    """
    try:
        link, key = server.of(partition), keys.lease(partition)
        found: list[Any] = await script("list").ask(link, key, "tasks", limit, TASKS_BYTES_MAX)
    except StoreError:
        return []
    return found
