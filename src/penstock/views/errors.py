"""Errors of nodes and executions, and the failed attempts that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.engine.commands import AttemptFailure
from penstock.engine.events import TaskError
from penstock.views.times import time_text


class Error(msgspec.Struct, omit_defaults=True):
    category: str
    message: str
    type: str | None = None
    detail: Any = None
    traceback: str | None = None
    node_id: str | None = None


class Attempt(msgspec.Struct, kw_only=True):
    attempt: int
    at: str | None
    error: Error | None
    worker_id: str | None = None


def error_view(error: TaskError | None, node_id: str | None = None) -> Error | None:
    if error is None:
        return None
    return Error(
        error.category,
        error.message,
        error.type,
        error.detail,
        error.traceback,
        node_id or None,
    )


def attempts_view(failures: Iterable[AttemptFailure]) -> list[Attempt]:
    return [
        Attempt(
            attempt=failure.attempt,
            at=time_text(failure.at),
            error=error_view(failure.error),
            worker_id=failure.worker_id,
        )
        for failure in failures
    ]
