"""Standard output while handlers run: what they print goes to their attempt's log."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TextIO

from penstock.worker.logs import AttemptLog, current_log

PUMP_SECONDS = 0.2
"""How long to wait for the pipe, which a program that a handler started may keep open."""

_partial: ContextVar[tuple[AttemptLog, str] | None] = ContextVar(
    "penstock_partial_line", default=None
)


class HandlerStream(io.TextIOBase):
    """A replacement for `sys.stdout` or `sys.stderr` that writes to the attempt's log.

    `stray` gets what is written outside of handlers.
    """

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, stray: Callable[[str], object], original: TextIO) -> None:
        self._stray = stray
        self._original = original

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._original.fileno()

    def __getattr__(self, name: str) -> Any:
        # `buffer` and the like, which write below the level of text.
        return getattr(self._original, name)

    def write(self, text: str) -> int:
        log = current_log.get()
        if log is None:
            self._stray(text)
        else:
            *lines, rest = (_unfinished(log) + text).split("\n")
            for line in lines:
                log.write(line)
            _partial.set((log, rest) if rest else None)
        return len(text)

    def flush(self) -> None:
        """Inside a handler, end the line: nothing says which line of a handler is its last."""
        log = current_log.get()
        if log is None:
            self._original.flush()
        elif rest := _unfinished(log):
            _partial.set(None)
            log.write(rest)


def _unfinished(log: AttemptLog) -> str:
    partial = _partial.get()
    return partial[1] if partial is not None and partial[0] is log else ""


@contextmanager
def captured(
    stray_out: Callable[[str], object], stray_error: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Put `HandlerStream`s in place, and let Penstock's own warnings through to standard error."""
    out = sys.stdout
    error = sys.stderr
    sys.stdout = HandlerStream(stray_out, out)
    sys.stderr = HandlerStream(stray_error or error.write, error)
    warnings = logging.StreamHandler(sys.stderr)
    warnings.addFilter(
        lambda record: current_log.get() is None and record.name != "penstock.handler"
    )

    logger = logging.getLogger("penstock")
    logger.addHandler(warnings)
    try:
        yield
    finally:
        logger.removeHandler(warnings)
        sys.stdout = out
        sys.stderr = error


@contextmanager
def exclusive_stdout() -> Iterator[TextIO]:
    """Standard output for one writer; other writers, such as subprocesses, get stderr."""
    with _redirected(1, 2) as stream:
        yield stream


@contextmanager
def exclusive_terminal(stray: Callable[[str], object]) -> Iterator[TextIO]:
    """The terminal for one writer; text of other writers goes to `stray`, in a thread."""
    reading, writing = os.pipe()
    pump = threading.Thread(target=_pump, args=(reading, stray), name="penstock-pump", daemon=True)
    pump.start()
    with ExitStack() as stack:
        # At the exit, both streams are restored, the rest of the pipe is read, and the terminal
        # is closed, in this order.
        stack.callback(pump.join, PUMP_SECONDS)
        if os.isatty(2):
            stack.enter_context(_redirected(2, writing))
        stream = stack.enter_context(_redirected(1, writing))
        os.close(writing)
        yield stream


@contextmanager
def _redirected(number: int, target: int) -> Iterator[TextIO]:
    """Redirect a file descriptor to `target`, and give a stream to its original target."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    original = os.dup(number)
    os.dup2(target, number)
    original_stream = os.fdopen(
        os.dup(original), "w", encoding=sys.stdout.encoding, errors="replace"
    )
    try:
        yield original_stream
    finally:
        with suppress(OSError):  # nobody reads it any more
            original_stream.close()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.dup2(original, number)
        os.close(original)


def _pump(reading: int, stray: Callable[[str], object]) -> None:
    with os.fdopen(reading, "r", encoding="utf-8", errors="replace", newline="") as lines:
        for line in lines:
            stray(line)
