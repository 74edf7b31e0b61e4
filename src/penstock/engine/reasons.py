"""Reasons of transitions and categories of errors: every value that the core writes, with its text.

A reason stands in a history line and on a node; a category stands in an error and is the reason of
the FAILED state that it led to. Both are stored as text. The command line and the UI show the texts
of this module; `python -m scripts.reason_texts` writes them into `ui/src/reasons.ts`.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a node or an execution is in its state, where no error says so."""

    CONDITION_FALSE = "condition_false"
    BRANCH_NOT_TAKEN = "branch_not_taken"
    UPSTREAM_FAILED = "upstream_failed"
    EXECUTION_FAILED = "execution_failed"
    EXECUTION_TIMEOUT = "execution_timeout"
    TERMINATED = "terminated"
    CLEANUP_TIMEOUT = "cleanup_timeout"
    CANCELLED = "cancelled"
    REUSED = "kept"
    """The output is an earlier execution's. The value is public, so it keeps its old name."""
    RETURNED = "returned"
    """The node is QUEUED, and its task has to be handed out again."""
    REBUILT = "rebuilt"
    """The node ran in a generation whose data is lost."""
    NO_WORKER = "no_worker"
    NO_HANDLER = "no_handler"
    INTERNAL_ERROR = "internal_error"
    ITEM_TIMEOUT = "item_timeout"
    PARENT_ENDED = "parent_ended"
    """The node that has started this execution waits for it no more."""
    PARENT_TIMEOUT = "parent_timeout"
    """The node that has started this execution has waited as long as it may."""


class ErrorCategory(StrEnum):
    """Categories of errors that Penstock itself raises; a handler may raise others."""

    ADDRESS = "address"
    CHILD = "child"
    COMPUTE = "compute"
    CONDITION = "condition"
    CONFIG = "config"
    DEPENDENCY = "dependency"
    EXPIRED = "expired"
    EXPRESSION = "expression"
    HANDLER = "handler"
    HTTP = "http"
    INTERNAL_ERROR = "internal_error"
    INTERRUPTED = "interrupted"
    ITEMS = "items"
    LLM = "llm"
    LOST = "lost"
    MOCK = "mock"
    NO_HANDLER = "no_handler"
    NOT_JSON = "not_json"
    QUEUE_TIMEOUT = "queue_timeout"
    REJECTED = "rejected"
    SCHEMA = "schema"
    SECRET = "secret"  # noqa: S105 -- a category
    TERMINATED = "terminated"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    UNKNOWN_HANDLER = "unknown_handler"


REASON_TEXTS: dict[str, str] = {
    Reason.CONDITION_FALSE: "condition is false",
    Reason.BRANCH_NOT_TAKEN: "branch not taken",
    Reason.UPSTREAM_FAILED: "a node before it failed",
    Reason.EXECUTION_FAILED: "the execution failed",
    Reason.EXECUTION_TIMEOUT: "the execution ran out of time",
    Reason.TERMINATED: "a terminate node ended the execution",
    Reason.CLEANUP_TIMEOUT: "the clean-up ran out of time",
    Reason.CANCELLED: "cancelled",
    Reason.REUSED: "output reused from an earlier execution",
    Reason.RETURNED: "handed back by its worker, and queued again",
    Reason.REBUILT: "queued again after a loss of data",
    Reason.NO_WORKER: "no live worker serves its queue",
    Reason.NO_HANDLER: "no live worker of its queue has its handler",
    Reason.INTERNAL_ERROR: "Penstock itself failed",
    Reason.ITEM_TIMEOUT: "the item ran out of time",
    Reason.PARENT_ENDED: "the execution that started it waits for it no more",
    Reason.PARENT_TIMEOUT: "the node that started it ran out of time",
}
"""Reasons in words, to be put behind a state: "SKIPPED, condition is false"."""

HINTS: dict[str, str] = {
    ErrorCategory.CHILD: "Look at the child: its error says why. penstock show CHILD.",
    ErrorCategory.CONDITION: (
        "Fix the node's condition: a CEL expression (https://cel.dev) that gives true or false."
    ),
    ErrorCategory.CONFIG: (
        "Fix the node's config. For a value that may be missing, give a default: "
        '{{ node.key ?? "text" }}.'
    ),
    ErrorCategory.DEPENDENCY: "Fix the node that it depends on first.",
    ErrorCategory.EXPRESSION: "Fix the node's expression, which is CEL (https://cel.dev).",
    ErrorCategory.HANDLER: "The handler raised this error. Its traceback says where.",
    ErrorCategory.HTTP: (
        "Check the node's url, headers and body. If the service recovers by itself, increase "
        "retry.max_attempts."
    ),
    ErrorCategory.INTERNAL_ERROR: (
        "This is a bug in Penstock. Please report it, with the traceback from the log."
    ),
    ErrorCategory.INTERRUPTED: (
        "The worker was stopped before the handler was done. Increase "
        "PENSTOCK_SHUTDOWN_GRACE_SECONDS."
    ),
    ErrorCategory.ITEMS: (
        "Look at the items: penstock show ID --under NODE. A retry runs only those that failed."
    ),
    ErrorCategory.LLM: (
        "Check the provider's settings (PENSTOCK_LLM_…). --mock runs the workflow without one."
    ),
    ErrorCategory.LOST: (
        "The worker's process ended while it ran the task. Look for a crash, or for too little "
        "memory."
    ),
    ErrorCategory.NO_HANDLER: (
        "Start a worker that has the handler: --handlers MODULE or --handlers FILE.py."
    ),
    ErrorCategory.NOT_JSON: (
        "Return dicts, lists, text, numbers, true, false or None from the handler."
    ),
    ErrorCategory.QUEUE_TIMEOUT: "Start more workers, or increase queue_timeout_seconds.",
    ErrorCategory.TIMEOUT: "Increase timeout_seconds, or find out what the task waits for.",
    ErrorCategory.TOO_LARGE: (
        "Write large results to a file or a bucket, and return where they are."
    ),
    ErrorCategory.UNKNOWN_HANDLER: (
        "Start a worker that has the handler: --handlers MODULE or --handlers FILE.py."
    ),
}
"""What to do about an error, by its category. Where none is given, the message says it."""


def reason_text(reason: str | None) -> str:
    """A reason in words; one that isn't known is shown as it is."""
    if not reason:
        return ""
    return REASON_TEXTS.get(reason, reason)
