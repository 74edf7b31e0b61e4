"""Approvals, as users see them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.definition.waits import ApprovalConfig
from penstock.stores.waits import WaitRow
from penstock.views.times import time_text

Decision = Literal["approved", "rejected"]


class ApprovalItem(msgspec.Struct, kw_only=True):
    """An open approval: a node that waits for a decision."""

    execution_id: str
    node_id: str
    workflow: str
    version: int
    title: str
    text: Any
    form: Annotated[Any, Meta(description="A JSON Schema of what a decision brings, or null.")]
    comment: Annotated[str, Meta(description="When a comment is needed.")]
    needed: Annotated[int, Meta(description="How many must approve.")]
    since: str
    expires_at: str | None
    may_decide: Annotated[bool, Meta(description="Whether the caller may decide.")]


class Decided(msgspec.Struct, kw_only=True):
    """The answer to a decision: it is stored, and counts."""

    execution_id: str
    node_id: str
    decision: Decision
    by: str
    is_final: Annotated[
        bool, Meta(description="False: more must approve before the execution goes on.")
    ]


class ApprovalLink(msgspec.Struct, kw_only=True):
    """A link with which somebody without an API key decides once."""

    url: str
    expires_at: str


def approval_item(row: WaitRow, approval: ApprovalConfig, *, may_decide: bool) -> ApprovalItem:
    wait = row.wait
    expires_at = None
    if approval.expires_seconds is not None:
        expires_at = time_text(wait.since + approval.expires_seconds)
    return ApprovalItem(
        execution_id=wait.execution_id,
        node_id=wait.node_id,
        workflow=row.workflow,
        version=row.version,
        title=approval.title,
        text=approval.text,
        form=approval.form,
        comment=approval.comment,
        needed=approval.needed,
        since=time_text(wait.since),
        expires_at=expires_at,
        may_decide=may_decide,
    )
