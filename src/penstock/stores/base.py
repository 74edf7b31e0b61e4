"""The protocols that every store keeps. The contract suite says the same as tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol
from zlib import crc32

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import ExecutionRecord, NodeRun, Stop, Task, Transition
from penstock.engine.events import AnyEvent, Blob, SignalReceived, TaskEvent, Value
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, NotFound

if TYPE_CHECKING:
    from penstock.stores.cold import ColdStore
    from penstock.stores.commit_plan import CommitPlan
    from penstock.stores.fleet import FleetStore, OrchestratorDetails
    from penstock.stores.records import FeedEntry
    from penstock.stores.tiering import Tiering
    from penstock.stores.topology import Topology

ControlRequest = Literal["cancel", "pause", "resume"]
"""What a user asks of an execution that runs."""


class Lease(msgspec.Struct):
    """The right to decide for a partition.

    `token` can't be guessed, so nobody holds an old one by accident.
    """

    partition: int
    owner: str
    token: str
    commit_number: int
    """The number of the last commit; every commit expects it and raises it."""
    position: int
    """The position in the inbox up to which events have been handled."""
    cold_number: int = 0
    """The last commit number that the cold store has acknowledged.

    A cold store that knows less was put back to an older copy.
    """
    claim_term: int = 0
    """The term of this owner's claim on the partition in the cold store (`Claim.term`).

    0: there is no claim, because hot and cold are one store or the partition isn't claimed yet.
    """


class Stored(msgspec.Struct):
    """An execution as the store has it."""

    record: ExecutionRecord
    runs: dict[str, NodeRun]
    outputs: dict[str, Value]
    last_seq: int
    history: list[Transition]
    logs: list[tuple[str, int, str]]
    signals: list[SignalReceived] = []
    """Signals that were received, in that order."""


class Intent(msgspec.Struct):
    """The intent to run an execution: once it is recorded, the execution will run."""

    record: ExecutionRecord
    idempotency_key: str | None = None
    request_hash: str = ""
    """A hash of the request, so that the same key with another request can be told."""
    retry_of: str | None = None
    reused: list[ReusedOutput] = msgspec.field(default_factory=list, name="kept")
    """The outcomes of nodes that a retry needn't run again."""
    waits: bool = False
    """Whether it is stored as PENDING, and not started before `trigger`."""
    key_scope: str = ""
    """The id of the API key whose idempotency key it is. A key is known for `KEY_SECONDS`."""

    def remember_key(self) -> None:
        """Put the idempotency key into the execution's record, all that the hot store has."""
        if self.idempotency_key is not None:
            self.record.idempotency = (self.key_scope, self.idempotency_key, self.request_hash)


class ReusedOutput(msgspec.Struct, array_like=True):
    """A reused output: of a node that an earlier execution of the chain has completed."""

    node_id: str
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
    """The content hash of a document that was started inline.

    The same content may be stored by name beside it.
    """
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
    # else the later control request would replace the cancel
    if last_request == "cancel" and request != "cancel":
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
            f"execution {execution_id} is {state}; "
            "only one that waits for it can be triggered, and once"
        )


class HotStore(Protocol):
    @property
    def partitions(self) -> int: ...

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
        """Executions as the store has them; unknown ones are missing from the answer."""

    async def commit(self, plan: CommitPlan) -> None:
        """Write everything that a batch of events decided, in one step.

        Raises `Fenced` if the token or the commit number has moved on; then nothing was written.
        """

    async def due(self, partition: int, now: float, limit: int) -> list[str]:
        """Executions whose timer is due."""

    async def next_due(self, partition: int) -> float | None: ...

    async def active(self, partition: int) -> list[str]:
        """Executions that have started and not ended."""

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        """Those of the executions of which something was committed here."""

    def check_open(self) -> None:
        """Raises `StoreUnavailable` if it is known that no events can be appended now."""

    async def announce(self, name: str, seconds: float, about: OrchestratorDetails) -> list[str]:
        """Announce an orchestrator as a member of the fleet, for at least so many seconds.

        `about` is shown of it. Answers the names of all members, sorted.
        """

    async def deregister(self, name: str) -> None:
        """End the membership of the orchestrator `name` at once."""


class Offer(msgspec.Struct):
    """What a worker says that it does."""

    worker_id: str
    queues: Collection[str]
    """The queues whose tasks it takes."""
    handlers: Mapping[str, HandlerDefaults] | None
    """The handlers that it has, and what each asks for.

    None: it doesn't say (a worker of an older version), so it may have any.
    """
    started_at: float = 0.0
    silent_seconds: float = 0.0
    """Seconds since its last heartbeat."""
    heartbeat_seconds: float = 0.0
    """Seconds between two of its heartbeats. 0: it doesn't say."""

    def has(self, handler: str) -> bool:
        return self.handlers is None or handler in self.handlers


class Backlog(msgspec.Struct, frozen=True):
    """Tasks of a queue that wait in one partition."""

    queue: str
    handler: str | None
    """The handler of tasks that a worker of the queue passed over because it doesn't have it.

    None: of any handler.
    """
    waiting: int


class TasksAhead(msgspec.Struct, frozen=True):
    """Tasks of a queue that are handed out before a certain one."""

    count: int
    is_exact: bool = True
    """False: there may be more. The task is farther back than was looked."""


class WaitingTask(msgspec.Struct):
    task: Task
    location: str
    """Where the task waits. One that is handed out again has another location."""
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
        """Give back tasks that were fetched and never ran: they wait again.

        It costs them no attempt.
        """

    def begin(self, key: tuple[str, str, int, int]) -> None:
        """A task's handler is about to be called, perhaps in another thread.

        From here on a crash may be its fault.
        """

    async def claimed(self, worker_id: str) -> list[Task]:
        """The tasks on this worker's list, also those of a fetch whose answer got lost."""

    async def report(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        """Report outcomes of tasks: into the inbox and off the worker's list in one step.

        Tasks no longer this worker's are dropped.
        """

    async def started(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        """Report that long tasks have begun; they stay on the worker's list."""

    async def heartbeat(
        self,
        worker_id: str,
        queues: Collection[str],
        claimed: Collection[Stop],
        handlers: Mapping[str, HandlerDefaults] | None = None,
    ) -> list[Stop]:
        """Note that a worker lives, and what it does.

        Answers which of the claimed tasks aren't this worker's any more.
        """

    async def offers(self) -> list[Offer]:
        """Offers: what each worker said of itself with its last heartbeat."""

    async def share_logs(self, texts: Mapping[tuple[str, str, int, int], str]) -> None:
        """Share what running tasks have logged so far, in place of what was shared before.

        An empty text takes it away. Only to look at: it is kept for a minute at least, not for
        ever, and perhaps for longer than the task runs.
        """

    async def live_log(self, key: tuple[str, str, int, int]) -> str:
        """The log that was shared of a task; empty if there is none.

        Whether it still runs, its node's state says.
        """

    async def workers(self) -> Mapping[str, int]:
        """The heartbeat counter of each known worker.

        Raises `StoreUnavailable` while no heartbeat could be written.
        """

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        """Turn the tasks of a dead worker in this partition into `TaskLost`. Raises `Fenced`."""

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        """Stop being a worker; hand back what was fetched and never ran."""

    async def depths(self) -> Mapping[str, tuple[int, int]]:
        """The number of tasks that wait and that are in workers' hands, by queue."""

    async def backlog(self, partition: int) -> list[Backlog]:
        """Backlogs of a partition: the tasks that wait, by queue.

        By handler too, for tasks that workers of their queue passed over.
        """

    async def tasks_ahead(
        self, key: tuple[str, str, int, int], queue: str, handler: str, priority: int, limit: int
    ) -> TasksAhead | None:
        """The tasks of all partitions that are ahead of this one; None if it doesn't wait here.

        Ahead are tasks of a higher priority, and of those of its own the ones that came before it.
        Tasks that workers passed over are ahead of others of their priority, and count only if
        they have its handler: else they wait for another worker.

        It is for people, and so for one moment: others may come or go meanwhile. No more than
        `limit` tasks are looked at. If the task isn't among these, the answer isn't exact.
        """

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
        """Whether the task waits here or is in a worker's hands.

        Asked only where tasks don't outlive the process.
        """

    def orphans(self) -> Collection[tuple[str, str, int, int]]:
        """Tasks that workers had claimed when the last process ended.

        Only where no list of that outlives it by itself.
        """

    def disown(self, keys: Iterable[tuple[str, str, int, int]]) -> None:
        """Forget orphans: they have been dealt with already."""


class BlobStore(Protocol):
    async def put(self, data: bytes) -> Blob: ...

    async def get(self, blob: Blob) -> bytes: ...

    async def delete(self, blob: Blob) -> None: ...


class CommitFeed(Protocol):
    """What orchestrators commit, as it comes, for processes that don't decide themselves."""

    def subscribe(self) -> AsyncIterator[list[FeedEntry]]:
        """Commits from now on, in all partitions.

        The first list comes at once, perhaps empty: the subscription has begun.

        Raises `StoreError` when some may have been missed.
        """


class Stores(Protocol):
    """The stores that one address (`sqlite:///…`, `memory://`) opens."""

    @property
    def topology(self) -> Topology: ...
    @property
    def hot(self) -> HotStore: ...
    @property
    def queue(self) -> TaskQueue: ...
    @property
    def cold(self) -> ColdStore: ...
    @property
    def blobs(self) -> BlobStore: ...

    @property
    def tiering(self) -> Tiering | None:
        """The two tiers that executions move between; None where hot and cold are one store."""

    @property
    def commit_feed(self) -> CommitFeed | None:
        """The commits of other processes, as they come; None where there are no others."""

    @property
    def fleet(self) -> FleetStore | None:
        """The workers and orchestrators of all processes; None where there are no others."""

    async def open(self) -> None:
        """Open the stores, before anything else is asked of them."""

    async def forget(self, before: float) -> int:
        """Delete executions that ended, or were made and never triggered, before this time.

        With all that is theirs. One stays as long as a retry of it does. In steps that hold nobody
        up. Answers how many are gone.
        """

    async def close(self) -> None: ...
