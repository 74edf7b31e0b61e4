"""Breadth first through all that can happen; a state that was seen is not looked at again."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from sys import intern
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.stores import codec
from tests.explorer import clients, deciding, faults, judge, orchestrators, workers
from tests.explorer.guards import without
from tests.explorer.judge import Violation
from tests.explorer.orchestrators import STARTED, Step
from tests.explorer.store import Removed
from tests.explorer.world import Budget, Store, World


class Found(NamedTuple):
    states: int
    steps: int
    rests: int
    """States in which nothing goes on unless a fault comes."""
    violation: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        counted = f"{self.states:,} states, {self.steps:,} steps, {self.rests:,} ends"
        lines = [f"{number:>4} {step}" for number, step in enumerate(self.trace, 1)]
        return "\n".join(
            [counted, *lines, f"     -> {self.violation}"] if self.violation else [counted]
        )


def explore(budget: Budget, removed: Removed = frozenset(), shape: str = deciding.FAN_IN) -> Found:
    """All states within the budget, or as many as it takes to find a violation."""
    with deciding.shaped(shape), without(removed):
        return Exploration(removed).run(World(Store((STARTED,)), budget))


class Exploration:
    def __init__(self, removed: Removed) -> None:
        self._removed = removed
        self._numbers: dict[bytes, int] = {}
        """Of states, by the digest of their bytes.

        That two have one has a chance of 1 in 2^60 or so.
        """
        self._came_from = array("q")
        self._came_by: list[str] = []
        self._ahead: deque[World] = deque()
        self._steps = self._rests = 0
        self._from, self._to = array("q"), array("q")
        """The steps that aren't faults, as pairs of states."""

    def run(self, first: World) -> Found:
        self._number(first, -1, "")
        for number in range(2**62):
            if not self._ahead:
                break
            failed = self._look(number, self._ahead.popleft())
            if failed is not None:
                return failed
        around = first_on_a_cycle(len(self._numbers), self._from, self._to)
        return (
            self._found()
            if around is None
            else self._found("G5 it goes round in circles", self._trace(around))
        )

    def _look(self, number: int, world: World) -> Found | None:
        """Take every step from here."""
        label = ""
        try:
            own = list(_own_steps(world, self._removed))
            if not own:
                self._rests += 1
                judge.check_rest(world)
            for label, take in own:
                self._from.append(number)
                self._to.append(self._number(take(), number, label))
            for label, take in faults.steps(world, self._removed):
                self._number(take(), number, label)
        except Violation as error:
            return self._found(str(error), [*self._trace(number), *([label] if label else [])])
        except PenstockError as error:
            return self._found(f"the core raised: {error}", [*self._trace(number), label])
        return None

    def _number(self, world: World, before: int, label: str) -> int:
        """Of a state; one that is new will be looked at."""
        self._steps += before >= 0
        digest = blake2b(codec.encode(world), digest_size=16).digest()
        number = self._numbers.setdefault(digest, len(self._numbers))
        if number == len(self._came_by):
            self._came_from.append(before)
            self._came_by.append(intern(label))
            self._ahead.append(world)
        return number

    def _trace(self, number: int) -> list[str]:
        trace: list[str] = []
        while number > 0:
            trace.append(self._came_by[number])
            number = self._came_from[number]
        return trace[::-1]

    def _found(self, violation: str = "", trace: list[str] | None = None) -> Found:
        return Found(len(self._numbers), self._steps, self._rests, violation, tuple(trace or ()))


def _own_steps(world: World, removed: Removed) -> Iterator[Step]:
    yield from orchestrators.steps(world, removed)
    yield from workers.steps(world, removed)
    yield from clients.steps(world)
    yield from faults.echoes(world)


def first_on_a_cycle(size: int, before: array[int], after: array[int]) -> int | None:
    """The first state on a cycle, by Kahn's algorithm.

    States without predecessors are removed until none is left; what remains is on a cycle, or
    behind one.
    """
    incoming = array("q", bytes(8 * size))
    leads_to: list[list[int]] = [[] for _ in range(size)]
    for source, target in zip(before, after, strict=True):
        incoming[target] += 1
        leads_to[source].append(target)
    free = deque(number for number in range(size) if not incoming[number])
    taken = 0
    while free:
        taken += 1
        for target in leads_to[free.popleft()]:
            incoming[target] -= 1
            if not incoming[target]:
                free.append(target)
    return None if taken == size else next(number for number in range(size) if incoming[number])
