"""Whether an engine is open, and which of its calls are under way."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Concatenate, ParamSpec, TypeVar

from penstock.errors import NotOpen, PenstockError

NOT_YET = "the engine isn't open yet; open it with 'async with penstock.Engine(…) as engine:'"
CLOSED = (
    "the engine has been closed; open another one on the same store, "
    "which resumes what is unfinished"
)


class OpenState:
    """Whether an engine is open, and how many calls its closing waits for."""

    def __init__(self) -> None:
        self.is_open = False
        self.why_not_open = NOT_YET
        self.calls = 0
        """The number of running calls that closing waits for."""
        self.calls_ended = asyncio.Event()

    def check_open(self) -> None:
        """Raise `NotOpen` unless the engine is open; it is not while it closes."""
        if not self.is_open:
            raise NotOpen(self.why_not_open)

    def check_still_open(self, error: BaseException) -> None:
        """Raise `NotOpen` if a call failed with this error because the engine was closed."""
        task = asyncio.current_task()
        is_cancelled = task is not None and task.cancelling() > 0
        if not self.is_open and not is_cancelled and not isinstance(error, PenstockError):
            raise NotOpen(self.why_not_open) from error


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Subject = TypeVar("Subject", bound=OpenState)


def while_open(
    method: Callable[Concatenate[Subject, Arguments], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Subject, Arguments], Coroutine[Any, Any, Answer]]:
    """Raise `NotOpen` if the engine isn't open, or was closed during the call."""

    @functools.wraps(method)
    async def call(
        engine: Subject, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        engine.check_open()
        try:
            return await method(engine, *arguments, **named)
        except (Exception, asyncio.CancelledError) as error:
            engine.check_still_open(error)
            raise

    return call


def items_while_open(
    method: Callable[Concatenate[Subject, Arguments], AsyncGenerator[Item, None]],
) -> Callable[Concatenate[Subject, Arguments], AsyncGenerator[Item, None]]:
    """As `while_open`, for a method that yields items: it is checked at the call too."""

    async def iterate(
        engine: Subject, items: AsyncGenerator[Item, None]
    ) -> AsyncGenerator[Item, None]:
        engine.check_open()
        async with aclosing(items):
            try:
                async for item in items:
                    yield item
            except (Exception, asyncio.CancelledError) as error:
                engine.check_still_open(error)
                raise

    @functools.wraps(method)
    def call(
        engine: Subject, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> AsyncGenerator[Item, None]:
        engine.check_open()
        return iterate(engine, method(engine, *arguments, **named))

    return call


def counted(
    method: Callable[Concatenate[Subject, Arguments], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Subject, Arguments], Coroutine[Any, Any, Answer]]:
    """Count a short call that changes something, so that closing waits for it."""

    @functools.wraps(method)
    async def call(
        engine: Subject, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        engine.calls += 1
        try:
            return await method(engine, *arguments, **named)
        finally:
            engine.calls -= 1
            if not engine.calls:
                engine.calls_ended.set()

    return call
