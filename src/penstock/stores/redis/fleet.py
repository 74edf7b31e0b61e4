"""Workers as Redis has them: their heartbeats, what they serve, and their claimed tasks."""

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
from penstock.stores.redis.connection import Server, script

TASKS_BYTES_MAX = 1024 * 1024
"""Bytes of claimed tasks that are read of one partition: their configs may be large."""


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
    about = msgspec.json.decode(data) if data else {"queues": [], "running": 0, "since": now}
    heartbeat = msgspec.json.encode({**about, "at": now})
    await script("beat").run(server.fleet, keys.BEATS, worker_id, heartbeat)


class _About(msgspec.Struct):
    """A worker's last heartbeat, as far as offers need it; the rest of it is only displayed."""

    queues: list[str]
    at: float
    handlers: dict[str, HandlerDefaults] | None = None
    since: float | None = None
    every: float | None = None
    """Seconds between two heartbeats."""


_about = msgspec.json.Decoder(_About)


def about_worker(
    queues: Collection[str], handlers: Mapping[str, HandlerDefaults] | None, **details: Any
) -> dict[str, Any]:
    return {"queues": sorted(queues), "handlers": handlers, **details}


async def worker_offers(server: Server) -> list[Offer]:
    """Offers of all workers that have sent a heartbeat."""
    beats, workers = await server.fleet.pipeline([("HKEYS", keys.BEATS), ("HGETALL", keys.WORKERS)])
    heartbeats = dict(zip(workers[::2], workers[1::2], strict=True))
    live = {name.decode(): heartbeats[name] for name in beats if name in heartbeats}
    return offers_of(live, server.now())


def offers_of(heartbeats: Mapping[str, bytes | str], now: float) -> list[Offer]:
    """Offers of workers, from their last heartbeats by worker."""
    offers: list[Offer] = []
    for worker_id, data in heartbeats.items():
        with suppress(msgspec.DecodeError):  # a version with other heartbeats
            about = _about.decode(data)
            offers.append(
                Offer(
                    worker_id,
                    set(about.queues),
                    about.handlers,
                    about.since or 0.0,
                    max(0.0, now - about.at),
                    about.every or 0.0,
                )
            )
    return offers


async def worker_details(server: Server, partitions: int, tasks_max: int) -> list[dict[str, Any]]:
    beats, workers = await server.fleet.pipeline(
        [("HGETALL", keys.BEATS), ("HGETALL", keys.WORKERS)]
    )
    counts = {
        name.decode(): int(count) for name, count in zip(beats[::2], beats[1::2], strict=True)
    }
    claimed = await _claimed_tasks(server, partitions, tasks_max)
    now = server.now()

    details: list[dict[str, Any]] = []
    for name, data in zip(workers[::2], workers[1::2], strict=True):
        worker_id = name.decode()
        if worker_id not in counts:
            continue
        about = msgspec.json.decode(data)
        longest_first = sorted(claimed.get(worker_id, ()), key=lambda claim: claim[1], reverse=True)
        details.append(
            {
                "worker_id": worker_id,
                "queues": about["queues"],
                "handlers": about.get("handlers"),
                "running": about["running"],
                "heartbeats": counts[worker_id],
                "heartbeat_seconds": about.get("every"),
                "seconds_since_heartbeat": max(0.0, round(now - about["at"], 3)),
                "started_at": about.get("since"),
                "tasks": longest_first[:tasks_max],
            }
        )
    return sorted(details, key=lambda worker: str(worker["worker_id"]))


async def _claimed_tasks(
    server: Server, partitions: int, limit: int
) -> dict[str, list[ClaimedTask]]:
    """Claimed tasks by worker."""
    claimed: dict[str, list[ClaimedTask]] = {}
    calls = [_read_claimed(server, partition, limit) for partition in range(partitions)]
    for reply in await asyncio.gather(*calls):
        for worker, milliseconds, data in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
            with suppress(msgspec.DecodeError):  # another version's; its worker will report it
                claim = (_task.decode(data), int(milliseconds) / 1000)
                claimed.setdefault(worker.decode(), []).append(claim)
    return claimed


async def _read_claimed(server: Server, partition: int, limit: int) -> list[Any]:
    """Claimed tasks of a partition, as `list.lua` answers them.

    An empty list if its node of a cluster is away: those of other nodes can still be displayed.
    """
    try:
        link = server.of(partition)
        key = keys.lease(partition)
        reply: list[Any] = await script("list").ask(link, key, "tasks", limit, TASKS_BYTES_MAX)
    except StoreError:
        return []
    return reply
