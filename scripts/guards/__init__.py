"""Takes out each guard in turn and sees a test go red: `make guards`.

A guard is a refusal that a guarantee hangs on. Each is taken out in a copy of the sources; one of
the tests named beside it must then fail, and pass with the guard in place. A guard names its code
by a function and a pattern (`scripts.patterns`); `scripts.refusals` finds refusals without one.
"""

from __future__ import annotations

from scripts.guards import (
    children,
    edges,
    engine,
    orchestrator,
    postgres,
    redis,
    regions,
    stores,
    tables,
    waiting,
)
from scripts.guards.guard import Guard
from scripts.patterns import ROOT

LISTED = [
    *engine.GUARDS,
    *children.GUARDS,
    *orchestrator.GUARDS,
    *stores.GUARDS,
    *postgres.GUARDS,
    *redis.GUARDS,
    *edges.GUARDS,
    *waiting.GUARDS,
    *regions.GUARDS,
]
GUARDS = [*tables.GUARDS, *LISTED]

__all__ = ["GUARDS", "LISTED", "ROOT", "Guard"]
