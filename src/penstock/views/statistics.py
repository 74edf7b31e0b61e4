"""Statistics: of everything, and of a workflow and its nodes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Active(msgspec.Struct, kw_only=True):
    PENDING: int
    RUNNING: int
    PAUSED: int


class StateCounts(Active, kw_only=True):
    COMPLETED: int
    FAILED: int
    CANCELLED: int


class Bucket(StateCounts, kw_only=True):
    at: Annotated[str, Meta(description="When it begins.")]


class WorkflowCounts(msgspec.Struct, kw_only=True):
    workflow: str
    total: int
    completed: int
    failed: int
    cancelled: int
    active: int
    failure_rate: Annotated[
        float, Meta(description="`failed / (completed + failed)`; 0 if none of them has ended.")
    ]


class HopTimes(msgspec.Struct, kw_only=True):
    p50_ms: float | None
    p95_ms: float | None


class HopBucket(HopTimes, kw_only=True):
    at: str


class Hops(HopTimes, kw_only=True):
    """From the moment that a node may start to its start by a worker.

    Of some executions of each bucket.
    """

    samples: int
    series: list[HopBucket]


class Tasks(msgspec.Struct, kw_only=True):
    waiting: int
    running: int


class Stats(msgspec.Struct, kw_only=True):
    now: str
    since: str
    bucket_seconds: float
    truncated: Annotated[
        bool,
        Meta(description="There were too many executions since then: only the newest are counted."),
    ]
    active: Annotated[
        Active, Meta(description="Now, whatever their age; each counted up to 10,000.")
    ]
    totals: StateCounts
    series: Annotated[list[Bucket], Meta(description="The oldest first.")]
    workflows: Annotated[
        list[WorkflowCounts], Meta(description="At most 50, the highest failure rate first.")
    ]
    hops: Hops
    dead_letters: Annotated[int, Meta(description="Open ones, counted up to 10,000.")]
    tasks: Tasks
    workers: int
    orchestrators: int
    inbox: Annotated[int, Meta(description="What orchestrators haven't committed yet.")]


class NodeStats(msgspec.Struct, kw_only=True):
    node_id: str
    handler: str
    count: Annotated[int, Meta(description="Runs that ended COMPLETED or FAILED.")]
    failed: int
    skipped: int
    failure_rate: float
    attempts: int
    p50_seconds: Annotated[
        float | None, Meta(description="Of runs that completed: their last attempt.")
    ]
    p95_seconds: float | None


class WorkflowStats(msgspec.Struct, kw_only=True):
    name: str
    version: int | None
    sampled: int
    states: dict[str, int]
    p50_seconds: Annotated[
        float | None, Meta(description="Of executions that completed, from start to end.")
    ]
    p95_seconds: float | None
    nodes: list[NodeStats]
