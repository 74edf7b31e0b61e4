"""Real processes on a real file (G1, G2, G4).

They are killed, poisoned, locked out, stopped, or have no room on the disk.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.acceptance import shop
from tests.acceptance.lives import (
    PATIENCE_SECONDS,
    Life,
    accepted,
    assert_guarantees,
    calls,
    count_calls,
    lines,
)
from tests.faults.table import Fault
from tests.waiting import until_now


def _pass(seconds: float) -> None:
    """Not to wait for anything: to strike at another point each time."""
    end = time.monotonic() + seconds
    until_now(lambda: time.monotonic() > end)


@pytest.mark.timeout(240)
@pytest.mark.fault("SQLite", "kill -9 in mid-run")
def test_nothing_is_lost_or_done_twice_through_many_kills(fault: Fault, tmp_path: Path) -> None:
    goal, executions = fault.size(short=12, full=100), fault.size(short=300, full=1800)
    kills = _kill_and_start_again(fault, tmp_path, goal, executions)
    verdict = assert_guarantees(tmp_path)
    assert len(set(accepted(tmp_path))) == len(verdict.executions) == executions, (
        "one execution per idempotency key"
    )
    assert verdict.states() == {"COMPLETED": executions}
    assert {dead_letter.handler for dead_letter in verdict.dead_letters} == {"work_fail"}
    assert verdict.reasons()["lost"] > 0, "no kill hit a task"
    assert any(not call.endswith(" 1") for call in calls(tmp_path))
    nodes = {flow["name"]: {node["id"] for node in flow["nodes"]} for flow in shop.FLOWS}
    for stored in verdict.executions.values():
        if stored.record.workflow not in nodes:
            continue  # maps, loops and waits: the judge knows what they must have
        assert stored.runs.keys() == nodes[stored.record.workflow]
    completed = {
        f"{name} {run.node_id} {run.attempt}"
        for name, execution in verdict.executions.items()
        for run in execution.runs.values()
        if run.worker_id is not None
    }
    assert completed <= set(calls(tmp_path)), "an outcome was recorded of a call that never was"
    lost = verdict.reasons()["lost"]
    fault.shows(
        kills=kills,
        executions=executions,
        lost_with_a_kill=lost,
        missing=0,
        violations=0,
        integrity="ok",
    )


def _kill_and_start_again(fault: Fault, folder: Path, goal: int, executions: int) -> int:
    """How often it was killed; in the end it is left to finish."""
    kills, choose = 0, fault.choices()
    while kills < goal:
        with Life(folder, "be_killed", str(executions)) as life:
            count = count_calls(folder) + choose.randint(1, 170)
            assert life.wait_for_calls(count), f"it ended after {kills} kills with {life.end()}"
            _pass(choose.random() * 0.03)
            os.kill(life.process.pid, signal.SIGKILL)
            life.process.wait()
            kills += life.process.returncode == -signal.SIGKILL
    with Life(folder, "be_killed", str(executions)) as life:
        assert life.end(10 * PATIENCE_SECONDS) == (0, "done")
    return kills


@pytest.mark.fault("poison", "a handler that kills the only process")
def test_a_handler_that_kills_the_process_ends_in_the_dead_letters_and_the_others_complete(
    fault: Fault, tmp_path: Path
) -> None:
    deaths = _live_until_done(tmp_path, "be_poisoned")
    verdict = assert_guarantees(tmp_path)
    assert deaths == 3
    assert verdict.states() == {"COMPLETED": 5, "FAILED": 1}
    (dead_letter,) = verdict.dead_letters
    assert (dead_letter.node_id, dead_letter.handler) == ("bad", "poison")
    assert [failure.error.category for failure in dead_letter.attempts] == ["lost"] * 3
    assert [failure.attempt for failure in dead_letter.attempts] == [1, 2, 3]
    assert "died while it held the task" in dead_letter.attempts[-1].error.message
    fault.shows(
        deaths=deaths, attempts=len(dead_letter.attempts), dead_letters=1, others_completed=5
    )


@pytest.mark.fault(
    "poison", "a handler that kills the only process, while tasks with as few attempts wait"
)
def test_executions_that_only_waited_beside_a_poison_do_not_share_its_fate(
    fault: Fault, tmp_path: Path
) -> None:
    """They have as few attempts as it has; the crashes were not theirs."""
    deaths = _live_until_done(tmp_path, "be_poisoned_among_the_frail")
    verdict = assert_guarantees(tmp_path)
    assert deaths == 3
    assert verdict.states() == {"COMPLETED": 29, "FAILED": 1}
    assert [dead_letter.handler for dead_letter in verdict.dead_letters] == ["poison"]
    fault.shows(deaths=deaths, dead_letters=1, others_completed=29)


def _live_until_done(folder: Path, mode: str) -> int:
    """Start it again whenever it dies; answers how often it did."""
    for deaths in range(10):
        with Life(folder, mode) as life:
            code, output = life.end()
        if code != -signal.SIGKILL:
            assert (code, output) == (0, "done")
            return deaths
    raise AssertionError("it dies for ever")


@pytest.mark.fault("SQLite", "a second process on the file")
def test_a_second_process_on_the_file_is_refused_with_the_first_ones_id(
    fault: Fault, tmp_path: Path
) -> None:
    with Life(tmp_path, "hold") as first:
        assert first.process.stdout is not None
        assert first.process.stdout.readline() == "open\n"
        with Life(tmp_path, "hold") as second:
            code, message = second.end()
        assert code == 3
        assert re.search(rf"store\.db is in use by process {first.process.pid}\b", message)
        assert first.process.poll() is None
        first.process.kill()
        first.process.wait()
    with Life(tmp_path, "hold") as third:
        assert third.process.stdout is not None
        assert third.process.stdout.readline() == "open\n"
    fault.shows(refused=1, after_the_first_died="open")


@pytest.mark.fault("SQLite", "a full disk, then room again")
def test_a_full_disk_refuses_clearly_and_nothing_is_lost_when_there_is_room_again(
    fault: Fault, tmp_path: Path
) -> None:
    with Life(tmp_path, "fill_the_disk") as life:
        assert life.end() == (0, "done")
    errors = lines(tmp_path / "errors")
    assert len(errors) >= 3
    assert all(
        re.search(r"store\.db can't be written: .*(full|disk I/O error)", error) for error in errors
    )
    verdict = assert_guarantees(tmp_path)
    assert len(accepted(tmp_path)) > 40
    assert verdict.states() == {"COMPLETED": len(verdict.executions)}
    assert not any(call.split()[2] != "1" for call in calls(tmp_path)), (
        "a full disk is no handler's fault"
    )
    fault.shows(
        refused=len(errors),
        executions=len(verdict.executions),
        missing=0,
        violations=0,
        integrity="ok",
    )


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_stop_stops_cleanly_and_the_next_one_goes_on(
    sent: signal.Signals, tmp_path: Path
) -> None:
    with Life(tmp_path, "be_stopped") as life:
        assert life.wait_for_calls(100)
        os.kill(life.process.pid, sent)
        assert life.end(20.0) == (4, "stopped")
    assert len(calls(tmp_path)) < 600, "it was stopped too late to prove anything"
    assert lines(tmp_path / "stderr") == []
    with Life(tmp_path, "be_stopped") as life:
        assert life.end() == (0, "done")
    verdict = assert_guarantees(tmp_path)
    assert verdict.states() == {"COMPLETED": 200}
    assert not any(call.split()[2] != "1" for call in calls(tmp_path)), (
        "a clean stop costs no attempt"
    )
