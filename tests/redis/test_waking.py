"""A worker that waits must hear of every task."""

import asyncio

from penstock.stores.redis.waking import Waker
from tests.redis.stores_under_test import open_stores


def test_a_wakeup_between_a_fetch_and_its_empty_answer_is_kept() -> None:
    """The replies to a fetch and to reading wake-ups may come in any order.

    Each has a connection of its own.
    """

    async def scenario() -> None:
        async with open_stores() as stores:
            waker = Waker(stores.server)
            ((partition, wakeups),) = waker.hopeful()
            await stores.hand_out("a")
            waker.found_empty(partition, wakeups)
            assert waker.hopeful() == []
            async with asyncio.timeout(10):
                await waker.wait()
            ((partition, wakeups),) = waker.hopeful()
            waker._wake_up([partition])  # heard meanwhile
            waker.found_empty(partition, wakeups)
            assert [hopeful for hopeful, _ in waker.hopeful()] == [partition]
            await waker.close()

    asyncio.run(scenario())
