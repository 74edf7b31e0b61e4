"""Penstock inside your own process: orchestrator and worker on one event loop, facts in a SQLite file.

    async with penstock.Engine("sqlite:///work.db") as engine:
        execution = await engine.start(flow, input={"user_id": 7})
        result = await execution.result()

Opening an engine takes up whatever its store has unfinished. Closing it stops cleanly; what still runs then is taken up
by the next one.
"""

import importlib
from typing import TYPE_CHECKING, Any

from penstock.embedded.result import ExecutionHandle, Result

if TYPE_CHECKING:
    from penstock.embedded.engine import Engine
    from penstock.embedded.running import arun, run, run_loop

__all__ = ["Engine", "ExecutionHandle", "Result", "arun", "run", "run_loop"]


def __getattr__(name: str) -> Any:
    """The engine is imported when it is first used: a client has results too, and no engine."""
    if name == "Engine":
        return importlib.import_module("penstock.embedded.engine").Engine
    if name in __all__:
        return getattr(importlib.import_module("penstock.embedded.running"), name)
    raise AttributeError(f"module 'penstock.embedded' has no attribute {name!r}")
