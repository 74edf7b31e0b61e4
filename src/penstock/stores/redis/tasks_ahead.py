"""How many tasks are ahead of one that waits.

Streams that are handed out before the task's own count by their lengths. Its own is read up to the
task, in portions. Workers go round the partitions, so of the same stream in other partitions the
tasks that are older count; that is about the order in which they are handed out.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from penstock.stores.base import TasksAhead, partition_of
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Refused, Server
from penstock.stores.redis.flat_lists import pairs, triples
from penstock.stores.task_keys import Key

PORTION = 200
"""Tasks that one call looks at: everybody else waits meanwhile."""


class _Stream(NamedTuple):
    partition: int
    name: str
    rank: tuple[int, bool]
    """Priority, and whether its tasks were passed over. Greater ones are handed out first."""
    waiting: int


class _Look(NamedTuple):
    seen: int
    """How many other tasks there are before the one that is looked for, or the end."""
    entry_id: bytes
    """Of the task that is looked for; empty: it isn't among those that were looked at."""
    is_over: bool
    """Nothing is left to look at."""


async def tasks_ahead(  # noqa: PLR0913, PLR0917 -- where to look, and for what
    server: Server,
    partitions: int,
    key: Key,
    queue: str,
    handler: str,
    priority: int,
    limit: int,
) -> TasksAhead | None:
    """As `TaskQueue.tasks_ahead`."""
    streams = await _streams_of(server, partitions, queue, handler)
    own_partition = partition_of(key[0], partitions)
    own_streams = [
        stream
        for stream in streams
        if stream.partition == own_partition and stream.rank[0] == priority
    ]
    left = limit
    for stream in sorted(own_streams, key=lambda stream: stream.rank, reverse=True):
        before = sum(other.waiting for other in streams if other.rank > stream.rank)
        look = await _look(server, stream, "+", left, key)
        left -= look.seen
        if look.entry_id:
            others = [
                other
                for other in streams
                if other.rank == stream.rank and other.partition != own_partition
            ]
            older = await _older(server, others, look.entry_id, left)
            return TasksAhead(before + look.seen + older.seen, is_exact=older.is_over)
        if not look.is_over:
            return TasksAhead(before + look.seen, is_exact=False)
    return None


async def _streams_of(server: Server, partitions: int, queue: str, handler: str) -> list[_Stream]:
    """The streams of a queue in which tasks wait that a worker with this handler takes."""
    calls = [server.ask_script(partition, "list", "depths") for partition in range(partitions)]
    replies = await asyncio.gather(*calls)
    streams: list[_Stream] = []
    for partition, reply in enumerate(replies):
        for encoded_name, waiting, _ in triples(reply):
            name = encoded_name.decode()
            stream_queue, stream_handler = keys.queue_of(name)
            if waiting > 0 and stream_queue == queue and stream_handler in (None, handler):
                rank = (keys.priority_of(name), stream_handler is not None)
                streams.append(_Stream(partition, name, rank, waiting))
    return streams


async def _older(server: Server, streams: list[_Stream], entry_id: bytes, limit: int) -> _Look:
    """How many tasks of these streams came before an entry: its id begins with its time."""
    milliseconds, _, _ = entry_id.partition(b"-")
    last_id = f"({milliseconds.decode()}-0"
    seen = 0
    for stream in streams:
        look = await _look(server, stream, last_id, limit - seen)
        seen += look.seen
        if not look.is_over:
            return _Look(seen, b"", is_over=False)
    return _Look(seen, b"", is_over=True)


async def _look(
    server: Server, stream: _Stream, last_id: str, limit: int, key: Key = ("", "", 0, 0)
) -> _Look:
    """Look for a task among the waiting ones of a stream, in portions."""
    fetched_id = await _fetched_id(server, stream)
    if fetched_id is None:
        return _Look(0, b"", is_over=True)

    execution_id, node_id, generation, attempt = key
    task = (execution_id, f"{generation}:{attempt}:{node_id}")
    first_id = b"(" + fetched_id
    seen = 0
    while seen < limit:
        count = min(PORTION, limit - seen)
        number, seen_id, entry_id = await server.ask_script(
            stream.partition, "look", stream.name, first_id, last_id, count, *task
        )
        seen += number
        if entry_id or number < count:
            return _Look(seen, entry_id, is_over=True)
        first_id = b"(" + seen_id
    return _Look(seen, b"", is_over=False)


async def _fetched_id(server: Server, stream: _Stream) -> bytes | None:
    """The last entry that a worker has fetched: behind it are those that wait.

    None if the stream is gone.
    """
    link = server.of(stream.partition)
    name = keys.prefix(stream.partition) + "tasks:" + stream.name
    try:
        [group] = await link.ask("XINFO", "GROUPS", name)
    except Refused:
        return None
    about = dict(pairs(group))
    fetched_id: bytes = about[b"last-delivered-id"]
    return fetched_id
