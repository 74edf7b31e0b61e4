"""All stores in memory: for tests, `penstock.testing` and the simulator.

Everything is kept encoded, so that nothing a caller changes afterwards can leak in.

- `hot`: executions, inboxes, timers, leases.
- `inbox`: the queue of events of a partition.
- `task_queue`: tasks for workers. The SQLite store uses it too, and notes claims on disk.
- `cold`: what users asked for.
- `definitions`: its definitions, aliases and known handlers.
- `counts`: its counts.
- `signals`: signals to executions.
- `posts`: signals to whoever waits for a correlation.
- `api_keys`: its API keys.
- `audit_log`: its audit log.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.stores.base import BlobStore
from penstock.stores.blobs import MemoryBlobs
from penstock.stores.memory.cold import MemoryColdStore
from penstock.stores.memory.hot import MemoryHotStore
from penstock.stores.topology import Topology

__all__ = ["MemoryHotStore", "MemoryStores"]


class MemoryStores:
    topology = Topology(is_tiered=False, is_shared=False, tasks_are_durable=True)
    tiering = None
    commit_feed = None
    fleet = None

    def __init__(
        self, clock: Callable[[], float], partitions: int = 1, blobs: BlobStore | None = None
    ) -> None:
        self.hot = MemoryHotStore(clock, partitions)
        self.queue = self.hot.queue
        self.cold = MemoryColdStore(self.hot)
        self.hot.on_wait = self.cold.posts.meet
        self.hot.on_send = self.cold.executions.deliver
        self.blobs: BlobStore = blobs or MemoryBlobs()

    async def open(self) -> None:
        """Also one that was closed: it still has everything."""
        self.hot.is_open = True

    async def forget(self, before: float) -> int:
        return self.cold.executions.forget(before)

    async def close(self) -> None:
        self.hot.is_open = False
