"""Tests on sources without a guard: in a process of their own, on servers that all share."""

from __future__ import annotations

import compileall
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from penstock.local import PostgresServer, RedisServer
from scripts.guards.guard import Guard
from scripts.patterns import ROOT, PatternError

PYTEST = (
    *("-q", "--tb=no", "--assert=plain", "-rfE"),
    *("-p", "no:cacheprovider", "-p", "pytest_timeout", "--timeout", "60"),
)
# loading every plugin and compiling every module would take longer than most of the tests
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
RED = 1
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.*?)(?: - .*)?$", re.MULTILINE)


class Outcome(NamedTuple):
    guard: Guard
    red: str
    """The first test that failed; empty if none did."""
    problem: str
    seconds: float


class Bench:
    """A copy of the sources, and servers, on which one test process runs after another."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._source, self._output = folder / "src", folder / "output"
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self._source, quiet=1)
        environment = {
            **os.environ,
            **environment,
            **QUICK,
            "PYTHONPATH": f"{self._source}{os.pathsep}{ROOT}",
        }
        # -P, because redis.py beside it is not the library
        self._fork_server = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("fork_server.py")],
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def close(self) -> None:
        assert self._fork_server.stdin is not None
        self._fork_server.stdin.close()
        self._fork_server.wait()

    def take_out(self, guard: Guard) -> Outcome:
        path = self._source / "penstock" / guard.file
        text = path.read_text(encoding="utf-8")
        began = time.monotonic()
        try:
            changed = guard.taken_out(text)
        except PatternError as error:
            return Outcome(guard, "", str(error), 0.0)
        stat = path.stat()
        path.write_text(changed, encoding="utf-8")
        try:
            code, red, summary = self._run("-x", *shlex.split(guard.test))
        finally:
            path.write_text(text, encoding="utf-8")
            # so that the compiled module is used again
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        problem = (
            "" if code == RED and red else f"{guard.test} stays green (exit {code}): {summary}"
        )
        return Outcome(guard, next(iter(red), ""), problem, time.monotonic() - began)

    def failing(self, tests: Iterable[str]) -> list[str]:
        """Those that fail with every guard in place, and so say nothing about one."""
        _, red, _ = self._run(*tests)
        return red

    def _run(self, *arguments: str) -> tuple[int, list[str], str]:
        assert self._fork_server.stdin is not None
        assert self._fork_server.stdout is not None
        request = {"arguments": [*PYTEST, *arguments], "output": str(self._output)}
        self._fork_server.stdin.write(json.dumps(request) + "\n")
        self._fork_server.stdin.flush()
        code = int(self._fork_server.stdout.readline())
        output = self._output.read_text(encoding="utf-8", errors="replace")
        return code, _FAILED.findall(output), " ".join(output.strip().splitlines()[-1:])


@contextmanager
def bench() -> Iterator[Bench]:
    """With a Redis and a PostgreSQL of its own: starting those takes longer than most tests."""
    with tempfile.TemporaryDirectory(prefix="penstock-guards-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL may run as somebody else
        servers = (
            RedisServer(folder / "redis", append_only=None, extra=("--databases", "512")),
            PostgresServer(folder / "postgres", fsync=False),
        )
        with servers[0] as redis, servers[1] as postgres:
            urls = {"TEST_REDIS_URL": redis.url, "TEST_DATABASE_URL": postgres.url}
            with closing(Bench(folder, urls)) as new_bench:
                yield new_bench
