"""Messages between a worker and its child processes: a length, then a msgpack array."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from penstock.engine.events import TaskError, Value

LENGTH = struct.Struct("<I")
READY = b"\x06"
"""The byte that a child sends when it has its handlers."""


class Request(msgspec.Struct, array_like=True):
    handler: str
    config: bytes
    context: dict[str, Any]
    inputs: list[tuple[str, Value]]
    log_bytes: int
    secrets: list[str]
    """Values that may not come back in a text."""


class Line(msgspec.Struct, array_like=True, tag="line"):
    """A line that was logged just now.

    Told at once: it can be read while the handler runs, and stays if its process is killed.
    """

    text: str


class Reply(msgspec.Struct, array_like=True, tag="reply"):
    output: bytes | None
    error: TaskError | None
    retryable: bool
    retry_after: float | None
    dropped: int
    """Lines of the log that were too many."""
