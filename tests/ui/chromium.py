"""A real Chromium: the system's, else Playwright's own download, else Debian's package.

There is always one, or the tests fail: a page that nobody has looked at isn't tested. The headless
shell comes first: it is the same engine without a browser's windows and toolbars, which cost as
much to draw as the page itself.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
NAMES = (*SHELLS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium-headless-shell", "chromium")
"""Of Debian; the first is newer."""
INSTALL_SECONDS = 900
FLAGS = [
    "--no-sandbox",  # as root there is none; the pages are our own
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    # nothing but what a test asks for goes over the network
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@cache
def find_chromium() -> str | None:
    """Its path; None is Playwright's own."""
    with _alone():
        path = _of_the_system()
        if path is None and not _of_playwright():
            path = _of_debian()
        return path


def _of_the_system() -> str | None:
    named = os.environ.get("TEST_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def _of_playwright() -> bool:
    done = subprocess.run(
        [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    return done.returncode == 0


def _of_debian() -> str:
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _apt_get("update")
        any(
            _apt_get("install", "--yes", "--no-install-recommends", package) for package in PACKAGES
        )
    path = _of_the_system()
    assert path, (
        "there is no Chromium, and none could be installed: install one, or name it in "
        "TEST_CHROMIUM"
    )
    return path


def _apt_get(*arguments: str) -> bool:
    done = subprocess.run(
        ["apt-get", "--quiet", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    return done.returncode == 0


class _alone:  # noqa: N801 -- reads as what it does
    """One process installs; the others find what it has installed."""

    def __enter__(self) -> None:
        path = Path(tempfile.gettempdir()) / f"penstock-chromium-{os.geteuid()}.lock"
        self._file = path.open("w", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()
