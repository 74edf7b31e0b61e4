"""The document after reading: every alias resolved, every default still visible as `None`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import structs

from penstock.spelling import near_miss

TriggerRule = Literal["all_success", "none_failed", "all_done", "one_success", "one_failed"]
OnFailure = Literal["fail_fast", "continue"]

TRIGGER_RULES: tuple[TriggerRule, ...] = (
    "all_success",
    "none_failed",
    "all_done",
    "one_success",
    "one_failed",
)
DATA_HANDLERS = frozenset({"input", "output", "decision"})
"""Pure handlers that the engine evaluates in place; every other handler runs on a worker."""

SECRETLESS_HANDLERS = DATA_HANDLERS | {
    "transform",
    "echo",
    "sleep",
    "fail",
    "penstock.aggregate",
    "penstock.compute",
    "penstock.validate",
}
"""Built-in handlers that compute with their config, or give it as their output: there a secret
would be given away.
"""

HANDLER_ALIASES = {
    "http_request": "call_external_service",
    "external_api": "call_external_service",
    "call_llm": "llm_service",
    "call_llm_service": "llm_service",
    "llm": "llm_service",
    "llm_generate": "llm_service",
}
FALLBACK_HANDLERS = {
    "aggregate": "penstock.aggregate",
    "compute": "penstock.compute",
    "validate": "penstock.validate",
    "delay": "sleep",
}
"""Names that documents of the public implementations use, and what runs if no worker has a handler
of that name.

They are not reserved, because they are words that people give to handlers of their own. The
built-in handler has a name of its own, so that a worker without somebody's `validate` never runs
the built-in one in its place.
"""
OUTPUT_ALIASES: dict[str, dict[str, str]] = {
    "call_external_service": dict.fromkeys(
        ("response", "result", "body", "fetched_content"), "data"
    ),
    "llm_service": dict.fromkeys(("text", "answer", "result", "generation", "data"), "response"),
}
"""Keys that read another key when the output doesn't have them, by handler."""

BUILT_IN_HANDLERS = DATA_HANDLERS | {
    "call_external_service",
    "llm_service",
    "transform",
    "noop",
    "sleep",
    "fail",
    "echo",
    "penstock.aggregate",
    "penstock.compute",
    "penstock.validate",
}

DEFAULT_TIMEOUT_SECONDS = 300.0
SLEEP_MARGIN_SECONDS = 60.0
"""How much longer than its config says a `sleep` may take, if nobody sets another time limit."""


RETRY_NEAR_MISSES = {
    "retries": "max_attempts",
    "max_retries": "max_attempts",
    "attempts": "max_attempts",
    "times": "max_attempts",
    "delay": "initial_delay_seconds",
    "delay_seconds": "initial_delay_seconds",
    "initial_delay": "initial_delay_seconds",
    "initial_backoff_seconds": "initial_delay_seconds",
    "backoff": "multiplier",
    "backoff_multiplier": "multiplier",
    "exponential_base": "multiplier",
    "factor": "multiplier",
    "max_delay": "max_delay_seconds",
    "max_backoff_seconds": "max_delay_seconds",
    "jitter": "jitter_seconds",
}
"""Other names for the fields of a `Retry`, in documents or elsewhere."""


class RetryMeta(msgspec.StructMeta):
    """The metaclass of `Retry`, which says which field was meant."""

    def __call__(self, *args: Any, **fields: Any) -> Any:
        names = self.__struct_fields__
        for name in fields.keys() - set(names):
            meant = near_miss(name, names, RETRY_NEAR_MISSES)
            note = ", which counts the first attempt too" if meant == "max_attempts" else ""
            hint = f"did you mean {meant}=…{note}?" if meant else "see help(penstock.Retry)"
            raise TypeError(f"Retry() has no field {name!r}; {hint}")
        return super().__call__(*args, **fields)


class Retry(msgspec.Struct, frozen=True, metaclass=RetryMeta):
    """`max_attempts` counts all attempts: 4 means the first and 3 retries.

    `max_delay_seconds` limits how far delays grow. It never shortens the first one: a smaller value
    is raised to it.
    """

    max_attempts: int = 4
    initial_delay_seconds: float = 1.0
    multiplier: float = 2.0
    max_delay_seconds: float = 30.0
    jitter_seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.max_delay_seconds < self.initial_delay_seconds:
            structs.force_setattr(self, "max_delay_seconds", self.initial_delay_seconds)


class HandlerDefaults(msgspec.Struct, frozen=True):
    """What a handler says about its nodes when the document doesn't."""

    retry: Retry | None = None
    timeout_seconds: float | None = None
    queue: str | None = None


class Node(msgspec.Struct):
    id: str
    handler: str
    path: str
    handler_field: str = "handler"
    """How the document spells it, as `dependencies_field`: problems point at what was written."""
    dependencies: tuple[str, ...] = ()
    dependencies_field: str = "dependencies"
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    condition: str | None = None
    trigger_rule: TriggerRule = "all_success"
    retry: Retry | None = None
    timeout_seconds: float | None = None
    queue: str | None = None
    queue_timeout_seconds: float | None = None
    optional: bool = False
    dead_letter: bool | None = None
    on_dependency_failure: Literal["skip", "fail"] = "skip"


class Definition(msgspec.Struct):
    name: str
    nodes: list[Node]
    description: str | None = None
    timeout_seconds: float | None = None
    on_failure: OnFailure = "fail_fast"
    input_schema: Any = None
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    labels: dict[str, Any] = msgspec.field(default_factory=dict)
    document: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was submitted, as it was: unknown fields and all. This is what a store keeps."""
