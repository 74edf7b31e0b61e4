"""What a handler logs (or prints) is kept with its attempt, up to a limit; the rest is counted."""

from __future__ import annotations

import logging
from contextvars import ContextVar

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S%z")


class AttemptLog:
    __slots__ = ("_bytes", "_dropped", "_limit", "_lines")

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes, self._dropped = limit, 0, 0
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        size = len(line) + 1
        if self._bytes + size > self._limit:
            self._dropped += 1
        else:
            self._bytes += size
            self._lines.append(line)

    def text(self) -> str:
        if self._dropped:
            return "\n".join([*self._lines, f"({self._dropped} more lines dropped: the log is full)"])
        return "\n".join(self._lines)


current_log: ContextVar[AttemptLog | None] = ContextVar("penstock_attempt_log", default=None)


class CaptureHandler(logging.Handler):
    """On the root logger: sends what is logged inside a handler to its attempt."""

    def emit(self, record: logging.LogRecord) -> None:
        log = current_log.get()
        if log is not None:
            log.write(_FORMAT.format(record).replace("\r", "\\r"))


_capture = CaptureHandler()


def capture_logging() -> None:
    root = logging.getLogger()
    if _capture not in root.handlers:
        root.addHandler(_capture)
    # a handler's own log is kept from INFO on, whatever the application's level is
    logging.getLogger("penstock.handler").setLevel(logging.INFO)
