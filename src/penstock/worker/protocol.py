"""What is said between a worker and its child processes: a length, then a msgpack array."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from penstock.engine.events import TaskError, Value

LENGTH = struct.Struct("<I")
READY = b"\x06"
"""What a child says when it has its handlers."""


class Request(msgspec.Struct, array_like=True):
    handler: str
    config: bytes
    context: dict[str, Any]
    inputs: list[tuple[str, Value]]
    log_bytes: int
    secrets: list[str]
    """Values that may not come back in a text."""


class Reply(msgspec.Struct, array_like=True):
    output: bytes | None
    error: TaskError | None
    retryable: bool
    retry_after: float | None
    logs: str
