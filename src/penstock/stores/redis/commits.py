"""A commit as the script `commit.lua` takes it: lists of ready-made bytes, each behind its length."""

from __future__ import annotations

from typing import Any

from penstock.engine.commands import Commands
from penstock.stores import codec
from penstock.stores.base import Commit
from penstock.stores.redis import keys
from penstock.stores.redis.entries import Entries
from penstock.stores.redis.inbox import first_needed
from penstock.stores.split import outgoing_of
from penstock.stores.task_queue import Key, key_of

FEED_SLOTS = 4096
"""A position in the feed is `commit number × 4096 + index of the execution in it`."""
FEED_COMMITS, FEED_BYTES = 10_000, 16 * 1024 * 1024
"""Kept in a partition's feed, about: so many, and no more than so much."""
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
    """How many commits the feed of a partition keeps: commits may be a line or a thousand."""

    def __init__(self) -> None:
        self._mean = 0.0

    def commits(self, size: int) -> int:
        self._mean += (size - self._mean) / 16
        return max(1, min(FEED_COMMITS, int(FEED_BYTES / max(self._mean, size / 16, 1.0))))


def arguments_of(
    commit: Commit, entries: Entries, feed: FeedSize
) -> tuple[list[Any], list[tuple[Key, str]]]:
    """The script's arguments, and the keys and streams of the tasks in them."""
    lists: Lists = {name: [] for name in WIDTHS}
    tasks: list[tuple[Key, str]] = []
    lines: list[tuple[str, Any]] = []
    for commands, data in zip(commit.changes, commit.data, strict=True):
        name = commands.execution_id
        if data:
            lists["changes"] += (name, data)
        if commands.history:
            lines.append((name, commands.history))
        if commands.tasks:
            _add_tasks(commands, entries, lists["tasks"], tasks)
        _add_rest(commands, entries, lists)
    arguments: list[Any] = [
        commit.token,
        commit.commit_number,
        commit.position,
        first_needed(commit.position),
    ]
    for name, width in WIDTHS.items():
        items = lists[name]
        arguments.append(len(items) // width)
        arguments += items
    last = (commit.commit_number + 1) * FEED_SLOTS + len(lines) - 1
    told = codec.encode(lines) if lines else b""
    return [*arguments, told, last, feed.commits(len(told))], tasks


def _add_tasks(
    commands: Commands, entries: Entries, items: list[Any], tasks: list[tuple[Key, str]]
) -> None:
    stopped = set(map(key_of, commands.stops)) if commands.stops else ()
    for task in commands.tasks:
        key = key_of(task)
        if key in stopped or entries.has(task):
            continue  # nobody waits for it any more; or it is handed out again and here already
        stream = keys.stream(task.queue, task.priority)
        items += (stream, codec.encode(task))
        tasks.append((key, stream))


def _add_rest(commands: Commands, entries: Entries, lists: Lists) -> None:
    name = commands.execution_id
    for stop in commands.stops:
        location = entries.location(stop)
        if location is not None:
            lists["stops"] += location
        lists["dropped"] += (name, f"{stop.generation}:{stop.attempt}:{stop.node}")
    if commands.finished:
        lists["ended"].append(name)
    elif commands.timer_changed and commands.wake_at is not None:
        lists["timers"] += (commands.wake_at, name)
    elif commands.timer_changed:
        lists["cleared"].append(name)
    if commands.paused is not None and not commands.finished:
        lists["pauses" if commands.paused else "resumes"].append(name)
    if commands.finished or commands.dead_letters or commands.paused is not None:
        outgoing = outgoing_of(commands)
        if outgoing is not None:
            lists["outbox"].append(codec.encode(outgoing))
