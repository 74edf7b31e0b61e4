"""The judge of the core: what docs/design.md says, as naively as it can be written.

Nothing is counted, remembered or passed on: each question ("may it start?") is answered from
scratch by looking at all nodes, and after each event every node is asked again until nothing
changes. It shares no code with the engine.

Where the text leaves the order open (which of two ready nodes starts first), the model follows the
order that it is told (`hint`), but only through steps that it finds allowed itself, and it takes
every step that remains.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Rule = Literal["all_success", "none_failed", "all_done", "one_success", "one_failed"]
Kind = Literal["task", "input", "output", "decision"]
Settled = Literal["success", "skip", "failure"]

ENDED = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}
EXECUTION_ENDED = {"COMPLETED", "FAILED", "CANCELLED"}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Reference:
    node: str
    key: str
    fallback: Any = None
    """None: there is none."""


@dataclass(frozen=True)
class Condition:
    reference: Reference
    wanted: bool


MORE_ATTEMPTS_MAX = 20
"""That a node may have besides its `max_attempts`, for those that were no fault of its own."""


@dataclass(frozen=True)
class Node:
    name: str
    kind: Kind = "task"
    parents: tuple[str, ...] = ()
    rule: Rule = "all_success"
    optional: bool = False
    fails_with_dependency: bool = False
    condition: Condition | None = None
    config: dict[str, Any] = field(default_factory=dict)
    """Plain values and `Reference`s."""
    max_attempts: int = 2
    initial_delay: float = 1.0
    multiplier: float = 2.0
    max_delay: float = 3.0
    timeout: float = 5.0
    queue_timeout: float | None = None

    @property
    def cleans_up(self) -> bool:
        return bool(self.parents) and self.rule in {"all_done", "one_failed"}


@dataclass(frozen=True)
class Dispatch:
    config: dict[str, Any]
    inputs: dict[str, Any]


class NothingThere(Exception):
    """A reference without a value, or a comparison of two kinds of things."""


class Model:
    def __init__(
        self,
        nodes: Iterable[Node],
        *,
        fail_fast: bool = True,
        timeout: float | None = None,
        input_value: dict[str, Any] | None = None,
        backstop: float = 10.0,
        reused: dict[str, Any] | None = None,
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.fail_fast = fail_fast
        self.timeout = timeout
        self.input_value = input_value or {}
        self.backstop = backstop
        self.execution = "PENDING"
        self.now = 0.0
        self.started_at = 0.0
        self.failing = False
        self.failed = False
        self.error_node: str | None = None
        """Whose failure is the execution's error."""
        self.state = dict.fromkeys(self.nodes, "PENDING")
        self.attempt = dict.fromkeys(self.nodes, 0)
        self.allowed = {name: node.max_attempts for name, node in self.nodes.items()}
        """Attempts that each node may have by now."""
        self.losses = dict.fromkeys(self.nodes, 0)
        self.because_of_a_failure: set[str] = set()
        """Nodes skipped because something before them failed."""
        self.outputs: dict[str, Any] = {}
        self.since: dict[str, float] = {}
        """When the current attempt was queued or has started."""
        self.due: dict[str, float] = {}
        """When a RETRYING node may go on."""
        self.waited: set[str] = set()
        """RETRYING nodes whose wait is over."""
        self.dispatched: dict[tuple[str, int], Dispatch] = {}
        """In this generation."""
        self.generation = 1
        self.again: set[str] = set()
        """QUEUED nodes whose task got lost with the store."""
        self.reused = {
            name: output for name, output in (reused or {}).items() if name in self.nodes
        }
        """Outputs that an earlier execution left, of nodes that aren't recorded as completed yet.
        """

    def start_execution(self) -> None:
        if self.execution == "PENDING":
            self.execution, self.started_at = "RUNNING", self.now

    def task_started(self, name: str, at: float) -> None:
        if self.state[name] == "QUEUED":
            self.state[name] = "RUNNING"
            self.since[name] = min(max(at, self.since[name]), self.now)

    def task_succeeded(self, name: str, output: Any) -> None:
        self._complete(name, output)

    def task_failed(
        self, name: str, *, retryable: bool = True, retry_after: float | None = None
    ) -> None:
        node, attempt = self.nodes[name], self.attempt[name]
        if not retryable or attempt >= self.allowed[name]:
            self._fail(name)
            return
        backoff = min(node.initial_delay * node.multiplier ** (attempt - 1), node.max_delay)
        wait = backoff if retry_after is None else retry_after
        self.state[name], self.due[name] = "RETRYING", self.now + wait
        if wait == 0:
            self.waited.add(name)

    def task_lost(self, name: str, *, interrupted: bool) -> None:
        """The first death of a worker never takes a node's last attempt.

        Being stopped with the worker costs nothing.
        """
        if interrupted:
            if self.allowed[name] < self.nodes[name].max_attempts + MORE_ATTEMPTS_MAX:
                self.allowed[name] += 1
        else:
            self.losses[name] += 1
            if self.losses[name] == 1 and self.attempt[name] == self.allowed[name]:
                self.allowed[name] += 1
        self.task_failed(name, retry_after=0.0)

    def is_current(self, name: str, generation: int, attempt: int) -> bool:
        return (
            generation == self.generation
            and name in self.nodes
            and attempt == self.attempt[name]
            and self.state[name] in {"QUEUED", "RUNNING"}
        )

    def pause(self) -> None:
        if self.execution == "RUNNING":
            self.execution = "PAUSED"

    def resume(self) -> None:
        if self.execution == "PAUSED":
            self.execution = "RUNNING"
            self.fire()

    def cancel(self) -> None:
        """A cancel wins over a failure that hasn't ended the execution yet.

        That failure stays the execution's error.
        """
        self._end_every_node(pending="CANCELLED")
        self.execution = "CANCELLED"

    def add(self, node: Node) -> None:
        if node.name not in self.nodes:
            self.nodes[node.name], self.state[node.name], self.attempt[node.name] = (
                node,
                "PENDING",
                0,
            )
            self.allowed[node.name], self.losses[node.name] = node.max_attempts, 0

    def situation(self) -> tuple[object, ...]:
        return self.state.copy(), self.attempt.copy(), self.because_of_a_failure.copy()

    def forget_waits(self) -> None:
        """A new owner knows when a retry is due, but not that its timer has fired already."""
        self.waited.clear()

    def lose_the_store(self) -> None:
        """What was handed out goes out again, as the same attempt, in a new generation."""
        self.generation += 1
        self.dispatched.clear()
        self.again = {name for name, state in self.state.items() if state in {"QUEUED", "RUNNING"}}
        for name in self.again:
            self.state[name], self.since[name] = "QUEUED", self.now

    def deadline(self, name: str) -> float | None:
        node, state = self.nodes[name], self.state[name]
        if state == "RETRYING" and name not in self.waited:
            return self.due[name]
        if state == "RUNNING":
            return self.since[name] + node.timeout + self.backstop
        if state == "QUEUED" and node.queue_timeout is not None:
            return self.since[name] + node.queue_timeout
        return None

    def deadlines(self) -> list[tuple[float, int, str]]:
        """All deadlines, the earliest first.

        The execution's own, named by an empty string, wins a tie.
        """
        if self.execution not in {"RUNNING", "PAUSED"}:
            return []
        paused = self.execution == "PAUSED"
        ahead: list[tuple[float, int, str]] = []
        for i, name in enumerate(self.nodes):
            due = self.deadline(name)
            if due is None or (paused and self.state[name] == "RETRYING"):
                continue
            ahead.append((due, i, name))
        if self.timeout is not None:
            ahead.append((self.started_at + self.timeout, -1, ""))
        return sorted(ahead)

    def fire(self) -> None:
        for due, _, name in self.deadlines():
            if due > self.now:
                return
            if not name:
                self._end_every_node(pending="SKIPPED")
                self.execution = "FAILED"
                self.error_node = None
                return
            if self.deadline(name) == due:
                self._strike(name)

    def _strike(self, name: str) -> None:
        if self.state[name] == "RETRYING":
            self.waited.add(name)
        elif self.state[name] == "RUNNING":
            self.task_failed(name)
        else:
            self._fail(name)

    def settled(self, name: str) -> Settled | None:
        state = self.state[name]
        if state not in ENDED:
            return None
        if state == "COMPLETED" or (state == "FAILED" and self.nodes[name].optional):
            return "success"
        if state == "FAILED" or name in self.because_of_a_failure:
            return "failure"
        return "skip"

    def verdict(self, name: str) -> Literal["start", "wait", "skip", "skip because of a failure"]:
        node = self.nodes[name]
        parents = [self.settled(parent) for parent in node.parents]
        all_settled, success, failure = (
            None not in parents,
            "success" in parents,
            "failure" in parents,
        )
        starts = {
            "all_success": all_settled and success and not failure,
            "none_failed": all_settled and not failure,
            "all_done": all_settled,
            "one_success": success,
            "one_failed": failure,
        }
        if not parents or starts[node.rule]:
            return "start"
        if failure and (node.rule in {"all_success", "none_failed"} or all_settled):
            return "skip because of a failure"
        return "skip" if all_settled else "wait"

    def follow(self, hint: Iterable[str] = (), *, complete: bool = True) -> None:
        """Take every step that follows; if not `complete`, only those of the nodes in `hint`."""
        hints = list(hint)
        if self.execution not in {"RUNNING", "PAUSED"}:
            return
        while self._reuse_one(hints, complete=complete) or (
            not self.reused
            and (
                self._skip_one(hints, complete=complete)
                or self._start_one(hints, complete=complete)
            )
        ):
            pass
        if all(state in ENDED for state in self.state.values()):
            self.execution = "FAILED" if self.failed else "COMPLETED"

    def _reuse_one(self, hints: list[str], *, complete: bool) -> bool:
        """Before anything else: what was completed earlier has no rule to wait for."""
        name = next((name for name in self.reused if complete or name in hints), None)
        if name is None:
            return False
        self._complete(name, self.reused.pop(name))
        return True

    def _skip_one(self, hints: list[str], *, complete: bool) -> bool:
        """Nodes stand after their parents: no decision depends on a later one."""
        for name, node in self.nodes.items():
            if self.state[name] != "PENDING" or not (complete or name in hints):
                continue
            verdict = self.verdict(name)
            if verdict == "skip because of a failure" and node.fails_with_dependency:
                self._fail(name)
            elif verdict.startswith("skip") or (self.failing and not node.cleans_up):
                self._skip(name, because_of_a_failure=verdict == "skip because of a failure")
            else:
                continue
            return True
        return False

    def _start_one(self, hints: list[str], *, complete: bool) -> bool:
        if self.execution != "RUNNING":
            return False
        possible = [name for name in self.nodes if self._may_start(name)]
        chosen = next(
            (name for name in hints if name in possible),
            possible[0] if possible and complete else None,
        )
        if chosen is None:
            return False
        if chosen in hints:
            hints.remove(chosen)
        self._start(self.nodes[chosen])
        return True

    def _may_start(self, name: str) -> bool:
        if self.state[name] == "RETRYING":
            return name in self.waited
        if self.state[name] == "QUEUED":
            return name in self.again
        return self.state[name] == "PENDING" and self.verdict(name) == "start"

    def _start(self, node: Node) -> None:
        try:
            if (
                self.state[node.name] == "PENDING"
                and node.condition
                and not self._holds(node.condition)
            ):
                self._skip(node.name, because_of_a_failure=False)
                return
            config = {key: self._resolve(value) for key, value in node.config.items()}
            if node.kind != "task":
                self._complete(node.name, self._evaluate(node, config))
                return
        except NothingThere:
            self._fail(node.name)
            return
        if node.name in self.again:
            self.again.discard(node.name)
        else:
            self.attempt[node.name] += 1
            self.state[node.name], self.since[node.name] = "QUEUED", self.now
        self.waited.discard(node.name)
        dispatch = (node.name, self.attempt[node.name])
        assert dispatch not in self.dispatched
        inputs = {parent: self.outputs[parent] for parent in node.parents if parent in self.outputs}
        self.dispatched[dispatch] = Dispatch(config, inputs)

    def _holds(self, condition: Condition) -> bool:
        value = self._resolve(condition.reference)
        if not isinstance(value, bool):
            raise NothingThere
        return value is condition.wanted

    def _resolve(self, value: Any) -> Any:
        if not isinstance(value, Reference):
            return value
        output = self.outputs.get(value.node)
        if isinstance(output, dict) and value.key in output:
            return output[value.key]
        if value.fallback is None:
            raise NothingThere
        return value.fallback

    def _evaluate(self, node: Node, config: dict[str, Any]) -> Any:
        if node.kind == "input":
            return config | self.input_value
        if node.kind == "output":
            return config or {
                parent: self.outputs[parent] for parent in node.parents if parent in self.outputs
            }
        try:
            return {"result": COMPARISONS[config["operator"]](config["value_a"], config["value_b"])}
        except TypeError:
            raise NothingThere from None

    def _complete(self, name: str, output: Any) -> None:
        self.state[name], self.outputs[name] = "COMPLETED", output

    def _skip(self, name: str, *, because_of_a_failure: bool) -> None:
        self.state[name] = "SKIPPED"
        if because_of_a_failure:
            self.because_of_a_failure.add(name)

    def _fail(self, name: str) -> None:
        self.state[name] = "FAILED"
        if self.nodes[name].optional:
            return
        if not self.failed:
            self.failed, self.error_node = True, name
        if self.fail_fast and not self.failing:
            self.failing = True
            for other, node in self.nodes.items():
                if self.state[other] in {"QUEUED", "RUNNING", "RETRYING"} and not node.cleans_up:
                    self.state[other] = "CANCELLED"

    def _end_every_node(self, *, pending: str) -> None:
        while self._reuse_one([], complete=True):
            pass
        for name, state in self.state.items():
            if state not in ENDED:
                self.state[name] = pending if state == "PENDING" else "CANCELLED"
