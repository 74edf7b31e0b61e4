"""Penstock runs workflows: DAGs of API calls, LLM calls and your own Python.

They are durable from SQLite up.

The parts, from the edges to what everything stands on; none imports one above it:

- `cli`: the command line.
- `local`: servers on this machine, for `penstock up` and for tests.
- `testing`: an engine in memory, on a clock that jumps, to test workflows with.
- `runtime`: the only place that puts the parts together: `Engine`, roles.
- `api`: HTTP, thin.
- `client`: the client of that API.
- `contract`: the tests that every store must pass.
- `service`: the use cases, without HTTP.
- `orchestrator`: the loop around the core.
- `worker`: runs handlers.
- `views`: what users see, as typed structs made from records. Pure.
- `sandbox`: evaluates user-given text in processes with limits.
- `stores`: where facts live.
- `engine`: what happens next. Pure.
- `definition`: what a workflow is. Pure.
- `schedules`: when executions start by themselves. Pure.
- `config`: settings.
- `telemetry`: logs, metrics, traces.
- `errors`: one tree of exceptions.
- `spelling`: which known name was probably meant. The README and docs/ tell the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

from penstock.definition.builder import Ref, Workflow, expression, text
from penstock.definition.model import Retry
from penstock.errors import (
    Conflict,
    ExecutionFailed,
    InvalidInput,
    InvalidWorkflow,
    KeyReused,
    NotFound,
    NotOpen,
    Overloaded,
    PartlyStarted,
    PenstockError,
    RateLimited,
    RequestFailed,
    Retryable,
    SettingsError,
    StoreError,
    StoreLocked,
    Terminal,
    Unauthorized,
    Unreachable,
)
from penstock.worker.context import Context
from penstock.worker.registry import Registry, handler

if TYPE_CHECKING:
    from penstock.client import Client, Execution, SyncClient, SyncExecution
    from penstock.runtime import Engine, ExecutionHandle, arun, asgi, load, run
    from penstock.views.result import Result

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 -- grouped by use
    # write a workflow
    "Workflow",
    "Ref",
    "Retry",
    "text",
    "expression",
    "load",
    # write a handler
    "handler",
    "Context",
    "Registry",
    "Terminal",
    "Retryable",
    # run it
    "run",
    "arun",
    "Engine",
    "ExecutionHandle",
    "Result",
    "asgi",
    # have a server run it
    "Client",
    "Execution",
    "SyncClient",
    "SyncExecution",
    # what can go wrong
    "PenstockError",
    "InvalidWorkflow",
    "InvalidInput",
    "NotFound",
    "Conflict",
    "KeyReused",
    "ExecutionFailed",
    "SettingsError",
    "StoreError",
    "StoreLocked",
    "NotOpen",
    "Unreachable",
    "Unauthorized",
    "RateLimited",
    "Overloaded",
    "RequestFailed",
    "PartlyStarted",
]


IMPORTED_WHEN_USED = {
    "penstock.client": {"Client", "Execution", "SyncClient", "SyncExecution"},
    "penstock.runtime": {"Engine", "ExecutionHandle", "arun", "asgi", "load", "run"},
    "penstock.views.result": {"Result"},
}


def __getattr__(name: str) -> Any:
    """The clients and the engine, which are imported when they are first used.

    A process mostly needs one of them. The clients' aiohttp takes 0.1 s, the engine as much.
    """
    for module, names in IMPORTED_WHEN_USED.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
