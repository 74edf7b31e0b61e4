"""Penstock runs workflows: DAGs of API calls, LLM calls and your own Python, durable from one process on SQLite up.

The README and docs/ tell the rest.
"""

from penstock.definition.builder import Ref, Workflow, text
from penstock.definition.model import Retry
from penstock.embedded import Engine, ExecutionHandle, Result, arun, run
from penstock.errors import (
    Conflict,
    InvalidInput,
    InvalidWorkflow,
    NotFound,
    PenstockError,
    Retryable,
    SettingsError,
    StoreError,
    StoreLocked,
    Terminal,
)
from penstock.worker.context import Context
from penstock.worker.registry import Registry, handler

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 -- grouped by use
    # write a workflow
    "Workflow", "Ref", "Retry", "text",
    # write a handler
    "handler", "Context", "Registry", "Terminal", "Retryable",
    # run it
    "run", "arun", "Engine", "ExecutionHandle", "Result",
    # what can go wrong
    "PenstockError", "InvalidWorkflow", "InvalidInput", "NotFound", "Conflict", "SettingsError", "StoreError",
    "StoreLocked",
]  # fmt: skip
