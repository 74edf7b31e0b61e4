"""Retries of executions: what runs again, and what is reused."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.views.problems import ProblemDocument

RetriedItems: TypeAlias = Literal["failed", "all"]
"""Which items run of a map that runs again."""


class RetryItems(msgspec.Struct, kw_only=True):
    """Items of a map, or rounds of a loop, in a retry."""

    runs: Annotated[int, Meta(description="Of those that were in the list before.")]
    keeps: int
    sample: Annotated[list[str], Meta(description="The first of those that run.")]
    decided_again: Annotated[
        bool, Meta(description="The list is made again; items are kept by their identities.")
    ] = False
    new: Annotated[
        int | None,
        Meta(description="Items that weren't in the list before. Null: the list isn't known yet."),
    ] = None
    gone: Annotated[
        int | None, Meta(description="Items that aren't in the list any more. Null: as with `new`.")
    ] = None

    @property
    def list_changes(self) -> str:
        """`2 new, 1 gone`; empty if the list is the same, or isn't known."""
        changes: list[str] = []
        if self.new:
            changes.append(f"{self.new:,} new")
        if self.gone:
            changes.append(f"{self.gone:,} gone")
        return ", ".join(changes)


class RetryRun(msgspec.Struct):
    """A node that a retry runs, and why."""

    node_id: str
    reason: str
    items: RetryItems | UnsetType = UNSET


class Retried(msgspec.Struct, kw_only=True):
    """`execution_id` is null in a preview."""

    execution_id: str | None
    retry_of: str
    version: int
    keeps: list[str]
    runs: list[RetryRun]


class RetriedLetters(msgspec.Struct, kw_only=True):
    """A retry of an execution with dead letters, or the `error` that prevented it."""

    retry_of: str
    letters: list[int]
    execution_id: str | UnsetType | None = UNSET
    version: int | UnsetType = UNSET
    keeps: list[str] | UnsetType = UNSET
    runs: list[RetryRun] | UnsetType = UNSET
    error: ProblemDocument | UnsetType = UNSET


class BulkItem(msgspec.Struct, kw_only=True):
    """`made`, `runs` and `keeps` are of a retry."""

    execution_id: str
    ok: bool
    made: Annotated[str | None, Meta(description="The new execution.")]
    runs: list[RetryRun] | None
    keeps: list[str] | None
    error: ProblemDocument | None
