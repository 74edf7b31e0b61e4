"""Tests of faults are marked with their family and say what they saw.

`make faults` runs them at full size.

@pytest.mark.fault("zombies", "SIGSTOP of an orchestrator past its lease, then SIGCONT")
def test_...(fault: Fault) -> None:
    for _ in range(fault.size(short=2, full=20)): ...
    fault.shows(stops=stops, fenced=fenced)
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dealing import deal
from tests.faults.table import FAMILIES, Fault, Row, missing, page, table

FULL_SECONDS = 3600
"""The time limit of a test at full size."""
LONG = ("tests/acceptance/", "tests/faults/")
"""Folders of tests that start many processes and wait for them."""
SOAK = "soak"
SOAK_SECONDS = 1800
"""That a soak is given besides its minutes: to begin, to come to rest, to be judged."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--faults",
        choices=["short", "full"],
        default="short",
        help="how much the tests of FAULTS do",
    )
    parser.addoption("--fault-seed", type=int, help="repeat a run with the seed that it printed")
    parser.addoption(
        "--fault-table",
        type=Path,
        help="write the table of faults into this page, between its marks",
    )
    parser.addoption("--minutes", type=float, help="how long a soak lasts")


def pytest_configure(config: pytest.Config) -> None:
    # run in a shell's background; children would be deaf, too
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "fault(family, done): a test of a row of FAULTS")
    config.addinivalue_line(
        "markers", "alone: other tests at the same time would spoil what it measures"
    )
    config.addinivalue_line("markers", "explore: does more in `make explore` than in `make test`")
    config.addinivalue_line(
        "markers", f"{SOAK}: lasts for --minutes, and isn't part of `make faults`"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("fault")
        assert mark is None or mark.args[0] in FAMILIES, (
            f"{item.nodeid} names no row of FAULTS: {mark.args[0]}"
        )
        if mark and config.getoption("--faults") == "full":
            item.add_marker(pytest.mark.timeout(FULL_SECONDS), append=False)
        if config.getoption("--minutes") and item.get_closest_marker(SOAK):
            seconds = SOAK_SECONDS + 60 * config.getoption("--minutes")
            item.add_marker(pytest.mark.timeout(seconds), append=False)
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        long = [item for item in items if item.nodeid.startswith(LONG)]
        short = [item for item in items if not item.nodeid.startswith(LONG)]
        items[:] = deal(long, short, processes)


def pytest_collection_finish() -> None:
    """Freeze what was imported and collected, so that the garbage collector skips it.

    Thousands of tests and all that they import stay until the end.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Iterator[Fault]:
    mark = request.node.get_closest_marker("fault")
    assert mark is not None, "a test that takes `fault` is marked with its row"
    seed = request.config.getoption("--fault-seed") or time.time_ns() % 1_000_000
    family, done = mark.args
    row = Fault(family, done, seed, is_full=request.config.getoption("--faults") == "full")
    print(f"seed {row.seed}")  # noqa: T201 -- shown when the test fails
    yield row
    request.node.user_properties.append(("figures", row.figures))
    request.node.user_properties.append(("others", row.others))
    request.node.user_properties.append(("seed", row.seed))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    mark = item.get_closest_marker("fault")
    if mark and report.when == "teardown":
        report.user_properties.append(("fault", mark.args))
    return report


def _rows(reports: dict[str, list[Any]]) -> list[Row]:
    every = [
        report
        for reports_of_kind in reports.values()
        for report in reports_of_kind
        if hasattr(report, "nodeid")
    ]
    failed = {report.nodeid for report in every if getattr(report, "failed", False)}
    seconds = {
        report.nodeid: report.duration for report in every if getattr(report, "when", "") == "call"
    }
    rows = []
    for report in every:
        said = dict(getattr(report, "user_properties", ()))
        if "fault" in said:
            family, done = said["fault"]
            took = seconds.get(report.nodeid, 0.0)
            green = report.nodeid not in failed
            every_row = [(family, done, said.get("figures", {})), *said.get("others", ())]
            rows += [
                Row(family, done, green, took, said.get("seed", 0), figures)
                for family, done, figures in every_row
            ]
    return rows


def _missing(config: pytest.Config, rows: list[Row]) -> list[str]:
    """Who asks for the table of everything but the soak needn't have one."""
    is_soak_out = f"not {SOAK}" in config.getoption("markexpr")
    return missing(rows, [family for family in FAMILIES if not (is_soak_out and family == SOAK)])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Who asks for the whole table asks for every row; a soak alone is one row."""
    config = session.config
    if (
        config.getoption("--fault-table")
        and not config.getoption("--minutes")
        and not hasattr(config, "workerinput")
    ):
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter and _missing(config, _rows(reporter.stats)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--faults") != "full":
        return
    rows = _rows(terminalreporter.stats)
    terminalreporter.write_line("\n" + table(rows))
    path = config.getoption("--fault-table")
    if path and not config.getoption("--minutes"):
        for family in _missing(config, rows):
            terminalreporter.write_line(f"no test of {family} was run", red=True)
    if path and rows:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(page(before, rows), encoding="utf-8")
