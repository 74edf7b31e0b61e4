"""Waiting without sleeping for a fixed time, also in tests without a loop."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.contract.waiting import PATIENCE_SECONDS, STEP, let_others_run, until

__all__ = ["PATIENCE_SECONDS", "STEP", "let_others_run", "until", "until_now"]


def until_now(
    check: Callable[[], Any], what: str = "", *, seconds: float = PATIENCE_SECONDS
) -> Any:
    """As `until`, for tests without a loop that watch other processes and threads."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not so after {seconds:g} s: {what or inspect.getsource(check).strip()}"
            )
        pause.wait(STEP)
