"""Freed memory goes back to the operating system."""

import asyncio

from penstock.runtime.background import worker_services
from penstock.runtime.memory import GROWTH_BYTES, resident_bytes, run_trimming
from tests.waiting import until

PIECE_BYTES = 64 * 1024
"""Small enough that malloc doesn't map each of them by itself."""


def test_what_was_freed_is_given_back() -> None:
    async def scenario() -> None:
        before = resident_bytes()
        trimming = asyncio.create_task(run_trimming(0.01))
        await asyncio.sleep(0)
        pieces = [bytearray(PIECE_BYTES) for _ in range(4 * GROWTH_BYTES // PIECE_BYTES)]
        last = pieces[-1]  # glibc gives back by itself only what is behind the last that is used
        assert resident_bytes() - before >= 3 * GROWTH_BYTES
        pieces.clear()
        await until(lambda: resident_bytes() - before < 2 * GROWTH_BYTES, "it is given back")
        assert len(last) == PIECE_BYTES
        trimming.cancel()

    asyncio.run(scenario())


def test_every_role_gives_memory_back() -> None:
    assert [service.name for service in worker_services()] == ["memory trimming"]
