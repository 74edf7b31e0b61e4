"""Hot and cold as two stores, in memory: what `stores.tiering` says, written plainly.

The hot one is `MemoryHotStore` with an outbox and a mark; the cold one has rows of its own, which
hear only what is copied to them. `Image` is all that the hot one has, so that it can be lost or
put back to how it was.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from penstock.engine.commands import Transition
from penstock.engine.events import SignalReceived
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import StoreUnavailable
from penstock.stores import codec
from penstock.stores.base import (
    ControlRequest,
    Intent,
    Lease,
    Stored,
    WorkflowVersion,
    partition_of,
)
from penstock.stores.blobs import MemoryBlobs
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.memory import MemoryHotStore
from penstock.stores.memory.audit_log import MemoryAuditLog
from penstock.stores.memory.cold import MemoryColdStore, MemoryExecutions
from penstock.stores.memory.counts import MemoryCounts
from penstock.stores.memory.posts import MemoryPosts
from penstock.stores.partial import record_of
from penstock.stores.task_keys import key_of
from penstock.stores.tiering import (
    CLAIM_SECONDS,
    Claim,
    Copied,
    Copy,
    EndedChild,
    Outgoing,
    Summary,
    Tail,
    Unfinished,
    Written,
    check_numbers,
    check_term,
    intent_from,
)
from penstock.stores.topology import Topology
from penstock.stores.waits import OpenWait, WaitChange

Image = dict[str, Any]
OF_THE_STORE = ("changes", "records", "boxes", "marks", "cold_numbers", "copied", "_members")
OF_THE_ROWS = (
    "records",
    "changes",
    "dead_letters",
    "numbers",
    "_generations",
    "_versions",
    "_changes_of",
    "_ends",
)
OF_THE_INTENTS = ("_intents", "_keys", "_control_requests", "_waiting")
OF_A_PARTITION = ("lease", "expires_at", "commit_number", "position", "timers", "active")
OF_THE_QUEUE = ("_waiting", "_ranked", "_claimed", "_beats", "_paused", "_stopped", "_queued")


class TieredHotStore(MemoryHotStore):
    def __init__(self, clock: Callable[[], float], partitions: int) -> None:
        super().__init__(clock, partitions)
        self.boxes: list[list[Outgoing]] = [[] for _ in range(partitions)]
        self.marks = [""] * partitions
        self.cold_numbers = [0] * partitions
        self.copied: dict[str, Copied] = {}
        """How far executions were copied to the cold store."""
        self.server_id = "server-1"
        self.restarts = 0
        self.dispatched: Counter[tuple[str, str, int, int]] = Counter()

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        lease = await super().acquire(partition, owner, seconds)
        if lease is not None:
            lease.cold_number = self.cold_numbers[partition]
        return lease

    async def commit(self, plan: CommitPlan) -> None:
        await super().commit(plan)
        self.boxes[plan.partition] += copy.deepcopy(plan.outbox)
        self.dispatched.update(key_of(task) for task in plan.tasks)

    def image(self) -> Image:
        """All data, as a server writes it to its disk."""
        partitions = [
            {name: getattr(partition_state, name) for name in OF_A_PARTITION}
            for partition_state in self._partitions
        ]
        return copy.deepcopy(
            {
                "store": {name: getattr(self, name) for name in OF_THE_STORE},
                "partitions": partitions,
                "inboxes": [
                    (partition_state.inbox._events, partition_state.inbox._last)
                    for partition_state in self._partitions
                ],
                "queue": {name: getattr(self.queue, name) for name in OF_THE_QUEUE},
            }
        )

    def become(self, image: Image) -> None:
        """The server comes back with this, and every connection is broken."""
        self.restarts += 1
        image = copy.deepcopy(image)
        vars(self).update(image["store"])
        vars(self.queue).update(image["queue"])
        for partition_state, fields, inbox in zip(
            self._partitions, image["partitions"], image["inboxes"], strict=True
        ):
            vars(partition_state).update(fields)
            partition_state.inbox._events, partition_state.inbox._last = inbox
        for waiter, _ in self.queue._waiters.values():
            if not waiter.done():
                waiter.set_exception(StoreUnavailable("simulated: connection lost"))

    def names_in(self, partition: int) -> list[str]:
        return [name for name in self.changes if partition_of(name, self.partitions) == partition]


class MemoryHotTier:
    def __init__(self, hot: TieredHotStore) -> None:
        self._hot = hot

    async def server_id(self, partition: int) -> str:
        return self._hot.server_id

    async def built(self, lease: Lease) -> str:
        return self._hot.marks[lease.partition]

    async def outbox(self, partition: int, limit: int) -> list[Outgoing]:
        return copy.deepcopy(self._hot.boxes[partition][:limit])

    async def changes(self, execution_ids: Collection[str]) -> dict[str, list[bytes]]:
        return {
            name: list(self._hot.changes[name])
            for name in execution_ids
            if name in self._hot.changes
        }

    async def tails(self, execution_ids: Collection[str]) -> dict[str, Tail]:
        tails: dict[str, Tail] = {}
        for name, changes in (await self.changes(execution_ids)).items():
            copied = self._hot.copied.get(name)
            tails[name] = Tail(copied, changes[copied.until :] if copied else changes)
        return tails

    async def acknowledge_copies(self, lease: Lease, copied: Mapping[str, Copied]) -> None:
        self._hot.check(lease.partition, lease.token)
        for name, how_far in copied.items():
            if name in self._hot.changes:
                self._hot.copied[name] = how_far

    async def forget_copies(self, lease: Lease) -> None:
        self._hot.check(lease.partition, lease.token)
        for name in self._hot.names_in(lease.partition):
            self._hot.copied.pop(name, None)

    async def acknowledge_outbox(self, lease: Lease, count: int, archived: Collection[str]) -> None:
        self._hot.check(lease.partition, lease.token)
        del self._hot.boxes[lease.partition][:count]
        self._forget(archived)

    async def acknowledge_commit(self, lease: Lease, commit_number: int) -> None:
        self._hot.check(lease.partition, lease.token)
        self._hot.cold_numbers[lease.partition] = commit_number

    async def wipe(self, lease: Lease) -> None:
        hot = self._hot
        partition = lease.partition
        hot.check(partition, lease.token)
        partition_state = hot._partitions[partition]
        partition_state.timers = {}
        partition_state.active = set()
        hot.boxes[partition] = []
        self._forget(hot.names_in(partition))
        queue = hot.queue
        tasks = [
            key
            for key in (*queue._queued, *queue._claimed)
            if partition_of(key[0], hot.partitions) == partition
        ]
        for key in tasks:
            queue._claimed.pop(key, None)
            queue._queued.discard(key)
            queue._stopped.discard(key)
        for waiting in (
            *queue._waiting.values(),
            *(line for lines in queue._ranked.values() for line in lines.values()),
        ):
            left = [item for item in waiting if item[0] not in set(tasks)]
            waiting.clear()
            waiting.extend(left)
        for name in [
            name for name in queue._paused if partition_of(name, hot.partitions) == partition
        ]:
            del queue._paused[name]

    async def restore(self, lease: Lease, executions: Mapping[str, bytes]) -> None:
        self._hot.check(lease.partition, lease.token)
        for name, change in executions.items():
            self._hot.changes[name] = [change]
            self._hot.copied.pop(name, None)
            self._hot.records[name] = codec.encode(record_of(change))
            self._hot._partitions[lease.partition].active.add(name)

    async def mark_built(self, lease: Lease, store_id: str, commit_number: int) -> None:
        self._hot.check(lease.partition, lease.token)
        self._hot.marks[lease.partition] = store_id
        self._hot._partitions[lease.partition].commit_number = commit_number

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._hot.changes.pop(name, None)
            self._hot.records.pop(name, None)
            self._hot.copied.pop(name, None)


class Rows:
    """What the cold store's tables hold of executions."""

    store_id = "the store"

    def __init__(self, clock: Callable[[], float], partitions: int) -> None:
        self._clock = clock
        self.partitions = partitions
        self.terms = [0] * partitions
        self._holders = [("", "", 0.0)] * partitions
        """Who has claimed each partition, on which server, and when that was last heard of."""
        self._rebuilt = [("", 0.0)] * partitions
        """Which server was last built again for each partition, and when."""
        self.rebuilds = 0
        self.records: dict[str, bytes] = {}
        self.changes: dict[str, list[bytes]] = {}
        self.dead_letters: list[bytes] = []
        self.commit_feed: list[tuple[str, bytes]] = []
        self.waits: dict[tuple[str, str], tuple[int, bytes]] = {}
        self._waits_opened = 0
        self.numbers = [0] * partitions
        self._generations = [1] * partitions
        self._versions: dict[str, tuple[int, int]] = {}
        self._changes_of: dict[str, int] = {}
        """The generation of the changes of each execution."""
        self._ends: dict[str, set[int]] = {}
        """Where the copies end that the changes of each execution are made of."""
        self.written_bytes = 0
        """Bytes of changes that were stored."""
        self.write_intent: Callable[[Intent], None]
        """Given by the cold store, which has the intents."""

    def stored(self, execution_id: str) -> Stored:
        record = codec.decode_record(self.records[execution_id])
        return codec.fold(
            record, [codec.decode_change(data) for data in self.changes.get(execution_id, ())]
        )

    def put_waits(self, changes: Sequence[WaitChange]) -> list[OpenWait]:
        """Answers the waits that weren't known."""
        new: list[OpenWait] = []
        for execution_id, node_id, wait in changes:
            is_new = self.waits.pop((execution_id, node_id), None) is None
            if wait is not None:
                new += [wait] if is_new else []
                self._waits_opened += 1
                self.waits[execution_id, node_id] = (self._waits_opened, codec.encode(wait))
        return new

    async def put_copies(
        self,
        partition: int,
        commit_number: int,
        copies: Sequence[Copy],
        *,
        cold_number: int = 0,
        term: int | None = None,
    ) -> Written:
        check_term(partition, term, self.terms[partition])
        check_numbers(partition, commit_number, cold_number, self.numbers[partition])
        rewritten: list[str] = []
        missing: list[str] = []
        for new_copy in copies:
            if new_copy.execution_id not in self.records:
                intent = None if new_copy.first else intent_from(new_copy.changes)
                if intent is None:
                    missing.append(new_copy.execution_id)
                    continue
                rewritten.append(new_copy.execution_id)
                self.write_intent(intent)
            if new_copy.summary is not None:
                self._put(new_copy, new_copy.summary)
                if self._is_gap_before(new_copy, new_copy.summary):
                    missing.append(new_copy.execution_id)
                newest = max(self._generations[partition], new_copy.summary.generation)
                self._generations[partition] = newest
            dead_letters = [codec.encode(dead_letter) for dead_letter in new_copy.dead_letters]
            self.dead_letters += [
                dead_letter for dead_letter in dead_letters if dead_letter not in self.dead_letters
            ]
        self.numbers[partition] = max(self.numbers[partition], commit_number)
        return Written(rewritten, missing)

    def _put(self, new_copy: Copy, summary: Summary) -> None:
        name = new_copy.execution_id
        record = codec.decode_record(self.records[name])
        version = (summary.generation, summary.revision)
        has_ended = str(record.state) in ("COMPLETED", "FAILED", "CANCELLED")
        if not has_ended and version > self._versions.get(name, (0, 0)):
            self._versions[name] = version
            record.state = type(record.state)(summary.state)
            record.started_at = summary.started_at
            record.finished_at = summary.finished_at
            record.error = summary.error
            record.error_node_id = summary.error_node_id
            self.records[name] = codec.encode(record)

        stored = self._stored_changes(name, summary.generation)
        is_newer = self._versions.get(name) == version and new_copy.until > len(stored)
        if new_copy.changes and is_newer and not self._is_gap_before(new_copy, summary):
            ends = self._ends.get(name, set()) if stored else set()
            self._ends[name] = {end for end in ends if end <= new_copy.first} | {new_copy.until}
            self.changes[name] = stored[: new_copy.first] + new_copy.changes
            self._changes_of[name] = summary.generation
            self.written_bytes += sum(map(len, new_copy.changes))

    def _stored_changes(self, name: str, generation: int) -> list[bytes]:
        return self.changes.get(name, []) if self._changes_of.get(name) == generation else []

    def _is_gap_before(self, new_copy: Copy, summary: Summary) -> bool:
        name = new_copy.execution_id
        if self._versions.get(name) != (summary.generation, summary.revision):
            return False
        stored = self._stored_changes(name, summary.generation)
        ends = self._ends.get(name, set()) if stored else set()
        return new_copy.first not in {0, *ends}

    async def claim(self, partition: int, holder: str, server_id: str) -> Claim | None:
        last, server, seen_at = self._holders[partition]
        now = self._clock()
        if server != server_id and last != holder and seen_at >= now - CLAIM_SECONDS:
            return None
        self.terms[partition] += 1
        self._holders[partition] = (holder, server_id, now)
        rebuilt_on, rebuilt_at = self._rebuilt[partition]
        since = now - rebuilt_at if rebuilt_on not in ("", server_id) else None
        return Claim(self.terms[partition], self.numbers[partition], since)

    async def renew_claim(self, partition: int, term: int, server_id: str) -> bool:
        if term != self.terms[partition]:
            return False
        self._holders[partition] = (self._holders[partition][0], server_id, self._clock())
        return True

    async def release_claim(self, partition: int, term: int) -> None:
        if term == self.terms[partition]:
            self._holders[partition] = (*self._holders[partition][:2], float("-inf"))

    async def begin_rebuild(self, partition: int, term: int, commit_number: int) -> int:
        check_term(partition, term, self.terms[partition])
        self._generations[partition] += 1
        self._rebuilt[partition] = (self._holders[partition][1], self._clock())
        self.rebuilds += 1
        self.numbers[partition] = max(self.numbers[partition], commit_number)
        return self._generations[partition]


class TieredColdStore(MemoryColdStore):
    executions: TieredExecutions

    def __init__(self, rows: Rows, hot: TieredHotStore) -> None:
        super().__init__(rows)
        self.executions = TieredExecutions(rows, hot, self.audit_log)
        self.signals = self.executions.signals
        self.posts = MemoryPosts(self.signals, self.waits.open, self.waits.close)
        self.counts = MemoryCounts(self.executions, self.dead_letters)


class TieredExecutions(MemoryExecutions):
    """Reads ask the hot store first."""

    def __init__(self, rows: Rows, hot: TieredHotStore, audit_log: MemoryAuditLog) -> None:
        super().__init__(rows, audit_log)
        self._rows = rows
        self._active = hot
        rows.write_intent = self._write

    async def execution(self, execution_id: str) -> Stored | None:
        if execution_id in self._active.changes:
            return self._active.stored(execution_id)
        return await super().execution(execution_id)

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        stored = await self.execution(execution_id)
        return None if stored is None else [line for line in stored.history if line.seq > after]

    async def started(self, partition: int) -> list[str]:
        return [
            name for name in await self.unfinished(partition) if name not in self._rows._versions
        ]

    async def unfinished(self, partition: int) -> list[str]:
        return await super().started(partition)

    async def control_requests(self, partition: int) -> dict[str, ControlRequest]:
        """Without those that are fulfilled."""
        states = {name: self._state(name) for name in await self.unfinished(partition)}
        control_requests = {
            name: request for name, request in self._control_requests.items() if name in states
        }
        return {
            name: request
            for name, request in control_requests.items()
            if request == "cancel" or (request == "resume") == (states[name] == "PAUSED")
        }

    async def intent(self, execution_id: str) -> Intent | None:
        intent = await super().intent(execution_id)
        if intent is not None:
            intent.record.state = codec.decode_record(self._rows.records[execution_id]).state
            if intent.record.state not in ("COMPLETED", "FAILED", "CANCELLED"):
                intent.record.state = type(intent.record.state).PENDING
        return intent


class MemoryColdTier:
    def __init__(self, rows: Rows, cold: TieredColdStore) -> None:
        self._rows = rows
        self._cold = cold
        self.store_id = rows.store_id
        self.put_copies = rows.put_copies
        self.begin_rebuild = rows.begin_rebuild
        self.claim = rows.claim
        self.renew_claim = rows.renew_claim
        self.release_claim = rows.release_claim

    async def put_waits(self, changes: Sequence[WaitChange]) -> list[SignalReceived]:
        signals: list[SignalReceived] = []
        for wait in self._rows.put_waits(changes):
            signals += self._cold.posts.meet(wait)
        return signals

    async def ended_children(self, partition: int, _seconds: float) -> list[EndedChild]:
        children: list[EndedChild] = []
        for data in self._rows.records.values():
            record = codec.decode_record(data)
            if record.parent is None or record.state not in EXECUTION_ENDS:
                continue
            if partition_of(record.parent.execution_id, self._rows.partitions) == partition:
                parent = record.parent
                ended = EndedChild(record.execution_id, parent.execution_id, parent.node_id)
                children.append(ended)
        return children

    async def children_left_behind(self, partition: int) -> list[str]:
        children: list[str] = []
        for name in await self._cold.executions.unfinished(partition):
            parent = codec.decode_record(self._rows.records[name]).parent
            if parent is None or not parent.is_awaited or parent.on_end != "cancel":
                continue
            data = self._rows.records.get(parent.execution_id)
            if data is not None and codec.decode_record(data).state in EXECUTION_ENDS:
                children.append(name)
        return children

    async def put_version_back(self, version: WorkflowVersion) -> bool:
        """Versions are never lost here."""
        stored = await self._cold.definitions.get_workflow(version.name, version.version)
        return stored is not None and stored.content_hash == version.content_hash

    async def unfinished(
        self, partition: int, after: str = "", limit: int = 500
    ) -> list[Unfinished]:
        names = sorted(
            name for name in await self._cold.executions.unfinished(partition) if name > after
        )[:limit]
        return [
            Unfinished(
                name, self._rows._versions.get(name, (1, 0))[0], self._rows.changes.get(name, [])
            )
            for name in names
        ]


class MemoryTiering:
    def __init__(self, hot: Any, cold: Any) -> None:
        self.hot = hot
        self.cold = cold


class TieredStores:
    topology = Topology(is_tiered=True, is_shared=False, tasks_are_durable=True)
    commit_feed = None
    fleet = None

    def __init__(self, clock: Callable[[], float], partitions: int) -> None:
        self.hot = TieredHotStore(clock, partitions)
        self.queue = self.hot.queue
        self.rows = Rows(clock, partitions)
        self.cold = TieredColdStore(self.rows, self.hot)
        self.blobs = MemoryBlobs()
        self.tiering = MemoryTiering(MemoryHotTier(self.hot), MemoryColdTier(self.rows, self.cold))
        self.cold_is_away = False
        self.empty = self.hot.image()

    def cold_image(self) -> Image:
        """All that the cold store has of executions, as a backup."""
        return copy.deepcopy(
            {name: vars(part)[name] for part, names in self._cold_parts() for name in names}
        )

    def put_cold_back(self, image: Image) -> None:
        """To an older copy."""
        image = copy.deepcopy(image)
        for part, names in self._cold_parts():
            vars(part).update({name: image[name] for name in names})

    def _cold_parts(self) -> list[tuple[Any, tuple[str, ...]]]:
        return [(self.rows, OF_THE_ROWS), (self.cold.executions, OF_THE_INTENTS)]

    def bring_cold_back(self) -> None:
        self.cold_is_away = False

    def lose_everything(self) -> None:
        """As FLUSHALL, or a disk that is gone."""
        self.hot.become(self.empty)

    async def open(self) -> None:
        """Nothing to open."""

    async def forget(self, before: float) -> int:
        """No retention here."""
        return 0

    async def close(self) -> None:
        """Nothing to close; the protocol asks."""
