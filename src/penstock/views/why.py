"""Why a node isn't running now, as users see it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

WhyReason = Literal[
    "ended",
    "running",
    "not_triggered",
    "not_begun",
    "paused",
    "dependencies",
    "starting",
    "retry",
    "time",
    "signal",
    "approval",
    "child",
    "items",
    "item_limit",
    "queued",
    "no_worker",
    "no_handler",
]


class WaitsFor(msgspec.Struct, kw_only=True):
    """A dependency that hasn't ended."""

    node_id: str
    state: str


class Why(msgspec.Struct, kw_only=True):
    execution_id: str
    node_id: str
    state: str
    reason: WhyReason
    text: Annotated[str, Meta(description="The same in words, for people.")]
    waits_for: Annotated[list[WaitsFor], Meta(description="Dependencies that haven't ended.")] = []
    until: Annotated[str | None, Meta(description="When that ends by itself.")] = None
    names: Annotated[list[str], Meta(description="Signals that it waits for.")] = []
    queue: str | None = None
    tasks_waiting: Annotated[
        int | None, Meta(description="Tasks that wait in its queue, this one included.")
    ] = None
    position: Annotated[
        int | None,
        Meta(
            description="Its task's place in the queue. 1: the next one. Null: it isn't known, or"
            " more tasks are ahead of it than are looked at."
        ),
    ] = None
