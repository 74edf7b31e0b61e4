"""The numbers of `Metrics` for Prometheus, read when it scrapes.

exposition = Exposition(metrics)
body, content_type = await exposition.render(), CONTENT_TYPE      # GET /metrics
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from penstock.errors import StoreError
from penstock.telemetry.metrics import Histogram, Levels, Metrics

log = logging.getLogger("penstock.telemetry")

CONTENT_TYPE = CONTENT_TYPE_LATEST
_Values = Mapping[tuple[str, ...], int]


class Exposition(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._levels: Levels | None = None
        self.registry = CollectorRegistry()
        self.registry.register(self)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    async def render(self) -> bytes:
        self._levels = None
        read_levels = self._metrics.levels
        if read_levels is not None:
            try:
                self._levels = await read_levels()
            except StoreError as error:
                log.warning("metrics without gauges: %s", error)
                self._levels = None
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._counters()
        yield from self._histograms()
        if self._levels is not None:
            yield from self._gauges(self._levels)

    def _counters(self) -> Iterator[Metric]:
        metrics = self._metrics
        tasks: dict[tuple[str, ...], int] = {}
        for handler, counts in metrics.tasks.items():
            for outcome, count in counts.items():
                tasks[handler, outcome] = count
        yield _total(
            "executions_started", "Executions that have begun to run", metrics.executions_started
        )
        yield _counter(
            "executions_finished",
            "Executions that have ended",
            ("state",),
            _single(metrics.executions_finished),
        )
        yield _counter(
            "tasks",
            "Attempts that have ended on this process's worker",
            ("handler", "outcome"),
            tasks,
        )
        yield _counter(
            "retries",
            "Attempts among them that weren't the first",
            ("handler",),
            _single(metrics.retries),
        )
        yield _counter(
            "dead_letters",
            "Nodes that failed for good",
            ("handler",),
            _single(metrics.dead_letters),
        )
        yield _counter(
            "slots", "Slots of schedules that were due", ("outcome",), _single(metrics.slots)
        )
        yield _total("tasks_lost", "Tasks taken back from dead workers", metrics.tasks_lost)
        yield _total(
            "loop_blocked",
            "Times that a handler blocked this worker's loop for over a second",
            metrics.loop_blocked,
        )
        yield _total(
            "recovered", "Unfinished executions that a new owner has looked at", metrics.recovered
        )
        yield _total(
            "swept",
            "Executions whose start got lost and was found by the sweeper; stays 0",
            metrics.swept,
        )
        yield _total(
            "fenced",
            "Times that an owner was refused because its partition had moved on",
            metrics.fenced,
        )
        yield _total(
            "archived",
            "Finished executions that were brought into the cold store",
            metrics.archived,
        )
        yield _total(
            "checkpointed", "Copies of running executions in the cold store", metrics.checkpointed
        )
        yield _total(
            "rebuilt",
            "Executions that came back after the hot store lost its data",
            metrics.rebuilt,
        )
        yield _total(
            "rebuilds", "Partitions that were built again from the cold store", metrics.rebuilds
        )
        yield _total(
            "rewritten", "Executions whose row the cold store had lost; stays 0", metrics.rewritten
        )
        yield _total(
            "cold_store_went_back",
            "Times that the cold store knew less than it had acknowledged; stays 0",
            metrics.cold_store_went_back,
        )

    def _histograms(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield _histogram(
            "hop_seconds",
            "From the decision that a node may start to its start",
            metrics.hop_seconds,
        )
        yield _histogram(
            "queue_wait_seconds",
            "From the commit of a task to its start",
            metrics.queue_wait_seconds,
        )
        yield _histogram(
            "commit_seconds", "From a decision until it is durable", metrics.commit_seconds
        )
        yield _histogram(
            "commit_executions", "Executions that one commit changes", metrics.commit_executions
        )
        yield _histogram(
            "archive_seconds",
            "From the end of an execution until it is archived",
            metrics.archive_seconds,
        )

    def _gauges(self, levels: Levels) -> Iterator[Metric]:
        lag: _Values = {(str(partition),): events for partition, events in levels.inbox.items()}
        waiting: Counter[tuple[str, ...]] = Counter()
        running: Counter[tuple[str, ...]] = Counter()
        for name, (waits, runs) in levels.queues.items():
            label = self._metrics.queues.of(name)
            waiting[label,] += waits
            running[label,] += runs
        yield _gauge("inbox_lag", "Events that aren't committed yet", ("partition",), lag)
        yield _gauge("tasks_waiting", "Tasks that wait for a worker", ("queue",), waiting)
        yield _gauge("tasks_running", "Tasks in a worker's hands", ("queue",), running)
        yield _gauge("workers", "Workers that are alive", (), {(): levels.workers})


def _single(counts: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    return {(str(label),): count for label, count in counts.items()}


def _total(name: str, text: str, value: int) -> Metric:
    return CounterMetricFamily(f"penstock_{name}", text, value=value)


def _counter(name: str, text: str, labels: Iterable[str], values: _Values) -> Metric:
    family = CounterMetricFamily(f"penstock_{name}", text, labels=list(labels))
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _gauge(name: str, text: str, labels: Iterable[str], values: _Values) -> Metric:
    family = GaugeMetricFamily(f"penstock_{name}", text, labels=list(labels))
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    bounds = [*map(floatToGoString, histogram.bounds), "+Inf"]
    buckets = list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
    return HistogramMetricFamily(
        f"penstock_{name}", text, buckets=buckets, sum_value=histogram.total
    )
