"""Waiting for a condition in tests, with a time limit and without fixed sleeps."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

STEP = 0.005
PATIENCE_SECONDS = 20.0


async def until(
    check: Callable[[], Any], what: str = "", *, seconds: float = PATIENCE_SECONDS
) -> Any:
    """The first true answer of `check`, which may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            what = what or inspect.getsource(check).strip()
            raise AssertionError(f"not so after {seconds:g} s: {what}")
        await asyncio.sleep(STEP)


async def let_others_run(turns: int = 20) -> None:
    """Run some turns of the event loop, enough for everything that needs no I/O."""
    for _ in range(turns):
        await asyncio.sleep(0)
