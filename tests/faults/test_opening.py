"""A store is killed, or has no room, while it is opened, upgraded or closed (G1).

It opens again, with everything.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.lives import ROOT
from tests.faults import doomed_opening
from tests.faults.table import Fault


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "opening",
    "kill -9 at each step while a SQLite file is made, opened, upgraded or closed; opened on a "
    "full disk",
)
def test_no_step_of_opening_or_closing_a_file_is_a_bad_moment_to_die(
    fault: Fault, tmp_path: Path
) -> None:
    points, kills = fault.size(short=4, full=0), fault.size(short=2, full=60)
    arguments = [str(tmp_path), str(fault.seed), str(points), str(kills)]
    done = subprocess.run(
        [sys.executable, "-m", doomed_opening.__name__, *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["problems"] == [], done.stderr
    assert report["kills"] >= report["points"] > 0
    assert report["refusals"] > 0, "no file was ever too small"
    fault.shows(
        points=report["points"],
        kills=report["kills"],
        full_disks=report["refusals"],
        lost=0,
        problems=0,
    )
