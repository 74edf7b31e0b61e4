"""The schemas of answers, as Pydantic models for the OpenAPI document.

Answers aren't checked against them at run time; the tests do that. The schemas of request bodies
are JSON Schemas (`body_schemas`), and bodies are checked against them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, create_model


class Problem(BaseModel):
    code: str
    path: str
    message: str
    node_id: str | None = None
    line: int | None = Field(
        None, description="Where in the text of the document, from 1, if that is known."
    )
    column: int | None = None


class ProblemDocument(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="What a program can rely on.")
    problems: list[Problem] | None = None


class Error(BaseModel):
    category: str
    message: str
    node_id: str | None = None
    type: str | None = None
    detail: Any = None
    traceback: str | None = None


class Node(BaseModel):
    state: str
    attempt: int
    output: Any = None
    error: Error | None = None
    reason: str | None = Field(
        default=None,
        description="Why it is so. Of a QUEUED node: `no_worker` (no live worker serves its queue)"
        " or `no_handler` (none of those that do has its handler).",
    )
    reason_text: str | None = Field(
        default=None, description="The same in words, where it says what to do."
    )
    worker_id: str | None = None
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class Started(BaseModel):
    execution_id: str
    workflow: str
    version: int
    state: str
    created_at: str
    labels: dict[str, Any]


class Execution(Started):
    input: Any = None
    output: Any = None
    error: Error | None = None
    started_at: str | None = None
    finished_at: str | None = None
    nodes: dict[str, Node] = {}
    priority: int = 0
    retry_of: str | None = None
    retried_as: str | None = Field(None, description="The newest retry of it.")


class ListedExecution(Started):
    error: Error | None = None
    started_at: str | None = None
    finished_at: str | None = None
    retry_of: str | None = None


class Attempt(BaseModel):
    attempt: int
    at: str | None
    error: Error | None
    worker_id: str | None = None


class Results(BaseModel):
    execution_id: str
    state: str
    completed: bool
    output: Any = None
    outputs: dict[str, Any]
    error: Error | None = None


class HistoryItem(BaseModel):
    seq: int
    at: str
    node_id: str | None
    from_: str = Field(alias="from")
    to: str
    attempt: int
    reason: str | None = None


class LogItem(BaseModel):
    attempt: int
    text: str
    live: bool = Field(description="The attempt runs, and this is what it has logged so far.")


class Requested(BaseModel):
    execution_id: str
    requested: str


class RetryRun(BaseModel):
    node_id: str
    reason: str


class Retried(BaseModel):
    execution_id: str | None
    retry_of: str
    version: int
    runs: list[RetryRun]
    keeps: list[str]


class BatchItem(BaseModel):
    execution_id: str | None = None
    workflow: str | None = None
    version: int | None = None
    state: str | None = None
    created_at: str | None = None
    labels: dict[str, Any] | None = None
    error: ProblemDocument | None = None


class BulkItem(BaseModel):
    """`made`, `runs` and `keeps` are of a retry."""

    execution_id: str
    ok: bool
    made: str | None = Field(description="The new execution.")
    runs: list[RetryRun] | None
    keeps: list[str] | None
    error: ProblemDocument | None


class DroppedLetters(BaseModel):
    dropped: int = Field(description="How many of them were open.")


class RetriedLetters(BaseModel):
    retry_of: str
    letters: list[int]
    execution_id: str | None = None
    version: int | None = None
    runs: list[RetryRun] | None = None
    keeps: list[str] | None = None
    error: ProblemDocument | None = None


class StoredWorkflow(BaseModel):
    name: str
    version: int
    created: bool
    created_at: str
    warnings: list[Problem]
    aliases: dict[str, dict[str, int]]


class ListedWorkflow(BaseModel):
    name: str
    latest_version: int
    versions: int
    aliases: dict[str, dict[str, int]]
    created_at: str
    updated_at: str


class Workflow(BaseModel):
    name: str
    version: int
    definition: dict[str, Any]
    created_at: str
    latest_version: int
    aliases: dict[str, dict[str, int]]


class Version(BaseModel):
    version: int
    created_at: str
    content_hash: str
    aliases: list[str]


class Alias(BaseModel):
    name: str
    alias: str
    weights: dict[str, int]


class Validation(BaseModel):
    valid: bool
    name: str | None
    nodes: int
    problems: list[Problem]
    warnings: list[Problem]


class DeadLetter(BaseModel):
    id: int
    execution_id: str
    workflow: str
    version: int
    node_id: str
    handler: str
    at: str
    category: str | None
    error: Error | None
    attempts: list[Attempt] = Field(description="The first 5 and the last 15.")
    attempts_dropped: int = Field(default=0, description="How many there were between these.")
    closed: str | None
    closed_at: str | None
    retried_as: str | None


class Failure(BaseModel):
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


class Me(BaseModel):
    open: bool
    key_id: str | None
    name: str | None
    scopes: list[str] = Field(description="All that this caller may use.")


class HeldTask(BaseModel):
    execution_id: str
    node_id: str
    attempt: int
    handler: str
    queue: str
    workflow: str
    seconds: float | None = Field(
        description="For how long the worker has had it, if that is known."
    )


class Worker(BaseModel):
    worker_id: str
    queues: list[str]
    handlers: list[str] | None = Field(
        description="Null for a worker of an older version, which doesn't say."
    )
    running: int
    heartbeats: int
    started_at: str | None
    tasks: list[HeldTask] = Field(description="What it holds, at most 100 of them.")


class Orchestrator(BaseModel):
    name: str
    partitions: list[int]


class Queue(BaseModel):
    queue: str
    waiting: int
    running: int
    workers: int = Field(description="Live workers that serve it.")
    reason: str | None = Field(
        description="Why something in it isn't taken: `no_worker`,"
        " or `no_handler` if no worker of the queue has the handler of some task."
    )
    reason_text: str | None = Field(description="The same in words.")


class AuditItem(BaseModel):
    id: int
    at: str
    key_id: str
    key_name: str
    action: str
    object: str
    address: str
    status: int
    detail: dict[str, Any]


class ListedKey(BaseModel):
    id: str
    name: str
    scopes: list[str]
    created_at: str
    revoked_at: str | None = None


class CreatedKey(BaseModel):
    id: str
    name: str
    scopes: list[str]
    key: str = Field(description="Shown this once.")


class Health(BaseModel):
    status: str


def page_of(model: type[BaseModel]) -> type[BaseModel]:
    """The schema of a page of a list: `{"items": […], "next_cursor": …}`."""
    fields: dict[str, Any] = {
        "items": (list[model], ...),  # type: ignore[valid-type]
        "next_cursor": (str | None, None),
    }
    page: type[BaseModel] = create_model(f"{model.__name__}Page", **fields)
    return page
