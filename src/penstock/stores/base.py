"""The protocols that every store keeps. The contract suite says the same as tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol
from zlib import crc32

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun, Stop, Task, Transition
from penstock.engine.events import AnyEvent, Blob, TaskEvent, Value
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, NotFound

if TYPE_CHECKING:
    from penstock.stores.cold import ColdStore
    from penstock.stores.records import FeedEntry
    from penstock.stores.split import Split

ControlRequest = Literal["cancel", "pause", "resume"]
"""What a user asks of an execution that runs. SQL stores it in the column `wish`."""


class Lease(msgspec.Struct):
    """The right to decide for a partition.

    `token` can't be guessed, so nobody holds an old one by accident.
    """

    partition: int
    owner: str
    token: str
    commit_number: int
    """Of the last commit; every commit expects it and raises it."""
    position: int
    """Up to where the inbox has been handled."""
    cold_number: int = 0
    """The last that the cold store has acknowledged: one that knows less was put back to an older
    copy.
    """
    term: int = 0
    """Where hot and cold are two: of the claim on this partition in the cold store.

    0: there is none.
    """


class Commit(msgspec.Struct):
    """Everything that one batch of events decided for a partition: all of it happens, or nothing."""

    partition: int
    token: str
    commit_number: int
    """The number that the store must be at."""
    position: int
    changes: Sequence[Commands]
    data: Sequence[bytes]
    """For each of the changes, what is kept of it; empty if that is nothing.

    Encoded before the commit is on its way: the executions go on meanwhile, and what they become
    isn't part of it.
    """


class Stored(msgspec.Struct):
    """An execution as the store has it."""

    record: ExecutionRecord
    runs: dict[str, NodeRun]
    outputs: dict[str, Value]
    last_seq: int
    history: list[Transition]
    logs: list[tuple[str, int, str]]


class Intent(msgspec.Struct):
    """The intent to run an execution: once it is recorded, the execution will run."""

    record: ExecutionRecord
    idempotency_key: str | None = None
    request_hash: str = ""
    """Of what was asked, so that the same key with another request can be told."""
    retry_of: str | None = None
    kept: list[Kept] = []
    """Of a retry: what needn't run again."""
    waits: bool = False
    """Stored as PENDING, and not started before `trigger`."""
    key_scope: str = ""
    """Whose idempotency key it is: the API key's id. A key is known for `KEY_SECONDS`."""

    def remember_key(self) -> None:
        """In the execution's own record too, which is all that the hot store has of this."""
        if self.idempotency_key is not None:
            self.record.idempotency = [self.key_scope, self.idempotency_key, self.request_hash]


class Kept(msgspec.Struct, array_like=True):
    """The outcome of a node that an earlier execution of the chain has completed."""

    address: str
    output: Value


KEY_SECONDS = 24 * 3600.0


class WorkflowVersion(msgspec.Struct):
    name: str
    version: int
    content_hash: str
    document: bytes
    created_at: float


INLINE = "inline:"


def inline_hash(content_hash: str) -> str:
    """The content hash of a document that was started inline: the same content may be stored by name beside it."""
    return INLINE + content_hash


def partition_of(execution_id: str, partitions: int) -> int:
    return crc32(execution_id.encode()) % partitions


def check_controllable(
    execution_id: str,
    state: str | None,
    request: ControlRequest,
    *,
    waits: bool,
    last_request: str | None = None,
) -> None:
    """Raise if a control request can't be fulfilled in this state.

    `state` is None for an execution that isn't there; `last_request` is the one recorded last.
    """
    if state is None:
        raise NotFound(f"there is no execution {execution_id!r} in this store")
    if state in EXECUTION_ENDS:
        raise Conflict(f"execution {execution_id} is {state}; it can't be changed any more")
    if waits and request != "cancel":
        raise Conflict(
            f"execution {execution_id} hasn't been triggered; trigger it first, or cancel it"
        )
    if (
        last_request == "cancel" and request != "cancel"
    ):  # or the later control request would stand where the cancel was
        raise Conflict(f"execution {execution_id} is being cancelled")
    pausing = last_request == "pause" or (
        state == ExecutionState.PAUSED and last_request != "resume"
    )
    if request == "pause" and pausing:
        raise Conflict(f"execution {execution_id} is paused already")
    if request == "resume" and not pausing:
        raise Conflict(f"execution {execution_id} isn't paused")


def check_triggerable(execution_id: str, state: str | None, *, waits: bool) -> None:
    if state is None:
        raise NotFound(f"there is no execution {execution_id!r} in this store")
    if not waits:
        raise Conflict(
            f"execution {execution_id} is {state}; only one that waits for it can be triggered, and once"
        )


class HotStore(Protocol):
    @property
    def partitions(self) -> int: ...
    @property
    def keeps_tasks(self) -> bool:
        """False: queued tasks don't outlive the process, so a new owner hands them out again."""
        ...

    def now(self) -> float:
        """The store's clock: leases and timers go by this one."""

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        """A lease, unless somebody else's still runs."""

    async def renew(self, lease: Lease, seconds: float) -> bool: ...

    async def release(self, lease: Lease) -> None: ...

    async def append(self, events: Sequence[AnyEvent], *, own: bool = False) -> None:
        """Put events in the inboxes of their executions' partitions, in order.

        `own`: they are the owner's, which are taken also by a store that is full.
        """

    async def receive(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        """Events after a position, with their positions. Waits for the first up to the time-out."""

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        """Unknown ones are missing from the answer."""

    async def commit(self, commit: Commit) -> None:
        """Raises `Fenced` if the token or the commit number has moved on; then nothing was written."""

    async def due(self, partition: int, now: float, limit: int) -> list[str]:
        """Executions whose timer is due."""

    async def next_due(self, partition: int) -> float | None: ...

    async def active(self, partition: int) -> list[str]:
        """Executions that have started and not ended."""

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        """Those of which something was committed here."""

    def check_open(self) -> None:
        """Raises `StoreUnavailable` if it is known that no events can be appended now."""

    async def attend(self, name: str, seconds: float, about: Mapping[str, Any]) -> list[str]:
        """The orchestrator `name` lives, at least for so long; answers the names of all that do, sorted."""

    async def depart(self, name: str) -> None:
        """It doesn't any more."""


class Offer(msgspec.Struct):
    """What a worker says that it does."""

    worker_id: str
    queues: Collection[str]
    """Whose tasks it takes."""
    handlers: Mapping[str, HandlerDefaults] | None
    """Those it has, and what each asks for.

    None: it doesn't say (a worker of an older version), so it may have any.
    """
    started_at: float = 0.0
    silent_seconds: float = 0.0
    """Since its last heartbeat."""
    heartbeat_seconds: float = 0.0
    """How often it sends one. 0: it doesn't say."""

    def has(self, handler: str) -> bool:
        return self.handlers is None or handler in self.handlers


class Backlog(msgspec.Struct, frozen=True):
    """Tasks of a queue that wait in one partition."""

    queue: str
    handler: str | None
    """Set for tasks that a worker of the queue passed over because it doesn't have their handler.
    """
    waiting: int


class WaitingTask(msgspec.Struct):
    task: Task
    place: str
    """Where it waits. A task that is handed out again waits in another place."""
    waiting_seconds: float


class TaskQueue(Protocol):
    async def fetch(
        self,
        worker_id: str,
        queues: Collection[str],
        limit: int,
        handlers: Collection[str] | None = None,
    ) -> list[Task]:
        """Up to `limit` tasks, now this worker's. Waits for the first.

        Only tasks of these `handlers`; None means of any. Others in these queues stay for workers
        that have theirs, and are not in the way of what comes behind them.
        """

    async def give_back(self, worker_id: str, tasks: Sequence[Task]) -> None:
        """These were fetched and never ran: they wait again, and it costs them no attempt."""

    def begin(self, key: tuple[str, str, int, int]) -> None:
        """Its handler is about to be called, perhaps in another thread: from here on a crash may be its fault."""

    async def held(self, worker_id: str) -> list[Task]:
        """All that is on this worker's list: what a fetch took whose answer got lost is there too."""

    async def report(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        """Outcomes: into the inbox and off the worker's list in one step.

        Tasks no longer this worker's are dropped.
        """

    async def started(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        """Long tasks have begun; they stay on the worker's list."""

    async def heartbeat(
        self,
        worker_id: str,
        queues: Collection[str],
        held: Collection[Stop],
        handlers: Mapping[str, HandlerDefaults] | None = None,
    ) -> list[Stop]:
        """I live, and this is what I do.

        Answers which of the held tasks aren't this worker's any more.
        """

    async def offers(self) -> list[Offer]:
        """What each worker said of itself with its last heartbeat."""

    async def share_logs(self, texts: Mapping[tuple[str, str, int, int], str]) -> None:
        """What running tasks have logged so far, in place of what was shared before; an empty text takes it away.

        Only to look at: it is kept for a minute at least, not for ever, and perhaps for longer than the task runs.
        """

    async def live_log(self, key: tuple[str, str, int, int]) -> str:
        """What was shared of a task; empty if there is nothing.

        Whether it still runs, its node's state says.
        """

    async def workers(self) -> Mapping[str, int]:
        """The heartbeat counter of each known worker."""

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        """Turn the tasks of a dead worker in this partition into `TaskLost`. Raises `Fenced`."""

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        """Stop being a worker; hand back what was fetched and never ran."""

    async def depths(self) -> Mapping[str, tuple[int, int]]:
        """For each queue, how many tasks wait and how many are in workers' hands."""

    async def backlog(self, partition: int) -> list[Backlog]:
        """What waits in a partition, by queue, and by handler for tasks that workers of their queue passed over."""

    async def recall(
        self,
        partition: int,
        token: str,
        backlog: Backlog,
        decide: Callable[[WaitingTask], TaskEvent | None],
    ) -> int:
        """Take tasks back that wait: those for which `decide` answers an event. Raises `Fenced`.

        The event goes into the inbox and the task off its queue in one step; a task that a worker
        takes meanwhile is the worker's. Looks at a portion of the backlog, the next call at the
        next. Answers how many it took back.
        """

    def knows(self, key: tuple[str, str, int, int]) -> bool:
        """Whether the task waits here or is in a worker's hands (asked only where tasks don't outlive the process)."""

    def orphans(self) -> Collection[tuple[str, str, int, int]]:
        """Tasks that workers held when the last process ended, where no list of that outlives it by itself."""

    def disown(self, keys: Iterable[tuple[str, str, int, int]]) -> None:
        """These orphans have been dealt with already."""


class BlobStore(Protocol):
    async def put(self, data: bytes) -> Blob: ...

    async def get(self, blob: Blob) -> bytes: ...

    async def delete(self, blob: Blob) -> None: ...


class CommitFeed(Protocol):
    """What orchestrators commit, as it comes, for processes that don't decide themselves."""

    def subscribe(self) -> AsyncIterator[list[FeedEntry]]:
        """What is committed from now on, in all partitions.

        The first list comes at once, perhaps empty: the subscription has begun.

        Raises `StoreError` when some may have been missed.
        """


class Stores(Protocol):
    """What one address (`sqlite:///…`, `memory://`) opens."""

    @property
    def hot(self) -> HotStore: ...
    @property
    def queue(self) -> TaskQueue: ...
    @property
    def cold(self) -> ColdStore: ...
    @property
    def blobs(self) -> BlobStore: ...

    @property
    def split(self) -> Split | None:
        """What there is to move between hot and cold; None where they are one."""

    @property
    def commit_feed(self) -> CommitFeed | None:
        """What others commit, as it comes; None where there are no others."""

    async def open(self) -> None:
        """Before anything else is asked of them."""

    async def forget(self, before: float) -> int:
        """Delete executions that ended, or were made and never triggered, before this time, with all that is theirs.

        One stays as long as a retry of it does. In steps that hold nobody up. Answers how many are gone.
        """

    async def close(self) -> None: ...
