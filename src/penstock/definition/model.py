"""The document after reading: every alias resolved, every default still visible as `None`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import structs

from penstock.spelling import near_miss

TriggerRule = Literal[
    "all_success", "none_failed", "all_done", "one_success", "one_failed", "caught"
]
"""`caught` is that of a node with `catches`; a document can't name it."""
OnFailure = Literal["fail_fast", "continue"]
ItemFailurePolicy = Literal["fail_fast", "continue", "skip", "collect"]
RegionOutput = Literal["list", "counts", "none"]

TRIGGER_RULES: tuple[TriggerRule, ...] = (
    "all_success",
    "none_failed",
    "all_done",
    "one_success",
    "one_failed",
)
ITEM_FAILURE_POLICIES: tuple[ItemFailurePolicy, ...] = (
    "fail_fast",
    "continue",
    "skip",
    "collect",
)
REGION_OUTPUTS: tuple[RegionOutput, ...] = ("list", "counts", "none")
OnParentEnd = Literal["cancel", "leave"]
CHILD_DEPTH = 8
"""How deep children of children may go, unless their nodes say otherwise."""
CHILD_DEPTH_MAX = 32
TERMINATE = "terminate"
"""The handler that ends the execution early."""
NOTIFY = "penstock.notify"
"""The handler of the node beside an approval that tells others of it."""
NOTIFY_SUFFIX = "~notify"
"""Behind the approval's id: the id of that node."""
DATA_HANDLERS = frozenset({"input", "output", "decision", TERMINATE})
"""Pure handlers that the engine evaluates in place."""
CHILD_HANDLER = "workflow"
"""The handler of a node that runs another workflow: its child."""
WAITING_HANDLERS = frozenset({"wait", "signal", "approval", CHILD_HANDLER})
"""Handlers of nodes that wait: for a time, for somebody or for a child. No worker has a task.

Every handler that is neither here nor in `DATA_HANDLERS` runs on a worker.
"""

SECRETLESS_HANDLERS = (
    DATA_HANDLERS
    | WAITING_HANDLERS
    | {
        "transform",
        "echo",
        "sleep",
        "fail",
        "penstock.aggregate",
        "penstock.compute",
        "penstock.validate",
    }
)
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
MAP_HANDLER = "for_each"
LOOP_HANDLER = "repeat"
"""What is shown as the handler of a map or a loop; no worker has it."""
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
ANY_KEY = "*"
OUTPUT_ALIASES: dict[str, dict[str, str]] = {
    "call_external_service": dict.fromkeys(
        ("response", "result", "body", "fetched_content"), "data"
    ),
    "llm_service": dict.fromkeys(("text", "answer", "result", "generation", "data"), "response"),
    "signal": {ANY_KEY: "payload"},
}
"""Keys that read another key when the output doesn't have them, by handler.

With `ANY_KEY`, any missing key is looked for in the value of that other key.
"""

BUILT_IN_HANDLERS = (
    DATA_HANDLERS
    | WAITING_HANDLERS
    | {
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
        NOTIFY,
    }
)

DEFAULT_TIMEOUT_SECONDS = 300.0
SLEEP_MARGIN_SECONDS = 60.0
"""How much longer than its config says a `sleep` may take, if nobody sets another time limit."""
DEFAULT_CLEANUP_SECONDS = 300.0


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

    `on` has patterns of the errors that are retried (all, if it is empty), `not_on` of those that
    aren't, as in `error_patterns`. `max_delay_seconds` limits how far delays grow. It never
    shortens the first one: a smaller value is raised to it.
    """

    max_attempts: int = 4
    initial_delay_seconds: float = 1.0
    multiplier: float = 2.0
    max_delay_seconds: float = 30.0
    jitter_seconds: float = 0.5
    on: tuple[str, ...] = ()
    not_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_delay_seconds < self.initial_delay_seconds:
            structs.force_setattr(self, "max_delay_seconds", self.initial_delay_seconds)


class HandlerDefaults(msgspec.Struct, frozen=True):
    """What a handler says about its nodes when the document doesn't."""

    retry: Retry | None = None
    timeout_seconds: float | None = None
    queue: str | None = None


class Catch(msgspec.Struct, frozen=True):
    """A node whose failure another node handles."""

    node_id: str
    on: tuple[str, ...] = ()
    """Patterns of the errors that are meant, as in `error_patterns`; empty: all."""


class Each(msgspec.Struct):
    """`for_each`: the node runs once for each item of a list."""

    source: Any
    """A reference, as text, or a literal list."""
    item_name: str = "item"
    index_name: str = "index"
    written_name: str | None = None
    """`as`, if the document has it."""
    key: str | None = None
    max_parallel: int = 1000
    on_item_failure: ItemFailurePolicy = "fail_fast"
    max_failures: float | None = None
    max_failures_percent: float | None = None
    collect: Any = None
    output: RegionOutput = "list"
    item_timeout_seconds: float | None = None


class Repeat(msgspec.Struct):
    """`repeat`: the node runs in rounds, until a condition holds."""

    until: str
    max_rounds: int
    every_seconds: float = 0.0
    multiplier: float = 1.0
    most_every_seconds: float | None = None
    initial: Any = None
    has_initial: bool = False
    carry: Any = None
    keep_rounds: int = 10
    """Of how many rounds before the current one outputs are kept."""
    on_exhausted: Literal["fail", "continue"] = "fail"
    on_round_failure: Literal["fail", "continue"] = "fail"


class Child(msgspec.Struct, frozen=True):
    """What a `workflow` node says about its child, beside its config."""

    reference: str | None = None
    """The workflow, as the document names it; None if that is known when the node starts."""
    is_awaited: bool = True
    """`wait`: the node ends with the child, and not as soon as that is started."""
    on_parent_end: OnParentEnd = "cancel"
    max_depth: int | None = None
    """As the document says; else `CHILD_DEPTH`."""


class Node(msgspec.Struct):
    id: str
    handler: str
    path: str
    handler_field: str = "handler"
    """How the document spells it, as `dependencies_field`: problems point at what was written."""
    dependencies: tuple[str, ...] = ()
    dependencies_field: str = "dependencies"
    catches: tuple[Catch, ...] = ()
    is_last: bool = False
    """`finally`: it comes after everything, whatever became of that."""
    is_switch: bool = False
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
    each: Each | None = None
    repeat: Repeat | None = None
    nodes: list[Node] = msgspec.field(default_factory=list)
    """The body of a map or a loop."""
    notify: Any = None
    """Of an approval: who is told that it waits."""
    child: Child | None = None
    """Of a `workflow` node."""
    is_single: bool = False
    """The body is one node, and its items have no nodes below them."""


class Definition(msgspec.Struct):
    name: str
    nodes: list[Node]
    description: str | None = None
    timeout_seconds: float | None = None
    cleanup_timeout_seconds: float = DEFAULT_CLEANUP_SECONDS
    on_failure: OnFailure = "fail_fast"
    input_schema: Any = None
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    labels: dict[str, Any] = msgspec.field(default_factory=dict)
    document: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was submitted, as it was: unknown fields and all. This is what a store keeps."""


def every_node(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, and those of their bodies, that run a handler."""
    stack = list(nodes)
    stack.reverse()
    while stack:
        node = stack.pop()
        if node.nodes:
            stack.extend(reversed(node.nodes))
        else:
            yield node
