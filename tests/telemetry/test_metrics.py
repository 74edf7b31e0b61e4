"""Metrics: exact counts of what an engine did, as Prometheus reads them.

Documents can't multiply the labels.
"""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.config import Settings
from penstock.errors import StoreUnavailable, Terminal
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.runtime import Engine
from penstock.runtime import engine as embedded
from penstock.stores.sqlite import SqliteStores
from penstock.telemetry.exposition import CONTENT_TYPE, Exposition
from penstock.telemetry.metrics import LABEL_VALUES_MAX, OTHER, Histogram, Levels, Metrics
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from penstock.worker.runtime import Worker
from tests.waiting import until

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scrape(metrics: Metrics) -> Samples:
    text = (await Exposition(metrics).render()).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("penstock_")
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples["penstock_" + name, frozenset(labels.items())]


def named(samples: Samples, name: str) -> dict[frozenset[tuple[str, str]], float]:
    return {
        labels: number
        for (sample, labels), number in samples.items()
        if sample == "penstock_" + name
    }


async def works() -> str:
    return "done"


def fails_once(_config: Any, ctx: Context) -> None:
    if ctx.attempt == 1:
        raise RuntimeError("not yet")


def refuses() -> None:
    raise Terminal("never")


async def hangs() -> None:
    await asyncio.Event().wait()


class Plant:
    """An engine on SQLite whose parts have one `Metrics`."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *handlers: Callable[..., Any]
    ) -> None:
        self.metrics = Metrics()
        for name, part in (("Worker", Worker), ("Orchestrator", Orchestrator)):
            monkeypatch.setattr(embedded, name, self._measured(part))
        registry = Registry([Handler(handler.__name__, handler) for handler in handlers])
        settings = Settings(shutdown_grace_seconds=0.0)
        self.engine = Engine(
            SqliteStores(folder / "store.db"), settings=settings, registry=registry
        )

    def _measured(self, part: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **options: part(
            *arguments, **{**options, "metrics": self.metrics}
        )

    async def run(self, *nodes: dict[str, Any], times: int = 1) -> None:
        document = {"name": "flow", "on_failure": "continue", "nodes": list(nodes)}
        for started in [await self.engine.start(document) for _ in range(times)]:
            await started.result()


def node(name: str, handler: str, *parents: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "handler": handler, "dependencies": list(parents), **fields}


def test_a_run_is_counted_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = Plant(tmp_path, monkeypatch, works, fails_once, refuses)
    again = {"max_attempts": 3, "initial_delay_seconds": 0.01, "jitter_seconds": 0}
    diamond = [
        node("a", "works"),
        node("b", "works", "a"),
        node("c", "works", "a"),
        node("d", "works", "b", "c"),
    ]

    async def scenario() -> Samples:
        async with plant.engine:
            await plant.run(*diamond, times=5)
            await plant.run(node("once", "fails_once", retry=again), node("in", "input"), times=3)
            await plant.run(node("no", "refuses"), node("then", "works", "no"), times=2)
            return await scrape(plant.metrics)

    samples = asyncio.run(scenario())
    assert value(samples, "executions_started_total") == 10
    assert named(samples, "executions_finished_total") == {
        frozenset({("state", "COMPLETED")}): 8,
        frozenset({("state", "FAILED")}): 2,
    }
    assert {
        tuple(sorted(dict(labels).values())): n
        for labels, n in named(samples, "tasks_total").items()
    } == {
        ("completed", "works"): 20,
        ("failed", "fails_once"): 3,
        ("completed", "fails_once"): 3,
        ("failed", "refuses"): 2,
    }
    assert named(samples, "retries_total") == {frozenset({("handler", "fails_once")}): 3}
    assert named(samples, "dead_letters_total") == {frozenset({("handler", "refuses")}): 2}
    for histogram in ("hop_seconds", "queue_wait_seconds"):
        assert value(samples, histogram + "_count") == 20 + 6 + 2
        assert value(samples, histogram + "_bucket", le="+Inf") == 28
        assert 0 < value(samples, histogram + "_sum") < 60
    assert value(samples, "queue_wait_seconds_sum") <= value(samples, "hop_seconds_sum")
    commits = value(samples, "commit_executions_count")
    assert commits >= value(samples, "commit_seconds_count") > 0
    assert value(samples, "commit_executions_sum") >= commits
    for nothing in ("swept_total", "tasks_lost_total", "recovered_total"):
        assert value(samples, nothing) == 0
    assert value(samples, "workers") == 1
    assert value(samples, "inbox_lag", partition="0") == 0


def test_what_waits_and_what_runs_is_shown_by_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant(tmp_path, monkeypatch, hangs)

    async def scenario() -> Samples:
        async with plant.engine:
            hanging = [node(f"n{i}", "hangs", queue="slow", timeout_seconds=0.05) for i in range(3)]
            execution = await plant.engine.start({"name": "w", "nodes": hanging})
            await until(lambda: plant.engine.worker.attempts == 3)
            samples = await scrape(plant.metrics)
            await execution.cancel()
            await execution.result()
            return samples

    samples = asyncio.run(scenario())
    assert value(samples, "tasks_running", queue="slow") == 3
    assert value(samples, "tasks_waiting", queue="slow") == 0


def test_timeouts_and_cancelled_attempts_are_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant(tmp_path, monkeypatch, hangs)

    async def scenario() -> Samples:
        async with plant.engine:
            await plant.run(node("a", "hangs", timeout_seconds=0.02, retry={"max_attempts": 1}))
            execution = await plant.engine.start({"name": "w", "nodes": [node("a", "hangs")]})
            await until(lambda: plant.engine.worker.attempts == 2)
            await execution.cancel()
            await until(lambda: plant.metrics.tasks["hangs"]["cancelled"])
            return await scrape(plant.metrics)

    samples = asyncio.run(scenario())
    assert value(samples, "tasks_total", handler="hangs", outcome="timed_out") == 1
    assert value(samples, "tasks_total", handler="hangs", outcome="cancelled") == 1
    assert value(samples, "executions_finished_total", state="CANCELLED") == 1


def test_unknown_handlers_of_documents_make_no_labels_without_end() -> None:
    metrics = Metrics()
    metrics.handlers.know(["mine"])
    for number in range(2 * LABEL_VALUES_MAX):
        metrics.task_ended(f"made-up-{number}", "failed", 1)
    metrics.task_ended("mine", "completed", 2)
    metrics.task_ended("x" * 1000, "failed", 1)
    metrics.task_ended("a\nb", "failed", 2)
    assert len(metrics.tasks) == LABEL_VALUES_MAX + 1
    assert metrics.tasks["mine"] == {"completed": 1}
    assert metrics.tasks[OTHER] == {"failed": LABEL_VALUES_MAX + 3}
    assert metrics.retries == {"mine": 1, OTHER: 1}


@pytest.mark.parametrize("name", ["a", 'q"uote', "back\\slash", "é"])
def test_names_come_through_the_format_as_they_are(name: str) -> None:
    metrics = Metrics()
    metrics.task_ended(name, "completed", 1)
    samples = asyncio.run(scrape(metrics))
    assert value(samples, "tasks_total", handler=name, outcome="completed") == 1


def test_a_histogram_counts_each_value_up_to_its_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(0.5, 1.0, 1.5, 2.0, 2.5, -1e-6)
    assert histogram.counts == [3, 2, 1]
    assert math.isclose(histogram.total, 7.5)


def test_without_its_store_metrics_are_shown_without_gauges() -> None:
    async def away() -> Levels:
        raise StoreUnavailable("away")

    metrics = Metrics()
    metrics.levels = away
    samples = asyncio.run(scrape(metrics))
    assert value(samples, "executions_started_total") == 0
    assert not named(samples, "workers")


def test_every_process_has_its_own_registry_with_its_own_figures() -> None:
    async def scenario() -> tuple[str, str]:
        busy, idle = Metrics(), Metrics()
        busy.task_ended("a", "completed", 1)
        return (await Exposition(busy).render()).decode(), (
            await Exposition(idle).render()
        ).decode()

    busy, idle = asyncio.run(scenario())
    assert 'penstock_tasks_total{handler="a",outcome="completed"} 1.0' in busy
    assert 'handler="a"' not in idle
    assert "process_resident_memory_bytes" in idle
    assert "python_gc_collections_total" in idle
    assert CONTENT_TYPE.startswith("text/plain")
