"""One execution to its end: `penstock.run` and `penstock.arun`."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.runtime.engine import Engine
from penstock.runtime.result import Result

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
    """`asyncio.run` for a process that is ours: on uvloop where there is one, and tuned for it."""
    with (
        _calm_collector(),
        _quick_threads(),
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        return runner.run(work)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


@contextmanager
def _quick_threads() -> Iterator[None]:
    """A thread that waits for the interpreter gets it after 0.5 ms instead of 5.

    The writer needs it a few times per commit, for microseconds; while it waits, nothing is
    written.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _calm_collector() -> Iterator[None]:
    """Thousands of executions are live containers and hardly ever a cycle: looking less often saves a fifth.

    Not too seldom: failures of connections are cycles, and a process that meets many would grow by tens of MB first.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
