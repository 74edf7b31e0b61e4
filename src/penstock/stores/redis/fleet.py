"""The fleet on Redis: workers by their heartbeats and claimed tasks, and the orchestrators."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import StoreError
from penstock.stores.base import Offer
from penstock.stores.fleet import ClaimedTask, OrchestratorDetails, WorkerDetails
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Server, script
from penstock.stores.redis.flat_lists import pairs, triples

TASKS_BYTES_MAX = 1024 * 1024
"""Bytes of claimed tasks that are read of one partition: their configs may be large."""


class Heartbeat(msgspec.Struct, kw_only=True):
    """A worker's last heartbeat, as Redis has it in JSON.

    Workers of older versions leave out what has a default.
    """

    queues: list[str]
    handlers: Mapping[str, HandlerDefaults] | None = None
    running: int = 0
    at: float
    since: float | None = None
    """When it sent its first heartbeat."""
    every: float | None = None
    """Seconds between two heartbeats."""

    def offer(self, worker_id: str, now: float) -> Offer:
        return Offer(
            worker_id,
            set(self.queues),
            self.handlers,
            started_at=self.since or 0.0,
            silent_seconds=max(0.0, now - self.at),
            heartbeat_seconds=self.every or 0.0,
        )


class _ShownTask(msgspec.Struct, array_like=True):
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


_heartbeat = msgspec.json.Decoder(Heartbeat)
_orchestrator = msgspec.json.Decoder(OrchestratorDetails)
_task = msgspec.msgpack.Decoder(_ShownTask)


class RedisFleet:
    """What all processes on this Redis have said about themselves (`stores.fleet.FleetStore`)."""

    def __init__(self, server: Server, partitions: int) -> None:
        self._server = server
        self._partitions = partitions

    async def workers(self, tasks_max: int) -> list[WorkerDetails]:
        counts, heartbeats = await self._server.fleet.pipeline(
            [("HGETALL", keys.BEATS), ("HGETALL", keys.WORKERS)]
        )
        data_by_worker = _by_name(heartbeats)
        claimed = await self._claimed_tasks(tasks_max)
        now = self._server.now()

        workers: list[WorkerDetails] = []
        for worker_id, count in sorted(_by_name(counts).items()):
            data = data_by_worker.get(worker_id)
            heartbeat = _decode_heartbeat(data) if data is not None else None
            if heartbeat is None:
                continue
            tasks = claimed.get(worker_id, [])
            tasks.sort(key=_claimed_seconds, reverse=True)
            details = WorkerDetails(
                heartbeat.offer(worker_id, now),
                heartbeat.running,
                int(count),
                tasks[:tasks_max],
            )
            workers.append(details)
        return workers

    async def orchestrators(self) -> dict[str, OrchestratorDetails]:
        members = await run_announce(self._server, "", 0, b"")
        orchestrators: dict[str, OrchestratorDetails] = {}
        for name, about in sorted(members.items()):
            with suppress(msgspec.DecodeError):  # a version that says other things
                orchestrators[name] = _orchestrator.decode(about)
        return orchestrators

    async def inbox_length(self) -> int:
        """The entries of all inboxes, counted without being read.

        What is committed is trimmed at once.
        """
        calls = [
            self._server.of(partition).ask("XLEN", keys.inbox(partition))
            for partition in range(self._partitions)
        ]
        return sum(await asyncio.gather(*calls))

    async def _claimed_tasks(self, limit: int) -> dict[str, list[ClaimedTask]]:
        """Claimed tasks by worker."""
        calls = [self._read_claimed(partition, limit) for partition in range(self._partitions)]
        replies = await asyncio.gather(*calls)

        claimed: dict[str, list[ClaimedTask]] = {}
        for reply in replies:
            for worker, age_ms, data in triples(reply):
                with suppress(msgspec.DecodeError):  # another version's; its worker will report it
                    task = _claimed_task(data, int(age_ms) / 1000)
                    claimed.setdefault(worker.decode(), []).append(task)
        return claimed

    async def _read_claimed(self, partition: int, limit: int) -> list[Any]:
        """Claimed tasks of a partition, as `list.lua` answers them.

        An empty list if its node of a cluster is away: those of other nodes can still be displayed.
        """
        try:
            reply: list[Any] = await self._server.ask_script(
                partition, "list", "tasks", limit, TASKS_BYTES_MAX
            )
        except StoreError:
            return []
        return reply


async def run_announce(
    server: Server, name: str, milliseconds: int, about: bytes
) -> dict[str, bytes]:
    """Run `announce.lua`: live orchestrators by name, and what each says about itself."""
    reply = await script("announce").run(
        server.fleet, keys.ORCHESTRATORS, name, milliseconds, about
    )
    return _by_name(reply)


async def send_heartbeat(server: Server, worker_id: str, heartbeat: Heartbeat) -> None:
    await _run_beat(server, worker_id, msgspec.json.encode(heartbeat))


async def keep_alive(server: Server, worker_id: str) -> None:
    """A heartbeat for a worker that can't send one: it serves what it said last."""
    data = await server.fleet.ask("HGET", keys.WORKERS, worker_id)
    now = server.now()
    if data is None:
        await send_heartbeat(server, worker_id, Heartbeat(queues=[], at=now, since=now))
        return
    # decoded in part, so that what a newer version says stays in it
    about = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    await _run_beat(server, worker_id, msgspec.json.encode({**about, "at": now}))


async def _run_beat(server: Server, worker_id: str, heartbeat: bytes) -> None:
    await script("beat").run(server.fleet, keys.BEATS, worker_id, heartbeat)


async def worker_offers(server: Server) -> list[Offer]:
    """Offers of all workers that have sent a heartbeat."""
    names, heartbeats = await server.fleet.pipeline(
        [("HKEYS", keys.BEATS), ("HGETALL", keys.WORKERS)]
    )
    data_by_worker = _by_name(heartbeats)
    live: dict[str, bytes] = {}
    for name in names:
        worker_id = name.decode()
        data = data_by_worker.get(worker_id)
        if data is not None:
            live[worker_id] = data
    return offers_of(live, server.now())


def offers_of(heartbeats: Mapping[str, bytes | str], now: float) -> list[Offer]:
    """Offers of workers, from their last heartbeats by worker."""
    offers: list[Offer] = []
    for worker_id, data in heartbeats.items():
        heartbeat = _decode_heartbeat(data)
        if heartbeat is not None:
            offers.append(heartbeat.offer(worker_id, now))
    return offers


def _decode_heartbeat(data: bytes | str) -> Heartbeat | None:
    """A heartbeat; None for one of a version with other heartbeats."""
    try:
        return _heartbeat.decode(data)
    except msgspec.DecodeError:
        return None


def _claimed_task(data: bytes, seconds: float) -> ClaimedTask:
    task = _task.decode(data)
    return ClaimedTask(
        task.execution_id,
        task.node_id,
        task.generation,
        task.attempt,
        task.handler,
        task.queue,
        task.workflow,
        seconds,
    )


def _claimed_seconds(task: ClaimedTask) -> float:
    return task.seconds or 0.0


def _by_name(reply: Sequence[bytes]) -> dict[str, bytes]:
    """A reply of names and values in turn, as HGETALL gives it."""
    return {name.decode(): value for name, value in pairs(reply)}
