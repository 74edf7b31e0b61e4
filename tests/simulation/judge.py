"""What must be true, whatever happened: looked at from outside, in the handlers' notes and the store's records."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.stores.base import Stored

ENDS = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}


def violations(stored: Stored, document: dict[str, Any], notes: list[tuple[str, str, int]]) -> list[str]:
    """Empty if the execution's records are as G1 to G5 say."""
    found: list[str] = []
    nodes = {node["id"]: node for node in document["nodes"]}
    record = stored.record
    if record.state not in ("COMPLETED", "FAILED", "CANCELLED"):
        found.append(f"G1 not terminal: {record.state}; " + str({a: str(r.state) for a, r in stored.runs.items()}))
    folded: dict[str, str] = {}
    outcomes: Counter[str] = Counter()
    dispatched: Counter[tuple[str, int]] = Counter()
    ended_at_seq: dict[str, int] = {}
    ended = False
    for number, line in enumerate(stored.history, 1):
        if line.seq != number:
            found.append(f"history has a gap or a repeat at {number}: {line}")
        if ended:
            found.append(f"G4 recorded after the end: {line}")
        if folded.get(line.node, "PENDING") != line.before:
            found.append(f"G4 history doesn't join: {line} after {folded.get(line.node)}")
        if folded.get(line.node) in ENDS:
            found.append(f"G4 {line.node} changed after its end: {line}")
        folded[line.node] = line.after
        if line.after == "QUEUED":
            dispatched[line.node, line.attempt] += 1
            found += _too_early(line, nodes, ended_at_seq, folded)
        if line.after in ENDS:
            outcomes[line.node] += 1
            ended_at_seq[line.node] = line.seq
            ended = ended or line.node == ""
    found += [f"G2 {node} has {count} outcomes" for node, count in outcomes.items() if count != 1]
    found += [f"G2 {key} was dispatched {count} times" for key, count in dispatched.items() if count != 1]
    found += _notes_disagree(record.execution_id, nodes, dispatched, notes)
    for address, run in stored.runs.items():
        if folded.get(address) != run.state:
            found.append(f"history says {address} is {folded.get(address)}, the record says {run.state}")
    if folded.get("") != record.state:
        found.append(f"history says {folded.get('')}, the record says {record.state}")
    return found


def _too_early(line: Any, nodes: dict[str, Any], ended: dict[str, int], folded: dict[str, str]) -> list[str]:
    node = nodes[line.node]
    parents = node.get("dependencies", [])
    if node.get("trigger_rule", "all_success") in ("one_success", "one_failed"):
        return (
            []
            if not parents or any(parent in ended for parent in parents)
            else [f"G3 {line.node} started before any parent"]
        )
    return [f"G3 {line.node} started before {p} ({folded.get(p)})" for p in parents if p not in ended]


def _notes_disagree(
    execution_id: str, nodes: dict[str, Any], dispatched: Counter[tuple[str, int]], notes: list[tuple[str, str, int]]
) -> list[str]:
    mine = Counter((node, attempt) for execution, node, attempt in notes if execution == execution_id)
    found = [f"G2 {key} was run {count} times" for key, count in mine.items() if count > 1]
    found += [f"G2 {key} was run and never dispatched" for key in mine if key not in dispatched]
    for node, attempt in dispatched:
        most = nodes[node].get("retry", {}).get("max_attempts", 4)
        if attempt > most:
            found.append(f"{node} had attempt {attempt} of {most}")
    return found
