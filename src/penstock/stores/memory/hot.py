"""The hot store in memory, with several partitions and real leases."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import structs

from penstock.engine.commands import Send
from penstock.engine.events import AnyEvent, SignalReceived
from penstock.errors import Fenced, NotOpen
from penstock.stores import codec
from penstock.stores.base import Lease, Stored, partition_of
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.fleet import OrchestratorDetails
from penstock.stores.memory.inbox import Inbox
from penstock.stores.memory.task_queue import MemoryTaskQueue
from penstock.stores.partial import record_of
from penstock.stores.waits import OpenWait


def _no_signals(_wait: OpenWait) -> list[SignalReceived]:
    return []


def _no_events(_send: Send) -> list[AnyEvent]:
    return []


class _Partition:
    def __init__(self) -> None:
        self.inbox = Inbox()
        self.lease: Lease | None = None
        self.expires_at = 0.0
        self.commit_number = 0
        self.position = 0
        self.timers: dict[str, float] = {}
        self.active: set[str] = set()


class MemoryHotStore:
    def __init__(self, clock: Callable[[], float], partitions: int = 1) -> None:
        self.partitions = partitions
        self.now = clock
        self._partitions = [_Partition() for _ in range(partitions)]
        self.changes: dict[str, list[bytes]] = {}
        self.records: dict[str, bytes] = {}
        self.dead_letters: list[bytes] = []
        self.commit_feed: list[tuple[str, bytes]] = []
        """Every change of every execution, in the order of commits."""
        self.waits: dict[tuple[str, str], tuple[int, bytes]] = {}
        """By execution and node, what it waits for, with a number in order of their beginnings."""
        self._waits_opened = 0
        self.on_wait: Callable[[OpenWait], list[SignalReceived]] = _no_signals
        """Answers what a node that has begun to wait has to get at once."""
        self.on_send: Callable[[Send], list[AnyEvent]] = _no_events
        """Writes what goes to another execution; answers the events that follow."""
        self.fenced = 0
        self._members: dict[str, float] = {}
        self.is_open = True
        self.queue = _LeasedQueue(self)

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        state = self._partitions[partition]
        now = self.now()
        if state.lease is not None and state.expires_at > now and state.lease.owner != owner:
            return None
        token = secrets.token_hex(8)
        lease = Lease(partition, owner, token, state.commit_number, state.position)
        state.lease = lease
        state.expires_at = now + seconds
        return structs.replace(lease)  # the owner counts its commits in its own copy

    async def renew(self, lease: Lease, seconds: float) -> bool:
        if not self._holds(lease.partition, lease.token):
            return False
        self._partitions[lease.partition].expires_at = self.now() + seconds
        return True

    async def release(self, lease: Lease) -> None:
        if self._holds(lease.partition, lease.token):
            self._partitions[lease.partition].lease = None

    async def append(self, events: Sequence[AnyEvent], *, own: bool = False) -> None:  # noqa: ARG002
        self.append_now(events)

    def append_now(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            copy = codec.decode_event(codec.encode(event))
            partition = partition_of(event.execution_id, self.partitions)
            inbox = self._partitions[partition].inbox
            inbox.append([copy])

    async def receive(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        inbox = self._partitions[partition].inbox
        if inbox.last <= after:
            await inbox.wait(timeout_seconds)
        return inbox.after(after, limit)

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        return {
            execution_id: self.stored(execution_id)
            for execution_id in execution_ids
            if execution_id in self.changes
        }

    def stored(self, execution_id: str) -> Stored:
        record = codec.decode_record(self.records[execution_id])
        encoded = self.changes.get(execution_id, [])
        changes = [codec.decode_change(data) for data in encoded]
        return codec.fold(record, changes)

    async def commit(self, plan: CommitPlan) -> None:
        partition = self._partitions[plan.partition]
        if (
            not self._holds(plan.partition, plan.token)
            or partition.commit_number != plan.commit_number
        ):
            self.fenced += 1
            raise Fenced(
                f"partition {plan.partition} has moved on from commit {plan.commit_number}"
            )
        # encoded before the first write: a commit that can't be encoded must leave nothing
        dead_letters = [codec.encode(dead_letter) for dead_letter in plan.dead_letters]

        partition.commit_number += 1
        partition.position = plan.position
        partition.inbox.trim(plan.position)
        self.dead_letters += dead_letters
        for execution_id, change in plan.changes:
            self._apply_change(partition, execution_id, change)
        for execution_id, node_id, wait in plan.waits:
            is_new = self.waits.pop((execution_id, node_id), None) is None
            if wait is not None:
                self._waits_opened += 1
                self.waits[execution_id, node_id] = (self._waits_opened, codec.encode(wait))
                if is_new:
                    self.append_now(self.on_wait(wait))
        partition.timers.update(plan.timers_set)
        for execution_id in plan.timers_cleared:
            partition.timers.pop(execution_id, None)
        for ended in plan.ended:
            partition.active.discard(ended.execution_id)
            partition.timers.pop(ended.execution_id, None)
        for send in plan.sends:
            self.append_now(self.on_send(send))
        self.queue.apply(plan)

    def _apply_change(self, partition: _Partition, execution_id: str, change: bytes) -> None:
        changes = self.changes.setdefault(execution_id, [])
        changes.append(change)
        self.commit_feed.append((execution_id, change))
        record = record_of(change)
        if record is not None:
            self.records[execution_id] = codec.encode(record)
            partition.active.add(execution_id)

    async def due(self, partition: int, now: float, limit: int) -> list[str]:
        timers = self._partitions[partition].timers
        due = [execution_id for execution_id, wake_at in timers.items() if wake_at <= now]
        due.sort(key=lambda execution_id: timers[execution_id])
        return due[:limit]

    async def next_due(self, partition: int) -> float | None:
        timers = self._partitions[partition].timers
        return min(timers.values(), default=None)

    @property
    def is_idle(self) -> bool:
        """Whether nothing happens any more unless something comes from outside."""
        has_timers = any(partition.timers for partition in self._partitions)
        return not (has_timers or self.inbox_depth()) and self.queue.is_idle

    def idle_until(self) -> float | None:
        """When the next timer is due, if nothing happens before; None if something may."""
        if self.inbox_depth() or not self.queue.is_idle:
            return None
        timers = [at for partition in self._partitions for at in partition.timers.values()]
        return min(timers, default=None)

    async def active(self, partition: int) -> list[str]:
        return sorted(self._partitions[partition].active)

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        return {execution_id for execution_id in execution_ids if execution_id in self.changes}

    def check_open(self) -> None:
        """Raises `NotOpen` after the store was closed."""
        if not self.is_open:
            raise NotOpen("the store in memory has been closed; nothing would run from now on")

    async def announce(self, name: str, seconds: float, about: OrchestratorDetails) -> list[str]:  # noqa: ARG002
        now = self.now()
        self._members[name] = now + seconds
        live = [member for member, until in self._members.items() if until > now]
        return sorted(live)

    async def deregister(self, name: str) -> None:
        self._members.pop(name, None)

    def check(self, partition: int, token: str) -> None:
        """Raises `Fenced` if the token isn't that of the partition's lease."""
        if not self._holds(partition, token):
            self.fenced += 1
            raise Fenced(f"partition {partition} belongs to another owner now")

    def inbox_depth(self) -> int:
        lengths = [len(partition.inbox) for partition in self._partitions]
        return sum(lengths)

    def _holds(self, partition: int, token: str) -> bool:
        lease = self._partitions[partition].lease
        return lease is not None and lease.token == token


class _LeasedQueue(MemoryTaskQueue):
    """The task queue of a hot store with several partitions and leases."""

    def __init__(self, store: MemoryHotStore) -> None:
        super().__init__(store.append_now, store.now)
        self._store = store

    def is_mine(self, partition: int) -> Callable[[str], bool]:
        partitions = self._store.partitions

        def is_mine(execution_id: str) -> bool:
            return partition_of(execution_id, partitions) == partition

        return is_mine

    def check_owner(self, partition: int, token: str) -> None:
        self._store.check(partition, token)

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        self.check_owner(partition, token)
        return self.lose(worker_id, self.is_mine(partition))
