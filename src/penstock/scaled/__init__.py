"""Penstock in any number of processes, on Redis and PostgreSQL: the roles of a process.

orchestrator  decides for the executions of its partitions
worker        runs handlers
api           serves the HTTP API; it only needs the stores and a service

They find each other through the stores alone. Each takes an `asyncio.Event` that says when to stop,
and stops cleanly.
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
