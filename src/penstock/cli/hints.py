"""What a state's reason means, and what to do about a failure, in words for somebody who hasn't read the manual."""

from __future__ import annotations

REASONS = {
    "condition_false": "condition is false",
    "branch_not_taken": "branch not taken",
    "upstream_failed": "something before it failed",
    "execution_failed": "the execution failed",
    "execution_timeout": "the execution ran out of time",
    "cancelled": "",
    "internal_error": "Penstock itself failed",
}

HINTS = {
    "http": "Check the node's url, headers and body; a service that recovers by itself needs more retry.max_attempts.",
    "config": 'Mend the node\'s config; {{ node.key ?? "text" }} stands in for a value that may be missing.',
    "condition": "Mend the node's condition: CEL (https://cel.dev) that gives true or false.",
    "expression": "Mend the node's expression; CEL is described at https://cel.dev.",
    "handler": "The handler raised this; --debug shows its traceback.",
    "timeout": "Give it more timeout_seconds, or find out what it waits for.",
    "queue_timeout": "Give it more queue_timeout_seconds, or let fewer nodes run at once.",
    "lost": "The handler's process ended: look for a crash, or for too little memory.",
    "interrupted": "Its worker was stopped before it was done: give it more PENSTOCK_SHUTDOWN_GRACE_SECONDS.",
    "llm": "Check the provider's settings (PENSTOCK_LLM_…); --mock runs the workflow without one.",
    "unknown_handler": "Name the module that has the handler: --handlers MODULE or --handlers FILE.py.",
    "not_json": "Return dicts, lists, text, numbers, true, false or None from the handler.",
    "too_large": "Write large results to a file or a bucket, and return the place.",
    "dependency": "Mend the node that it depends on first.",
    "internal_error": "This is a bug in Penstock: please report it, with what --debug shows.",
}
"""By an error's category. Those that are missing say what to do in their message."""


def reason_text(reason: str | None) -> str:
    return REASONS.get(reason, reason) if reason else ""
