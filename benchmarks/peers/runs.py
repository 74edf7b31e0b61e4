"""One script at a time, with a time limit for each workload."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from benchmarks.peers.catalog import Peer
from penstock.local import PostgresServer, RedisServer

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0
"""On top of the first workload's time: servers and workers of the peer's own start in it."""


class Addresses(Protocol):
    def __call__(self) -> list[str]:
        """For one run: servers stay, files are new."""


@contextmanager
def open_addresses(peer: Peer, folder: Path) -> Iterator[Addresses]:
    with ExitStack() as stack:
        fixed: list[str] = []
        if peer.needs in {"redis", "both"}:
            server = RedisServer(folder / "redis", append_only=peer.append_only)
            fixed.append(stack.enter_context(server).url)
        if peer.needs in {"postgres", "both"}:
            fixed.append(stack.enter_context(PostgresServer(folder / "postgres")).url)
        if peer.processes:
            fixed.append(str(peer.processes))

        def addresses() -> list[str]:
            if fixed:
                return fixed
            fresh = tempfile.mkdtemp(dir=folder)
            return [f"sqlite:///{fresh}/peer.sqlite" if peer.needs == "sqlite" else fresh]

        yield addresses


def command_of(peer: Peer, python: Path) -> list[str]:
    if peer.is_penstock:
        return [str(python), "-m", f"benchmarks.peers.{peer.script}"]
    return [str(python), str(ROOT / "benchmarks" / "peers" / f"{peer.script}.py")]


def lines_of(
    command: list[str], addresses: Addresses, names: list[str], limit: float
) -> Iterator[dict[str, Any]]:
    """A line for each workload.

    One that takes too long or fails is said to, and the others go on without it.
    """
    left = list(names)
    while left:
        failure, before = f"> {limit:g} s", len(left)
        with (
            tempfile.TemporaryFile() as errors,
            _started([*command, *addresses(), *left], errors) as process,
        ):
            end = time.monotonic() + limit + START_SECONDS
            while left and (text := _next_line(process, end)):
                line = json.loads(text)
                left.remove(line["workload"])
                yield line
                end = time.monotonic() + limit
            if left and process.poll() is not None:
                failure = f"failed: {_last_line(errors)}"
            elif not left:
                with suppress(subprocess.TimeoutExpired):  # it stops what it has started
                    process.wait(START_SECONDS)
        # one that ends before its first answer doesn't start: it wouldn't for the others either
        failed = left[:] if len(left) == before and failure.startswith("failed") else left[:1]
        for name in failed:
            left.remove(name)
            yield {"workload": name, "failure": failure}


@contextmanager
def _started(command: list[str], errors: Any) -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own, so that what it starts ends with it."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        bufsize=0,  # a line in Python's buffer is one that no selector sees
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _next_line(process: subprocess.Popen[bytes], end: float) -> str | None:
    """None if there is none until `end`, or if it has ended."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, end - time.monotonic())):
            text = process.stdout.readline().decode()
            if not text:
                process.wait()
                return None
            if text.startswith("{"):
                return text
    return None


def _last_line(errors: Any) -> str:
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()
    return said[-1][:200] if said else "it said nothing"
