"""The judge: what must be true whatever happened, seen in handlers' notes and store records."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from penstock.stores.base import Stored

ENDS = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}


INDEX = re.compile(r"\[\d+\]")
REBUILT = "rebuilt"


def violations(
    stored: Stored, document: dict[str, Any], notes: list[tuple[str, str, int]] | None
) -> list[str]:
    """Empty if the execution's records are as G1 to G5 say.

    Without `notes` a store has lost its data: then handlers may have done what no record tells any
    more.
    """
    record = stored.record
    story = Story(_templates(document["nodes"], document.get("defaults", {})))
    for number, line in enumerate(stored.history, 1):
        story.read(number, line)
    problems = story.found + story.counts() + story.too_many_attempts() + taken_twice(stored)
    problems += outcomes_of_maps(stored, document["nodes"])
    if notes is not None:
        problems += story.disagreements(record.execution_id, notes)
    if record.state not in ("COMPLETED", "FAILED", "CANCELLED"):
        problems.append(
            f"G1 not terminal: {record.state}; "
            + str({a: str(r.state) for a, r in stored.runs.items()})
        )
    records = {
        "": str(record.state),
        **{address: str(run.state) for address, run in stored.runs.items()},
    }
    problems += [
        f"history says {name or 'it'} is {story.states.get(name)}, the record says {state}"
        for name, state in records.items()
        if story.states.get(name) != state
    ]
    return problems


def _templates(
    nodes: list[dict[str, Any]], defaults: dict[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Nodes by their addresses, without indexes: `each[].a`."""
    templates: dict[str, Any] = {}
    for node in nodes:
        address = f"{prefix}{node['id']}"
        templates[address] = {**defaults, **node}
        if "for_each" in node or "repeat" in node:
            single = {**defaults, **node, "dependencies": [], "catches": None, "trigger_rule": None}
            templates[f"{address}[]"] = {} if "nodes" in node else single
        if "nodes" in node:
            templates |= _templates(node["nodes"], defaults, f"{address}[].")
    return templates


def outcomes_of_maps(stored: Stored, nodes: list[dict[str, Any]]) -> list[str]:
    """What the items of the document's maps came to, against the map's own end."""
    problems: list[str] = []
    for node in nodes:
        run = stored.runs.get(node["id"])
        if "for_each" not in node or run is None or run.more is None or run.reason == "kept":
            continue
        items = [stored.runs.get(f"{node['id']}[{index}]") for index in range(run.more.size)]
        states = [str(item.state) if item else None for item in items]
        is_strict = node.get("on_item_failure", "fail_fast") in ("fail_fast", "continue")
        if run.state == "COMPLETED" and (None in states or "CANCELLED" in states):
            problems.append(f"{node['id']} is COMPLETED with items {states}")
        if run.state == "COMPLETED" and is_strict and node.get("max_failures") is None:
            problems += [f"{node['id']} is COMPLETED with items {states}"] * ("FAILED" in states)
        output = stored.outputs.get(node["id"])
        if (
            run.state == "COMPLETED"
            and node.get("output", "list") == "list"
            and isinstance(output, bytes)
        ):
            values = msgspec.json.decode(output)
            problems += [f"{node['id']} has {len(values)} outputs of {len(states)} items"] * (
                len(values) != len(states)
            )
            problems += [
                f"{node['id']}[{index}] is {state}, and its output is {value}"
                for index, (state, value) in enumerate(zip(states, values, strict=False))
                if state == "SKIPPED" and value is not None
            ]
    return problems


def taken_twice(stored: Stored) -> list[str]:
    """A signal is taken by one node, and by none if it was never received."""
    known = {signal.number for signal in stored.signals}
    taken: Counter[int] = Counter()
    for run in stored.runs.values():
        if run.more is not None:
            one = () if run.more.signal is None else (run.more.signal,)
            taken.update((*run.more.signals, *one))
    return [
        f"signal {number} was taken {count} times" for number, count in taken.items() if count > 1
    ] + [f"signal {number} was taken and never received" for number in taken if number not in known]


class Story:
    """The history, line by line."""

    def __init__(self, nodes: dict[str, Any]) -> None:
        self._nodes = nodes
        self.found: list[str] = []
        self.states: dict[str, str] = {}
        self._outcomes: Counter[str] = Counter()
        self._rebuilt: Counter[str] = Counter()
        self._dispatched: Counter[tuple[str, int, int]] = Counter()
        """By node, attempt, and how often it was built again before."""
        self._items_open: dict[str, set[str]] = {}
        """By map or loop."""
        self._items_ended: set[str] = set()
        self._losses: Counter[str] = Counter()
        self._spared: Counter[str] = Counter()
        """By node: attempts besides its `max_attempts`, because others were no fault of its own."""

    def read(self, number: int, line: Any) -> None:
        before = self.states.get(line.node_id, "PENDING")
        if line.seq != number:
            self.found.append(f"history has a gap or a repeat at {number}: {line}")
        if self.states.get("") in ENDS:
            self.found.append(f"G4 recorded after the end: {line}")
        if before != line.before or before in ENDS:
            self.found.append(f"G4 history doesn't join: {line} after {before}")
        self.states[line.node_id] = line.after
        if line.after == "RETRYING" and line.reason == REBUILT:
            self._rebuilt[line.node_id] += 1
        if line.after == "RETRYING" and line.reason in ("lost", "interrupted"):
            self._count_loss(line)
        if line.after == "QUEUED":
            self._dispatched[line.node_id, line.attempt, self._rebuilt[line.node_id]] += 1
            self._check_parents(line.node_id)
        if line.after in ENDS:
            self._outcomes[line.node_id] += 1
        if before == "PENDING":
            self._open(line.node_id)
        if line.after in ENDS:
            self._close(line.node_id)

    def _open(self, name: str) -> None:
        """Count the item that a node is in, and those around it."""
        for bracket in INDEX.finditer(name):
            address, region = name[: bracket.start()], self._node(name[: bracket.start()])
            item = name[: bracket.end()]
            if item in self._items_ended:
                self.found.append(f"{name} began in an item that had ended")
            if item == name and "nodes" in region:
                continue  # the line of the item itself
            opened = self._items_open.setdefault(address, set())
            opened.add(item)
            parallel = 1 if "repeat" in region else region.get("max_parallel") or 1000
            if len(opened) > parallel:
                self.found.append(f"{address} has {len(opened)} items open, of {parallel}: {name}")

    def _close(self, name: str) -> None:
        brackets = list(INDEX.finditer(name))
        if brackets and brackets[-1].end() == len(name):
            self._items_ended.add(name)
            self._items_open.get(name[: brackets[-1].start()], set()).discard(name)

    def _count_loss(self, line: Any) -> None:
        """A first loss is never of a node's last attempt; a worker that is stopped loses none."""
        if line.reason == "interrupted":
            self._spared[line.node_id] += 1
            return
        self._losses[line.node_id] += 1
        if self._losses[line.node_id] == 1 and line.attempt == self._attempts_max(line.node_id):
            self._spared[line.node_id] += 1

    def _attempts_max(self, name: str) -> int:
        attempts_max: int = self._node(name).get("retry", {}).get("max_attempts", 4)
        return attempts_max + self._spared[name]

    def _node(self, name: str) -> Any:
        return self._nodes[INDEX.sub("[]", name)]

    def _check_parents(self, name: str) -> None:
        node = self._node(name)
        prefix = name[: len(name) - len(node["id"])]
        parents = [f"{prefix}{parent}" for parent in node.get("dependencies", [])]
        settled = [self.states.get(parent) in ENDS for parent in parents]
        enough = any if node.get("trigger_rule") in ("one_success", "one_failed") else all
        if node.get("catches"):
            caught = [name for name in node["catches"] if self.states.get(name) == "FAILED"]
            if not caught:
                self.found.append(f"G3 {name} started before a failure that it catches")
            return
        if settled and not enough(settled):
            self.found.append(f"G3 {name} started before its dependencies")

    def counts(self) -> list[str]:
        problems = [
            f"G2 {node} has {count} outcomes"
            for node, count in self._outcomes.items()
            if count != 1
        ]
        return problems + [
            f"G2 {key} was dispatched {n} times" for key, n in self._dispatched.items() if n != 1
        ]

    def disagreements(self, execution_id: str, notes: list[tuple[str, str, int]]) -> list[str]:
        """Between what the handlers noted and what was recorded."""
        mine = Counter(
            (node, attempt) for execution, node, attempt in notes if execution == execution_id
        )
        problems = [f"G2 {key} was run {count} times" for key, count in mine.items() if count > 1]
        dispatched = {(node, attempt) for node, attempt, _ in self._dispatched}
        return problems + [
            f"G2 {key} was run and never dispatched" for key in mine if key not in dispatched
        ]

    def too_many_attempts(self) -> list[str]:
        problems: list[str] = []
        for node, attempt, _ in self._dispatched:
            attempts_max = self._attempts_max(node)
            if attempt > attempts_max:
                problems.append(f"{node} had attempt {attempt} of {attempts_max}")
        return problems
