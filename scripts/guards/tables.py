"""A transition that the tables of engine/states.py don't have is a refusal: each is let in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.engine.states import (
    EXECUTION_TRANSITIONS,
    NODE_TRANSITIONS,
    ExecutionState,
    NodeState,
)
from scripts.guards.guard import Guard

_NodeTable = Mapping[NodeState, frozenset[NodeState]]
_ExecutionTable = Mapping[ExecutionState, frozenset[ExecutionState]]


def _refused(what: str, prefix: str, table: _NodeTable | _ExecutionTable) -> Iterator[Guard]:
    for before, allowed in table.items():
        for after in table:
            if after not in allowed:
                states = [state for state in table if state in allowed or state == after]
                wider = ", ".join(f"{prefix}.{state}" for state in states)
                yield Guard(
                    f"{what} that is {before} never becomes {after}",
                    "engine/states.py",
                    at="",
                    pattern=f"{{{prefix}.{before}: _}}",
                    without=f"{{{prefix}.{before}: frozenset({{{wider}}})}}",
                    test="tests/engine/test_states.py",
                )


GUARDS = [
    *_refused("a node", "_N", NODE_TRANSITIONS),
    *_refused("an execution", "_E", EXECUTION_TRANSITIONS),
]
