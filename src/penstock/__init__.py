"""Penstock runs workflows: DAGs of API calls, LLM calls and your own Python, durable from one process on SQLite up.

The README and docs/ tell the rest.
"""

from typing import TYPE_CHECKING, Any

from penstock.definition.builder import Ref, Workflow, text
from penstock.definition.model import Retry
from penstock.embedded import Engine, ExecutionHandle, Result, arun, run
from penstock.errors import (
    Conflict,
    InvalidInput,
    InvalidWorkflow,
    KeyReused,
    NotFound,
    NotOpen,
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

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 -- grouped by use
    # write a workflow
    "Workflow", "Ref", "Retry", "text",
    # write a handler
    "handler", "Context", "Registry", "Terminal", "Retryable",
    # run it
    "run", "arun", "Engine", "ExecutionHandle", "Result",
    # have a server run it
    "Client", "Execution", "SyncClient", "SyncExecution",
    # what can go wrong
    "PenstockError", "InvalidWorkflow", "InvalidInput", "NotFound", "Conflict", "KeyReused", "SettingsError",
    "StoreError", "StoreLocked", "NotOpen", "Unreachable", "Unauthorized", "RateLimited", "RequestFailed",
    "PartlyStarted",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The clients are imported when they are first used: aiohttp takes 0.2 s, and `penstock run` may not need it."""
    if name in {"Client", "Execution", "SyncClient", "SyncExecution"}:
        from penstock import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
