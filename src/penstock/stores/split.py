"""Where hot and cold are two stores (Redis and PostgreSQL): what moves between them, and what each offers for that.

The owner of a partition does the moving, beside its loop (`orchestrator/transfer.py`). What has finished goes to the
cold store and then leaves the hot one; what runs is copied there now and then; and a hot store that has lost its data
is built again from these copies and the intents. Where both are one (SQLite, memory), `Stores.split` is None and none
of this happens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from penstock.engine.commands import Commands, DeadLetter, ExecutionRecord
from penstock.engine.events import TaskError
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Fenced, SchemaMismatch, StoreError
from penstock.stores.base import Lease, NewExecution, WorkflowVersion
from penstock.stores.partial import history_of, record_of
from penstock.stores.reports import report_of

CLAIM_SECONDS = 6.0
"""After so long without a word, another server of the hot store may take a partition's place."""
REBUILD_JUMP = 1_000_000
"""How far commit numbers jump when a hot store is built again: beyond whatever was committed and
never heard of.

So copies that a former owner made of the store before are known by their numbers.
"""


class ColdStoreWentBack(StoreError):
    """The cold store knows less than it has acknowledged: it was put back to an older copy."""


class Summary(msgspec.Struct, array_like=True):
    """What the cold store's row shows of an execution.

    A row is overwritten only by a greater (generation, revision), and never once its state is an
    end.
    """

    state: str
    started_at: float | None
    finished_at: float | None
    error: TaskError | None
    error_node: str | None
    generation: int
    revision: int
    """`seq` of the last history line."""

    @property
    def has_ended(self) -> bool:
        return self.state in EXECUTION_ENDS


class Outgoing(msgspec.Struct, array_like=True):
    """An entry of a partition's outbox: what a commit did that the cold store has to hear of soon."""

    execution_id: str
    summary: Summary | None
    """Set if the execution ended, was paused or was resumed."""
    letters: list[DeadLetter] = []
    report: bytes = b""
    """Of an execution that ended (`stores.reports`)."""


class Copy(msgspec.Struct, array_like=True):
    """An execution on its way to the cold store."""

    execution_id: str
    summary: Summary | None
    """None: only its letters are new."""
    changes: list[bytes]
    """Everything that commits did to it (encoded `codec.Change`s, oldest first); empty: leave the
    stored ones.
    """
    letters: list[DeadLetter] = []
    report: bytes = b""
    """Of an execution that ended (`stores.reports`)."""


class Written(NamedTuple):
    """What became of copies whose execution had no row in the cold store."""

    rewritten: Sequence[str] = ()
    """Execution ids: the row was written again from the copy's changes."""
    missing: Sequence[str] = ()
    """Execution ids: the copy has no changes, so there was nothing to write a row from.

    Nothing was stored.
    """


class Claim(NamedTuple):
    """The right to run a partition on one server of the hot store; the cold store gives it to one at a time."""

    term: int
    commit_number: int
    """The greatest that came with copies; a hot store that is below it has gone back in time."""
    seconds_since_rebuild: float | None
    """Since the last one, if another server of the hot store was built again then; else None."""


class Unfinished(msgspec.Struct, array_like=True):
    """An unfinished execution as the cold store knows it."""

    execution_id: str
    generation: int
    changes: list[bytes]
    """Of its last checkpoint; empty if there was none: then only its intent is known."""


def summary_of(record: ExecutionRecord, revision: int) -> Summary:
    return Summary(
        str(record.state),
        record.started_at,
        record.finished_at,
        record.error,
        record.error_node,
        record.generation,
        revision,
    )


def summary_from(changes: Sequence[bytes]) -> Summary | None:
    """Of an execution's changes, the oldest first; None if there is no record among them, or they can't be read."""
    try:
        record = last_record(changes)
        lines = next((lines for change in reversed(changes) if (lines := history_of(change))), [])
    except SchemaMismatch:  # its owner complains
        return None
    return None if record is None else summary_of(record, lines[-1].seq if lines else 0)


def last_record(changes: Sequence[bytes]) -> ExecutionRecord | None:
    """Of an execution's changes, the oldest first. Raises `SchemaMismatch`."""
    return next(
        (found for change in reversed(changes) if (found := record_of(change)) is not None), None
    )


def intent_from(changes: Sequence[bytes]) -> NewExecution | None:
    """What was asked for, as far as an execution's own changes tell; None if there is no record among them."""
    record = next((found for change in changes if (found := record_of(change)) is not None), None)
    if record is None:
        return None
    asked = ExecutionRecord(
        record.execution_id,
        record.workflow,
        record.version,
        ExecutionState.PENDING,
        record.input,
        record.created_at,
        first_execution_id=record.first_execution_id,
        labels=record.labels,
        overrides=record.overrides,
        priority=record.priority,
        trace=record.trace,
        reused=record.reused,
        retry_of=record.retry_of,
    )
    intent = NewExecution(asked, retry_of=record.retry_of)
    if record.idempotency:
        intent.key_scope, intent.idempotency_key, intent.request_hash = record.idempotency
    return intent


def check_term(partition: int, term: int | None, found: int) -> None:
    """Raises `Fenced` if the cold store has given the partition to somebody else."""
    if term is not None and term != found:
        raise Fenced(
            f"partition {partition} was claimed by another owner: its term is {found}, not {term}"
        )


def check_numbers(partition: int, commit_number: int, cold_number: int, found: int) -> None:
    """Whether copies with this commit number may be stored by a cold store that has seen `found`.

    Raises `Fenced` or `ColdStoreWentBack`, as `ColdSide.put_copies` says.
    """
    if found >= commit_number + REBUILD_JUMP // 2:
        raise Fenced(f"partition {partition} has been built again since commit {commit_number}")
    if found < cold_number:
        raise ColdStoreWentBack(
            f"the cold store knows partition {partition} up to commit {found} and has acknowledged {cold_number}: it "
            "was put back to an older copy"
        )


def outgoing_of(commands: Commands) -> Outgoing | None:
    """What the cold store has to hear of these; None for most."""
    tells = commands.record is not None and (commands.finished or commands.paused is not None)
    if not tells and not commands.dead_letters:
        return None
    summary = None
    if tells and commands.record is not None:
        summary = summary_of(commands.record, commands.history[-1].seq if commands.history else 0)
    return Outgoing(commands.execution_id, summary, commands.dead_letters, report_of(commands))


class HotSide(Protocol):
    """Of the hot store.

    Everything that writes is fenced: raises `Fenced` unless the lease's token is current.
    """

    async def server_id(self, partition: int) -> str:
        """Which server has the partition: another process that took its place has another id."""

    async def built(self, lease: Lease) -> str:
        """The id of the store that this partition was built for; empty if it has lost its data or is new."""

    async def outbox(self, partition: int, limit: int) -> list[Outgoing]:
        """From its head, without taking anything."""

    async def changes(self, execution_ids: Collection[str]) -> Mapping[str, list[bytes]]:
        """All changes of each, encoded; unknown ones are missing."""

    async def taken(self, lease: Lease, count: int, gone: Collection[str]) -> None:
        """The first `count` entries of the outbox are in the cold store; executions that are `gone` may leave."""

    async def acknowledge(self, lease: Lease, commit_number: int) -> None:
        """The cold store has this commit number.

        `Lease.cold_number` of later leases is the last of these.
        """

    async def wipe(self, lease: Lease) -> None:
        """Everything of the partition but its inbox and its lease."""

    async def restore(self, lease: Lease, executions: Mapping[str, bytes]) -> None:
        """Put unfinished executions there, each as one change."""

    async def mark_built(self, lease: Lease, store_id: str, commit_number: int) -> None:
        """Rebuilt, and complete. The lease goes on from this commit number."""


class ColdSide(Protocol):
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
        """All of it in one transaction, with the partition's commit number, which never goes down.

        Raises `Fenced`, and stores nothing, if that is half a `REBUILD_JUMP` ahead: the hot store
        is another since. Raises `Fenced` too if the partition was claimed again since `term`; None:
        whoever has claimed it. Raises `ColdStoreWentBack`, and stores nothing, if that is below
        `cold_number`, which it has acknowledged. Rows and changes are replaced by a greater
        (generation, revision); a letter is known by its execution, node and time, and stored once.
        An execution without a row gets one, made from its changes.
        """

    async def claim(self, partition: int, holder: str, server_id: str) -> Claim | None:
        """Compare and set: a new term for whoever holds the partition's lease in the hot store.

        None if somebody else has claimed it on another server of the hot store and was heard of
        lately: then there are two such servers, and only one of them counts.
        """

    async def renew_claim(self, partition: int, term: int, server_id: str) -> bool:
        """Its holder lives, and the hot store's server is this one now.

        False if it was claimed again.
        """

    async def release_claim(self, partition: int, term: int) -> None:
        """Whoever asks next may have it."""

    async def begin_rebuild(self, partition: int, term: int, commit_number: int) -> int:
        """A new generation, greater than all before, and the commit number that the hot store will go on from.

        Raises `Fenced` if the partition was claimed again since `term`.
        """

    async def put_version_back(self, version: WorkflowVersion) -> bool:
        """A version that executions run and that may be missing.

        False if its number has another content now.
        """

    async def unfinished(
        self, partition: int, after: str = "", limit: int = 500
    ) -> list[Unfinished]:
        """Executions that should run and haven't ended, by id."""


class Split(Protocol):
    @property
    def hot(self) -> HotSide: ...
    @property
    def cold(self) -> ColdSide: ...
