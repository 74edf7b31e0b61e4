"""The schemas of nodes, one by one and as graphs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from penstock.api.schemas import Attempt, Node, Problem


class NodeAttempt(Attempt):
    """`at` and `error` are of one that failed."""

    state: str
    queued_at: str | None
    started_at: str | None
    finished_at: str | None


class Retry(BaseModel):
    max_attempts: int
    initial_delay_seconds: float
    multiplier: float
    max_delay_seconds: float
    jitter_seconds: float


class NodeDetail(Node):
    node_id: str
    handler: str
    dependencies: list[str]
    condition: str | None
    trigger_rule: str
    optional: bool
    queue: str
    timeout_seconds: float
    retry: Retry
    labels: Any = Field(description="As they are written, and `metadata` too.")
    metadata: Any
    config: dict[str, Any] = Field(description="As it is written.")
    resolved_config: dict[str, Any] | None = Field(
        description="With every reference but those to secrets filled in."
    )
    unresolved: str | None = Field(description="Why there is no `resolved_config`.")
    attempts: list[NodeAttempt]
    errors_dropped: int = Field(
        default=0,
        description="How many failed attempts have no `error` any more:"
        " the first 5 and the last 15 keep it.",
    )


class GraphNode(BaseModel):
    id: str
    handler: str
    state: str
    reason: str | None = None
    level: int
    attempt: int
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    error: str | None = Field(description="The message of its last error, at most 300 characters.")
    condition: str | None = None
    optional: bool


class GraphEdge(BaseModel):
    from_: str = Field(alias="from")
    to: str


class Graph(BaseModel):
    execution_id: str
    state: str
    seq: int = Field(
        description="Of the last change in it: events after this one carry on from here."
    )
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class WorkflowGraphNode(BaseModel):
    id: str
    handler: str
    level: int
    condition: str | None
    trigger_rule: str
    optional: bool


class WorkflowGraph(BaseModel):
    name: str
    version: int
    nodes: list[WorkflowGraphNode]
    edges: list[GraphEdge]


class Validation(BaseModel):
    valid: bool
    name: str | None
    nodes: int
    problems: list[Problem]
    warnings: list[Problem]
    graph: WorkflowGraph | None = Field(
        default=None, description="If it was asked for, and there are no mistakes."
    )
