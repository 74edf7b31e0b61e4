"""Standard output while handlers run: what they print goes to their attempt's log, not into the middle of a screen."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from penstock.worker.logs import AttemptLog, current_log

_partial: ContextVar[tuple[AttemptLog, str] | None] = ContextVar("penstock_partial_line", default=None)


class HandlerStream(io.TextIOBase):
    """Takes the place of `sys.stdout` or `sys.stderr`; `stray` gets what is written outside of handlers."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, stray: Callable[[str], object], original: TextIO) -> None:
        self._stray, self._original = stray, original

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._original.fileno()

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
    kept = _partial.get()
    return kept[1] if kept is not None and kept[0] is log else ""


@contextmanager
def captured(stray_out: Callable[[str], object], stray_error: Callable[[str], object] | None = None) -> Iterator[None]:
    """Put `HandlerStream`s in place, and let Penstock's own warnings through to standard error."""
    out, error = sys.stdout, sys.stderr
    sys.stdout = HandlerStream(stray_out, out)
    sys.stderr = HandlerStream(stray_error or error.write, error)
    warnings = logging.StreamHandler(sys.stderr)
    warnings.addFilter(lambda record: current_log.get() is None and record.name != "penstock.handler")
    logger = logging.getLogger("penstock")
    logger.addHandler(warnings)
    try:
        yield
    finally:
        logger.removeHandler(warnings)
        sys.stdout, sys.stderr = out, error


@contextmanager
def kept_stdout() -> Iterator[TextIO]:
    """Standard output for one writer; whatever else writes there, such as a handler's subprocess, goes to stderr."""
    sys.stdout.flush()
    mine = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(mine), "w", encoding="utf-8") as stream:
            yield stream
    finally:
        os.dup2(mine, 1)
        os.close(mine)
