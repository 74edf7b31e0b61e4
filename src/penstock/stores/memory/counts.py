"""Counting executions and dead letters in memory, by reading each of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from penstock.engine.states import ExecutionState
from penstock.stores.cold import DeadLetters
from penstock.stores.records import (
    CountRow,
    Counts,
    DeadLetterSearch,
    ExecutionRow,
    Search,
    Window,
)

ACTIVE = (
    str(ExecutionState.PENDING),
    str(ExecutionState.RUNNING),
    str(ExecutionState.PAUSED),
)


class Searchable(Protocol):
    """The executions of a cold store, as counting needs them."""

    def is_waiting(self, execution_id: str) -> bool: ...
    async def search(self, search: Search) -> list[ExecutionRow]: ...


class MemoryCounts:
    def __init__(self, executions: Searchable, dead_letters: DeadLetters) -> None:
        self._executions = executions
        self._dead_letters = dead_letters

    async def count_created(self, window: Window, limit: int) -> Counts:
        rows = await self._executions.search(Search(since=window.since, limit=limit + 1))
        counts = _count_groups(rows[:limit], window)
        return Counts(counts, truncated=len(rows) > limit)

    async def count_active(self, limit: int) -> dict[str, int]:
        counts: dict[str, int] = {}
        for state in ACTIVE:
            rows = await self._executions.search(Search(states=(state,), limit=limit))
            counts[state] = len(rows)
        return counts

    async def count_unfinished(self) -> dict[str, int]:
        rows = await self._executions.search(Search(states=ACTIVE, limit=sys.maxsize))
        started = [row for row in rows if not self._executions.is_waiting(row.execution_id)]
        return dict(Counter(row.workflow for row in started))

    async def count_dead_letters(self, limit: int) -> int:
        rows = await self._dead_letters.dead_letters(DeadLetterSearch(limit=limit))
        return len(rows)


def _count_groups(rows: Iterable[ExecutionRow], window: Window) -> list[CountRow]:
    counts: Counter[tuple[str, str, int]] = Counter()
    examples: dict[tuple[str, str, int], str] = {}
    for row in rows:
        key = (row.workflow, str(row.state), window.bucket_of(row.created_at))
        counts[key] += 1
        examples.setdefault(key, row.execution_id)
    return [CountRow(*key, count, examples[key]) for key, count in counts.items()]
