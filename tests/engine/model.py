"""The judge of the core: what docs/design.md says, as naively as it can be written.

Nothing is counted, remembered or passed on: each question ("may it start?") is answered from
scratch by looking at all nodes, and after each event every node is asked again until nothing
changes. It shares no code with the engine.

Where the text leaves the order open (which of two ready nodes starts first), the model follows the
order that it is told (`lines`), but only through steps that it finds allowed itself, and it takes
every step that remains.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Rule = Literal["all_success", "none_failed", "all_done", "one_success", "one_failed"]
Kind = Literal[
    "task", "input", "output", "decision", "terminate", "map", "loop", "wait", "signal", "approval"
]
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
class Position:
    """The innermost item's index, or the innermost round's number."""

    name: Literal["index", "round"]


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


GRACE_SECONDS = 1.0
"""How much later an approval expires than it says."""
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
    source: Reference | None = None
    """Of a map: where its list comes from, instead of `items`."""
    key: Reference | None = None
    collect: Reference | None = None
    """Of a map: the output of an item. Of a loop: what a round carries on."""
    result: Literal["list", "counts", "none"] = "list"
    item_timeout: float | None = None
    region_timeout: float | None = None
    """Of a map or a loop as a whole."""
    single: bool = False
    """Its items are their one node."""
    until: Condition | int = 1
    """Of a loop: what ends it, or from which round on it has ended."""
    max_rounds: int = 1
    every: float = 0.0
    most_every: float | None = None
    exhaustion: Literal["fail", "continue"] = "fail"
    round_failure: Literal["fail", "continue"] = "fail"
    initial: Any = None

    @property
    def is_region(self) -> bool:
        return self.kind in {"map", "loop"}

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
    """An item of a map, or a round: an execution of its own, with nodes named by addresses."""

    address: str
    map: str
    index: int
    """Rounds are counted from 1."""
    nodes: list[str]
    opened_at: float
    failing: bool = False
    failed: bool = False
    failed_node: str | None = None
    timed_out: bool = False
    ended: bool = False
    reused: bool = False
    decided: bool = False
    """Of a round: what follows it has been decided."""


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
        self.ended_at: dict[str, float] = {}
        """Of nodes, items and rounds: when they ended."""
        self.kept_from_running: set[str] = set()
        """Nodes skipped because their execution or item was failing."""
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
        """Maps and loops that open nothing any more."""
        self.timed_out: set[str] = set()
        """Maps and loops whose time is up."""
        self.lists: dict[str, list[Any]] = {}
        """The lists of maps that have begun."""
        self.next_round: dict[str, float] = {}
        """When the next round of a loop may begin."""
        self.due_rounds: set[str] = set()
        """Loops whose pause is over."""
        self.firing_until: float | None = None
        """Deadlines until then have their effects now."""
        self.kept: dict[str, dict[str, Any]] = {}
        """By map and identity, outputs of items that an earlier execution has completed."""
        for name, output in (reused or {}).items():
            address, separator, identity = name.partition("\x1f")
            if separator:
                self.kept.setdefault(address, {})[identity] = output
        self.reused = {
            name: output for name, output in (reused or {}).items() if name in self.nodes
        }
        """Outputs that an earlier execution left, of nodes that aren't recorded as completed yet.
        """
        self.under_way: Collection[str] = ()
        self.ends_later: Collection[str] = ()
        """Nodes whose end the engine tells of after other steps that come first."""
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
        waiting = [name for name in self.waits_for if self.state[name] == "WAITING"]
        for name in sorted(waiting, key=lambda name: (self.since[name], self.rank(name))):
            if self._wants(name, signal):
                self._take(name, signal)
                return

    def _wants(self, name: str, signal: Signal) -> bool:
        config = self.waits_for[name]
        if self.nodes[name].kind == "approval":
            return signal.name == f"~decision:{self.attempt[name]}:{name}"
        if self.nodes[name].kind != "signal" or signal.name != config["name"]:
            return False
        correlations = {config.get("correlation"), signal.correlation} - {None}
        return len(correlations) <= 1

    def _take(self, name: str, signal: Signal) -> None:
        self.taken[signal.number] = name
        if self.nodes[name].kind == "approval":
            self._count_decision(name, signal)
            return
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

    def _count_decision(self, name: str, signal: Signal) -> None:
        """A rejection ends the wait, and as many approvals as are needed."""
        config = self.waits_for[name]
        decision = signal.payload["decision"]
        about = {"by": "somebody", "comment": None, "form": None, "at": _text_of(signal.at)}
        decisions = self.collected.setdefault(name, [])
        decisions.append({"decision": decision, **about})
        if decision == "rejected" and config.get("on_reject") == "fail":
            self._fail(name, "rejected")
        elif decision == "rejected" or len(decisions) == config.get("needed", 1):
            approved = decision == "approved"
            self._complete(name, {**decisions[-1], "approved": approved, "decisions": decisions})

    def _expire(self, name: str) -> None:
        config = self.waits_for[name]
        end = config.get("on_expire", "reject")
        if end == "fail" or (end == "reject" and config.get("on_reject") == "fail"):
            self._fail(name, "expired")
            return
        about: dict[str, Any] = {"by": "", "comment": None, "form": None}
        about |= {"at": _text_of(self.now)}
        about |= {"approved": end == "approve", "decisions": self.collected.get(name, [])}
        self._complete(name, {"decision": "expired", **about})

    def _begin_to_wait(self, node: Node, config: dict[str, Any]) -> None:
        name = node.name
        seconds = config.get("seconds", config.get("timeout_seconds"))
        if node.kind == "approval":
            seconds = config["expires_seconds"] + GRACE_SECONDS
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
        if limit < self.due.get(name, math.inf):
            self._fail(name, "timeout")
        elif self.nodes[name].kind == "wait":
            waited = round(self.now - self.since[name], 3)
            output = {"until": _text_of(self.due[name]), "waited_seconds": waited}
            self._complete(name, output)
        elif self.nodes[name].kind == "approval":
            self._expire(name)
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
        return (
            self.state.copy(),
            self.attempt.copy(),
            self.because_of_a_failure.copy(),
            self.taken.copy(),
            (self.failed, self.error_node, self.ending),
            self.category.copy(),
        )

    def forget_waits(self) -> None:
        """A new owner knows when a retry is due, but not that its timer has fired already.

        What follows a round it decides again.
        """
        self.waited.clear()
        self.firing_until = None
        for name in self.next_round:
            self._items_of(name)[-1].decided = False
        self.next_round.clear()
        self.due_rounds.clear()
        for item in self.items.values():
            if not item.ended and all(self.state[name] == "PENDING" for name in item.nodes):
                item.opened_at = math.inf

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
        if state == "WAITING" and node.is_region:
            return None
        if state == "WAITING":
            due = min(self.since[name] + node.timeout, self.due.get(name, math.inf))
            return None if due == math.inf else due
        if state == "QUEUED" and node.queue_timeout is not None:
            return self.since[name] + node.queue_timeout
        return None

    def deadlines(self) -> list[tuple[float, int, str, str]]:
        """All deadlines, the earliest first: when, rank, what for, whose.

        The execution's own, named by an empty string, wins a tie.
        """
        if self.execution not in {"RUNNING", "PAUSED"}:
            return []
        paused = self.execution == "PAUSED"
        ahead: list[tuple[float, int, str, str]] = []
        for name in self.nodes:
            due = self.deadline(name)
            if due is None or (paused and self.state[name] == "RETRYING"):
                continue
            ahead.append((due, self.rank(name), "node", name))
        ahead += self._deadlines_of_regions()
        if self.ending is not None:
            ahead.append((self.ending_since + self.cleanup_timeout, -1, "", ""))
        elif self.timeout is not None:
            ahead.append((self.started_at + self.timeout, -1, "", ""))
        return sorted(ahead)

    def _deadlines_of_regions(self) -> list[tuple[float, int, str, str]]:
        ahead: list[tuple[float, int, str, str]] = []
        for name, node in self.nodes.items():
            if not node.is_region or self.state[name] != "WAITING":
                continue
            if node.region_timeout is not None and name not in self.timed_out:
                due = self.since[name] + node.region_timeout
                ahead.append((due, self.rank(name), "region", name))
            if name in self.next_round and name not in self.due_rounds:
                ahead.append((self.next_round[name], self.rank(name), "round", name))
        for item in self.items.values():
            limit = self.nodes[item.map].item_timeout
            if limit is None or item.ended or item.failing or item.timed_out:
                continue
            if item.opened_at == math.inf:
                continue  # a new owner counts from the moment at which it goes on
            if all(self.state[name] in ENDED for name in item.nodes):
                continue
            ahead.append((item.opened_at + limit, self._rank_of(item), "item", item.address))
        return ahead

    def rank(self, name: str) -> int:
        """Of two deadlines at the same time, that of the lower rank comes first."""
        item = self.item_of.get(name)
        if item is None:
            return [other for other in self.nodes if other not in self.item_of].index(name)
        return self._rank_of(item) - len(item.nodes) + item.nodes.index(name)

    def _rank_of(self, item: Item) -> int:
        size = len(item.nodes) + 1
        position = item.index - (self.nodes[item.map].kind == "loop")
        return ((self.rank(item.map) + 1) << 32) + position * size + len(item.nodes)

    def fire(self) -> None:
        """What is due has its effects, one deadline after another: see `strike_next`."""
        self.firing_until = self.now

    def has_due(self) -> bool:
        return self._next_due() is not None

    def strike_next(self) -> None:
        """The effect of the earliest deadline that is due."""
        deadline = self._next_due()
        assert deadline is not None
        _, _, kind, name = deadline
        if name:
            self._strike(name, kind)
        else:
            self._out_of_time()

    def _next_due(self) -> tuple[float, int, str, str] | None:
        if self.firing_until is None:
            return None
        deadline = next(iter(self.deadlines()), None)
        return None if deadline is None or deadline[0] > self.firing_until else deadline

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

    def _strike(self, name: str, kind: str) -> None:
        if kind == "item":
            self._item_out_of_time(self.items[name])
        elif kind == "region":
            self.timed_out.add(name)
            self._stop_map(name)
        elif kind == "round":
            self.due_rounds.add(name)
        elif self.state[name] == "RETRYING":
            self.waited.add(name)
        elif self.state[name] == "RUNNING":
            self.task_failed(name, category="timeout")
        elif self.state[name] == "WAITING":
            self._wait_is_over(name)
        else:
            self._fail(name, "queue_timeout")

    def _item_out_of_time(self, item: Item) -> None:
        item.timed_out = item.failing = True
        if self.nodes[item.map].single:
            self._fail(item.address, "timeout")
        else:
            self.state[item.address] = "WAITING"
            self._stop_running(item.nodes)

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
        lines: Iterable[tuple[str, str]] = (),
        *,
        complete: bool = True,
        opened: Mapping[str, int] | None = None,
        closed: Collection[str] = (),
        under_way: Collection[str] = (),
        pausing: Collection[str] = (),
    ) -> None:
        """Take every step that follows; if not `complete`, only those of the nodes in `lines`.

        `lines`: nodes and the states that they came to, in the order that the engine has chosen.
        `opened`: how many items of each map were opened by now; `closed`: items that have ended,
        of maps and loops that are `under_way`; `pausing`: loops that wait for their next round.
        """
        hints = [name for name, _ in lines]
        ahead = deque(lines)
        if self.execution not in {"RUNNING", "PAUSED"}:
            return
        self.under_way = under_way
        if self.execution == "RUNNING":
            for item in self.items.values():
                item.opened_at = min(item.opened_at, self.now)
        self._count_failures()
        while (
            self._end_single(closed, under_way, complete=complete)
            or (not self.reused and self._open_one(opened or {}, lenient=True))
            or self._take_next(ahead, hints)
            or self._reuse_one(hints, complete=complete)
            or (
                not self.reused
                and (
                    self._skip_one(hints, complete=complete)
                    or self._open_one(opened or {}, lenient=True)
                    or self._end_one(hints, closed, under_way, complete=complete)
                    or self._decide_one(None if complete else opened or {}, [*hints, *pausing])
                    or self._open_hinted(hints)
                    or self._start_one(hints, complete=complete)
                    or (complete and self._decide_one(None, [], reused=True))
                    or (complete and self._open_one(None))
                )
            )
            or self._give_up_next(ahead)
        ):
            self._count_failures()
        if all(self.state[name] in ENDED for name in self.nodes if name not in self.item_of):
            self.execution = "FAILED" if self.failed else "COMPLETED"
            if self.ending == "CANCELLED":
                self.execution = "CANCELLED"

    def _end_single(
        self, closed: Collection[str], under_way: Collection[str], *, complete: bool
    ) -> bool:
        """End an item that is one node, right after that: its end has no line of its own."""
        for item in self.items.values():
            if item.ended or not self.nodes[item.map].single:
                continue
            is_told = complete or item.address in closed or item.map not in under_way
            if is_told and all(self.state[node] in ENDED for node in item.nodes):
                self._end_item(item)
                return True
        return False

    def _take_next(self, ahead: deque[tuple[str, str]], hints: list[str]) -> bool:
        """Take the step that the engine took next, if it is possible.

        Of steps that are possible at the same moment any may come first: a map may complete, or be
        stopped by a node that fails beside it.
        """
        while ahead and ahead[0][0] not in self.again:
            name, state = ahead[0]
            if self.state.get(name) not in {*ENDED, state}:
                break
            ahead.popleft()
        self.ends_later = {name for name, state in ahead if state in ENDED}
        if not ahead:
            return False
        name, state = ahead[0]
        if self.reused:
            return self._reuse_one([name], complete=False)
        item = self.items.get(name)
        if item and not item.ended and all(self.state[node] in ENDED for node in item.nodes):
            self._end_item(item)
            return True
        node = self.nodes.get(name)
        if node is None:
            return self._make_way_for(name)
        if node.is_region and self.state[name] == "WAITING" and state in ENDED:
            return self._end_region(node) or self._decide_next(name)
        taken = [name]
        is_taken = self._skip_one(taken, complete=False) or self._start_one(taken, complete=False)
        if is_taken and name in hints:
            hints.remove(name)
        return is_taken

    def _give_up_next(self, ahead: deque[tuple[str, str]]) -> bool:
        """Forget a line that no step leads to: what comes after it may be possible."""
        if ahead:
            ahead.popleft()
            self.ends_later = {name for name, state in ahead if state in ENDED}
            return True
        return False

    def _make_way_for(self, name: str) -> bool:
        """Open the item or the round that a node is in, after deciding the round before it."""
        regions = [other for other, node in self.nodes.items() if node.is_region]
        around = [region for region in regions if name.startswith(f"{region}[")]
        return any(self._decide_next(region) for region in around) or self._open_hinted([name])

    def _decide_next(self, name: str) -> bool:
        if not self._may_decide(name):
            return False
        self._decide_round(self.nodes[name], self._items_of(name)[-1])
        return True

    def _may_decide(self, name: str) -> bool:
        """Whether a round has ended, and what follows it isn't decided."""
        node = self.nodes[name]
        rounds = self._items_of(name)
        if node.kind != "loop" or self.state[name] != "WAITING" or name in self.stopping:
            return False
        if not rounds or rounds[-1].decided or not rounds[-1].ended:
            return False
        return node.cleans_up or not self._is_failing(name)

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
                was_kept = self._is_failing(name) and not node.cleans_up
                if was_kept and name not in self.because_of_a_failure:
                    self.kept_from_running.add(name)
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
            if node.is_region:
                self._begin_region(node)
                return
            config = {key: self._resolve(value, node.name) for key, value in node.config.items()}
            if node.kind in {"wait", "signal", "approval"}:
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

    def _begin_region(self, node: Node) -> None:
        if node.kind == "map":
            try:
                self.lists[node.name] = self._list_of(node)
            except NothingThere:
                self._fail(node.name, "items")
                return
        self.state[node.name], self.since[node.name] = "WAITING", self.now

    def _list_of(self, node: Node) -> list[Any]:
        values: Any = list(node.items)
        if node.source is not None:
            values = self._resolve(node.source, node.name)
        if not isinstance(values, list):
            raise NothingThere
        keys = [self._key_of(node.key, value) for value in values] if node.key else []
        if len(set(keys)) < len(keys):
            raise NothingThere
        return values

    def _key_of(self, key: Reference, value: Any) -> str:
        found = key.fallback
        if isinstance(value, dict) and key.key in value:
            found = value[key.key]
        if found is None:
            raise NothingThere
        return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))

    def identity(self, name: str, index: int) -> str:
        """What an item is known by in a later execution."""
        node = self.nodes[name]
        if node.kind == "loop":
            return str(index)
        values = self.lists[name]
        if node.key is not None:
            return self._key_of(node.key, values[index])
        texts = [
            json.dumps(value, separators=(",", ":"), sort_keys=True)
            for value in values[: index + 1]
        ]
        identity = hashlib.sha256(texts[-1].encode()).hexdigest()[:16]
        times = texts.count(texts[-1])
        return identity if times == 1 else f"{identity}~{times}"

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

    def _kind_of(self, name: str, item: Item | None) -> str:
        """The kind of the node that a name means in an item; "item" of an item."""
        while item is not None:
            address = self._inside(item, name)
            if address in self.nodes:
                return self.nodes[address].kind
            item = self.item_of.get(item.map)
        node = self.nodes.get(name)
        return "item" if node is None else node.kind

    def _address(self, name: str, asking: str) -> str:
        """What a name means in the node that asks."""
        item = self.item_of.get(asking)
        return name if item is None else self._inside(item, name)

    def _inside(self, item: Item, name: str) -> str:
        """The address of a node of an item's body."""
        node = self.nodes[item.map]
        if node.single and name == node.body[0].name:
            return item.address
        return f"{item.address}.{name}"

    def _own_name(self, name: str) -> str:
        """A node's name inside of its item."""
        item = self.item_of.get(name)
        if item is None:
            return name
        node = self.nodes[item.map]
        return node.body[0].name if node.single else name[len(item.address) + 1 :]

    def _holds(self, condition: Condition, name: str) -> bool:
        value = self._resolve(condition.reference, name)
        if not isinstance(value, bool):
            raise NothingThere
        return value is condition.wanted

    def _resolve(self, value: Any, name: str) -> Any:
        """What a reference finds that stands in the node `name`."""
        return self._found(value, name, self.item_of.get(name))

    def _found(self, value: Any, name: str, item: Item | None) -> Any:  # noqa: PLR0911 -- kinds
        """What a reference finds that stands in an item, or in the node `name`."""
        if isinstance(value, Position):
            kind = "loop" if value.name == "round" else "map"
            while item is not None and self.nodes[item.map].kind != kind:
                item = self.item_of.get(item.map)
            assert item is not None
            return item.index
        if isinstance(value, StateOf):
            return self.state[self._address(value.node, name)]
        if isinstance(value, Sum):
            return self._sum(value, name)
        if not isinstance(value, Reference):
            return value
        output = self._value_of(value.node, item)
        if isinstance(output, dict) and value.key in output:
            return output[value.key]
        if self._kind_of(value.node, item) == "signal" and isinstance(output, dict):
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
        if name == "item" and self.nodes[item.map].kind == "map":
            return self.lists[item.map][item.index]
        if name == "previous" and self.nodes[item.map].kind == "loop":
            return self._previous(item)
        address = self._inside(item, name)
        if address in self.item_of:
            return self.outputs.get(address)
        return self._value_of(name, self.item_of.get(item.map))

    def _previous(self, item: Item) -> Any:
        """What the last round that completed has carried on."""
        for earlier in reversed(self._items_of(item.map)):
            if earlier.index < item.index and self.state.get(earlier.address) == "COMPLETED":
                return self.outputs.get(earlier.address)
        initial = self.nodes[item.map].initial
        return None if initial is None else self._resolve(initial, item.map)

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
        self.ended_at[name] = self.now

    def _skip(self, name: str, *, because_of_a_failure: bool) -> None:
        self.state[name] = "SKIPPED"
        if because_of_a_failure:
            self.because_of_a_failure.add(name)

    def _fail(self, name: str, category: str) -> None:
        self.state[name] = "FAILED"
        self.category[name], self.failed_at[name] = category, self.now
        self.ended_at[name] = self.now
        if self.nodes[name].optional or self._may_be_handled(name):
            return
        item = self.item_of.get(name)
        if item is not None:
            item.failed = True
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
            if self.state[name] == "WAITING" and self.nodes[name].is_region:
                self._stop_map(name)
            elif self.state[name] in {"QUEUED", "RUNNING", "RETRYING", "WAITING"}:
                self.state[name] = "CANCELLED"

    def _stop_map(self, name: str) -> None:
        self.stopping.add(name)
        for item in self._items_of(name):
            if not item.failing:
                item.failing = True
                self._stop_running(item.nodes)

    def _items_of(self, name: str) -> list[Item]:
        return [item for item in self.items.values() if item.map == name]

    def _end_one(
        self,
        hints: list[str],
        closed: Collection[str],
        under_way: Collection[str],
        *,
        complete: bool,
    ) -> bool:
        """End an item whose nodes have all ended, or a map whose items have."""
        for name in [*hints, *self.items, *self.nodes]:
            if name in self.ends_later:
                continue
            is_hinted = complete or name in hints
            item = self.items.get(name)
            if item is not None and not item.ended and not self.nodes[item.map].single:
                is_told = item.address in closed or item.map not in under_way
                if (is_hinted or is_told) and all(self.state[node] in ENDED for node in item.nodes):
                    self._end_item(item)
                    return True
            node = self.nodes.get(name)
            is_open = node is not None and node.is_region and self.state[name] == "WAITING"
            if node is not None and is_open and is_hinted and self._end_region(node):
                return True
        return False

    def _end_region(self, node: Node) -> bool:
        name = node.name
        items = self._items_of(name)
        if not all(item.ended for item in items):
            return False
        is_stopped = self._is_failing(name) and not node.cleans_up
        if node.kind == "loop":
            is_over = name in self.stopping
        else:
            is_over = len(items) == len(self.lists[name]) or name in self.stopping
        if not is_over and not is_stopped:
            return False
        if node.kind == "map" and self._has_failed(name):
            self._fail(name, "items")
        elif is_stopped:
            self.state[name] = "CANCELLED"
        elif name in self.timed_out:
            self._fail(name, "timeout")
        else:
            self._complete(name, self._output_of(node, items))
        self.kept.pop(name, None)
        return True

    def _end_item(self, item: Item) -> None:
        item.ended = True
        self.ended_at.setdefault(item.address, self.now)
        if self.nodes[item.map].single:
            item.failed_node = item.address
        else:
            self._record_item(item)
        is_map = self.nodes[item.map].kind == "map"
        if is_map and self._too_many_failures(item.map) and item.map not in self.stopping:
            self._stop_map(item.map)

    def _record_item(self, item: Item) -> None:
        own = self.nodes[item.map].body
        parents = {parent for node in own for parent in node.parents}
        sinks = [f"{item.address}.{node.name}" for node in own if node.name not in parents]
        failed = [
            name
            for name in item.nodes
            if self.state[name] == "FAILED" and not self.nodes[name].optional
        ]
        item.failed_node = min(failed, key=lambda name: (self.failed_at[name], name), default=None)
        if item.timed_out:
            item.failed, item.failed_node = True, None
        is_skipped = all(self.state[sink] == "SKIPPED" for sink in sinks)
        output: Any = None
        was_stopped = item.failing and any(
            self.state[name] == "CANCELLED" or name in self.kept_from_running for name in item.nodes
        )
        if not item.failed and not was_stopped and not is_skipped:
            try:
                output = self._output_of_item(item, sinks)
            except NothingThere:
                item.failed = True
        if item.failed:
            self.state[item.address] = "FAILED"
        elif was_stopped:
            self.state[item.address] = "CANCELLED"
        elif is_skipped:
            self.state[item.address] = "SKIPPED"
        else:
            self.state[item.address], self.outputs[item.address] = "COMPLETED", output

    def _output_of_item(self, item: Item, sinks: list[str]) -> Any:
        collect = self.nodes[item.map].collect
        if collect is not None:
            return self._found(collect, "", item)
        present = {
            self._own_name(sink): self.outputs[sink] for sink in sinks if sink in self.outputs
        }
        return next(iter(present.values()), None) if len(sinks) == 1 else present

    def _failures(self, name: str) -> int:
        return sum(self.state.get(item.address) == "FAILED" for item in self._items_of(name))

    def _has_failed(self, name: str) -> bool:
        is_strict = self.nodes[name].policy in {"fail_fast", "continue"}
        return bool(is_strict and self._failures(name)) or self._too_many_failures(name)

    def _too_many_failures(self, name: str) -> bool:
        node = self.nodes[name]
        failures = self._failures(name)
        if node.max_failures is not None:
            return failures > node.max_failures
        return bool(failures) and node.policy == "fail_fast"

    def _output_of(self, node: Node, items: list[Item]) -> Any:
        if node.result == "none":
            return None
        if node.result == "list":
            return [self._in_list(node, item) for item in items]
        states = [self.state[item.address] for item in items]
        counts = {kind: states.count(kind.upper()) for kind in ("completed", "failed", "skipped")}
        return {"total": len(items), **counts}

    def _in_list(self, node: Node, item: Item) -> Any:
        state = self.state[item.address]
        if state != "FAILED" or node.policy != "collect":
            return self.outputs.get(item.address) if state == "COMPLETED" else None
        failed = self._own_name(item.failed_node) if item.failed_node else None
        return {"failed": failed, "index": item.index}

    def _decide_one(
        self, opened: Mapping[str, int] | None, hints: list[str], *, reused: bool = False
    ) -> bool:
        """Decide what follows a round that has ended; nodes start before one that is reused."""
        for name in [*(hint for hint in hints if hint in self.nodes), *self.nodes]:
            if name in self.ends_later or not self._may_decide(name):
                continue
            rounds = self._items_of(name)
            if opened is None and rounds[-1].reused is not reused:
                continue
            is_told = opened is None or name in hints or opened.get(name, 0) > len(rounds)
            if not is_told:
                continue
            self._decide_round(self.nodes[name], rounds[-1])
            return True
        return False

    def _decide_round(self, node: Node, last: Item) -> None:
        last.decided = True
        state = self.state[last.address]
        if state == "FAILED" and node.round_failure == "fail":
            self._fail(node.name, "items")
            return
        if state == "COMPLETED" and not last.reused:
            try:
                has_ended = self._ends_loop(node, last)
            except NothingThere:
                self._fail(node.name, "items")
                return
            if has_ended:
                self._complete(node.name, self._output_of_loop(node, last))
                return
        if last.index >= node.max_rounds:
            if node.exhaustion == "fail":
                self._fail(node.name, "items")
            else:
                output = self._output_of_loop(node, last) | {"exhausted": True}
                self._complete(node.name, output)
            return
        pause = node.every * node.multiplier ** (last.index - 1)
        if node.most_every is not None:
            pause = min(pause, node.most_every)
        ended_at = self.ended_at.get(last.address, self.now)
        self.next_round[node.name] = self.now if last.reused else ended_at + pause
        if self.next_round[node.name] <= self.now:
            self.due_rounds.add(node.name)

    def _ends_loop(self, node: Node, last: Item) -> bool:
        if isinstance(node.until, int):
            return last.index >= node.until
        value = self._found(node.until.reference, "", last)
        if not isinstance(value, bool):
            raise NothingThere
        return value is node.until.wanted

    def _output_of_loop(self, node: Node, last: Item) -> dict[str, Any]:
        parents = {parent for inner in node.body for parent in inner.parents}
        sinks = [inner.name for inner in node.body if inner.name not in parents]
        outputs = {
            sink: self.outputs[self._inside(last, sink)]
            for sink in sinks
            if self._inside(last, sink) in self.outputs
        }
        output: Any = outputs
        if len(sinks) == 1:
            output = outputs.get(sinks[0])
        if not isinstance(output, dict):
            output = {"output": output}
        return {**output, "rounds": last.index}

    def _open_hinted(self, hints: list[str]) -> bool:
        """Open the item in which the next node started that isn't there yet."""
        for name in hints:
            if self.state.get(name) == "PENDING":
                return False
            if name in self.nodes and self._never_opened(name) and self._may_open(name):
                self._open(name)
                return True
            if name in self.state:
                continue
            for owner in [other for other, node in self.nodes.items() if node.is_region]:
                if not name.startswith(f"{owner}["):
                    continue
                index = name[len(owner) + 1 :].partition("]")[0]
                is_there = f"{owner}[{index}]" in self.items
                if not is_there and self._may_open(owner, lenient=True):
                    self._open(owner)
                    return True
        return False

    def _open_one(self, opened: Mapping[str, int] | None, *, lenient: bool = False) -> bool:
        for name in list(self.nodes):
            count = len(self._items_of(name))
            is_told = opened is None or count < opened.get(name, 0)
            if is_told and self._may_open(name, lenient=lenient):
                self._open(name)
                return True
        return False

    def _never_opened(self, name: str) -> bool:
        """Of a loop that has ended: whether its initial value couldn't be found."""
        node = self.nodes[name]
        if node.kind != "loop" or name in self.under_way or self._items_of(name):
            return False
        try:
            self._resolve(node.initial, name)
        except NothingThere:
            return True
        return False

    def _may_open(self, name: str, *, lenient: bool = False) -> bool:
        """`lenient`: a new owner begins a round that is due without waiting for its timer."""
        node = self.nodes[name]
        if self.state[name] != "WAITING" or name in self.stopping or self.execution != "RUNNING":
            return False
        if not node.is_region:
            return False
        items = self._items_of(name)
        still_open = sum(not item.ended for item in items)
        if node.kind == "map":
            return len(items) < len(self.lists[name]) and still_open < node.max_parallel
        if self._is_failing(name) and not node.cleans_up:
            return False
        if not items:
            return True
        is_due = lenient and self.next_round.get(name, self.now + 1) <= self.now
        return not still_open and items[-1].decided and (is_due or name in self.due_rounds)

    def _open(self, name: str) -> None:
        owner = self.nodes[name]
        first = 1 if owner.kind == "loop" else 0
        index = len(self._items_of(name)) + first
        self.next_round.pop(name, None)
        self.due_rounds.discard(name)
        address = f"{name}[{index}]"
        body = owner.body
        if index == 1 and owner.kind == "loop" and owner.initial is not None:
            try:
                self._resolve(owner.initial, name)
            except NothingThere:
                self._fail(name, "items")
                return
        names = [address] if owner.single else [f"{address}.{node.name}" for node in body]
        item = Item(address, name, index, names, self.now)
        self.items[address] = item
        kept = self.kept.get(name, {})
        if kept and self.identity(name, index) in kept:
            item.nodes, item.ended, item.reused = [], True, True
            self.state[address] = "COMPLETED"
            self.outputs[address] = kept[self.identity(name, index)]
            return
        for node, inner_name in zip(body, names, strict=True):
            inner = replace(
                node,
                name=inner_name,
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
            if state not in ENDED and name not in but and name in self.nodes:
                self.state[name] = pending if state == "PENDING" else "CANCELLED"
        for item in self.items.values():
            if not item.ended and self._outermost(item.nodes[0]) not in but:
                item.ended = True
                if not self.nodes[item.map].single:
                    self.state[item.address] = "CANCELLED"

    def _outermost(self, name: str) -> str:
        """The map of the plan that a node inside of an item belongs to."""
        while name in self.item_of:
            name = self.item_of[name].map
        return name
