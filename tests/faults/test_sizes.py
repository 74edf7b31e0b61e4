"""The largest workflows, from their text to their end, each in a process of its own (G6)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.judge import judge
from tests.faults.launching import ROOT
from tests.faults.sized import SHAPES
from tests.faults.table import Fault

VALIDATION_SECONDS = 1.0
PEAK_MIB = 1500
"""Three times what the largest of them takes."""
SIZES = {
    "wide": (500, 10_000),
    "deep": (300, 10_000),
    "layered": (15, 100),
    "all_to_all": (20, 200),
    "heavy": (2, 10),
}
"""By shape, in `make test` and in `make faults`."""


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.fault(
    "size", "10,000 wide, 10,000 deep, 100 × 100 layers, 200 × 200 all-to-all, 10 MB outputs"
)
def test_the_largest_workflows_reach_their_end(fault: Fault, shape: str, tmp_path: Path) -> None:
    short, full = SIZES[shape]
    size = fault.size(short, full)
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.sized", shape, str(size), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    took = json.loads(done.stdout)
    assert took["state"] == "COMPLETED"
    verdict = judge(tmp_path / "store.db", [SHAPES[shape](size)])
    assert verdict.problems == []
    (stored,) = verdict.executions.values()
    assert len(stored.runs) == took["nodes"]
    assert "Recursion" not in done.stderr
    assert took["peak_mib"] < PEAK_MIB
    if fault.is_full:  # a busy machine may take its time over the small ones in `make test`
        assert took["validation_seconds"] < VALIDATION_SECONDS
    fault.shows(shape=f"{shape} {size:,}", **{name: took[name] for name in took if name != "state"})
