"""A transition that isn't in the tables of engine/states.py is a refusal: each one is let in, in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.engine.states import (
    EXECUTION_TRANSITIONS,
    NODE_TRANSITIONS,
    ExecutionState,
    NodeState,
)
from scripts.guards.guard import Guard

FILE, TEST = "engine/states.py", "tests/engine/test_states.py"
_Table = (
    Mapping[NodeState, frozenset[NodeState]] | Mapping[ExecutionState, frozenset[ExecutionState]]
)


def _refused(what: str, prefix: str, table: _Table) -> Iterator[Guard]:
    lines = {
        line.strip().partition(":")[0]: line
        for line in Guard("", FILE, "", "", "").text().splitlines()
    }
    for before, allowed in table.items():
        row = lines[f"{prefix}.{before}"]
        for after in table:
            if after not in allowed:
                wider = row.replace("frozenset({", f"frozenset({{{prefix}.{after}, ")
                wider = wider.replace("frozenset()", f"frozenset({{{prefix}.{after}}})")
                yield Guard(
                    f"{what} that is {before} never becomes {after}", FILE, row, wider, TEST
                )


GUARDS = [
    *_refused("a node", "_N", NODE_TRANSITIONS),
    *_refused("an execution", "_E", EXECUTION_TRANSITIONS),
]
