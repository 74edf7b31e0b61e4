"""Waiting without sleeping for a fixed time: until something holds, or the test has lost its patience."""

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
        found = check()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not so after {seconds:g} s: {what or inspect.getsource(check).strip()}"
            )
        await asyncio.sleep(STEP)


async def let_others_run(turns: int = 20) -> None:
    """Some turns of the loop: enough for whatever needs no I/O to happen, if it is going to."""
    for _ in range(turns):
        await asyncio.sleep(0)
