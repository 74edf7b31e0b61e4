"""What the sandbox's tests have it do."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path


def echo(parts: Sequence[bytes]) -> Iterator[bytes]:
    yield from parts


def compute(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Answers once, then computes without end."""
    yield parts[0]
    while True:
        pass


def take_memory(parts: Sequence[bytes]) -> Iterator[bytes]:
    yield bytes(int(parts[0]))


def abort(_parts: Sequence[bytes]) -> Iterator[bytes]:
    os.abort()
    yield b""


def fail(_parts: Sequence[bytes]) -> Iterator[bytes]:
    raise ValueError("a mistake")
    yield b""


def environment(_parts: Sequence[bytes]) -> Iterator[bytes]:
    yield "\n".join(sorted(os.environ)).encode()


def be_killed(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Killed from outside as often as the file has room for: `parts` are a path and a number."""
    yield b"first"
    path, limit = Path(parts[0].decode()), int(parts[1])
    count = len(path.read_text()) if path.exists() else 0
    if count < limit:
        path.write_text("x" * (count + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    yield b"second"


def say_who(_parts: Sequence[bytes]) -> Iterator[bytes]:
    yield str(os.getpid()).encode()


def wait_for_ever(parts: Sequence[bytes]) -> Iterator[bytes]:
    yield str(os.getpid()).encode()
    signal.pause()
