"""`penstock.SyncClient`: the same client, for code without asyncio.

It runs an event loop in a thread of its own. Each method hands a call over to it and waits, so
one client can be used from any number of threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from penstock.client.asynchronous import Client
from penstock.client.execution import Execution
from penstock.errors import PenstockError

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Target = TypeVar("Target")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="penstock-client", daemon=True
        )
        self._thread.start()

    @property
    def closed(self) -> bool:
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        if self.closed:
            work.close()
            raise PenstockError("this client has been closed; create a new one")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C reaches the waiting thread, not the one that runs the call.
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[Item, None]) -> Iterator[Item]:
        try:
            while (item := self.run(_next(items))) is not None:
                yield item[0]
        finally:
            if not self.closed:
                self.run(items.aclose())

    def close(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncGenerator[Item, None]) -> tuple[Item] | None:
    try:
        return (await anext(items),)
    except StopAsyncIteration:
        return None


class Blocking(Generic[Target]):
    """A blocking view of an asynchronous object, which runs on `loop`."""

    def __init__(self, target: Target, loop: Loop) -> None:
        self._target = target
        self._loop = loop


def blocking(
    method: Callable[Concatenate[Target, P], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Blocking[Target], P], Answer]:
    @wraps(method)
    def call(self: Blocking[Target], /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return self._loop.run(method(self._target, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[Target, P], AsyncGenerator[Item, None]],
) -> Callable[Concatenate[Blocking[Target], P], Iterator[Item]]:
    @wraps(method)
    def call(self: Blocking[Target], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
        return self._loop.iterate(method(self._target, *args, **kwargs))

    return call


class SyncExecution(Blocking[Execution]):
    """`Execution` with blocking methods and plain iterators."""

    @property
    def id(self) -> str:
        """The execution's id."""
        return self._target.id

    @property
    def execution_id(self) -> str:
        """The execution's id; the same as `id`."""
        return self._target.id

    @property
    def accepted(self) -> dict[str, Any]:
        """What the server answered when the execution was started."""
        return self._target.accepted

    def __repr__(self) -> str:
        return repr(self._target)

    result = blocking(Execution.result)
    status = blocking(Execution.status)
    events = iterating(Execution.events)
    cancel = blocking(Execution.cancel)
    pause = blocking(Execution.pause)
    resume = blocking(Execution.resume)
    signal = blocking(Execution.signal)
    signals = blocking(Execution.signals)
    approve = blocking(Execution.approve)
    reject = blocking(Execution.reject)
    retry = blocking(Execution.retry)
    results = blocking(Execution.results)
    history = blocking(Execution.history)
    node = blocking(Execution.node)
    nodes = blocking(Execution.nodes)
    items = iterating(Execution.items)
    why = blocking(Execution.why)
    logs = blocking(Execution.logs)
    all_logs = iterating(Execution.all_logs)
    graph = blocking(Execution.graph)
    tree = blocking(Execution.tree)


def starting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, Execution]],
) -> Callable[Concatenate[Blocking[Client], P], SyncExecution]:
    @wraps(method)
    def call(self: Blocking[Client], /, *args: P.args, **kwargs: P.kwargs) -> SyncExecution:
        execution = self._loop.run(method(self._target, *args, **kwargs))
        return SyncExecution(execution, self._loop)

    return call


def starting_many(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, list[Execution]]],
) -> Callable[Concatenate[Blocking[Client], P], list[SyncExecution]]:
    @wraps(method)
    def call(self: Blocking[Client], /, *args: P.args, **kwargs: P.kwargs) -> list[SyncExecution]:
        started = self._loop.run(method(self._target, *args, **kwargs))
        return [SyncExecution(execution, self._loop) for execution in started]

    return call


class SyncClient(Blocking[Client]):
    """`Client` with blocking methods and plain iterators.

    Use it in a `with` statement, or call `close` at the end.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        retry_seconds: float = 15.0,
    ) -> None:
        client = Client(url, api_key, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds)
        super().__init__(client, Loop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its thread. Calls and iterations in other threads get an error."""
        if not self._loop.closed:
            self._loop.run(self._target.close())
            self._loop.close()

    def execution(self, execution_id: str) -> SyncExecution:
        """The handle of an execution; makes no call."""
        return SyncExecution(self._target.execution(execution_id), self._loop)

    start = starting(Client.start)
    start_many = starting_many(Client.start_many)
    executions = iterating(Client.executions)
    events = iterating(Client.events)
    put_workflow = blocking(Client.put_workflow)
    validate = blocking(Client.validate)
    workflows = iterating(Client.workflows)
    workflow = blocking(Client.workflow)
    delete_workflow = blocking(Client.delete_workflow)
    versions = iterating(Client.versions)
    set_alias = blocking(Client.set_alias)
    remove_alias = blocking(Client.remove_alias)
    errors = iterating(Client.errors)
    dead_letters = iterating(Client.dead_letters)
    dead_letter = blocking(Client.dead_letter)
    retry_dead_letter = blocking(Client.retry_dead_letter)
    retry_dead_letters = blocking(Client.retry_dead_letters)
    drop_dead_letter = blocking(Client.drop_dead_letter)
    approvals = iterating(Client.approvals)
    post_signal = blocking(Client.post_signal)
    waits = iterating(Client.waits)
    workers = blocking(Client.workers)
    orchestrators = blocking(Client.orchestrators)
    queues = blocking(Client.queues)
    audit = iterating(Client.audit)
    health = blocking(Client.health)
