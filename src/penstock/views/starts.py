"""The answer to each start of a batch: what was started, or why it wasn't."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.engine.commands import ExecutionRecord
from penstock.views.problems import ProblemDocument
from penstock.views.times import time_text


class Started(msgspec.Struct, kw_only=True):
    execution_id: str
    workflow: str
    version: int
    state: str
    created_at: str
    labels: dict[str, Any]


class BatchItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    execution_id: str | None = None
    workflow: str | None = None
    version: int | None = None
    state: str | None = None
    created_at: str | None = None
    labels: dict[str, Any] | None = None
    error: ProblemDocument | None = None


def started_view(record: ExecutionRecord) -> Started:
    return Started(
        execution_id=record.execution_id,
        workflow=record.workflow,
        version=record.version,
        state="PENDING",
        created_at=time_text(record.created_at),
        labels=record.labels,
    )
