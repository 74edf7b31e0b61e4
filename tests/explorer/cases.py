"""The cases to explore.

Budgets for every test run, larger ones for `make explore`, and one for each guard.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from tests.explorer.world import Budget, Guard

LOSS = "loss"
OTHERS = tuple(kind for kind in Budget().__struct_fields__ if kind != LOSS)


def each_of(kinds: Iterable[str]) -> Budget:
    """One of each; a kind that is named twice may happen twice."""
    named = list(kinds)
    return Budget(**{kind: named.count(kind) for kind in named})


def name_of(budget: Budget) -> str:
    counts = ((kind, getattr(budget, kind)) for kind in budget.__struct_fields__)
    return (
        " + ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counts if count)
        or "no fault"
    )


SINGLE = (Budget(), *(each_of([kind]) for kind in Budget().__struct_fields__))
PAIRS = tuple(map(each_of, combinations(OTHERS, 2)))
TWICE = tuple(each_of([kind, kind]) for kind in OTHERS)
PAIRS_WITH_LOSS = tuple(each_of([LOSS, kind]) for kind in OTHERS)
TRIPLES = tuple(map(each_of, combinations(("crash", "pause", "lost", "duplicate", "failure"), 3)))

REGIONS = ("map, one at a time", "map, both at once", "signal")
"""Shapes besides the usual one."""
SHAPES = {Guard.SIGNALS_SWEPT: "signal", Guard.ROOM: "map, one at a time"}
"""Of the guards that another shape than the usual one shows."""

NEEDS: dict[Guard, tuple[Budget, str]] = {
    Guard.TOKEN: (Budget(loss=1), "G4 a commit of a generation that is over"),
    Guard.NUMBER: (Budget(duplicate=1), "G2 ('a', 1, 1) is dispatched twice"),
    Guard.POSITION: (Budget(crash=1), "G1, G5 stuck"),
    Guard.TASKS: (Budget(lost=1), "G1, G5 stuck"),
    Guard.STOPS: (Budget(failure=1), "G4 ('b', 1, 1) is handed out"),
    Guard.CLAIMED: (Budget(pause=1), "G2 ('a', 1, 1) is reported twice"),
    Guard.ONE_STEP: (Budget(crash=1), "G1, G5 stuck"),
    Guard.ATTEMPT: (Budget(duplicate=1, failure=1), "G4 ('a', 1, 2) is handed out"),
    Guard.GENERATION: (Budget(duplicate=1, loss=1), "G4 ('a', 2, 1) is handed out"),
    Guard.CURRENT: (Budget(duplicate=1), "the core raised: node 'a'"),
    Guard.ENDED: (Budget(cancel=1), "the core raised: execution"),
    Guard.LAST: (Budget(failure=2), "('a', 1, 3) is attempt 3 of 2"),
    Guard.FAN_IN: (Budget(), "G3 the join starts"),
    Guard.SWEPT: (Budget(lost=1), "G1, G5 stuck"),
    Guard.SIGNALS_SWEPT: (Budget(lost=1), "G1, G5 stuck"),
    Guard.ROOM: (Budget(), "['each[0].a', 'each[1].a'] are open at once"),
    Guard.BUILT: (Budget(loss=1), "G2 ('a', 1, 1) is dispatched twice"),
    Guard.BUILDER: (Budget(loss=1, pause=1), "G4"),
    Guard.RAISED: (Budget(loss=1), "G2 ('a', 1, 1) is dispatched twice"),
}
"""Which faults show what a guard is for, and what comes of it without the guard."""
