"""An attempt's log: what its handler logs, up to a limit; the rest is counted."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from typing import Any

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S%z")


class AttemptLog:
    __slots__ = ("_bytes", "_dropped", "_limit", "_lines")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._dropped = 0
        self._lines: list[str] | None = None  # most attempts log nothing

    @property
    def version(self) -> int:
        """A number that changes when there is more to read, but not with every dropped line."""
        return (len(self._lines) if self._lines else 0) + bool(self._dropped)

    def write(self, line: str) -> None:
        if not line.isascii():
            # half a character couldn't be stored
            line = line.encode("utf-8", "backslashreplace").decode()
        size = len(line.encode()) + 1
        if self._bytes + size > self._limit:
            self._dropped += 1
        else:
            self._bytes += size
            self.append(line)

    def append(self, line: str) -> None:
        """Append a line for which there is room."""
        self._lines = self._lines or []
        self._lines.append(line)

    def heartbeat(self, detail: Any) -> None:
        """What `ctx.heartbeat(detail)` does: a line in the log."""
        self.write(f"heartbeat {json.dumps(detail, default=str, separators=(',', ':'))}")

    def drop(self, lines: int) -> None:
        """Count lines that were dropped elsewhere, before they came here."""
        self._dropped += lines

    @property
    def dropped(self) -> int:
        return self._dropped

    def text(self) -> str:
        if self._dropped:
            last = f"({self._dropped} more lines dropped: the log is full)"
            return "\n".join([*(self._lines or ()), last])
        return "\n".join(self._lines) if self._lines else ""


current_log: ContextVar[AttemptLog | None] = ContextVar("penstock_attempt_log", default=None)


class CaptureHandler(logging.Handler):
    """On the root logger: sends what is logged inside a handler to its attempt's log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = current_log.get()
        if log is None:
            return
        try:
            line = _FORMAT.format(record)
        except Exception:  # noqa: BLE001 -- a log call with the wrong arguments fails no node
            line = f"{record.levelname} {record.msg!r} {record.args!r}"
        log.write(line.replace("\r", "\\r"))


_capture = CaptureHandler()


def capture_logging() -> None:
    root = logging.getLogger()
    if _capture not in root.handlers:
        root.addHandler(_capture)
    # a handler's own log is captured from INFO on, whatever the application's level is
    logging.getLogger("penstock.handler").setLevel(logging.INFO)
