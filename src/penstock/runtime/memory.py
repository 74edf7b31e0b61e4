"""Gives freed memory back to the operating system.

A value of 60 MB is copied several times on its way, and glibc keeps most of what was freed for
later: a process that has handled a few such values would stay hundreds of MB larger than it needs.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

CHECK_SECONDS = 1.0
GROWTH_BYTES = 64 * 1024 * 1024
"""Growth since the last time, from which on giving back is worth the milliseconds that it takes."""
STATM = Path("/proc/self/statm")


async def run_trimming(each_seconds: float = CHECK_SECONDS) -> None:
    """Give freed memory back whenever the process has grown by `GROWTH_BYTES`, for ever.

    Does nothing where the C library isn't glibc.
    """
    trim = _find_trim()
    if trim is None:
        return

    size = resident_bytes()
    while True:
        await asyncio.sleep(each_seconds)
        if resident_bytes() - size >= GROWTH_BYTES:
            await asyncio.to_thread(trim)
            size = resident_bytes()
        # so that a process that has shrunk since counts from there
        size = min(size, resident_bytes())


def resident_bytes() -> int:
    """The memory of this process that isn't swapped out."""
    pages = int(STATM.read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _find_trim() -> Callable[[], object] | None:
    if sys.platform != "linux":
        return None
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    if malloc_trim is None:
        return None
    return lambda: malloc_trim(0)
