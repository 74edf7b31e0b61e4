"""`python -m tests.explorer`: larger budgets than a test run has, then each guard's counterexample.

`--only crash,loss` explores one budget; a kind that is named twice may happen twice.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from tests.explorer import cases
from tests.explorer.deciding import FAN_IN
from tests.explorer.search import Found, explore
from tests.explorer.store import Removed
from tests.explorer.world import Budget


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", metavar="KINDS", help=f"of {', '.join(Budget().__struct_fields__)}"
    )
    only = parser.parse_args().only
    if only is not None:
        return _explore_all([cases.each_of(kind for kind in only.split(",") if kind)])
    bad = _explore_all(
        (*cases.SINGLE, *cases.TWICE, *cases.PAIRS, *cases.PAIRS_WITH_LOSS, *cases.TRIPLES)
    )
    for shape in cases.REGIONS:
        bad += _explore_all((*cases.SINGLE, *cases.TWICE, *cases.PAIRS), shape)
    return bad + _take_out_each_guard()


def _explore_all(budgets: Iterable[Budget], shape: str = FAN_IN) -> int:
    """Answers how many of them have a violation."""
    bad = states = 0
    began = time.monotonic()
    for budget in budgets:
        exploration = _timed(f"{shape}, {cases.name_of(budget)}", budget, frozenset(), shape)
        bad += bool(exploration.violation)
        states += exploration.states
    _print(f"{states:,} states in {time.monotonic() - began:.0f} s; {bad} budgets with violations")
    return bad


def _take_out_each_guard() -> int:
    """Answers how many of them make no difference."""
    explorations = [
        _timed(f"without: {guard}", budget, frozenset({guard}), cases.SHAPES.get(guard, FAN_IN))
        for guard, (budget, _) in cases.NEEDS.items()
    ]
    return sum(not exploration.violation for exploration in explorations)


def _timed(name: str, budget: Budget, removed: Removed, shape: str) -> Found:
    began = time.monotonic()
    exploration = explore(budget, removed, shape)
    _print(f"{name}: {time.monotonic() - began:.1f} s, {exploration}")
    return exploration


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 -- a command's output


if __name__ == "__main__":
    sys.exit(main())
