"""A commit as `commit.lua` takes it: lists of encoded records, each behind its length."""

from __future__ import annotations

from itertools import chain
from typing import Any

from penstock.stores import codec
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.redis import keys
from penstock.stores.redis.entries import Entries
from penstock.stores.redis.inbox import first_needed
from penstock.stores.task_keys import Key, key_of

FEED_SLOTS = 4096
"""A position in the feed is `commit number × 4096 + index of the execution in it`."""
FEED_COMMITS = 10_000
"""How many commits a partition's feed retains, at most and about."""
FEED_BYTES = 16 * 1024 * 1024
"""How many bytes of commits a partition's feed retains, at most and about."""
Lists = dict[str, list[Any]]
WIDTHS = {
    "changes": 2,
    "tasks": 2,
    "stops": 2,
    "timers": 2,
    "cleared": 1,
    "dropped": 2,
    "pauses": 1,
    "resumes": 1,
    "ended": 1,
    "outbox": 1,
}
"""The lists in the script's order, and how many items make one of each."""


class FeedSize:
    """How many commits the feed of a partition retains, by their mean size.

    A commit may have one history line or a thousand.
    """

    def __init__(self) -> None:
        self._mean = 0.0

    def commits(self, size: int) -> int:
        self._mean += (size - self._mean) / 16
        return max(1, min(FEED_COMMITS, int(FEED_BYTES / max(self._mean, size / 16, 1.0))))


def arguments_of(
    plan: CommitPlan, entries: Entries, feed: FeedSize
) -> tuple[list[Any], list[tuple[Key, str]]]:
    """The script's arguments, and the keys and streams of the tasks in them."""
    tasks, streams = _tasks(plan, entries)
    lists: Lists = {
        "changes": list(chain.from_iterable(plan.changes)),
        "tasks": tasks,
        "stops": [],
        "timers": [],
        "cleared": plan.timers_cleared,
        "dropped": [],
        "pauses": plan.paused,
        "resumes": plan.resumed,
        "ended": [ended.execution_id for ended in plan.ended],
        "outbox": [codec.encode(outgoing) for outgoing in plan.outbox],
    }
    for stop in plan.stops:
        location = entries.location(stop)
        if location is not None:
            lists["stops"] += location
        task_field = f"{stop.generation}:{stop.attempt}:{stop.node_id}"
        lists["dropped"] += (stop.execution_id, task_field)
    for execution_id, wake_at in plan.timers_set:
        lists["timers"] += (wake_at, execution_id)

    arguments: list[Any] = [
        plan.token,
        plan.commit_number,
        plan.position,
        first_needed(plan.position),
    ]
    for list_name, width in WIDTHS.items():
        items = lists[list_name]
        arguments.append(len(items) // width)
        arguments += items
    last_position = (plan.commit_number + 1) * FEED_SLOTS + len(plan.feed) - 1
    feed_entry = codec.encode(plan.feed) if plan.feed else b""
    return [*arguments, feed_entry, last_position, feed.commits(len(feed_entry))], streams


def _tasks(plan: CommitPlan, entries: Entries) -> tuple[list[Any], list[tuple[Key, str]]]:
    """Streams and encoded tasks, without those that are in a stream already."""
    items: list[Any] = []
    streams: list[tuple[Key, str]] = []
    for task in plan.tasks:
        if entries.has(task):
            continue
        stream = keys.stream(task.queue, task.priority)
        items += (stream, codec.encode(task))
        streams.append((key_of(task), stream))
    return items, streams
