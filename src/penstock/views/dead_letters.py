"""Dead letters, and the failures that they record."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.stores.records import DeadLetterRow
from penstock.views.errors import Attempt, Error, attempts_view, error_view
from penstock.views.times import time_text


class DeadLetter(msgspec.Struct, kw_only=True):
    id: int
    execution_id: str
    workflow: str
    version: int
    node_id: str
    handler: str
    at: str
    category: str | None
    error: Error | None
    attempts: Annotated[list[Attempt], Meta(description="The first 5 and the last 15.")]
    attempts_dropped: Annotated[int, Meta(description="How many there were between these.")] = 0
    closed: str | None
    closed_at: str | None
    retried_as: str | None


class Failure(msgspec.Struct, kw_only=True):
    dead_letter_id: int
    execution_id: str
    workflow: str
    version: int
    node_id: str
    handler: str
    at: str
    category: str | None
    message: str | None
    attempts: int
    retried_as: str | None


class DroppedLetters(msgspec.Struct):
    dropped: Annotated[int, Meta(description="How many of them were open.")]


def dead_letter_view(row: DeadLetterRow) -> DeadLetter:
    dead_letter = row.dead_letter
    last = dead_letter.attempts[-1].error if dead_letter.attempts else None
    return DeadLetter(
        id=row.id,
        execution_id=dead_letter.execution_id,
        workflow=row.workflow,
        version=row.version,
        node_id=dead_letter.node_id,
        handler=dead_letter.handler,
        at=time_text(dead_letter.at),
        category=last.category if last else None,
        error=error_view(last),
        attempts=attempts_view(dead_letter.attempts),
        attempts_dropped=dead_letter.attempts_dropped,
        closed=row.closed,
        closed_at=time_text(row.closed_at),
        retried_as=row.retried_as,
    )


def failure_view(row: DeadLetterRow) -> Failure:
    dead_letter = row.dead_letter
    last = dead_letter.attempts[-1].error if dead_letter.attempts else None
    return Failure(
        dead_letter_id=row.id,
        execution_id=dead_letter.execution_id,
        workflow=row.workflow,
        version=row.version,
        node_id=dead_letter.node_id,
        handler=dead_letter.handler,
        at=time_text(dead_letter.at),
        category=last.category if last else None,
        message=last.message if last else None,
        attempts=len(dead_letter.attempts) + dead_letter.attempts_dropped,
        retried_as=row.retried_as,
    )
