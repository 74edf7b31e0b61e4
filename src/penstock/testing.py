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
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.definition.model import HANDLER_ALIASES
from penstock.runtime import Engine, ExecutionHandle
from penstock.runtime.running import refuse_running_loop
from penstock.sandbox import InlineSandbox
from penstock.stores.memory import MemoryStores
from penstock.stores.waits import WaitRow, WaitSearch
from penstock.views.result import Result
from penstock.worker.context import Context
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered

Answer = TypeVar("Answer")
START_AT = 1_700_000_000.0
THREAD_SECONDS = 30.0
"""How long a thread may take when nothing else is left to do, in real time."""
LONG_SECONDS = 60.0
"""Of a longer wait, the clock skips all but the end."""
LOOK_SECONDS = 0.5
"""How often approvals that wait are looked for."""
SHORT_SECONDS = 2.0
"""What is left of it then: everything that looks at a clock looks at it meanwhile."""
STEP_SECONDS_MIN = 1e-6
"""The time of day is a float: smaller steps would be lost, and time would stand still."""


def _nothing() -> None:
    """Nothing is done before time jumps."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that lets time jump where a real one would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.before_jump: Callable[[], None] = _nothing

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            # a thread may be at work: a large value is encoded in one
            ready = super().select(THREAD_SECONDS)
            if ready:
                return ready
            raise RuntimeError(
                "the workflow is stuck: all tasks wait, and no timer is left that could wake one"
            )
        self.before_jump()
        self.now += max(timeout, STEP_SECONDS_MIN)
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop on which sleeping takes no time.

    For tests only: threads and sockets don't wait for it.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

        self._skipped = 0.0

    def time(self) -> float:
        return self._jumping.now

    def clock(self) -> float:
        """The time of day."""
        return START_AT + self.time() + self._skipped

    def skip_long_waits(self, idle_until: Callable[[], float | None]) -> None:
        """Let the clock skip times in which nothing happens, as if somebody had set it.

        Else a wait of a year would be 30 million looks at the inbox. `idle_until` answers how long
        nothing will happen, or None.
        """

        def skip() -> None:
            until = idle_until()
            if until is not None and until - self.clock() > LONG_SECONDS:
                self._skipped += until - self.clock() - SHORT_SECONDS

        self._jumping.before_jump = skip


def run_jumping(work: Callable[[Callable[[], float]], Coroutine[Any, Any, Answer]]) -> Answer:
    """Run `work(clock)` on a jumping loop; `clock()` is the time of day there."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        loop = cast("JumpingLoop", runner.get_loop())
        return runner.run(work(loop.clock))


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


async def arun(  # noqa: PLR0913 -- what a test may give
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
    *,
    handlers: Mapping[str, Any] | None = None,
    signals: Sequence[tuple[str, Any]] = (),
    decisions: Mapping[str, str | Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
) -> Run:
    """Run a workflow to its end as `run` does, in an async test.

    The workflow runs in a thread, on an event loop of its own, since time must not jump on the
    test's loop. So a replacement for a handler can't wait for something that the test does.
    """
    return await asyncio.to_thread(
        run,
        workflow,
        input,
        handlers=handlers,
        signals=signals,
        decisions=decisions,
        settings=settings,
    )


def run(  # noqa: PLR0913 -- what a test may give
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
    *,
    handlers: Mapping[str, Any] | None = None,
    signals: Sequence[tuple[str, Any]] = (),
    decisions: Mapping[str, str | Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
) -> Run:
    """Run a workflow to its end.

    `handlers` replaces handlers by name: with a function, or with the value to return. `calls` of
    the answer has built-in ones under their own names: `llm_service` also where `llm` was replaced.
    `signals` are sent at the start, as names and payloads: the nodes that wait for them find them.
    `decisions` are made when approvals ask for them, by node: `"approved"`, `"rejected"`, or an
    object with `decision`, `comment`, `form` and `by`. Raises `RuntimeError` if the workflow waits
    for a signal or a decision that isn't there. In an async test, await `arun`.
    """
    refuse_running_loop("penstock.testing.run", "penstock.testing.arun")
    settings = settings or Settings.load({"mock_services": True}, environ={})
    calls: dict[str, list[Call]] = {}

    async def work(clock: Callable[[], float]) -> Run:
        stores = MemoryStores(clock)
        loop = asyncio.get_running_loop()
        if isinstance(loop, JumpingLoop):
            loop.skip_long_waits(stores.hot.idle_until)
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
            for name, payload in signals:
                await execution.signal(name, payload)
            ending = asyncio.create_task(execution.result())
            deciding = asyncio.create_task(_decide(stores, execution, dict(decisions or {})))
            try:
                await asyncio.wait({ending, deciding}, return_when=asyncio.FIRST_COMPLETED)
                if not ending.done():
                    await deciding
                result = await ending
            finally:
                deciding.cancel()
                ending.cancel()
            return Run(result, calls, clock() - began)

    return run_jumping(work)


async def _decide(
    stores: MemoryStores,
    execution: ExecutionHandle,
    decisions: dict[str, str | Mapping[str, Any]],
) -> None:
    """Make decisions as soon as approvals wait for them.

    Raises `RuntimeError` when nothing but a signal or a decision is left that could happen.
    """
    was_idle = False
    while True:
        rows = await stores.cold.waits.find(WaitSearch(limit=1000))
        is_idle = bool(rows) and stores.hot.is_idle
        if is_idle and was_idle and not any(row.wait.node_id in decisions for row in rows):
            raise RuntimeError(_waits_for(rows))
        was_idle = is_idle
        for row in rows:
            if row.wait.kind != "approval":
                continue
            decision = decisions.pop(row.wait.node_id, None)
            if decision is None:
                continue
            fields = {"decision": decision} if isinstance(decision, str) else dict(decision)
            about = {name: fields[name] for name in ("comment", "by") if name in fields}
            if fields["decision"] == "rejected":
                await execution.reject(row.wait.node_id, **about)
            else:
                await execution.approve(row.wait.node_id, form=fields.get("form"), **about)
        await asyncio.sleep(LOOK_SECONDS)


def _waits_for(rows: Sequence[WaitRow]) -> str:
    """What a run waits for that its test doesn't give."""
    texts: list[str] = []
    for row in rows:
        config = msgspec.json.decode(row.wait.config)
        if row.wait.kind == "approval":
            texts.append(
                f'{row.wait.node_id} for a decision: decisions={{"{row.wait.node_id}": …}}'
            )
        else:
            name = config.get("name") or " or ".join(config["names"])
            texts.append(f'{row.wait.node_id} for the signal {name}: signals=[("{name}", …)]')
    what = "; ".join(texts)
    return f"the workflow waits, and nothing else can happen; give run() what it waits for: {what}"


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
