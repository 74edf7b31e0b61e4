"""The other side of the sandbox: a process that does one job after another within its limits.

Started as `python -m penstock.sandbox.child MEMORY_BYTES MODULE…`; the modules are imported before
it says that it is ready, and what they take doesn't count. The time limit is one of processor time,
so that a busy machine fails nobody; the pool has a much later one by the clock. Both limits are the
kernel's: no code here has to get a turn for them.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec

from penstock.sandbox.frames import (
    ANSWER,
    DONE,
    EXIT_OUT_OF_MEMORY,
    FAILED,
    LENGTH,
    READY,
    Header,
    find,
)

NICENESS = 5
"""Loops that others wait for go first."""
SHOWN_CHARACTERS = 500


def main() -> None:
    memory_bytes = int(sys.argv[1])
    modules = sys.argv[2:]
    for module in modules:
        import_module(module)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    _restrict(memory_bytes)
    _silence()
    answers.write(READY)
    answers.flush()

    try:
        while (header := _read(requests)) is not None:
            _work(msgspec.msgpack.decode(header, type=Header), requests, answers)
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)  # at once: there may be no memory for anything else
    except BrokenPipeError:
        os._exit(0)  # whoever asked is gone


def _restrict(memory_bytes: int) -> None:
    if sys.platform == "win32":
        return  # has no such limits; the pool's time limit holds there too
    import resource  # noqa: PLC0415 -- not on Windows

    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    limit = _address_space() + memory_bytes
    if hard_limit != resource.RLIM_INFINITY:
        limit = min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash must not fill the disk
    os.nice(NICENESS)
    score = Path("/proc/self/oom_score_adj")
    if score.exists():
        # if the machine runs out of memory, this process goes first
        score.write_text("1000", encoding="ascii")


def _address_space() -> int:
    """What the process has now.

    Where the system doesn't say, a value that is certainly enough to begin with.
    """
    try:
        statm = Path("/proc/self/statm").read_text(encoding="ascii")
        pages = int(statm.split()[0])
    except (OSError, ValueError):
        return 1 << 30
    return pages * os.sysconf("SC_PAGE_SIZE")


def _silence() -> None:
    """What a library prints on its way down is nobody's log line."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _work(header: Header, requests: BinaryIO, answers: BinaryIO) -> None:
    parts = [_need(requests) for _ in range(header.parts)]
    try:
        _limit(header.seconds)
        for answer in find(header.function)(parts):
            _limit(0.0)
            _say(answers, ANSWER, answer)
            _limit(header.seconds)
    except (MemoryError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 -- reported to the caller
        _limit(0.0)
        text = f"{type(error).__name__}: {error}"[:SHOWN_CHARACTERS]
        _say(answers, FAILED, text.encode("utf-8", "replace"))
    else:
        _limit(0.0)
        _say(answers, DONE, b"")


def _limit(seconds: float) -> None:
    """The kernel ends this process when it has computed for so long; 0 for never."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _read(stream: BinaryIO) -> bytes | None:
    """One frame; None at the end of the stream."""
    length = stream.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    return stream.read(LENGTH.unpack(length)[0])


def _need(stream: BinaryIO) -> bytes:
    part = _read(stream)
    if part is None:
        os._exit(0)  # whoever asked is gone
    return part


def _say(stream: BinaryIO, kind: bytes, data: bytes) -> None:
    stream.write(LENGTH.pack(len(data)) + kind)
    stream.write(data)
    stream.flush()


if __name__ == "__main__":
    main()
