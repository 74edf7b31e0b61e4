"""Tiering: data that moves between hot and cold store, if they are two (Redis and PostgreSQL).

The owner of a partition moves it, beside its loop (`orchestrator/tiering`). Finished executions are
archived in the cold store and then removed from the hot one; running ones are checkpointed; and a
hot store that has lost its data is rebuilt from these copies and the intents. Where both are one
store (SQLite, memory), `Stores.tiering` is None and none of this happens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec import structs

from penstock.engine.commands import DeadLetter, ExecutionRecord, Send
from penstock.engine.events import SignalReceived, TaskError
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced, SchemaMismatch, StoreError
from penstock.stores.base import Intent, Lease, WorkflowVersion
from penstock.stores.partial import history_of, record_of
from penstock.stores.waits import WaitChange

CLAIM_SECONDS = 6.0
"""Seconds without a word after which another server of the hot store may claim a partition."""
REBUILD_JUMP = 1_000_000
"""How far commit numbers jump when a hot store is built again.

Beyond whatever was committed and never heard of, so copies that a former owner made of the store
before are known by their numbers.
"""


class ColdStoreWentBack(StoreError):
    """The cold store knows less than it has acknowledged: it was put back to an older copy."""


class Summary(msgspec.Struct, array_like=True):
    """The part of an execution that the cold store's row shows.

    A row is overwritten only by a greater (generation, revision), and never once its state is an
    end.
    """

    state: str
    started_at: float | None
    finished_at: float | None
    error: TaskError | None
    error_node_id: str | None
    generation: int
    revision: int
    """`seq` of the last history line."""

    @property
    def has_ended(self) -> bool:
        return self.state in EXECUTION_ENDS


class Outgoing(msgspec.Struct, array_like=True):
    """An entry of a partition's outbox: what a commit did that the cold store has to hear of."""

    execution_id: str
    summary: Summary | None
    """Set if the execution ended, was paused or was resumed."""
    dead_letters: list[DeadLetter] = []
    report: bytes = b""
    """Of an execution that ended (`stores.reports`)."""
    waits: list[WaitChange] = []
    """Waits for somebody that were opened and closed."""
    sends: list[Send] = []
    """What goes to other executions: to children at once, to the parent when it is archived."""


class Copied(NamedTuple):
    """How far an execution was copied to the cold store in its generation."""

    until: int
    """How many of its changes were copied."""
    summary: Summary
    """Its summary after these."""


class Tail(NamedTuple):
    """The changes of an execution that the cold store doesn't have yet."""

    copied: Copied | None
    """What was copied before; None: nothing."""
    changes: list[bytes]
    """All changes behind that, the oldest first."""

    @property
    def first(self) -> int:
        """The index of the first of these changes."""
        return 0 if self.copied is None else self.copied.until


class Copy(msgspec.Struct, array_like=True):
    """An execution on its way to the cold store."""

    execution_id: str
    summary: Summary | None
    """None: only its dead letters are new."""
    changes: list[bytes]
    """What commits did to it (encoded `codec.Change`s, oldest first), from `first` on.

    Empty: leave the stored ones.
    """
    dead_letters: list[DeadLetter] = []
    report: bytes = b""
    """Of an execution that ended (`stores.reports`)."""
    first: int = 0
    """How many changes of its generation come before these. The cold store must have them.

    0: the changes are all there are.
    """

    @property
    def until(self) -> int:
        """How many changes the cold store has with this copy."""
        return self.first + len(self.changes)


class Written(NamedTuple):
    """The outcome of copies whose execution had no row in the cold store."""

    rewritten: Sequence[str] = ()
    """Execution ids whose row was written again from the copy's changes."""
    missing: Sequence[str] = ()
    """Execution ids whose copy needs all changes of the execution, and doesn't have them.

    There is no row to write it to, or the changes that are stored don't end where the copy begins.
    """


class Claim(NamedTuple):
    """The right to run a partition on one server of the hot store.

    The cold store gives it to one at a time.
    """

    term: int
    commit_number: int
    """The greatest commit number that came with copies.

    A hot store that is below it has gone back in time.
    """
    seconds_since_rebuild: float | None
    """Seconds since the last rebuild, if another server of the hot store was built again then."""


class EndedChild(NamedTuple):
    """A child that has ended, and the node that may wait for it."""

    execution_id: str
    parent: str
    node_id: str


class Unfinished(msgspec.Struct, array_like=True):
    """An unfinished execution as the cold store knows it."""

    execution_id: str
    generation: int
    changes: list[bytes]
    """The changes up to its last checkpoint; empty if there was none: only its intent is known."""


def summary_of(record: ExecutionRecord, revision: int) -> Summary:
    return Summary(
        str(record.state),
        record.started_at,
        record.finished_at,
        record.error,
        record.error_node_id,
        record.generation,
        revision,
    )


def summary_from(changes: Sequence[bytes]) -> Summary | None:
    """The summary of an execution's changes, the oldest first.

    None if there is no record among them, or they can't be read.
    """
    try:
        record = last_record(changes)
        revision = _last_seq(changes)
    except SchemaMismatch:  # its owner reports that
        return None
    return None if record is None else summary_of(record, revision)


def summary_of_tail(tail: Tail) -> Summary | None:
    """The summary of an execution with the changes of its tail.

    None if nothing tells it, or the changes can't be read.
    """
    if tail.copied is None:
        return summary_from(tail.changes)
    before = tail.copied.summary
    try:
        record = last_record(tail.changes)
        revision = _last_seq(tail.changes) or before.revision
    except SchemaMismatch:  # its owner reports that
        return None
    if record is None:
        return structs.replace(before, revision=revision)
    return summary_of(record, revision)


def _last_seq(changes: Sequence[bytes]) -> int:
    for change in reversed(changes):
        lines = history_of(change)
        if lines:
            return lines[-1].seq
    return 0


def last_record(changes: Sequence[bytes]) -> ExecutionRecord | None:
    """The last record among an execution's changes, the oldest first. Raises `SchemaMismatch`."""
    for change in reversed(changes):
        record = record_of(change)
        if record is not None:
            return record
    return None


def intent_from(changes: Sequence[bytes]) -> Intent | None:
    """The intent of an execution, as far as its own changes tell.

    None if there is no record among them.
    """
    records = map(record_of, changes)
    record = next((record for record in records if record is not None), None)
    if record is None:
        return None
    # everything that isn't the course of the execution was given when it was submitted
    submitted = structs.replace(
        record,
        state=ExecutionState.PENDING,
        generation=1,
        started_at=None,
        finished_at=None,
        failing=False,
        error=None,
        error_node_id=None,
        added=(),
        ending=None,
        paused_at=None,
        idempotency=(),
    )
    intent = Intent(submitted, retry_of=record.retry_of)
    if record.idempotency:
        intent.key_scope, intent.idempotency_key, intent.request_hash = record.idempotency
    return intent


def check_term(partition: int, term: int | None, stored: int) -> None:
    """Raises `Fenced` if another owner has claimed the partition since."""
    if term is not None and term != stored:
        raise Fenced(
            f"partition {partition} was claimed by another owner: its term is {stored}, not {term}"
        )


def check_numbers(partition: int, commit_number: int, cold_number: int, stored: int) -> None:
    """Check whether a cold store at commit `stored` may store copies with this number.

    Raises `Fenced` or `ColdStoreWentBack`, as `ColdTier.put_copies` says.
    """
    if stored >= commit_number + REBUILD_JUMP // 2:
        raise Fenced(f"partition {partition} has been rebuilt since commit {commit_number}")
    if stored < cold_number:
        raise ColdStoreWentBack(
            f"the cold store has partition {partition} up to commit {stored} "
            f"and has acknowledged {cold_number}: it was restored from an older backup"
        )


class HotTier(Protocol):
    """The hot store, as tiering uses it.

    Everything that writes is fenced: raises `Fenced` unless the lease's token is current.
    """

    async def server_id(self, partition: int) -> str:
        """The id of the server that has the partition.

        Another process that took its place has another id.
        """

    async def built(self, lease: Lease) -> str:
        """The id of the store that this partition was built for.

        Empty if it has lost its data or is new.
        """

    async def outbox(self, partition: int, limit: int) -> list[Outgoing]:
        """Entries from the head of the partition's outbox, without taking any off."""

    async def changes(self, execution_ids: Collection[str]) -> Mapping[str, list[bytes]]:
        """All changes of each execution, encoded; unknown ones are missing."""

    async def tails(self, execution_ids: Collection[str]) -> Mapping[str, Tail]:
        """What of each execution wasn't copied yet; unknown ones are missing."""

    async def acknowledge_copies(self, lease: Lease, copied: Mapping[str, Copied]) -> None:
        """Note how far executions were copied: their tails begin there.

        Executions that have left the hot store stay unknown. One that is restored, or noted again
        with less, has a longer tail.
        """

    async def forget_copies(self, lease: Lease) -> None:
        """Forget how far executions were copied: their tails are whole again."""

    async def acknowledge_outbox(self, lease: Lease, count: int, archived: Collection[str]) -> None:
        """Take the first `count` entries off the outbox: they are in the cold store.

        The `archived` executions leave the hot store in the same step.
        """

    async def acknowledge_commit(self, lease: Lease, commit_number: int) -> None:
        """Note that the cold store has this commit number.

        `Lease.cold_number` of later leases is the last of these.
        """

    async def wipe(self, lease: Lease) -> None:
        """Delete everything of the partition but its inbox and its lease."""

    async def restore(self, lease: Lease, executions: Mapping[str, bytes]) -> None:
        """Put unfinished executions into the partition, each as one change."""

    async def mark_built(self, lease: Lease, store_id: str, commit_number: int) -> None:
        """Mark the partition as built, and complete. The lease goes on from this commit number."""


class ColdTier(Protocol):
    @property
    def store_id(self) -> str: ...

    async def put_copies(
        self,
        partition: int,
        commit_number: int,
        copies: Sequence[Copy],
        *,
        cold_number: int = 0,
        term: int | None = None,
    ) -> Written:
        """Store copies in one transaction, with the partition's commit number.

        That never goes down. Raises `Fenced`, and stores nothing, if it is half a `REBUILD_JUMP`
        ahead: the hot store is another since. Raises `Fenced` too if the partition was claimed
        again since `term`; None: whoever has claimed it. Raises `ColdStoreWentBack`, and stores
        nothing, if it is below `cold_number`, which it has acknowledged.

        A row is replaced by a greater (generation, revision). Changes are stored if the row is of
        the copy's generation and revision then: they replace those of earlier generations, and of
        their own from the copy's first one on. A dead letter is known by its execution, node and
        time, and stored once. An execution without a row gets one, made from its changes, if the
        copy has all of them.
        """

    async def claim(self, partition: int, holder: str, server_id: str) -> Claim | None:
        """Claim a partition: a new term for whoever holds its lease in the hot store.

        Compare and set. None if somebody else has claimed it on another server of the hot store and
        was heard of lately: then there are two such servers, and only one of them counts.
        """

    async def renew_claim(self, partition: int, term: int, server_id: str) -> bool:
        """Renew a claim: its holder lives, and the hot store's server is this one now.

        False if the partition was claimed again.
        """

    async def release_claim(self, partition: int, term: int) -> None:
        """Release a claim: whoever asks next may have the partition."""

    async def begin_rebuild(self, partition: int, term: int, commit_number: int) -> int:
        """Begin a rebuild: a new generation, greater than all before.

        `commit_number` is the one that the hot store will go on from. Raises `Fenced` if the
        partition was claimed again since `term`.
        """

    async def put_waits(self, changes: Sequence[WaitChange]) -> list[SignalReceived]:
        """List open waits, and take those off the list that are over.

        Doing it twice does no harm. Answers the signals that nodes get at once, because posts came
        before them; they are stored, and not delivered yet.
        """

    async def ended_children(self, partition: int, seconds: float) -> list[EndedChild]:
        """Children whose end was stored in the last `seconds`, of unfinished parents.

        `partition` is that of the parents.
        """

    async def children_left_behind(self, partition: int) -> list[str]:
        """Children of this partition that go on, though their parents that cancel them have ended.

        Without those that are being cancelled.
        """

    async def put_version_back(self, version: WorkflowVersion) -> bool:
        """Store a workflow version that executions run and that may be missing.

        False if its number has another content now.
        """

    async def unfinished(
        self, partition: int, after: str = "", limit: int = 500
    ) -> list[Unfinished]:
        """Executions that should run and haven't ended, by id."""


class Tiering(Protocol):
    @property
    def hot(self) -> HotTier: ...
    @property
    def cold(self) -> ColdTier: ...
