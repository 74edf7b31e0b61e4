"""The overview: what the API counts, as it changes, and the way to what is counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.caller import Caller, failing
from tests.api_server import Running, running_service
from tests.ui.shop import SLOW, Shop, node
from tests.waiting import until_now

QUICK = {"name": "quick", "nodes": [node("a", "noop")]}
BROKEN = failing("broken", message="out of order")


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def service(tmp_path: Any, shop: Shop) -> Iterator[Running]:
    with running_service(tmp_path, shop.registry) as running:
        yield running


@pytest.fixture
def caller(service: Running) -> Caller:
    return Caller(service.address)


@pytest.fixture
def running(caller: Caller) -> str:
    """After two that completed, one that failed and one that was cancelled."""
    for document in (QUICK, QUICK, BROKEN):
        caller.ended(document)
    cancelled = caller.start(SLOW)
    caller.post(f"/executions/{cancelled}/cancel")
    caller.until_state(cancelled, "CANCELLED")
    name = caller.start(SLOW)
    until_now(lambda: caller.shown(f"/executions/{name}/nodes/first")["state"] == "RUNNING")
    return name


def figure(page: Page, label: str) -> Locator:
    return page.locator(".overview-figure").filter(has=page.get_by_text(label, exact=True))


def expect_figures(page: Page, **wanted: str) -> None:
    for label, value in wanted.items():
        of = figure(page, label.replace("_", " "))
        expect(of.locator(".overview-figure-value")).to_have_text(value)


def test_the_figures_are_what_the_api_counts(page: Page, caller: Caller, running: str) -> None:
    page.goto(f"{caller.address}/ui/")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect_figures(
        page,
        Running_now="1",
        Completed="2",
        Failed="1",
        Cancelled="1",
        Dead_letters="1",
        Workers="1",
    )
    expect_figures(page, Tasks_waiting="0", Inbox_lag="0")
    expect(figure(page, "Failed")).to_contain_text("33 % of ended")
    expect(figure(page, "Workers")).to_contain_text("1 orchestrator")
    stats = caller.shown("/stats", seconds=3600, buckets=60)
    assert (
        stats["active"]["RUNNING"],
        stats["totals"]["COMPLETED"],
        stats["totals"]["FAILED"],
    ) == (1, 2, 1)
    assert (stats["totals"]["CANCELLED"], stats["dead_letters"], stats["workers"]) == (1, 1, 1)
    said = "Executions created in the last hour: 2 completed, 1 failed, 1 cancelled, 1 running"
    expect(page.get_by_role("img", name=said)).to_be_visible()
    expect(page.locator(".bars .bar")).not_to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("^Hop latency, p50: .*ms"))).to_be_visible()
    rates = [
        (row["workflow"], f"{row['failure_rate'] * 100:.0f} %")
        for row in stats["workflows"]
        if row["failed"]
    ]
    assert rates == [("broken", "100 %")]
    rows = page.locator(".overview-rates tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("broken100 %")  # the worst first
    expect(rows.filter(has_text="quick")).to_contain_text("0 %")


def test_a_failure_changes_it_as_it_happens(
    page: Page, caller: Caller, shop: Shop, service: Running
) -> None:
    name = caller.start(SLOW)
    page.goto(f"{caller.address}/ui/")
    expect_figures(page, Running_now="1", Failed="0", Completed="0", Dead_letters="0")
    caller.ended(BROKEN)
    expect_figures(page, Running_now="1", Failed="1", Completed="0", Dead_letters="1")
    service.call(shop.let("first", "second"))
    expect_figures(page, Running_now="0", Failed="1", Completed="1")
    assert caller.state(name) == "COMPLETED"


def test_each_figure_leads_to_what_it_counts(page: Page, caller: Caller, running: str) -> None:
    for label, states in (
        ("Running now", ["RUNNING", "PENDING", "PAUSED"]),
        ("Failed", ["FAILED"]),
    ):
        page.goto(f"{caller.address}/ui/")
        figure(page, label).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Executions")
        assert parse_qs(urlsplit(page.url).query)["state"] == states
        expect(page.locator("[data-row]")).to_have_count(1)
        page.go_back()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.get_by_role("link", name="2 executions of quick").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    page.go_back()
    page.get_by_role("link", name="1 failed executions of broken").click()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("out of order")
    page.go_back()
    figure(page, "Dead letters").click()
    expect(page.get_by_text("1 dead letter, 1 different error")).to_be_visible()
    page.go_back()
    figure(page, "Workers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Workers")


def test_the_time_looked_back_on_is_in_the_address(page: Page, caller: Caller) -> None:
    caller.ended(QUICK)
    page.goto(f"{caller.address}/ui/")
    expect(page.get_by_role("link", name="1 h", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    page.get_by_role("link", name="15 min", exact=True).click()
    expect(page).to_have_url(re.compile("window=15m"))
    expect(
        page.get_by_role("img", name="Executions created in the last 15 minutes: 1 completed")
    ).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="15 min", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


def test_the_first_visit_says_how_to_begin(page: Page, caller: Caller) -> None:
    page.goto(f"{caller.address}/ui/")
    expect(page.get_by_role("heading", name="Nothing has run here yet")).to_be_visible()
    page.get_by_role("button", name="Copy the command").click()
    assert f"curl -X POST {caller.address}/api/v1/executions" in page.evaluate(
        "navigator.clipboard.readText()"
    )
    caller.ended(QUICK)
    expect_figures(page, Completed="1")
    expect(page.get_by_role("heading", name="Nothing has run here yet")).to_have_count(0)
