"""The embedded engine is killed at every point where it writes (G1, G2, G4).

Before the write, and after it.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.lives import PATIENCE_SECONDS, Life, accepted, assert_guarantees, calls, lines
from tests.faults import doomed_shop
from tests.faults.table import Fault

MODE = "be_killed_at_a_point"
PASSINGS = (1, 3, 8)
"""On which passing of a point the process is killed.

The first is at the start of a life, which takes up what the last one left; the others are later.
"""
EXECUTIONS_PER_LIFE = 60
"""So many that large values are written eight times."""


def _points(fault: Fault) -> list[str]:
    every = [
        f"{write}:{side}:{passing}"
        for write in ("commit", *doomed_shop.PATCHED)
        for side in ("before", "after")
        for passing in PASSINGS
    ]
    return every if fault.is_full else fault.choices().sample(every, 6)


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "failpoints", "a kill before and after each write of the embedded engine on SQLite"
)
def test_no_write_of_the_embedded_engine_is_a_bad_moment_to_die(
    fault: Fault, tmp_path: Path
) -> None:
    points = _points(fault)
    executions = 0
    for point in points:
        executions += EXECUTIONS_PER_LIFE
        with Life(tmp_path, MODE, str(executions), point, program=doomed_shop.__name__) as life:
            code, _ = life.end()
        write, side, _ = point.split(":")
        assert code == -signal.SIGKILL, f"it didn't die at {point}"
        assert lines(tmp_path / "stderr")[-1] == f"dies {side} {write}", (
            f"it died of something else than {point}"
        )
    with Life(tmp_path, MODE, str(executions)) as life:
        assert life.end(5 * PATIENCE_SECONDS) == (0, "done")
    verdict = assert_guarantees(tmp_path)
    assert len(set(accepted(tmp_path))) == len(verdict.executions) == executions, (
        "one execution per idempotency key"
    )
    assert verdict.states() == {"COMPLETED": executions}
    lost = verdict.reasons()["lost"]
    fault.shows(
        points=len(points),
        kills=len(points),
        executions=executions,
        calls=len(calls(tmp_path)),
        lost_with_a_kill=lost,
        violations=0,
    )
