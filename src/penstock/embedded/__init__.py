"""The embedded engine: orchestrator and worker on one event loop, with a SQLite file.

    async with penstock.Engine("sqlite:///work.db") as engine:
        execution = await engine.start(flow, input={"user_id": 7})
        result = await execution.result()

Opening an engine resumes the unfinished executions of its store. Closing it stops cleanly;
executions that still run go on with the next engine.
"""

import importlib
from typing import TYPE_CHECKING, Any

from penstock.embedded.result import ExecutionHandle, Result

if TYPE_CHECKING:
    from penstock.embedded.engine import Engine
    from penstock.embedded.running import arun, run, run_loop

__all__ = ["Engine", "ExecutionHandle", "Result", "arun", "run", "run_loop"]


def __getattr__(name: str) -> Any:
    """Import the engine at its first use: a client needs results, but no engine."""
    if name == "Engine":
        return importlib.import_module("penstock.embedded.engine").Engine
    if name in __all__:
        return getattr(importlib.import_module("penstock.embedded.running"), name)
    raise AttributeError(f"module 'penstock.embedded' has no attribute {name!r}")
