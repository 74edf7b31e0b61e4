"""`scripts/setup`, with a stand-in for uv: what it says while it works, and when it is silent."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import ROOT, TIMEOUT_SECONDS

UV = f"""#!/bin/sh
[ "$1" = venv ] || exit 0
for last; do :; done
mkdir -p "$last/bin"
ln -sf {sys.executable} "$last/bin/python"
"""


def checkout(folder: Path) -> dict[str, str]:
    """A checkout with what the script reads; returns an environment that has the stand-in."""
    for name in ("pyproject.toml", "requirements.lock", "scripts/setup"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    programs = folder / "programs"
    programs.mkdir()
    (programs / "uv").write_text(UV, encoding="utf-8")
    (programs / "uv").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PENSTOCK_PYTHON": sys.executable}


def set_up(folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "scripts" / "setup", "run"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def test_each_step_is_a_line_and_nothing_to_do_is_silent(tmp_path: Path):
    environ = checkout(tmp_path)
    first = set_up(tmp_path, environ)
    assert (first.returncode, first.stdout) == (0, "")
    lines = first.stderr.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["setup:", "creating"],
        ["setup:", "installing"],
        ["setup:", "installing"],
        ["setup:", "done;"],
    ]
    assert "Python 3." in lines[0]
    assert "requirements.lock with uv" in lines[1]

    second = set_up(tmp_path, environ)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def test_a_change_of_the_lock_installs_again_into_the_same_venv(tmp_path: Path):
    environ = checkout(tmp_path)
    set_up(tmp_path, environ)
    with (tmp_path / "requirements.lock").open("a", encoding="utf-8") as lock:
        lock.write("# changed\n")
    again = set_up(tmp_path, environ)
    assert again.returncode == 0
    assert "creating" not in again.stderr
    assert "installing the packages of requirements.lock" in again.stderr


def test_a_python_that_does_not_run_is_named(tmp_path: Path):
    environ = checkout(tmp_path)
    refused = set_up(tmp_path, {**environ, "PENSTOCK_PYTHON": "/nowhere/python"})
    assert refused.returncode == 1
    assert "PENSTOCK_PYTHON=/nowhere/python doesn't run" in refused.stderr
