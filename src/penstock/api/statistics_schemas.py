"""The schemas of statistics, as in `schemas`."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Active(BaseModel):
    PENDING: int
    RUNNING: int
    PAUSED: int


class StateCounts(Active):
    COMPLETED: int
    FAILED: int
    CANCELLED: int


class Bucket(StateCounts):
    at: str = Field(description="When it begins.")


class WorkflowCounts(BaseModel):
    workflow: str
    total: int
    completed: int
    failed: int
    cancelled: int
    active: int
    failure_rate: float = Field(
        description="`failed / (completed + failed)`; 0 if none of them has ended."
    )


class HopTimes(BaseModel):
    p50_ms: float | None
    p95_ms: float | None


class HopBucket(HopTimes):
    at: str


class Hops(HopTimes):
    model_config = {
        "json_schema_extra": {
            "description": "From the moment that a node may start to its start by a worker,"
            " of some executions of each bucket."
        }
    }

    samples: int
    series: list[HopBucket]


class Tasks(BaseModel):
    waiting: int
    running: int


class Stats(BaseModel):
    now: str
    since: str
    bucket_seconds: float
    truncated: bool = Field(
        description="There were too many executions since then: only the newest are counted."
    )
    active: Active = Field(description="Now, whatever their age; each counted up to 10,000.")
    totals: StateCounts
    series: list[Bucket] = Field(description="The oldest first.")
    workflows: list[WorkflowCounts] = Field(
        description="At most 50, the highest failure rate first."
    )
    hops: Hops
    dead_letters: int = Field(description="Open ones, counted up to 10,000.")
    tasks: Tasks
    workers: int
    orchestrators: int
    inbox: int = Field(description="What orchestrators haven't committed yet.")


class NodeStats(BaseModel):
    node_id: str
    handler: str
    count: int = Field(description="Runs that ended COMPLETED or FAILED.")
    failed: int
    skipped: int
    failure_rate: float
    attempts: int
    p50_seconds: float | None = Field(description="Of runs that completed: their last attempt.")
    p95_seconds: float | None


class WorkflowStats(BaseModel):
    name: str
    version: int | None
    sampled: int
    states: dict[str, int]
    p50_seconds: float | None = Field(
        description="Of executions that completed, from start to end."
    )
    p95_seconds: float | None
    nodes: list[NodeStats]
