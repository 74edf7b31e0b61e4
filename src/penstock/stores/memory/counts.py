"""Counting in a store in memory: by a look at each execution."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from penstock.engine.states import ExecutionState
from penstock.stores.records import (
    CountRow,
    Counts,
    DeadLetterRow,
    DeadLetterSearch,
    ExecutionRow,
    Search,
    Window,
)

ACTIVE = (str(ExecutionState.PENDING), str(ExecutionState.RUNNING), str(ExecutionState.PAUSED))


class _Searched(Protocol):
    _waiting: set[str]

    async def search(self, search: Search) -> list[ExecutionRow]: ...
    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]: ...


class MemoryCounts:
    async def count_created(self: _Searched, window: Window, limit: int) -> Counts:
        rows = await self.search(Search(since=window.since, limit=limit + 1))
        return Counts(_grouped(islice(rows, limit), window), truncated=len(rows) > limit)

    async def count_active(self: _Searched, limit: int) -> dict[str, int]:
        return {
            state: len(await self.search(Search(states=(state,), limit=limit))) for state in ACTIVE
        }

    async def count_unfinished(self: _Searched) -> dict[str, int]:
        rows = await self.search(Search(states=ACTIVE, limit=sys.maxsize))
        return dict(Counter(row.workflow for row in rows if row.execution_id not in self._waiting))

    async def count_dead_letters(self: _Searched, limit: int) -> int:
        return len(await self.dead_letters(DeadLetterSearch(limit=limit)))


def _grouped(rows: Iterable[ExecutionRow], window: Window) -> list[CountRow]:
    counts: Counter[tuple[str, str, int]] = Counter()
    examples: dict[tuple[str, str, int], str] = {}
    for row in rows:
        key = (row.workflow, str(row.state), window.bucket_of(row.created_at))
        counts[key] += 1
        examples.setdefault(key, row.execution_id)
    return [CountRow(*key, count, examples[key]) for key, count in counts.items()]
