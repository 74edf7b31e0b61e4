"""What the cold store keeps beside the executions themselves, and how they are searched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from penstock.engine.commands import DeadLetter, Transition
from penstock.engine.events import TaskError
from penstock.errors import StoreError

Weights = dict[int, int]
"""An alias: shares by version. One version is `{3: 100}`."""
LATEST = "latest"
"""The alias that always means the newest version."""

Closed = Literal["retried", "dropped"]
Scope = Literal["read", "submit", "approve", "operate", "admin"]


class WorkflowRow(msgspec.Struct):
    name: str
    latest: int
    versions: int
    created_at: float
    """Of the first version; `updated_at` of the newest."""
    updated_at: float
    aliases: dict[str, Weights] = {}


class ExecutionRow(msgspec.Struct):
    """An execution in a list: without its nodes."""

    n: int
    """Its place in the order of creation: what a cursor is made of."""
    execution_id: str
    workflow: str
    version: int
    state: str
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    labels: dict[str, Any] = {}
    error: TaskError | None = None
    error_node_id: str | None = None
    retry_of: str | None = None


class Search(msgspec.Struct, kw_only=True):
    """Everything that is given must hold. The newest first."""

    states: tuple[str, ...] = ()
    workflow: str | None = None
    version: int | None = None
    labels: dict[str, str] = {}
    """A label that isn't text is compared as its JSON."""
    since: float | None = None
    until: float | None = None
    """`created_at`: from `since` on, before `until`."""
    text: str | None = None
    """Part of the id or of the workflow's name."""
    retry_of: str | None = None
    before: int | None = None
    """Only rows with a smaller `n`."""
    limit: int = 50


class Window(msgspec.Struct, frozen=True):
    """A part of time in buckets of the same width, the oldest first."""

    since: float
    bucket_seconds: float
    buckets: int

    def bucket_of(self, at: float) -> int:
        """What was created later, by a clock that is ahead, counts in the last."""
        return min(int((at - self.since) / self.bucket_seconds), self.buckets - 1)


class CountRow(msgspec.Struct, gc=False):
    """How many executions of a workflow and state were created in a bucket of a window."""

    workflow: str
    state: str
    bucket: int
    count: int
    example: str
    """The id of one of them."""


class Counts(msgspec.Struct):
    rows: list[CountRow]
    """One for each that isn't 0, in any order."""
    truncated: bool = False
    """There are more in the window than were counted: older ones."""


class DeadLetterRow(msgspec.Struct):
    id: int
    dead_letter: DeadLetter
    workflow: str
    version: int
    closed: Closed | None = None
    closed_at: float | None = None
    retried_as: str | None = None


class DeadLetterSearch(msgspec.Struct, kw_only=True):
    """The newest first; without `closed` only those that are open."""

    workflow: str | None = None
    handler: str | None = None
    category: str | None = None
    """Of the last attempt's error."""
    execution_id: str | None = None
    closed: bool = False
    before: int | None = None
    limit: int = 50


class ApiKey(msgspec.Struct):
    id: str
    name: str
    scopes: tuple[Scope, ...]
    hash: bytes
    """SHA-256 of the secret part; the secret itself is shown once and kept nowhere."""
    created_at: float
    revoked_at: float | None = None


class AuditLine(msgspec.Struct):
    """Who did what, when, from where."""

    at: float
    key_id: str
    """Empty where the service is open."""
    key_name: str
    action: str
    """The operation's id in the API, such as `cancel_execution`."""
    object: str
    """What it was done to: `executions/0192…`, `workflows/report`."""
    address: str
    status: int
    """What it was answered with."""
    detail: dict[str, Any] = {}
    id: int = 0
    """Given by the store."""


class AuditSearch(msgspec.Struct, kw_only=True):
    key_id: str | None = None
    action: str | None = None
    object: str | None = None
    since: float | None = None
    until: float | None = None
    before: int | None = None
    limit: int = 50


FeedCursor = tuple[int, ...]
"""Where a reader is in the commit feed: a position in each partition."""


class FeedEntry(msgspec.Struct):
    """An entry of the commit feed: the history lines of one execution in one commit.

    Positions say the order of commits within a partition.
    """

    position: int
    execution_id: str
    lines: list[Transition]
    partition: int = 0


class FeedGap(StoreError):
    """The commit feed doesn't go back that far any more: part of what came after is gone."""


def advance(cursor: FeedCursor, feed_entries: Iterable[FeedEntry]) -> FeedCursor:
    """The cursor of a reader who was at `cursor` and has had these entries too."""
    here = list(cursor)
    for feed_entry in feed_entries:
        here[feed_entry.partition] = max(here[feed_entry.partition], feed_entry.position)
    return tuple(here)
