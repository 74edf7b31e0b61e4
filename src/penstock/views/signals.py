"""Signals, as users see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.engine.events import SignalReceived
from penstock.stores.waits import WaitRow
from penstock.views.times import time_text

SignalState = Literal["taken", "kept", "unused"]


class SentSignal(msgspec.Struct, kw_only=True):
    """The answer to a signal: it is stored."""

    execution_id: str
    number: int
    state: Annotated[
        SignalState,
        Meta(
            description="`taken`: a node waits for it. `kept`: nobody does yet; the first node that"
            " waits for it gets it."
        ),
    ]


class SignalItem(msgspec.Struct, kw_only=True):
    number: int
    name: str
    state: Annotated[
        SignalState,
        Meta(description="`unused`: the execution has ended, and no node has taken it."),
    ]
    node_id: Annotated[str | None, Meta(description="The node that has taken it.")]
    correlation: str | None
    payload: Any
    sender: Annotated[str, Meta(description="The API key that sent it.")] = msgspec.field(
        name="from"
    )
    at: str


class PostedSignal(msgspec.Struct, kw_only=True):
    """The answer to a signal by correlation: it is stored."""

    delivered: Annotated[
        list[SentSignal], Meta(description="The executions that waited for it, and have got it.")
    ]
    is_kept: Annotated[
        bool, Meta(description="Whether it is also for nodes that begin to wait later.")
    ]


class WaitItem(msgspec.Struct, kw_only=True):
    """A node that waits for a signal."""

    execution_id: str
    node_id: str
    workflow: str
    version: int
    names: list[str]
    correlation: str | None
    since: str
    until: str | None


def wait_item(row: WaitRow, names: Sequence[str]) -> WaitItem:
    wait = row.wait
    return WaitItem(
        execution_id=wait.execution_id,
        node_id=wait.node_id,
        workflow=row.workflow,
        version=row.version,
        names=list(names),
        correlation=wait.correlation,
        since=time_text(wait.since),
        until=time_text(wait.due_at),
    )


def signal_item(signal: SignalReceived, node_id: str | None, *, has_ended: bool) -> SignalItem:
    state: SignalState = "kept"
    if node_id is not None:
        state = "taken"
    elif has_ended:
        state = "unused"
    return SignalItem(
        number=signal.number,
        name=signal.name,
        state=state,
        node_id=node_id,
        correlation=signal.correlation,
        payload=msgspec.Raw(signal.payload),
        sender=signal.sender,
        at=time_text(signal.at),
    )
