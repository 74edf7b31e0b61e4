"""A service in a process of its own, for commands that talk to one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.commands import TIMEOUT_SECONDS, start

READY = "Penstock is ready at "


@contextmanager
def dev(folder: Path, *flags: str) -> Iterator[str]:
    """`penstock dev` on a free port; gives its address."""
    with start("dev", "--port", "0", *flags, cwd=folder) as process:
        assert process.stdout
        line = process.stdout.readline()
        while READY not in line:
            assert line, "the service didn't start"
            line = process.stdout.readline()
        try:
            yield line.removeprefix(READY).strip()
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT_SECONDS)
