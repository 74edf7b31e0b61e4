"""A process's connection to the store, with everything that can go wrong on it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from penstock.errors import StoreUnavailable
from penstock.stores.memory import MemoryStores
from tests.simulation.tiered import MemoryTiering, TieredStores

FAULTY = {
    "acquire",
    "renew",
    "release",
    "append",
    "receive",
    "load",
    "commit",
    "due",
    "next_due",
    "active",
    "fetch",
    "claimed",
    "report",
    "started",
    "share_logs",
    "heartbeat",
    "workers",
    "reap",
    "leave",
    "record_intents",
    "execution",
    "intent",
    "put",
    "get",
    "announce",
    "deregister",
    "known",
    "intents",
    "control_requests",
    "built",
    "outbox",
    "changes",
    "tails",
    "acknowledge_copies",
    "forget_copies",
    "acknowledge_outbox",
    "wipe",
    "restore",
    "mark_built",
    "put_copies",
    "commit_number",
    "raise_generation",
    "unfinished",
    "acknowledge_commit",
    "offers",
    "backlog",
    "recall",
    "give_back",
    "server_id",
    "claim",
    "renew_claim",
    "release_claim",
    "begin_rebuild",
}
WAITS = {"receive", "fetch"}
"""Calls that wait by themselves; a lost answer is lost after the wait."""


class Wire:
    """`faults` counts what happened, so that a test can show that it did."""

    commit_feed = None
    fleet = None

    def __init__(
        self,
        stores: MemoryStores | TieredStores,
        seed: random.Random,
        faults: Counter[str],
        rate: float,
    ) -> None:
        self._random = seed
        self._faults = faults
        self.rate = rate
        self._open = asyncio.Event()
        self._open.set()
        self._dead = False
        self._late: set[asyncio.Task[Any]] = set()
        self._stores = stores
        self.topology = stores.topology
        self._connected: dict[str, int] = {}
        """By call: the start of the server with which it was last made."""
        self.hot = _Proxy(stores.hot, self)
        self.queue = _Proxy(stores.queue, self)
        self.cold = _Proxy(stores.cold, self, is_cold=True)
        self.blobs = _Proxy(stores.blobs, self)
        self.tiering: Any = None
        if isinstance(stores, TieredStores):
            self.tiering = MemoryTiering(
                _Proxy(stores.tiering.hot, self), _Proxy(stores.tiering.cold, self, is_cold=True)
            )

    async def open(self) -> None:
        """Nothing to open either."""

    async def forget(self, before: float) -> int:
        """No retention here."""
        return 0

    async def close(self) -> None:
        """Nothing to close; the protocol asks."""

    def pause(self) -> None:
        self._faults["pause"] += 1
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def cut(self) -> None:
        """The process is dead: nothing it still says on its way out reaches the store."""
        self._dead = True
        self._open.set()

    def check_reachable(self, name: str, *, is_cold: bool) -> None:
        if self._dead:
            raise StoreUnavailable("simulated: dead")
        if not isinstance(self._stores, TieredStores):
            return
        if is_cold and self._stores.cold_is_away:
            raise StoreUnavailable("simulated: the cold store is away")
        restarts = self._stores.hot.restarts
        if not is_cold and self._connected.setdefault(name, restarts) != restarts:
            self._connected[name] = restarts
            raise StoreUnavailable("simulated: connection lost")

    async def call(
        self,
        function: Any,
        name: str,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        *,
        is_cold: bool,
    ) -> Any:
        await self._open.wait()
        self.check_reachable(name, is_cold=is_cold)
        fault = self._choose()
        if fault == "refused":
            raise StoreUnavailable("simulated: not reached")
        if fault == "late" and name not in WAITS:
            # done only after the caller has been told that it failed, and perhaps has read the
            # state again
            task = asyncio.create_task(self._do_late(function, arguments, named))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            raise StoreUnavailable("simulated: timed out, and will be done later")
        await asyncio.sleep(self._random.random() * 0.01)
        self.check_reachable(name, is_cold=is_cold)
        result = await function(*arguments, **named)
        await self._open.wait()
        self.check_reachable(name, is_cold=is_cold)
        if fault == "lost":
            raise StoreUnavailable("simulated: done, but the answer was lost")
        return result

    def _choose(self) -> str | None:
        if self._random.random() >= self.rate:
            return None
        fault = self._random.choice(["refused", "late", "lost", "lost"])
        self._faults[fault] += 1
        return fault

    async def _do_late(
        self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        await asyncio.sleep(self._random.random() * 3)
        try:
            await function(*arguments, **named)
        except Exception:  # noqa: BLE001 -- nobody waits for this answer
            self._faults["late and refused"] += 1


class _Proxy:
    def __init__(self, target: Any, wire: Wire, *, is_cold: bool = False) -> None:
        self._target = target
        self._wire = wire
        self._is_cold = is_cold

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if name not in FAULTY:
            return value

        async def call(*arguments: Any, **named: Any) -> Any:
            return await self._wire.call(value, name, arguments, named, is_cold=self._is_cold)

        return call
