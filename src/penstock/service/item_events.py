"""Live events of an execution down to a depth: what is deeper comes as counts of items.

A map of 10,000 items has 100,000 lines, and whoever draws it as one box needs none of them. Counts
are read from the store once, at the beginning; from then on they follow from the lines that are
left out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import NamedTuple

from penstock.definition.addresses import node_at, steps_to
from penstock.definition.plan import Plan
from penstock.engine.commands import NodeRun, Transition
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.errors import NotFound
from penstock.service.executions import Executions, no_node
from penstock.service.live_events import LiveEvents
from penstock.service.readers import Batch, Counts, FeedLine
from penstock.stores.base import Stored
from penstock.views.nodes import ItemCounts

COUNTS_SECONDS = 0.5
"""Counts are sent at most this often."""


class Selection(NamedTuple):
    """Which lines of an execution are sent as they are."""

    depth: int | None = None
    """How many maps and loops deep, from `under` on; None: all."""
    under: str | None = None
    """Only this map, loop or item, and what is inside of it."""

    @property
    def is_everything(self) -> bool:
        return self.depth is None and self.under is None

    def has(self, address: str) -> bool:
        under = self.under
        if under is None or address == under:
            return True
        return address.startswith((f"{under}[", f"{under}."))


class Tally:
    """The items of a map, or the rounds of a loop, counted line by line."""

    def __init__(self, *, is_loop: bool) -> None:
        self.is_loop = is_loop
        self.size = 0
        self.opened = 0
        self.ended: Counter[str] = Counter()
        self.is_over = False

    @classmethod
    def of_runs(cls, stored: Stored, run: NodeRun, *, is_loop: bool) -> Tally:
        tally = cls(is_loop=is_loop)
        tally.is_over = run.state in NODE_ENDS
        if run.more is None:
            return tally
        tally.size = run.more.size
        tally.opened = run.more.opened
        first = 1 if is_loop else 0
        for index in range(first, run.more.opened + first):
            item = stored.runs.get(f"{run.node_id}[{index}]")
            if item is not None and item.state in NODE_ENDS:
                tally.ended[item.state] += 1
        return tally

    def begin(self, reason: str | None) -> None:
        """The line with which a map begins says how many items it has: `10000 items`."""
        digits, _, _ = (reason or "").partition(" ")
        if digits.isdecimal():
            self.size = int(digits)

    def open(self, index: int) -> None:
        self.opened = max(self.opened, index if self.is_loop else index + 1)

    @property
    def counts(self) -> ItemCounts:
        ended = sum(self.ended.values())
        return ItemCounts(
            total=self.opened if self.is_loop else self.size,
            open=0 if self.is_over else self.opened - ended,
            completed=self.ended[NodeState.COMPLETED],
            failed=self.ended[NodeState.FAILED],
            skipped=self.ended[NodeState.SKIPPED],
            cancelled=self.ended[NodeState.CANCELLED],
        )


class Tallies:
    """The counts of an execution's maps and loops, at the depth below which lines are left out."""

    def __init__(self, stored: Stored, plan: Plan, selection: Selection) -> None:
        self._plan = plan
        self._selection = selection
        self._counted_seq = stored.last_seq
        """Lines up to this one are in the counts that were read."""
        under = selection.under
        self._level = len(steps_to(plan, under)) if under else 0
        if selection.depth is not None:
            self._level += selection.depth
        self._tallies: dict[str, Tally] = {}
        self.changed: set[str] = set()
        """Maps and loops whose counts are to be sent."""
        if selection.depth is not None:
            self._read(stored)

    def _read(self, stored: Stored) -> None:
        for address, run in stored.runs.items():
            if run.more is None or not self._selection.has(address):
                continue
            if len(steps_to(self._plan, address)) != self._level:
                continue
            tally = self._tally_of(address)
            if tally is not None:
                is_loop = tally.is_loop
                self._tallies[address] = Tally.of_runs(stored, run, is_loop=is_loop)
                self.changed.add(address)

    def _tally_of(self, address: str) -> Tally | None:
        """The counts of a map or a loop; None if the address is another node's."""
        tally = self._tallies.get(address)
        node = node_at(self._plan, address)
        if tally is None and node is not None and node.region is not None:
            tally = Tally(is_loop=node.region.repeat is not None)
            self._tallies[address] = tally
        return tally

    def take(self, line: Transition) -> bool:
        """Count a line; whether it is sent as it is."""
        address = line.node_id
        if not address:
            return True  # of the execution itself
        if not self._selection.has(address):
            return False
        if self._selection.depth is None:
            return True
        steps = steps_to(self._plan, address)
        is_new = line.seq > self._counted_seq
        if len(steps) > self._level:
            step = steps[self._level]
            if is_new:
                self._count(step.address, step.item_index, line)
            return False
        if is_new and len(steps) == self._level:
            self._note_state(line)
        return True

    def _count(self, address: str, index: int, line: Transition) -> None:
        tally = self._tally_of(address)
        if tally is None:
            return
        tally.open(index)
        if line.node_id == f"{address}[{index}]" and line.after in NODE_ENDS:
            tally.ended[line.after] += 1
        self.changed.add(address)

    def _note_state(self, line: Transition) -> None:
        tally = self._tally_of(line.node_id)
        if tally is None or line.node_id.endswith("]"):
            return
        if line.after == NodeState.WAITING:
            tally.begin(line.reason)
        tally.is_over = line.after in NODE_ENDS
        self.changed.add(line.node_id)

    def is_over(self, lines: Iterable[FeedLine]) -> bool:
        """Whether a map or a loop of which there are counts has ended with these lines."""
        return any(
            feed_line.line.node_id in self.changed and feed_line.line.after in NODE_ENDS
            for feed_line in lines
        )

    def drain(self, execution_id: str) -> list[Counts]:
        """The counts that have changed."""
        counts = [
            Counts(execution_id, address, self._tallies[address].counts)
            for address in sorted(self.changed)
        ]
        self.changed.clear()
        return counts


class ItemEvents:
    """Live events of one execution, with counts in place of what is deeper."""

    def __init__(self, executions: Executions, live_events: LiveEvents) -> None:
        self._executions = executions
        self._live_events = live_events

    async def follow(
        self,
        execution_id: str,
        after: int = 0,
        *,
        selection: Selection,
        idle_seconds: float | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """As `LiveEvents.follow`. Raises `NotFound` also if there is no such node."""
        stored = await self._executions.stored(execution_id)
        plan = await self._executions.plan(stored.record)
        if selection.under is not None and node_at(plan, selection.under) is None:
            raise NotFound(no_node(selection.under, plan))
        tallies = Tallies(stored, plan, selection)
        clock = asyncio.get_running_loop().time
        counts_due = clock()
        sent_at = clock()

        def silence() -> float | None:
            return max(0.0, counts_due - clock()) if tallies.changed else idle_seconds

        is_first = True
        last_id = ""
        sent_id = ""
        batches = self._live_events.follow(execution_id, after, idle_seconds=silence)
        async with aclosing(batches):
            async for batch in batches:
                lines = [item for item in batch.feed_lines if tallies.take(item.line)]
                if batch.feed_lines:
                    last_id = batch.feed_lines[-1].id
                sent = Batch(lines, batch.ends)
                now = clock()
                is_urgent = batch.ends is not None or tallies.is_over(lines)
                if lines:
                    sent_id = lines[-1].id
                if tallies.changed and (is_urgent or now >= counts_due):
                    sent.counts = tallies.drain(execution_id)
                    if last_id != sent_id:
                        sent.skipped_id = last_id
                        sent_id = last_id
                    counts_due = now + COUNTS_SECONDS
                is_idle = idle_seconds is not None and now - sent_at >= idle_seconds
                if lines or sent.counts or sent.ends or is_first or is_idle:
                    is_first = False
                    sent_at = now
                    yield sent
