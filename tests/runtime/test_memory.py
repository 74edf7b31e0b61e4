"""Freed memory goes back to the operating system."""

import subprocess
import sys

from penstock.runtime.background import worker_services

GROW_AND_FREE = """
import asyncio
from penstock.runtime.memory import GROWTH_BYTES, resident_bytes, run_trimming

PIECE_BYTES = 64 * 1024  # small enough that malloc doesn't map each of them by itself

async def main():
    before = resident_bytes()
    trimming = asyncio.create_task(run_trimming(0.01))
    await asyncio.sleep(0)
    pieces = [bytearray(PIECE_BYTES) for _ in range(4 * GROWTH_BYTES // PIECE_BYTES)]
    last = pieces[-1]  # glibc gives back by itself only what is behind the last that is used
    assert resident_bytes() - before >= 3 * GROWTH_BYTES
    pieces.clear()
    while resident_bytes() - before >= GROWTH_BYTES:
        await asyncio.sleep(0.01)
    assert len(last) == PIECE_BYTES
    trimming.cancel()

asyncio.run(asyncio.wait_for(main(), 60))
"""


def test_what_was_freed_is_given_back() -> None:
    """In a process of its own: in this one, other tests have left room for all of it."""
    subprocess.run([sys.executable, "-c", GROW_AND_FREE], check=True)


def test_a_worker_gives_memory_back() -> None:
    assert [service.name for service in worker_services()] == ["memory trimming"]
