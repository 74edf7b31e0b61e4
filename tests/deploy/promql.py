"""Queries in PromQL: which metrics and labels they use, and which there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser
from prometheus_client.core import Metric

from penstock.telemetry.exposition import Exposition
from penstock.telemetry.metrics import Levels, Metrics

ADDED_BY_PROMETHEUS = frozenset({"job", "instance"})
GRAFANA_VARIABLES = {"$__rate_interval": "5m", "$job": "penstock"}
OUTCOMES = ("completed", "failed", "timed_out", "cancelled")


@dataclass(frozen=True)
class Sample:
    """A name that Prometheus stores: `penstock_tasks_total`, `penstock_hop_seconds_bucket`."""

    kind: str
    labels: frozenset[str]


@dataclass(frozen=True)
class Selector:
    name: str
    matchers: tuple[tuple[str, str], ...]
    functions: tuple[str, ...]
    """Of functions and aggregations around it, the outermost first."""


def metrics_with_every_label() -> Metrics:
    """Counters that show each label, as a process has them that has done a bit of everything."""
    metrics = Metrics()
    metrics.executions_finished["COMPLETED"] = 1
    metrics.retries["mail"] = 1
    metrics.dead_letters["mail"] = 1
    metrics.slots["started"] = 1
    for outcome in OUTCOMES:
        metrics.task_ended("mail", outcome, 1)
    return metrics


def exposed_families() -> list[Metric]:
    exposition = Exposition(metrics_with_every_label())
    exposition._levels = Levels(inbox={0: 1}, queues={"mail": (1, 1)}, workers=1)
    return list(exposition.registry.collect())


def exposed_samples() -> dict[str, Sample]:
    """What `GET /metrics` shows, by name."""
    samples: dict[str, Sample] = {}
    for family in exposed_families():
        for sample in family.samples:
            labels = frozenset(sample.labels)
            if labels and sample.name in samples:
                labels |= samples[sample.name].labels
            samples[sample.name] = Sample(family.type, labels)
    return samples


def parse(query: str) -> promql_parser.Expr:
    for variable, value in GRAFANA_VARIABLES.items():
        query = query.replace(variable, value)
    return promql_parser.parse(query)


def selectors(expression: object, functions: tuple[str, ...] = ()) -> Iterator[Selector]:
    """Each metric of a query."""
    if isinstance(expression, promql_parser.VectorSelector):
        matchers = [
            (matcher.name, matcher.value)
            for matcher in expression.matchers.matchers
            if matcher.name != "__name__"
        ]
        assert expression.name, "a query without a metric's name reads everything"
        yield Selector(expression.name, tuple(matchers), functions)
    elif isinstance(expression, promql_parser.MatrixSelector):
        yield from selectors(expression.vector_selector, functions)
    elif isinstance(expression, promql_parser.Call):
        for argument in expression.args:
            yield from selectors(argument, (*functions, expression.func.name))
    elif isinstance(expression, promql_parser.AggregateExpr):
        yield from selectors(expression.expr, (*functions, str(expression.op)))
    elif isinstance(expression, promql_parser.BinaryExpr):
        yield from selectors(expression.lhs, functions)
        yield from selectors(expression.rhs, functions)
    elif isinstance(expression, (promql_parser.ParenExpr, promql_parser.UnaryExpr)):
        yield from selectors(expression.expr, functions)
    else:
        assert isinstance(expression, promql_parser.NumberLiteral), type(expression)


def aggregations(expression: object) -> Iterator[tuple[tuple[str, ...], promql_parser.Expr]]:
    """The labels of each `by (…)`, with what is aggregated."""
    if isinstance(expression, promql_parser.AggregateExpr):
        labels = tuple(expression.modifier.labels) if expression.modifier else ()
        yield labels, expression.expr
        yield from aggregations(expression.expr)
    elif isinstance(expression, promql_parser.Call):
        for argument in expression.args:
            yield from aggregations(argument)
    elif isinstance(expression, promql_parser.BinaryExpr):
        yield from aggregations(expression.lhs)
        yield from aggregations(expression.rhs)
    elif isinstance(expression, (promql_parser.ParenExpr, promql_parser.UnaryExpr)):
        yield from aggregations(expression.expr)


def resulting_labels(expression: object) -> frozenset[str]:
    """The labels of a query's result, which its legend or its text may use."""
    labels: frozenset[str] = frozenset()
    if isinstance(expression, promql_parser.AggregateExpr):
        if str(expression.op) == "topk":
            labels = resulting_labels(expression.expr)
        elif expression.modifier:
            labels = frozenset(expression.modifier.labels)
    elif isinstance(expression, promql_parser.BinaryExpr):
        is_scaled = isinstance(expression.lhs, promql_parser.NumberLiteral)
        labels = resulting_labels(expression.rhs if is_scaled else expression.lhs)
    elif isinstance(expression, promql_parser.ParenExpr):
        labels = resulting_labels(expression.expr)
    elif (
        isinstance(expression, promql_parser.Call) and expression.func.name == "histogram_quantile"
    ):
        labels = resulting_labels(expression.args[1]) - {"le"}
    return labels
