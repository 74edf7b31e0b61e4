"""Standard output while handlers run: what they print goes to their attempt's log, not into the middle of a screen."""

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
"""A program that a handler has left behind may hold the pipe for ever; the run doesn't wait for it.
"""

_partial: ContextVar[tuple[AttemptLog, str] | None] = ContextVar(
    "penstock_partial_line", default=None
)


class HandlerStream(io.TextIOBase):
    """Takes the place of `sys.stdout` or `sys.stderr`; `stray` gets what is written outside of handlers."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, stray: Callable[[str], object], original: TextIO) -> None:
        self._stray, self._original = stray, original

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._original.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(
            self._original, name
        )  # `buffer` and the like: below this, text is out of our hands

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
        """Ends a line inside a handler: nothing tells when the handler has written its last one."""
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
    out, error = sys.stdout, sys.stderr
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
        sys.stdout, sys.stderr = out, error


@contextmanager
def exclusive_stdout() -> Iterator[TextIO]:
    """Standard output for one writer; whatever else writes there, such as a handler's subprocess, goes to stderr."""
    with _redirected(1, 2) as stream:
        yield stream


@contextmanager
def exclusive_terminal(stray: Callable[[str], object]) -> Iterator[TextIO]:
    """The terminal for one writer; whatever else writes there is given to `stray`, in a thread."""
    reading, writing = os.pipe()
    pump = threading.Thread(target=_pump, args=(reading, stray), name="penstock-pump", daemon=True)
    pump.start()
    with ExitStack() as stack:
        # On the way out: both streams as they were, then the rest of what the pipe holds, then the
        # terminal is closed.
        stack.callback(pump.join, PUMP_SECONDS)
        if os.isatty(2):
            stack.enter_context(_redirected(2, writing))
        stream = stack.enter_context(_redirected(1, writing))
        os.close(writing)
        yield stream


@contextmanager
def _redirected(number: int, target: int) -> Iterator[TextIO]:
    """File descriptor `number` leads to `target`; the stream that is given leads to where it led before."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    original = os.dup(number)
    os.dup2(target, number)
    partial = os.fdopen(os.dup(original), "w", encoding=sys.stdout.encoding, errors="replace")
    try:
        yield partial
    finally:
        with suppress(OSError):  # nobody reads it any more
            partial.close()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.dup2(original, number)
        os.close(original)


def _pump(reading: int, stray: Callable[[str], object]) -> None:
    with os.fdopen(reading, "r", encoding="utf-8", errors="replace", newline="") as lines:
        for line in lines:
            stray(line)
