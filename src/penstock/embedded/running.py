"""One execution to its end: `penstock.run` and `penstock.arun`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.embedded.engine import Engine
from penstock.embedded.result import Result

Answer = TypeVar("Answer")


async def arun(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002
    *,
    store: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """Run one execution to its end, in a private store unless told otherwise."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 -- only for a private store

    if store is not None:
        async with Engine(store, settings=settings) as engine:
            return await (await engine.start(workflow, input)).result()
    with TemporaryDirectory(prefix="penstock-") as directory:
        address = f"sqlite:///{Path(directory) / 'run.db'}"
        async with Engine(address, settings=settings) as engine:
            return await (await engine.start(workflow, input)).result()


def run(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002
    *,
    store: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """As `arun`, blocking."""
    return run_loop(arun(workflow, input, store=store, settings=settings))


def run_loop(work: Coroutine[Any, Any, Answer]) -> Answer:
    """`asyncio.run` on uvloop where there is one: a hop is a third faster."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
