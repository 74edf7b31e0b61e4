"""Roles as processes of their own, on real servers."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.commands import PENSTOCK, TIMEOUT_SECONDS, _hear_signals, environment
from tests.servers import database_url, redis_url
from tests.waiting import until_now


def servers() -> dict[str, str]:
    """The variables that name an empty Redis and a new database."""
    return {"PENSTOCK_STORE": redis_url(), "PENSTOCK_DATABASE": database_url()}


class Started:
    """A process whose output is collected as it comes."""

    def __init__(self, *arguments: str, cwd: Path, env: Mapping[str, str]) -> None:
        self.output = ""
        self.process = subprocess.Popen(
            [*PENSTOCK, *arguments],
            cwd=cwd,
            env=environment(**env),
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_hear_signals,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.output += line

    def says(self, text: str) -> str:
        """The first line with this text; the process must not end before."""

        def line() -> str:
            first_line = next(
                (candidate for candidate in self.output.splitlines() if text in candidate), ""
            )
            assert first_line or self.process.poll() is None, (
                f"it ended without {text!r}:\n{self.output}"
            )
            return first_line

        return str(until_now(line, f"it says {text!r}", seconds=TIMEOUT_SECONDS))

    def ends(self) -> int:
        code = self.process.wait(TIMEOUT_SECONDS)
        self._reader.join()
        return code

    def terminate(self) -> int:
        self.process.terminate()
        return self.ends()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ends()
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def started(*arguments: str, cwd: Path, env: Mapping[str, str]) -> Iterator[Started]:
    process = Started(*arguments, cwd=cwd, env=env)
    try:
        yield process
    finally:
        process.close()


def asked(address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})  # noqa: S310 -- our own
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
        text = answer.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text
