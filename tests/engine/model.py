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
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Rule = Literal["all_success", "none_failed", "all_done", "one_success", "one_failed"]
Kind = Literal["task", "input", "output", "decision", "terminate", "map", "wait", "signal"]
Policy = Literal["fail_fast", "continue", "skip", "collect"]
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
class StateOf:
    """How another node has ended, or what it is doing."""

    node: str


@dataclass(frozen=True)
class Sum:
    """An expression: the values of two nodes, or of one twice."""

    left: str
    right: str


@dataclass(frozen=True)
class Condition:
    reference: Reference
    wanted: bool


@dataclass(frozen=True)
class Catch:
    node: str
    categories: tuple[str, ...] = ()
    """Which failures are meant; empty: all."""


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
    retried: tuple[str, ...] = ()
    """Categories that are retried, if any are named."""
    not_retried: tuple[str, ...] = ()
    catches: tuple[Catch, ...] = ()
    """Parents whose failures it handles; then it has no rule."""
    body: tuple[Node, ...] = ()
    """Of a map: what runs for each item."""
    items: tuple[Any, ...] = ()
    max_parallel: int = 1
    policy: Policy = "fail_fast"
    max_failures: int | None = None

    @property
    def cleans_up(self) -> bool:
        return bool(self.parents) and not self.catches and self.rule in {"all_done", "one_failed"}


@dataclass(frozen=True)
class Signal:
    number: int
    name: str
    payload: Any
    correlation: str | None
    at: float


@dataclass(frozen=True)
class Dispatch:
    config: dict[str, Any]
    inputs: dict[str, Any]


@dataclass
class Item:
    """An item of a map: an execution of its own, with nodes named by their addresses."""

    address: str
    map: str
    index: int
    nodes: list[str]
    failing: bool = False
    stopped: bool = False
    failed_node: str | None = None
    ended: bool = False


def _text_of(at: float) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


class NothingThere(Exception):
    """A reference without a value, or a comparison of two kinds of things."""


class ConditionFails(Exception):
    """A condition that gives neither true nor false."""


class Model:
    def __init__(  # noqa: PLR0915 -- one field after another
        self,
        nodes: Iterable[Node],
        *,
        fail_fast: bool = True,
        timeout: float | None = None,
        input_value: dict[str, Any] | None = None,
        cleanup_timeout: float = 300.0,
        backstop: float = 10.0,
        reused: dict[str, Any] | None = None,
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.fail_fast = fail_fast
        self.timeout = timeout
        self.cleanup_timeout = cleanup_timeout
        self.input_value = input_value or {}
        self.backstop = backstop
        self.execution = "PENDING"
        self.now = 0.0
        self.started_at = 0.0
        self.failing = False
        self.ending: str | None = None
        """How the execution ends, when only its clean-up is left."""
        self.ending_since = 0.0
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
        self.category: dict[str, str] = {}
        """Of nodes that have failed: of which error."""
        self.failed_at: dict[str, float] = {}
        self.has_counted: set[str] = set()
        """Failures that have had their effect on the execution, or never will."""
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
        self.items: dict[str, Item] = {}
        """By address, the items that were opened."""
        self.item_of: dict[str, Item] = {}
        """By the address of a node inside, its item."""
        self.stopping: set[str] = set()
        """Maps that open nothing any more."""
        self.reused = {
            name: output for name, output in (reused or {}).items() if name in self.nodes
        }
        """Outputs that an earlier execution left, of nodes that aren't recorded as completed yet.
        """
        self.signals: list[Signal] = []
        """Every signal that was received."""
        self.taken: dict[int, str] = {}
        """By number, which node has taken the signal."""
        self.collected: dict[str, list[Any]] = {}
        """What nodes that wait for several signals have so far."""
        self.waits_for: dict[str, dict[str, Any]] = {}
        """The configs of nodes that have begun to wait."""

    def signal_received(self, signal: Signal) -> None:
        """The node that began to wait first takes it."""
        if signal.number in {known.number for known in self.signals}:
            return
        self.signals.append(signal)
        order = list(self.nodes)
        waiting = [name for name in order if self.state[name] == "WAITING"]
        for name in sorted(waiting, key=lambda name: (self.since[name], order.index(name))):
            if self._wants(name, signal):
                self._take(name, signal)
                return

    def _wants(self, name: str, signal: Signal) -> bool:
        config = self.waits_for[name]
        if self.nodes[name].kind != "signal" or signal.name != config["name"]:
            return False
        correlations = {config.get("correlation"), signal.correlation} - {None}
        return len(correlations) <= 1

    def _take(self, name: str, signal: Signal) -> None:
        self.taken[signal.number] = name
        shown = {
            "name": signal.name,
            "payload": signal.payload,
            "from": "somebody",
            "at": _text_of(signal.at),
            "number": signal.number,
        }
        count = self.waits_for[name].get("count")
        mine = [number for number, taker in self.taken.items() if taker == name]
        if count is None:
            self._complete(name, shown)
        else:
            self.collected.setdefault(name, []).append(shown)
            if len(mine) == count:
                self._complete(name, self.collected[name])

    def _begin_to_wait(self, node: Node, config: dict[str, Any]) -> None:
        name = node.name
        seconds = config.get("seconds", config.get("timeout_seconds"))
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if "seconds" in config and not is_number:
            raise NothingThere
        if seconds == 0:
            self._complete(name, {"until": _text_of(self.now), "waited_seconds": 0.0})
            return
        self.attempt[name] += 1
        self.state[name], self.since[name] = "WAITING", self.now
        self.waits_for[name] = config
        if seconds is not None:
            self.due[name] = self.now + seconds
        for signal in sorted(self.signals, key=lambda signal: signal.number):
            free = signal.number not in self.taken
            if self.state[name] == "WAITING" and free and self._wants(name, signal):
                self._take(name, signal)

    def _wait_is_over(self, name: str) -> None:
        config = self.waits_for[name]
        limit = self.since[name] + self.nodes[name].timeout
        if limit < self.due.get(name, float("inf")):
            self._fail(name, "timeout")
        elif self.nodes[name].kind == "wait":
            waited = round(self.now - self.since[name], 3)
            output = {"until": _text_of(self.due[name]), "waited_seconds": waited}
            self._complete(name, output)
        elif config.get("on_timeout") == "continue":
            output = {"timed_out": True}
            if "count" in config:
                output["signals"] = self.collected.get(name, [])
            self._complete(name, output)
        else:
            self._fail(name, "timeout")

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
        self,
        name: str,
        *,
        category: str = "handler",
        retryable: bool = True,
        retry_after: float | None = None,
    ) -> None:
        node, attempt = self.nodes[name], self.attempt[name]
        is_loss = category in {"lost", "interrupted"}
        is_left_out = node.retried and category not in node.retried and not is_loss
        is_retried = retryable and not is_left_out and category not in node.not_retried
        if not is_retried or attempt >= self.allowed[name]:
            self._fail(name, category)
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
        category = "interrupted" if interrupted else "lost"
        self.task_failed(name, category=category, retry_after=0.0)

    def is_current(self, name: str, generation: int, attempt: int) -> bool:
        return (
            generation == self.generation
            and name in self.nodes
            and attempt == self.attempt[name]
            and self.state[name] in {"QUEUED", "RUNNING"}
        )

    def pause(self) -> None:
        if self.execution == "RUNNING" and self.ending is None:
            self.execution = "PAUSED"

    def resume(self) -> None:
        if self.execution == "PAUSED":
            self.execution = "RUNNING"
            self.fire()

    def cancel(self) -> None:
        """A cancel wins over a failure that hasn't ended the execution yet.

        That failure stays the execution's error. During a clean-up it changes nothing.
        """
        if self.ending is None:
            self._end_early("CANCELLED")

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
        if state == "WAITING" and node.kind != "map":
            return min(self.since[name] + node.timeout, self.due.get(name, float("inf")))
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
        for name in self.nodes:
            due = self.deadline(name)
            if due is None or (paused and self.state[name] == "RETRYING"):
                continue
            ahead.append((due, self.rank(name), name))
        if self.ending is not None:
            ahead.append((self.ending_since + self.cleanup_timeout, -1, ""))
        elif self.timeout is not None:
            ahead.append((self.started_at + self.timeout, -1, ""))
        return sorted(ahead)

    def rank(self, name: str) -> int:
        """Of two deadlines at the same time, that of the lower rank comes first."""
        item = self.item_of.get(name)
        if item is None:
            return [other for other in self.nodes if other not in self.item_of].index(name)
        size = len(item.nodes) + 1
        within = item.index * size + item.nodes.index(name)
        return ((self.rank(item.map) + 1) << 32) + within

    def fire(self) -> None:
        for due, _, name in self.deadlines():
            if due > self.now:
                return
            if not name:
                self._out_of_time()
                self.fire()
                return
            if self.deadline(name) == due:
                self._strike(name)

    def _terminate(self, name: str, state: str) -> None:
        self.failed = state == "FAILED"
        self.error_node = name if self.failed else None
        self._end_early(state)

    def _out_of_time(self) -> None:
        if self.ending is None:
            self.failed, self.error_node = True, None
            self._end_early("FAILED")
            return
        self.failed = True
        self._end_every_node(pending=self._end_of_pending)
        self._count_failures()
        self.execution = "CANCELLED" if self.ending == "CANCELLED" else "FAILED"

    @property
    def _end_of_pending(self) -> str:
        return "CANCELLED" if self.ending == "CANCELLED" else "SKIPPED"

    def _end_early(self, end: str) -> None:
        """Everything but clean-up ends now; without any, the execution does."""
        begun = self.execution != "PENDING"
        self.ending, self.ending_since = end, self.now
        left = [
            name
            for name, node in self.nodes.items()
            if name not in self.item_of
            and node.cleans_up
            and self.state[name] not in ENDED
            and begun
        ]
        while self._reuse_one([], complete=True):
            pass
        inside = [name for name in self.item_of if self._outermost(name) in left]
        self._end_every_node(pending=self._end_of_pending, but=[*left, *inside])
        self._count_failures()
        if not left:
            self.execution = end
            return
        if self.execution == "PAUSED":
            self.resume()

    def _strike(self, name: str) -> None:
        if self.state[name] == "RETRYING":
            self.waited.add(name)
        elif self.state[name] == "RUNNING":
            self.task_failed(name, category="timeout")
        elif self.state[name] == "WAITING":
            self._wait_is_over(name)
        else:
            self._fail(name, "queue_timeout")

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
        if node.catches:
            return self._verdict_of_catcher(node)
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

    def _verdict_of_catcher(self, node: Node) -> Literal["start", "wait", "skip"]:
        caught = {catch.node for catch in node.catches}
        others = [parent for parent in node.parents if parent not in caught]
        if any(self._is_meant(catch) for catch in node.catches):
            have_ended = all(self.state[parent] in ENDED for parent in others)
            return "start" if have_ended else "wait"
        return "skip" if all(self.state[parent] in ENDED for parent in caught) else "wait"

    def _is_meant(self, catch: Catch) -> bool:
        if self.state[catch.node] != "FAILED":
            return False
        return not catch.categories or self.category[catch.node] in catch.categories

    def _catchers(self, name: str) -> list[Node]:
        """Those that are to handle the failure that the node has had."""
        return [
            node
            for node in self.nodes.values()
            if any(catch.node == name and self._is_meant(catch) for catch in node.catches)
        ]

    def _may_be_handled(self, name: str) -> bool:
        for catcher in self._catchers(name):
            state = self.state[catcher.name]
            if state not in ENDED or state == "COMPLETED":
                return True
            if state == "FAILED" and not catcher.optional and self._may_be_handled(catcher.name):
                return True
        return False

    def _count_failures(self) -> None:
        """Failures that nobody can handle any more fail the execution, the first one first.

        The failure of a catcher comes before those that it was to handle.
        """
        lost = [
            name
            for name, node in self.nodes.items()
            if self.state[name] == "FAILED"
            and name not in self.item_of
            and not node.optional
            and name not in self.has_counted
            and not self._may_be_handled(name)
        ]
        self.has_counted.update(lost)
        if self.ending == "COMPLETED":
            return
        order = list(self.nodes)

        def precedence(name: str) -> tuple[bool, float, int]:
            passed_on = any(
                self.state[catcher.name] == "FAILED" and not catcher.optional
                for catcher in self._catchers(name)
            )
            return passed_on, self.failed_at[name], order.index(name)

        for name in sorted(lost, key=precedence):
            self._fail_execution(name)

    def follow(
        self,
        hint: Iterable[str] = (),
        *,
        complete: bool = True,
        opened: Mapping[str, int] | None = None,
    ) -> None:
        """Take every step that follows; if not `complete`, only those of the nodes in `hint`.

        `opened`: how many items of each map were opened by now.
        """
        hints = list(hint)
        if self.execution not in {"RUNNING", "PAUSED"}:
            return
        self._count_failures()
        while self._reuse_one(hints, complete=complete) or (
            not self.reused
            and (
                self._skip_one(hints, complete=complete)
                or self._end_one(hints, complete=complete)
                or self._open_hinted(hints)
                or self._start_one(hints, complete=complete)
                or self._open_one(None if complete else opened or {})
            )
        ):
            self._count_failures()
        if all(self.state[name] in ENDED for name in self.nodes if name not in self.item_of):
            self.execution = "FAILED" if self.failed else "COMPLETED"
            if self.ending == "CANCELLED":
                self.execution = "CANCELLED"

    def _reuse_one(self, hints: list[str], *, complete: bool) -> bool:
        """Before anything else: what was completed earlier has no rule to wait for."""
        name = next((name for name in self.reused if complete or name in hints), None)
        if name is None:
            return False
        self._complete(name, self.reused.pop(name))
        return True

    def _skip_one(self, hints: list[str], *, complete: bool) -> bool:
        """Nodes stand after their parents: no decision depends on a later one."""
        for name, node in list(self.nodes.items()):
            if self.state[name] != "PENDING" or not (complete or name in hints):
                continue
            verdict = self.verdict(name)
            if verdict == "skip because of a failure" and node.fails_with_dependency:
                first = None if name in self.item_of else self._first_to_fail(hints)
                self._fail(first or name, "dependency")
            elif verdict == "skip" and self.ending is not None and name not in self.item_of:
                self.state[name] = self._end_of_pending
            elif verdict.startswith("skip") or (self._is_failing(name) and not node.cleans_up):
                self._skip(name, because_of_a_failure=verdict == "skip because of a failure")
            else:
                continue
            return True
        return False

    def _first_to_fail(self, hints: list[str]) -> str | None:
        """Of the nodes that fail with a dependency: the first is the execution's error.

        A dependency whose failure may still be handled isn't.
        """
        for name in () if self.failed else hints:
            if name in self.item_of:
                continue
            if self.state.get(name) != "PENDING" or not self.nodes[name].fails_with_dependency:
                continue
            if self.verdict(name) == "skip because of a failure":
                return name
        return None

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
                and not self._condition_holds(node)
            ):
                self._skip(node.name, because_of_a_failure=False)
                return
            if node.kind == "map":
                self.state[node.name] = "WAITING"
                return
            config = {key: self._resolve(value, node.name) for key, value in node.config.items()}
            if node.kind in {"wait", "signal"}:
                self._begin_to_wait(node, config)
                return
            if node.kind != "task":
                self._complete(node.name, self._evaluate(node, config))
                if node.kind == "terminate" and self.ending is None:
                    self._terminate(node.name, config["state"])
                return
        except ConditionFails:
            self._fail(node.name, "condition")
            return
        except NothingThere:
            self._fail(node.name, "config")
            return
        if node.name in self.again:
            self.again.discard(node.name)
        else:
            self.attempt[node.name] += 1
            self.state[node.name], self.since[node.name] = "QUEUED", self.now
        self.waited.discard(node.name)
        dispatch = (node.name, self.attempt[node.name])
        assert dispatch not in self.dispatched
        inputs = self._inputs(node)
        self.dispatched[dispatch] = Dispatch(config, inputs)

    def _condition_holds(self, node: Node) -> bool:
        try:
            return node.condition is None or self._holds(node.condition, node.name)
        except NothingThere:
            raise ConditionFails from None

    def _inputs(self, node: Node) -> dict[str, Any]:
        return {
            self._own_name(parent): self.outputs[parent]
            for parent in node.parents
            if parent in self.outputs
        }

    def _kind_of(self, name: str, asking: str) -> str:
        """The kind of the node that a name means in the node that asks; "item" of an item."""
        item = self.item_of.get(asking)
        while item is not None:
            address = f"{item.address}.{name}"
            if address in self.nodes:
                return self.nodes[address].kind
            item = self.item_of.get(item.map)
        node = self.nodes.get(name)
        return "item" if node is None else node.kind

    def _address(self, name: str, asking: str) -> str:
        """What a name means in the node that asks."""
        item = self.item_of.get(asking)
        return name if item is None else f"{item.address}.{name}"

    def _own_name(self, name: str) -> str:
        """A node's name inside of its item."""
        item = self.item_of.get(name)
        return name if item is None else name[len(item.address) + 1 :]

    def _holds(self, condition: Condition, name: str) -> bool:
        value = self._resolve(condition.reference, name)
        if not isinstance(value, bool):
            raise NothingThere
        return value is condition.wanted

    def _resolve(self, value: Any, name: str) -> Any:
        """What a reference finds that stands in the node `name`."""
        if isinstance(value, StateOf):
            return self.state[self._address(value.node, name)]
        if isinstance(value, Sum):
            return self._sum(value, name)
        if not isinstance(value, Reference):
            return value
        output = self._value_of(value.node, self.item_of.get(name))
        if isinstance(output, dict) and value.key in output:
            return output[value.key]
        if self._kind_of(value.node, name) == "signal" and isinstance(output, dict):
            payload = output.get("payload")
            if isinstance(payload, dict) and value.key in payload:
                return payload[value.key]
        if value.fallback is None:
            raise NothingThere
        return value.fallback

    def _value_of(self, name: str, item: Item | None) -> Any:
        """The innermost item's value, its nodes, then what is around it."""
        if item is None:
            return self.outputs.get(name)
        if name == "item":
            return self.nodes[item.map].items[item.index]
        address = f"{item.address}.{name}"
        if address in self.item_of:
            return self.outputs.get(address)
        return self._value_of(name, self.item_of.get(item.map))

    def _sum(self, value: Sum, name: str) -> Any:
        left = self._resolve(Reference(value.left, "value"), name)
        right = self._resolve(Reference(value.right, "value"), name)
        if type(left) is not type(right):
            raise NothingThere
        return left + right

    def _evaluate(self, node: Node, config: dict[str, Any]) -> Any:
        if node.kind == "input":
            return config | self.input_value
        if node.kind == "terminate":
            return config["output"]
        if node.kind == "output":
            return config or self._inputs(node)
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

    def _fail(self, name: str, category: str) -> None:
        self.state[name] = "FAILED"
        self.category[name], self.failed_at[name] = category, self.now
        if self.nodes[name].optional or self._may_be_handled(name):
            return
        item = self.item_of.get(name)
        if item is not None:
            item.failed_node = item.failed_node or name
            if self.fail_fast and not item.failing:
                item.failing = True
                self._stop_running(item.nodes)
            return
        self.has_counted.add(name)
        self._fail_execution(name)

    def _fail_execution(self, name: str) -> None:
        if not self.failed:
            self.failed, self.error_node = True, name
        if self.fail_fast and not self.failing:
            self.failing = True
            self._stop_running([name for name in self.nodes if name not in self.item_of])

    def _is_failing(self, name: str) -> bool:
        item = self.item_of.get(name)
        return self.failing if item is None else item.failing

    def _stop_running(self, names: list[str]) -> None:
        for name in names:
            if self.nodes[name].cleans_up:
                continue
            if self.state[name] == "WAITING" and self.nodes[name].kind == "map":
                self._stop_map(name)
            elif self.state[name] in {"QUEUED", "RUNNING", "RETRYING", "WAITING"}:
                self.state[name] = "CANCELLED"

    def _stop_map(self, name: str) -> None:
        self.stopping.add(name)
        for item in self._items_of(name):
            if not item.ended and not item.failing:
                item.failing = item.stopped = True
                self._stop_running(item.nodes)

    def _items_of(self, name: str) -> list[Item]:
        return [item for item in self.items.values() if item.map == name]

    def _end_one(self, hints: list[str], *, complete: bool) -> bool:
        """End an item whose nodes have all ended, or a map whose items have."""
        for item in self.items.values():
            if item.ended or not (complete or item.address in hints):
                continue
            if all(self.state[name] in ENDED for name in item.nodes):
                self._end_item(item)
                return True
        for name, node in self.nodes.items():
            is_open = node.kind == "map" and self.state[name] == "WAITING"
            if not is_open or not (complete or name in hints):
                continue
            items = self._items_of(name)
            is_over = len(items) == len(node.items) or name in self.stopping
            if is_over and all(item.ended for item in items):
                self._end_map(name, items)
                return True
        return False

    def _end_item(self, item: Item) -> None:
        item.ended = True
        own = self.nodes[item.map].body
        parents = {parent for node in own for parent in node.parents}
        sinks = [f"{item.address}.{node.name}" for node in own if node.name not in parents]
        if item.failed_node:
            self.state[item.address] = "FAILED"
        elif item.stopped:
            self.state[item.address] = "CANCELLED"
        elif all(self.state[sink] == "SKIPPED" for sink in sinks):
            self.state[item.address] = "SKIPPED"
        else:
            self.state[item.address] = "COMPLETED"
            present = {
                self._own_name(sink): self.outputs[sink] for sink in sinks if sink in self.outputs
            }
            self.outputs[item.address] = (
                next(iter(present.values()), None) if len(sinks) == 1 else present
            )
        if self._too_many_failures(item.map) and item.map not in self.stopping:
            self._stop_map(item.map)

    def _failures(self, name: str) -> int:
        return sum(self.state.get(item.address) == "FAILED" for item in self._items_of(name))

    def _too_many_failures(self, name: str) -> bool:
        node = self.nodes[name]
        failures = self._failures(name)
        if node.max_failures is not None:
            return failures > node.max_failures
        return bool(failures) and node.policy == "fail_fast"

    def _end_map(self, name: str, items: list[Item]) -> None:
        node = self.nodes[name]
        ends_failed = node.policy in {"fail_fast", "continue"} and self._failures(name)
        if ends_failed or self._too_many_failures(name):
            self._fail(name, "items")
        elif self._is_failing(name) and not node.cleans_up:
            self.state[name] = "CANCELLED"
        else:
            self._complete(name, [self._in_list(node, item) for item in items])

    def _in_list(self, node: Node, item: Item) -> Any:
        if self.state[item.address] != "FAILED" or node.policy == "skip":
            return self.outputs.get(item.address)
        assert item.failed_node
        return {"failed": self._own_name(item.failed_node), "index": item.index}

    def _open_hinted(self, hints: list[str]) -> bool:
        """Open the item in which the next node started that isn't there yet."""
        for name in hints:
            if name in self.state:
                if self.state[name] == "PENDING":
                    return False
                continue
            for owner in [other for other, node in self.nodes.items() if node.kind == "map"]:
                if not name.startswith(f"{owner}["):
                    continue
                index = name[len(owner) + 1 :].partition("]")[0]
                if f"{owner}[{index}]" not in self.items and self._may_open(owner):
                    self._open(owner)
                    return True
        return False

    def _open_one(self, opened: Mapping[str, int] | None) -> bool:
        for name in list(self.nodes):
            is_told = opened is None or len(self._items_of(name)) < opened.get(name, 0)
            if is_told and self._may_open(name):
                self._open(name)
                return True
        return False

    def _may_open(self, name: str) -> bool:
        node = self.nodes[name]
        if self.state[name] != "WAITING" or name in self.stopping or self.execution != "RUNNING":
            return False
        items = self._items_of(name)
        still_open = sum(not item.ended for item in items)
        return len(items) < len(node.items) and still_open < node.max_parallel

    def _open(self, name: str) -> None:
        index = len(self._items_of(name))
        address = f"{name}[{index}]"
        body = self.nodes[name].body
        item = Item(address, name, index, [f"{address}.{node.name}" for node in body])
        self.items[address] = item
        for node in body:
            inner = replace(
                node,
                name=f"{address}.{node.name}",
                parents=tuple(f"{address}.{parent}" for parent in node.parents),
            )
            self.item_of[inner.name] = item
            self.nodes[inner.name] = inner
            self.state[inner.name] = "PENDING"
            self.attempt[inner.name] = 0
            self.allowed[inner.name] = inner.max_attempts
            self.losses[inner.name] = 0

    def _end_every_node(self, *, pending: str, but: Collection[str] = ()) -> None:
        while self._reuse_one([], complete=True):
            pass
        for name, state in self.state.items():
            if state not in ENDED and name not in but:
                self.state[name] = pending if state == "PENDING" else "CANCELLED"
        for item in self.items.values():
            if not item.ended and self._outermost(item.nodes[0]) not in but:
                item.ended = True
                self.state[item.address] = "CANCELLED"

    def _outermost(self, name: str) -> str:
        """The map of the plan that a node inside of an item belongs to."""
        while name in self.item_of:
            name = self.item_of[name].map
        return name
