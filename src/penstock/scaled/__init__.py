"""Penstock in any number of processes, on Redis and PostgreSQL: what each kind of process does.

orchestrator  decides, for the partitions that it holds
worker        runs handlers
api           answers; it only needs the stores and a service over them

They find each other through the stores alone. Each takes an event that says when to stop, and stops
cleanly.
"""

from penstock.scaled.opening import Handlers, handlers_of, open_scaled, service_over
from penstock.scaled.roles import run_orchestrator, run_worker

__all__ = [
    "Handlers",
    "handlers_of",
    "open_scaled",
    "run_orchestrator",
    "run_worker",
    "service_over",
]
