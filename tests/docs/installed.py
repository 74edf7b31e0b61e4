"""Penstock as its users have it: the wheel in a venv of its own, without a network.

The dependencies are those of the tests' own venv. A `.pth` file names their folder, and is not
followed any further, so that the editable install of that venv isn't seen.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
import venv
import zipfile
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT

BUILD_SECONDS = 60
SCRIPT = """#!{python}
import sys
from {module} import {function}
sys.exit({function}())
"""


@dataclass(frozen=True)
class Installed:
    """A venv with wheels of ours."""

    folder: Path

    @property
    def programs(self) -> Path:
        """The folder that is first on the PATH of a user who has activated the venv."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        return self.programs / "python"

    @property
    def packages(self) -> Path:
        paths = {"base": str(self.folder), "platbase": str(self.folder)}
        return Path(sysconfig.get_path("purelib", "posix_prefix", paths))

    def add(self, wheel: Path) -> None:
        """Install a wheel of Python files, as pip does with --no-deps."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.packages)
            names = archive.namelist()
        folders = {name.partition("/")[0] for name in names}
        # Later processes write no bytecode, and would compile all of it at each start.
        compiling = [sys.executable, "-m", "compileall", "-q", *sorted(folders)]
        subprocess.run(compiling, cwd=self.packages, timeout=BUILD_SECONDS, check=True)
        for name in names:
            if name.endswith(".dist-info/entry_points.txt"):
                self._write_scripts(self.packages / name)

    def _write_scripts(self, entry_points: Path) -> None:
        parser = ConfigParser()
        parser.read_string(entry_points.read_text(encoding="utf-8"))
        if not parser.has_section("console_scripts"):
            return
        for name, target in parser["console_scripts"].items():
            module, _, function = target.partition(":")
            script = self.programs / name
            text = SCRIPT.format(python=self.python, module=module, function=function)
            script.write_text(text, encoding="utf-8")
            script.chmod(0o755)


def build(project: Path, target: Path, kind: str = "wheel") -> Path:
    """Build a project with the backend that its pyproject.toml names; the file is in `target`."""
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    ended = subprocess.run(
        command, cwd=project, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    (built,) = target.iterdir()
    return built


def new_venv(folder: Path, wheel: Path) -> Installed:
    venv.create(folder, symlinks=True, with_pip=False)
    installed = Installed(folder)
    own_packages = sysconfig.get_path("purelib")
    (installed.packages / "dependencies.pth").write_text(f"{own_packages}\n", encoding="utf-8")
    installed.add(wheel)
    return installed


def shared_wheel(folder: Path) -> Path:
    """Penstock's wheel, built once by the processes of `pytest -n`, which share the folder."""
    with (folder / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = folder / "wheel"
        return next(iter(target.glob("*.whl")), None) or build(ROOT, target)


def shared_venv(folder: Path) -> Installed:
    """A venv with that wheel, for all whose commands install nothing into it."""
    wheel = shared_wheel(folder)
    with (folder / "venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = folder / "installed"
        complete = folder / "installed.complete"
        if complete.exists():
            return Installed(target)
        installed = new_venv(target, wheel)
        complete.touch()
        return installed
