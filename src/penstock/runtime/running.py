"""`penstock.run` and `penstock.arun`, which run one execution to its end."""

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
from penstock.errors import LoopRunning
from penstock.runtime.engine import Engine
from penstock.views.result import Result

Answer = TypeVar("Answer")


async def arun(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002
    *,
    store: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """Run one execution to its end, in a temporary store unless `store` names one."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 -- only for a temporary store

    if store is not None:
        async with Engine(store, settings=settings) as engine:
            execution = await engine.start(workflow, input)
            return await execution.result()

    with TemporaryDirectory(prefix="penstock-") as directory:
        address = f"sqlite:///{Path(directory) / 'run.db'}"
        async with Engine(address, settings=settings) as engine:
            execution = await engine.start(workflow, input)
            return await execution.result()


def run(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002
    *,
    store: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """Run one execution to its end, as `arun` does, and block until then."""
    refuse_running_loop("penstock.run", "penstock.arun")
    return run_loop(arun(workflow, input, store=store, settings=settings))


def refuse_running_loop(name: str, awaited: str) -> None:
    """Raise an error if an event loop runs in this thread, which a blocking call would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise LoopRunning(
        f"{name} blocks until the execution has ended, and an event loop runs in this thread"
        f" (as in async functions and notebooks); use 'await {awaited}(…)'"
    )


def run_loop(work: Coroutine[Any, Any, Answer]) -> Answer:
    """`asyncio.run` for a process of ours, tuned, and on uvloop if it is installed."""
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
    """Give a waiting thread the interpreter after 0.5 ms instead of 5 ms.

    The writer thread needs it a few times per commit, for microseconds; while it waits, nothing is
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
    """Run the garbage collector less often, which saves a fifth of the time.

    Thousands of executions are live containers, and hardly ever cycles. It must not run too
    seldom: failed connections are cycles, and with many of them a process would grow by tens of MB.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
