"""Takes out each guard in turn and sees a test go red: `make guards`.

A guard is a refusal that a guarantee hangs on. Each is taken out in a copy of the sources; one of
the tests named beside it must then fail, and pass with the guard in place. `scripts.refusals` finds
them, so that none is forgotten.
"""

from __future__ import annotations

from scripts.guards import engine, orchestrator, postgres, redis, stores, tables, ways_in
from scripts.guards.guard import ROOT, Guard

LISTED = [
    *engine.GUARDS, *orchestrator.GUARDS, *stores.GUARDS, *postgres.GUARDS, *redis.GUARDS, *ways_in.GUARDS,
]  # fmt: skip
GUARDS = [*tables.GUARDS, *LISTED]

__all__ = ["GUARDS", "LISTED", "ROOT", "Guard"]
