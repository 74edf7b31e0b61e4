"""Counting, in plain numbers. `exposition` shows them to Prometheus when it asks.

A task may cost a few dictionary look-ups here and no more, because 20,000 of them run in a second:
the orchestrator reads a whole commit at once (`penstock.orchestrator.meter`), a worker tells of an
attempt that has ended.

Labels are names of handlers, queues and states, and documents can't make more of them than
`LABEL_VALUES_MAX`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

SECONDS = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
)
EXECUTIONS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
OTHER = "other"
LABEL_VALUES_MAX = 500
LABEL_CHARACTERS_MAX = 100


class Levels(NamedTuple):
    """How things stand at this moment."""

    inbox: Mapping[int, int]
    """By partition that is owned here: events that aren't committed yet."""
    queues: Mapping[str, tuple[int, int]]
    """By queue: tasks that wait, tasks that run."""
    workers: int


class Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, *values: float) -> None:
        """Negative ones are two clocks that differ a little."""
        counts = self.counts
        bounds = self.bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            if value > 0.0:
                self.total += value


class Labels:
    """Values of a label. A name that is neither known nor among the first ones is `other`."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def know(self, names: Iterable[str]) -> None:
        self._names.update(names)

    def of(self, name: str) -> str:
        """The label's value for a name."""
        if name in self._names:
            return name
        is_full = len(self._names) >= LABEL_VALUES_MAX
        if is_full or len(name) > LABEL_CHARACTERS_MAX or not name.isprintable():
            return OTHER
        self._names.add(name)
        return name


class Metrics:
    """The counters of one process.

    Made by whoever starts the process, and given to the orchestrator, the worker and the API.
    """

    def __init__(self) -> None:
        self.executions_started = 0
        self.executions_finished: Counter[str] = Counter()
        self.tasks: dict[str, Counter[str]] = {}
        """By handler, by outcome."""
        self.retries: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.slots: Counter[str] = Counter()
        """Slots of schedules, by outcome."""
        self.tasks_lost = 0
        self.loop_blocked = 0
        self.recovered = 0
        self.swept = 0
        self.fenced = 0
        self.archived = 0
        self.checkpointed = 0
        self.rebuilt = 0
        """Executions that came back from the cold store."""
        self.rebuilds = 0
        """Partitions of a hot store that were built again from the cold one."""
        self.rewritten = 0
        self.cold_store_went_back = 0
        self.hop_seconds = Histogram(SECONDS)
        self.queue_wait_seconds = Histogram(SECONDS)
        self.commit_seconds = Histogram(SECONDS)
        self.commit_executions = Histogram(EXECUTIONS)
        self.archive_seconds = Histogram(SECONDS)
        self.handlers = Labels()
        self.queues = Labels()
        self.levels: Callable[[], Awaitable[Levels]] | None = None
        """Called at each scrape, if it is set."""

    def task_ended(self, handler: str, outcome: str, attempt: int) -> None:
        """Count an attempt that has ended; called by the worker."""
        counts = self.tasks.get(handler)
        if counts is None:
            handler = self.handlers.of(handler)
            counts = self.tasks.setdefault(handler, Counter())
        counts[outcome] += 1
        if attempt > 1:
            self.retries[handler] += 1
