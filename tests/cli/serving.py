"""A service in a process of its own, for commands that talk to one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

from tests.cli.commands import TIMEOUT_SECONDS, penstock, start

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


class Desk:
    """A folder, and a server that the commands in it talk to."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def __call__(self, *arguments: str, stdin: str = "") -> CompletedProcess[str]:
        return penstock(*arguments, cwd=self.folder, stdin=stdin, env={"PENSTOCK_URL": self.url})

    def out(self, *arguments: str) -> str:
        done = self(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    def json(self, *arguments: str) -> dict:
        answer: dict = json.loads(self.out(*arguments, "--json"))
        return answer

    def failed(self) -> str:
        """The id of a new execution of `doomed.json`, which has failed."""
        done = self("submit", "doomed.json", "--wait", "--json")
        assert done.returncode == 1
        return str(json.loads(done.stdout)["execution_id"])
