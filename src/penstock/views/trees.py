"""The tree of an execution: its children, and theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.engine.commands import ExecutionRecord


class TreeExecution(msgspec.Struct, kw_only=True):
    """An execution in a tree, with the node of the one above that has started it."""

    execution_id: str
    parent_id: Annotated[str | None, Meta(description="Null for the execution at the top.")]
    node_id: str | None
    attempt: int | None
    depth: Annotated[int, Meta(description="How many executions of this tree are above.")]
    workflow: str
    version: int
    state: str


class Tree(msgspec.Struct, kw_only=True):
    items: Annotated[
        list[TreeExecution], Meta(description="Each before its children, these by node.")
    ]
    truncated: Annotated[
        bool | UnsetType, Meta(description="There are more. Left out if these are all.")
    ] = UNSET


def tree_execution(record: ExecutionRecord, depth: int) -> TreeExecution:
    """An execution so many levels below the one that was asked for."""
    parent = record.parent if depth else None
    return TreeExecution(
        execution_id=record.execution_id,
        parent_id=None if parent is None else parent.execution_id,
        node_id=None if parent is None else parent.node_id,
        attempt=None if parent is None else parent.attempt,
        depth=depth,
        workflow=record.workflow,
        version=record.version,
        state=str(record.state),
    )


def tree_view(items: Sequence[TreeExecution], *, truncated: bool) -> Tree:
    return Tree(items=list(items), truncated=True if truncated else UNSET)
