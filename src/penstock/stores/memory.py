"""All stores in memory, with several partitions and real leases: for tests, `penstock.testing` and the simulator.

Everything is kept encoded, so that nothing a caller changes afterwards can leak in.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence

from penstock.engine.commands import DeadLetter, ExecutionRecord
from penstock.engine.events import AnyEvent
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, Fenced
from penstock.stores import codec
from penstock.stores.base import (
    Commit,
    Lease,
    NewExecution,
    Stored,
    Wish,
    WorkflowVersion,
    check_steerable,
    partition_of,
)
from penstock.stores.blobs import MemoryBlobs
from penstock.stores.inbox import Inbox
from penstock.stores.task_queue import MemoryTaskQueue


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
    keeps_tasks = True

    def __init__(self, clock: Callable[[], float], partitions: int = 1) -> None:
        self.partitions = partitions
        self.now = clock
        self._partitions = [_Partition() for _ in range(partitions)]
        self.changes: dict[str, list[bytes]] = {}
        self.records: dict[str, bytes] = {}
        self.letters: list[bytes] = []
        self.fenced = 0
        self.queue = _LeasedQueue(self)

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        place = self._partitions[partition]
        if place.lease is not None and place.expires_at > self.now() and place.lease.owner != owner:
            return None
        place.lease = Lease(partition, owner, secrets.token_hex(8), place.commit_number, place.position)
        place.expires_at = self.now() + seconds
        return Lease(partition, owner, place.lease.token, place.commit_number, place.position)

    async def renew(self, lease: Lease, seconds: float) -> bool:
        if not self._holds(lease.partition, lease.token):
            return False
        self._partitions[lease.partition].expires_at = self.now() + seconds
        return True

    async def release(self, lease: Lease) -> None:
        if self._holds(lease.partition, lease.token):
            self._partitions[lease.partition].lease = None

    async def append(self, events: Sequence[AnyEvent]) -> None:
        self.append_now(events)

    def append_now(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            copy = codec.decode_event(codec.encode(event))
            self._partitions[partition_of(event.execution_id, self.partitions)].inbox.append([copy])

    async def receive(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        inbox = self._partitions[partition].inbox
        if inbox.last <= after:
            await inbox.wait(timeout_seconds)
        return inbox.after(after, limit)

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        return {name: self.stored(name) for name in execution_ids if name in self.changes}

    def stored(self, execution_id: str) -> Stored:
        record = codec.decode_record(self.records[execution_id])
        return codec.fold(record, [codec.decode_change(data) for data in self.changes.get(execution_id, ())])

    async def commit(self, commit: Commit) -> None:
        place = self._partitions[commit.partition]
        if not self._holds(commit.partition, commit.token) or place.commit_number != commit.commit_number:
            self.fenced += 1
            raise Fenced(f"partition {commit.partition} has moved on from commit {commit.commit_number}")
        # encoded before the first write: a commit that can't be encoded must leave nothing
        letters = [codec.encode(letter) for commands in commit.changes for letter in commands.dead_letters]
        place.commit_number += 1
        place.position = commit.position
        place.inbox.trim(commit.position)
        self.letters += letters
        for commands, change in zip(commit.changes, commit.data, strict=True):
            name = commands.execution_id
            if change:
                self.changes.setdefault(name, []).append(change)
            if commands.record is not None:
                self.records[name] = codec.encode(commands.record)
                place.active.add(name)
            if commands.timer_changed:
                self._set_timer(place, name, commands.wake_at)
            if commands.finished:
                place.active.discard(name)
                place.timers.pop(name, None)
        self.queue.apply(commit.changes)

    def _set_timer(self, place: _Partition, name: str, wake_at: float | None) -> None:
        if wake_at is None:
            place.timers.pop(name, None)
        else:
            place.timers[name] = wake_at

    async def due(self, partition: int, now: float, limit: int) -> list[str]:
        timers = self._partitions[partition].timers
        return sorted((name for name, at in timers.items() if at <= now), key=lambda name: timers[name])[:limit]

    async def next_due(self, partition: int) -> float | None:
        return min(self._partitions[partition].timers.values(), default=None)

    async def active(self, partition: int) -> list[str]:
        return sorted(self._partitions[partition].active)

    def check(self, partition: int, token: str) -> None:
        if not self._holds(partition, token):
            self.fenced += 1
            raise Fenced(f"partition {partition} belongs to somebody else now")

    def inbox_depth(self) -> int:
        return sum(len(place.inbox) for place in self._partitions)

    def _holds(self, partition: int, token: str) -> bool:
        lease = self._partitions[partition].lease
        return lease is not None and lease.token == token


class _LeasedQueue(MemoryTaskQueue):
    def __init__(self, store: MemoryHotStore) -> None:
        super().__init__(store.append_now)
        self._store = store

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        self._store.check(partition, token)
        return self.lose(worker_id, lambda name: partition_of(name, self._store.partitions) == partition)


class MemoryColdStore:
    def __init__(self, hot: MemoryHotStore) -> None:
        self._hot = hot
        self._workflows: dict[str, list[WorkflowVersion]] = {}
        self._intents: dict[str, bytes] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self._wishes: dict[str, Wish] = {}
        self._handlers: set[str] = set()

    async def put_workflow(self, name: str, content_hash: str, document: bytes, now: float) -> WorkflowVersion:
        versions = self._workflows.setdefault(name, [])
        for version in versions:
            if version.content_hash == content_hash:
                return version
        versions.append(WorkflowVersion(name, len(versions) + 1, content_hash, document, now))
        return versions[-1]

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        versions = self._workflows.get(name, [])
        wanted = len(versions) if version is None else version
        return versions[wanted - 1] if 0 < wanted <= len(versions) else None

    async def create(self, executions: Sequence[NewExecution]) -> list[str]:
        keys = dict(self._keys)
        for new in executions:
            if new.idempotency_key is not None:
                made = keys.setdefault(new.idempotency_key, (new.record.execution_id, new.request_hash))
                if made[1] != new.request_hash:
                    raise Conflict(f"the idempotency key {new.idempotency_key!r} was used for another request")
        return [self._create(new) for new in executions]

    def _create(self, new: NewExecution) -> str:
        name = new.record.execution_id
        if new.idempotency_key is not None:
            made, _ = self._keys.setdefault(new.idempotency_key, (name, new.request_hash))
            if made != name:
                return made
        self._intents.setdefault(name, codec.encode(new))
        self._hot.records.setdefault(name, codec.encode(new.record))
        return name

    async def steer(self, execution_id: str, wish: Wish) -> None:
        check_steerable(execution_id, self._state(execution_id))
        self._wishes[execution_id] = wish

    async def wishes(self, partition: int) -> dict[str, Wish]:
        running = set(await self.started(partition))
        return {name: wish for name, wish in self._wishes.items() if name in running}

    def _state(self, execution_id: str) -> str | None:
        data = self._hot.records.get(execution_id)
        return None if data is None else str(codec.decode_record(data).state)

    async def started(self, partition: int) -> list[str]:
        return [
            name
            for name in self._intents
            if partition_of(name, self._hot.partitions) == partition
            and codec.decode_record(self._hot.records[name]).state not in EXECUTION_ENDS
        ]

    async def execution(self, execution_id: str) -> Stored | None:
        return self._hot.stored(execution_id) if execution_id in self._hot.records else None

    async def intent(self, execution_id: str) -> NewExecution | None:
        data = self._intents.get(execution_id)
        return codec.decode_intent(data) if data is not None else None

    async def executions(self, state: ExecutionState | None = None, limit: int = 100) -> list[ExecutionRecord]:
        records = [codec.decode_record(data) for data in self._hot.records.values()]
        return [record for record in reversed(records) if state in (None, record.state)][:limit]

    async def dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        return [codec.decode_letter(data) for data in reversed(self._hot.letters)][:limit]

    async def remember_handlers(self, names: Collection[str]) -> None:
        self._handlers.update(names)

    async def known_handlers(self) -> set[str]:
        return set(self._handlers)


class MemoryStores:
    def __init__(self, clock: Callable[[], float], partitions: int = 1) -> None:
        self.hot = MemoryHotStore(clock, partitions)
        self.queue = self.hot.queue
        self.cold = MemoryColdStore(self.hot)
        self.blobs = MemoryBlobs()

    async def close(self) -> None:
        """Nothing to close; the protocol asks."""
