"""The composition root: the only place that puts the parts together.

In one process, on any store:

    async with penstock.Engine("sqlite:///work.db") as engine:
        execution = await engine.start(flow, input={"user_id": 7})
        result = await execution.result()

Opening an engine takes up whatever its store has unfinished. Closing it stops cleanly; what still
runs then is taken up by the next one.

In any number of processes, on stores that they share, each process has one role. An orchestrator
decides for its partitions, a worker runs handlers, an API answers. They find each other through the
stores alone. Each takes an event that says when to stop, and stops cleanly.

- `engine`: orchestrator, worker and service in one process.
- `calls`: the calls of an engine that a client of a server has too.
- `open_state`: whether an engine is open, and which of its calls are under way.
- `running`: runs one workflow in such an engine: `penstock.run`, `penstock.arun`.
- `document_files`: `penstock.load`: a document from a file.
- `handle`: the handle of an execution.
- `store_reader`: the calls that look at something, on a file that another process has open.
- `roles`: the roles orchestrator and worker, one per process.
- `serving`: the roles with an API: the API alone, and everything in one process.
- `web_app`: API and UI of an engine, to mount in a user's own web application: `penstock.asgi`.
- `background`: what each role runs beside its main loop, as one list per role.
- `opening`: opens the stores that the roles share.
- `http_server`: uvicorn on a socket, for the API.
- `health`: what a role without an API answers about itself.
- `retention`: deletes old executions and lines of the audit log while everything runs.
- `memory`: gives freed memory back to the operating system.
- `timing`: the times of the layers that an engine runs.
"""

import importlib
from typing import TYPE_CHECKING, Any

from penstock.runtime.handle import ExecutionHandle

if TYPE_CHECKING:
    from penstock.runtime.document_files import load
    from penstock.runtime.engine import Engine
    from penstock.runtime.opening import handlers_of, open_scaled, service_over
    from penstock.runtime.roles import run_orchestrator, run_worker
    from penstock.runtime.running import arun, run, run_loop
    from penstock.runtime.serving import run_all_in_one, run_api
    from penstock.runtime.store_reader import StoreReader
    from penstock.runtime.web_app import asgi

__all__ = [
    "Engine",
    "ExecutionHandle",
    "StoreReader",
    "arun",
    "asgi",
    "handlers_of",
    "load",
    "open_scaled",
    "run",
    "run_all_in_one",
    "run_api",
    "run_loop",
    "run_orchestrator",
    "run_worker",
    "service_over",
]

_MODULES = {
    "Engine": "engine",
    "StoreReader": "store_reader",
    "arun": "running",
    "asgi": "web_app",
    "handlers_of": "opening",
    "load": "document_files",
    "open_scaled": "opening",
    "run": "running",
    "run_all_in_one": "serving",
    "run_api": "serving",
    "run_loop": "running",
    "run_orchestrator": "roles",
    "run_worker": "roles",
    "service_over": "opening",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is first used: a role needs no engine."""
    if name not in _MODULES:
        raise AttributeError(f"module 'penstock.runtime' has no attribute {name!r}")
    module = importlib.import_module(f"penstock.runtime.{_MODULES[name]}")
    return getattr(module, name)
