"""The Grafana dashboard and the Prometheus alerts use metrics and labels that exist."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.engine.states import ExecutionState
from penstock.telemetry.exposition import Exposition
from penstock.telemetry.metrics import Levels
from tests.deploy.promql import (
    ADDED_BY_PROMETHEUS,
    OUTCOMES,
    aggregations,
    exposed_samples,
    metrics_with_every_label,
    parse,
    resulting_labels,
    selectors,
)

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD: dict[str, Any] = json.loads(
    (ROOT / "deploy/grafana/penstock.json").read_text(encoding="utf-8")
)
RULES: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8")
)["groups"][0]["rules"]
RULE_TESTS = (ROOT / "deploy/prometheus/alerts.test.yaml").read_text(encoding="utf-8")

PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SHOWN = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
QUERIES = [pytest.param(target["expr"], id=f"{title} {target['refId']}") for title, target in SHOWN]
ALERT_QUERIES = [pytest.param(rule["expr"], id=rule["alert"]) for rule in RULES]
SAMPLES = exposed_samples()
STORE_WIDE = {"penstock_tasks_waiting", "penstock_tasks_running", "penstock_workers"}
"""Each orchestrator reports these for the whole store."""
LABEL_VALUES: dict[str, set[str]] = {"state": set(ExecutionState), "outcome": set(OUTCOMES)}
USED_IN_TEXT = re.compile(r"\$labels\.(\w+)")
USED_IN_LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@pytest.mark.parametrize("query", [*QUERIES, *ALERT_QUERIES])
def test_every_metric_and_label_exists(query: str):
    expression = parse(query)
    for selector in selectors(expression):
        assert selector.name in SAMPLES, f"there is no metric {selector.name}"
        known = SAMPLES[selector.name].labels | ADDED_BY_PROMETHEUS
        for label, value in selector.matchers:
            assert label in known, f"{selector.name} has no label {label}"
            if label in LABEL_VALUES:
                assert set(value.split("|")) <= LABEL_VALUES[label]
    for labels, aggregated in aggregations(expression):
        for selector in selectors(aggregated):
            known = SAMPLES[selector.name].labels | ADDED_BY_PROMETHEUS
            assert set(labels) <= known, f"{selector.name} has no label among {labels}"


@pytest.mark.parametrize("query", [*QUERIES, *ALERT_QUERIES])
def test_counters_are_read_as_rates_and_gauges_as_they_are(query: str):
    for selector in selectors(parse(query)):
        kind = SAMPLES[selector.name].kind
        is_rate = bool({"rate", "increase"} & set(selector.functions))
        if kind == "gauge":
            assert not is_rate, selector.name
        elif "unless" not in query:
            assert is_rate, f"{selector.name} only grows; use rate or increase"


@pytest.mark.parametrize("query", [*QUERIES, *ALERT_QUERIES])
def test_what_every_orchestrator_reports_is_not_added_up(query: str):
    for selector in selectors(parse(query)):
        if selector.name in STORE_WIDE:
            assert selector.functions[-1] == "max", f"{selector.name} would be counted twice"


@pytest.mark.parametrize(("title", "target"), SHOWN)
def test_a_legend_uses_labels_of_the_result(title: str, target: dict[str, Any]):
    used = set(USED_IN_LEGEND.findall(target["legendFormat"]))
    assert used <= resulting_labels(parse(target["expr"])), title


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]):
    assert rule["labels"] == {"severity": rule["labels"]["severity"]}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description"}
    used = set(USED_IN_TEXT.findall(" ".join(rule["annotations"].values())))
    assert used <= resulting_labels(parse(rule["expr"]))


def test_every_alert_is_tested_by_promtool_s_file():
    for rule in RULES:
        assert f'alertname="{rule["alert"]}"' in RULE_TESTS


def test_the_dashboard_shows_every_metric_of_ours():
    used = {selector.name for _, target in SHOWN for selector in selectors(parse(target["expr"]))}
    families = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in used}
    ours = {
        re.sub(r"_(bucket|sum|count|created)$", "", name)
        for name in SAMPLES
        if name.startswith("penstock_")
    }
    assert families >= ours


def test_panels_are_numbered_and_do_not_overlap():
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    for one, other in combinations([panel["gridPos"] for panel in everything], 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_x or apart_y


def test_the_data_source_is_chosen_in_grafana():
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert names == {"datasource", "job"}
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"]


def test_the_samples_are_those_of_the_metrics_page():
    """So that the checks above hold for what a process really shows."""
    metrics = metrics_with_every_label()

    async def levels() -> Levels:
        return Levels(inbox={0: 1}, queues={"mail": (1, 1)}, workers=1)

    metrics.levels = levels
    text = asyncio.run(Exposition(metrics).render()).decode()
    shown = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line[:1] not in {"#", ""}}
    assert shown == {name for name in SAMPLES if name in shown or name.startswith("penstock_")}
