"""Tests of workflows: in memory, on a clock that jumps, with replacements for handlers.

    from penstock import testing

    def test_a_letter_is_written():
        stubs = {"call_external_service": {"data": {"name": "Ada"}}}
        run = testing.run(flow, input={"user_id": 7}, handlers=stubs)
        assert run.result.completed
        assert run.calls["llm_service"][0].config["prompt"] == "Dear Ada"

Waiting costs nothing: a retry after 30 s or a sleep of an hour passes at once, in order.
"""

from __future__ import annotations

import asyncio
import inspect
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.definition.model import HANDLER_ALIASES
from penstock.runtime import Engine
from penstock.runtime.running import refuse_running_loop
from penstock.sandbox import InlineSandbox
from penstock.stores.memory import MemoryStores
from penstock.views.result import Result
from penstock.worker.context import Context
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered

Answer = TypeVar("Answer")
START_AT = 1_700_000_000.0
STEP_SECONDS_MIN = 1e-6
"""The time of day is a float: smaller steps would be lost, and time would stand still."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that lets time jump where a real one would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError(
                "the workflow is stuck: all tasks wait, and no timer is left that could wake one"
            )
        self.now += max(timeout, STEP_SECONDS_MIN)
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop on which sleeping takes no time.

    For tests only: threads and sockets don't wait for it.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_jumping(work: Callable[[Callable[[], float]], Coroutine[Any, Any, Answer]]) -> Answer:
    """Run `work(clock)` on a jumping loop; `clock()` is the time of day there."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        loop = runner.get_loop()
        return runner.run(work(lambda: START_AT + loop.time()))


class Call(msgspec.Struct):
    """A recorded call of a handler."""

    node_id: str
    attempt: int
    config: Any


class Run(msgspec.Struct):
    """A finished run: its result, and what was called."""

    result: Result
    calls: dict[str, list[Call]]
    """The calls of each handler, in order."""
    seconds: float
    """How long it would have taken on a real clock."""


async def arun(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
    *,
    handlers: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> Run:
    """Run a workflow to its end as `run` does, in an async test.

    The workflow runs in a thread, on an event loop of its own, since time must not jump on the
    test's loop. So a replacement for a handler can't wait for something that the test does.
    """
    return await asyncio.to_thread(run, workflow, input, handlers=handlers, settings=settings)


def run(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
    *,
    handlers: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> Run:
    """Run a workflow to its end.

    `handlers` replaces handlers by name: with a function, or with the value to return. `calls` of
    the answer has built-in ones under their own names: `llm_service` also where `llm` was replaced.
    In an async test, await `arun`.
    """
    refuse_running_loop("penstock.testing.run", "penstock.testing.arun")
    settings = settings or Settings.load({"mock_services": True}, environ={})
    calls: dict[str, list[Call]] = {}

    async def work(clock: Callable[[], float]) -> Run:
        stores = MemoryStores(clock)
        registry = _registry(handlers or {}, settings, calls)
        async with Engine(
            stores,
            settings=settings,
            registry=registry,
            clock=clock,
            built_in=False,
            sandbox=InlineSandbox(),
        ) as engine:
            began = clock()
            execution = await engine.start(workflow, input)
            result = await execution.result()
            return Run(result, calls, clock() - began)

    return run_jumping(work)


def _registry(
    stubs: Mapping[str, Any], settings: Settings, calls: dict[str, list[Call]]
) -> Registry:
    functions: dict[str, Any] = {
        **builtin(settings, InlineSandbox()),
        **{handler.name: handler for handler in registered},
        **{HANDLER_ALIASES.get(name, name): stub for name, stub in stubs.items()},
    }
    registry = Registry()
    for name, function in functions.items():
        target: Handler | None = None
        defaults: dict[str, Any] = {}
        if isinstance(function, Handler):
            target = function
            defaults = msgspec.structs.asdict(function.defaults)
        elif callable(function):
            target = Handler(name, function)
        recorded = Handler(name, _recorded(name, target, function, calls), **defaults)
        recorded.checked_as = recorded if target is None else target
        registry.put(recorded)
    return registry


def _recorded(name: str, target: Handler | None, value: Any, calls: dict[str, list[Call]]) -> Any:
    async def call(config: dict[str, Any], context: Context) -> Any:
        calls.setdefault(name, []).append(Call(context.node_id, context.attempt, config))
        if target is None:
            return value
        outcome = target.prepare(config, context)()
        if inspect.isawaitable(outcome):
            return await outcome
        return outcome

    return call
