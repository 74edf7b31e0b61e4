"""Judges a store's file from outside: with SQLite and the codec only, no engine."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.engine.commands import DeadLetter
from penstock.engine.states import EXECUTION_ENDS, NODE_ENDS, NODE_TRANSITIONS, NodeState
from penstock.stores import codec
from penstock.stores.base import Stored
from penstock.stores.sqlite.claims import Claims
from tests.acceptance import regions
from tests.simulation.judge import violations


@dataclass
class Verdict:
    executions: dict[str, Stored] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def states(self) -> Counter[str]:
        return Counter(str(stored.record.state) for stored in self.executions.values())

    def reasons(self) -> Counter[str]:
        lines = (line for stored in self.executions.values() for line in stored.history)
        return Counter(line.reason for line in lines if line.reason)


def judge(path: Path, documents: Iterable[dict[str, Any]]) -> Verdict:
    """Reads everything that is stored, and notes what must not be.

    `documents`: all that may have run.
    """
    verdict = Verdict()
    by_name = {document["name"]: document for document in documents}
    connection = sqlite3.connect(path)
    try:
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        if integrity != "ok":
            verdict.problems.append(f"integrity: {integrity}")
        for row in connection.execute(
            "SELECT n, id, state, ended_at, intent FROM executions"
        ).fetchall():
            _judge_execution(connection, verdict, by_name, *row)
        if connection.execute("SELECT count(*) FROM timers").fetchone() != (0,):
            verdict.problems.append("a timer is left")
        rows = connection.execute("SELECT dead_letter FROM dead_letters ORDER BY id").fetchall()
        verdict.dead_letters = [codec.decode_dead_letter(dead_letter) for (dead_letter,) in rows]
    finally:
        connection.close()
    claims = Claims(path.with_name(path.name + ".claims"))
    if claims.left_over:
        verdict.problems.append(f"held at the end: {sorted(claims.left_over)[:3]}")
    claims.close()
    return verdict


def _judge_execution(
    connection: sqlite3.Connection,
    verdict: Verdict,
    documents: Mapping[str, dict[str, Any]],
    n: int,
    name: str,
    state: str,
    ended_at: float,
    intent: bytes,
) -> None:
    rows = connection.execute("SELECT change FROM changes WHERE n = ? ORDER BY id", (n,)).fetchall()
    stored = codec.fold(
        codec.decode_record(intent), [codec.decode_change(change) for (change,) in rows]
    )
    verdict.executions[name] = stored
    problems = _problems(stored) + violations(stored, documents[stored.record.workflow], None)
    problems += regions.problems(stored)
    if state != stored.record.state or ended_at is None:
        problems.append(f"its row says {state}, ended at {ended_at}")
    verdict.problems += [f"{name}: {problem}" for problem in problems]


def _problems(stored: Stored) -> list[str]:
    """The history must be a story that the stored state is the end of."""
    problems, state_by_node = _retold(stored)
    if state_by_node.get("") != stored.record.state or stored.record.state not in EXECUTION_ENDS:
        problems.append(
            f"the history ends with {state_by_node.get('')}, stored is {stored.record.state}"
        )
    states = {address: str(run.state) for address, run in stored.runs.items()}
    if states != {address: state for address, state in state_by_node.items() if address}:
        problems.append("the states folded from the history aren't the states stored")
    ends = Counter(
        line.node_id for line in stored.history if line.node_id and line.after in NODE_ENDS
    )
    if set(ends) != set(states) or set(ends.values()) != {1}:
        problems.append(f"recorded outcomes per node: {ends}")
    dispatched = Counter(
        (line.node_id, line.attempt) for line in stored.history if line.after == "QUEUED"
    )
    if set(dispatched.values()) - {1}:
        problems.append("an attempt was dispatched twice")
    return problems


def _retold(stored: Stored) -> tuple[list[str], dict[str, str]]:
    """What is wrong with the history's lines, and the states that they end with.

    The key "" is the execution itself.
    """
    problems = []
    state_by_node: dict[str, str] = {}
    for number, line in enumerate(stored.history, start=1):
        if line.seq != number:
            problems.append(f"history line {number} has number {line.seq}")
        if state_by_node.get("", "") in EXECUTION_ENDS:
            problems.append(f"{line} after the end")
        before = state_by_node.get(line.node_id, "PENDING")
        if line.before != before:
            problems.append(f"{line} although it was {before}")
        if line.node_id and NodeState(line.after) not in NODE_TRANSITIONS[NodeState(line.before)]:
            problems.append(f"{line} isn't in the table")
        state_by_node[line.node_id] = line.after
    return problems, state_by_node
