"""Penstock inside your own process: orchestrator and worker on one event loop, facts in a SQLite file.

    async with penstock.Engine("sqlite:///work.db") as engine:
        execution = await engine.start(flow, input={"user_id": 7})
        result = await execution.result()

Opening an engine takes up whatever its store has unfinished. Closing it stops cleanly; what still runs then is taken up
by the next one.
"""

from penstock.embedded.engine import Engine
from penstock.embedded.result import ExecutionHandle, Result
from penstock.embedded.running import arun, run, run_loop

__all__ = ["Engine", "ExecutionHandle", "Result", "arun", "run", "run_loop"]
