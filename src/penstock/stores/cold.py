"""The protocol of cold stores: definitions, intents and all that outlives an execution's run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Transition
from penstock.engine.events import SignalReceived
from penstock.stores.base import ControlRequest, Intent, Stored, WorkflowVersion
from penstock.stores.hooks import Delivery, Handled, HookRow, MessageClaim
from penstock.stores.idempotency import KeyUse
from penstock.stores.posts import Delivered, Post
from penstock.stores.records import (
    ApiKey,
    AuditLine,
    AuditSearch,
    Closed,
    Counts,
    DeadLetterRow,
    DeadLetterSearch,
    ExecutionRow,
    FeedCursor,
    FeedEntry,
    Search,
    Weights,
    Window,
    WorkflowRow,
)
from penstock.stores.schedules import Schedule, SlotRow, SlotSearch, SlotWrite
from penstock.stores.signals import Judge, NewSignal, StoredSignal
from penstock.stores.waits import WaitRow, WaitSearch

NO_LINES: Mapping[str, AuditLine] = {}


class Definitions(Protocol):
    async def put_workflow(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        """Store a workflow document, and answer its version.

        The same content gives the same version (a deleted one is back then), changed content the
        next.
        """

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        """Store a document that was started as it is, for its executions only.

        No name, alias or list leads to it. It takes the next number of its name, so that executions
        show both as usual. Content that is a version already is that version; but a deleted one
        stays deleted.
        """

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        """A version of a workflow; without a number the newest that isn't deleted.

        A deleted or inline one is found only by its number.
        """

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        """Workflows by name, from the one behind `after`."""

    async def versions(self, name: str) -> list[WorkflowVersion]:
        """Versions of a workflow, the newest first, without deleted ones."""

    async def delete_workflow(self, name: str) -> bool:
        """Delete all versions and aliases of a workflow.

        It isn't listed and can't be started any more. False if there is none.
        """

    async def aliases(self, name: str) -> dict[str, Weights]: ...

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        """Set the weights of an alias. Raises `NotFound` if one of the versions doesn't exist."""

    async def remove_alias(self, name: str, alias: str) -> bool: ...

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        """Store the handlers that workers have, and what these ask for.

        Of one name the last word counts.
        """

    async def known_handlers(self) -> dict[str, HandlerDefaults]: ...


class Executions(Protocol):
    async def record_intents(
        self, intents: Sequence[Intent], audit: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        """Record intents: once they are recorded, their executions will run.

        Answers the ids in order: for a known idempotency key that of the execution it started.

        `audit` has lines by execution id: they are written in the same step, for those that are
        new.

        Raises `KeyReused` if a key comes back with another request; then none of them is stored.
        """

    async def key_use(self, scope: str, key: str) -> KeyUse | None:
        """The execution that an idempotency key has made."""

    async def trigger(
        self, execution_id: str, input_: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        """Start an execution that `waits`, with this input (None: the one it has).

        Compare and set: of two triggers one wins.

        `overrides` are put over those that it has, node by node.

        Raises `NotFound`, or `Conflict` if it doesn't wait.
        """

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """Record a control request for an execution that hasn't ended, before it is tried.

        The last request counts. A cancel also makes one that `waits` begin, so that it can end.
        Raises `NotFound`, or `Conflict` if it has ended or, for the other requests, waits.
        """

    async def control_requests(self, partition: int) -> Mapping[str, ControlRequest]:
        """Control requests for executions that haven't ended: what a new owner has to see to.

        What is fulfilled may be left out.
        """

    async def started(self, partition: int) -> list[str]:
        """Executions that should run and haven't ended: what recovery compares with the hot store.

        Those that the hot store is known to have may be left out where it keeps its tasks.
        """

    async def execution(self, execution_id: str) -> Stored | None:
        """An execution; one that nothing was committed for is PENDING.

        Whether it waits or is about to begin.
        """

    async def since(self, execution_id: str, after: int) -> Stored | None:
        """What has been committed of an execution behind a history line; None if there is none.

        Its lines with a greater `seq`, and the node records and outputs that were written with
        them. Others are missing, and the record may be the submitted one: what never changes in it
        is right. A store that can read backwards takes no longer than for what is new.
        """

    async def intent(self, execution_id: str) -> Intent | None: ...

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        """Intents of many executions at once; unknown ones are missing.

        Where ended executions leave the hot store, the record of one that has ended says so in its
        state.
        """

    async def search(self, search: Search) -> list[ExecutionRow]: ...

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        """History lines with a greater `seq`; None if there is no such execution."""

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        """The commit feed behind a cursor: what all executions went through; empty at its end.

        In the order of commits within each partition, in any order among partitions; no entry of a
        partition is left out before a later one. Raises `FeedGap` if some of it was trimmed.
        """

    async def commits_end(self) -> FeedCursor:
        """The cursor behind the last commit.

        Whatever is before it can be read, and whatever comes will be behind it.
        """


class Signals(Protocol):
    """Signals to executions. They are stored before they are answered, and then delivered."""

    async def put(
        self, signal: NewSignal, taken: int = 0, judge: Judge | None = None
    ) -> StoredSignal:
        """Store a signal under the next number of its execution; the first is 1.

        `taken`: how many of the execution's signals nodes have taken.

        `judge` is given the execution's signals of the same name, in the step that stores this one:
        nothing comes between.

        Raises `NotFound`, `Conflict` if the execution has ended or waits to be triggered,
        `Overloaded` if it has too many signals that nobody has taken, or `KeyReused`.
        """

    async def of(self, execution_ids: Collection[str]) -> dict[str, list[SignalReceived]]:
        """All signals of executions, by number; executions without any are missing."""

    async def undelivered(self, partition: int) -> list[SignalReceived]:
        """Signals of unfinished executions that no copy of theirs has.

        They may not have reached the inbox, or a hot store that has gone back has lost them. Those
        that have a copy can't get lost: a hot store that is behind it is built again.
        """


class Posts(Protocol):
    async def put(self, post: Post) -> Delivered:
        """Store a signal for whoever waits for its name and correlation.

        Those who wait get it in the same step; those who begin to wait until it expires get it then
        (unless it is for one, and one has got it). So it makes no difference which comes first.
        """


class Waits(Protocol):
    async def find(self, search: WaitSearch) -> list[WaitRow]:
        """Nodes that wait for somebody, in the order in which that became known.

        Where hot and cold store are two, a wait is listed a moment after it has begun.
        """


class Schedules(Protocol):
    """Schedules and their slots. They are nowhere else: the hot store can lose nothing of them."""

    async def write(self, schedule: Schedule, slots: Sequence[SlotWrite] = ()) -> list[str] | None:
        """Write a schedule, rows of its slots and the intents of their executions, in one step.

        Compare and set: None, and nothing is written, unless the stored schedule has this id and
        this `revision` (0: no schedule has the name). Otherwise `revision` is one more then.

        Of a slot that has a row already, nothing is written, unless it was `queued`. Returns the
        names of the slots that were written; whoever called then appends their starts.
        """

    async def get(self, name: str) -> Schedule | None: ...

    async def page(self, after: str | None = None, limit: int = 50) -> list[Schedule]:
        """Schedules by name, from the one behind `after`."""

    async def of_partition(self, partition: int) -> list[Schedule]:
        """Schedules that the owner of a partition looks after, in any order."""

    async def delete(self, name: str) -> bool:
        """Delete a schedule and the rows of its slots; what it has started goes on."""

    async def slots(self, search: SlotSearch) -> list[SlotRow]: ...

    async def forget_slots(self, before: float, limit: int = 1000) -> int:
        """Delete rows of slots that were recorded before this time, at most so many.

        Answers how many there were.
        """


class Hooks(Protocol):
    """Hooks, what was delivered to them, and which messages they have had."""

    async def put(self, hook: HookRow) -> bool:
        """Store a hook, also in place of the one with the same id, whose `created_at` stays.

        True if there was none.
        """

    async def get(self, hook_id: str) -> HookRow | None: ...

    async def hooks(self) -> list[HookRow]:
        """All hooks, by id."""

    async def delete(self, hook_id: str) -> bool:
        """Delete a hook with its deliveries and messages. False if there is none."""

    async def claim(self, hook_id: str, message: bytes, now: float) -> MessageClaim:
        """Claim a message: of many who try it, one gets it.

        An answer is known for `MESSAGE_SECONDS` after the claim. A claim without an answer ends
        after `CLAIM_SECONDS`.
        """

    async def release(self, hook_id: str, message: bytes, claimed_at: float) -> None:
        """Give a claim back that was made at this time and has no answer."""

    async def record(self, delivery: Delivery, handled: Handled | None = None) -> int | None:
        """Store a delivery, and in the same step the answer of its message.

        Answers its number; None if the hook was deleted. Only the newest `DELIVERIES_MAX` of each
        hook stay.
        """

    async def deliveries(
        self, hook_id: str, now: float, before: int | None = None, limit: int = 50
    ) -> list[Delivery]:
        """Deliveries of a hook, the newest first; without requests that are too old."""

    async def delivery(self, hook_id: str, delivery_id: int, now: float) -> Delivery | None: ...

    async def forget(self, now: float) -> int:
        """Delete requests and messages that are too old. Answers how many there were."""


class DeadLetters(Protocol):
    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        """Dead letters; with `closed`, those that are closed as well."""

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None: ...

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        """Close dead letters; answers how many of them were open.

        Those that were closed stay as they are.
        """


class Counting(Protocol):
    """Counts for charts, which are asked for all the time.

    None of these reads many more rows than `limit`. States are those that a search shows. Where hot
    and cold store are two, the end of an execution is counted once the cold store has it, a moment
    later; and of executions without a copy, only the newest are looked up in the hot store.
    """

    async def count_created(self, window: Window, limit: int) -> Counts:
        """Executions created since the window began, by workflow, state and bucket.

        The newest `limit` of them.
        """

    async def count_active(self, limit: int) -> dict[str, int]:
        """The number of PENDING, RUNNING and PAUSED executions, whatever their age.

        Each is counted up to `limit`. Of those that should run, whether they have begun or not, a
        store may read only the newest 2 × `limit`.
        """

    async def count_unfinished(self) -> dict[str, int]:
        """The number of executions that should run and haven't ended, by workflow.

        Not those that wait to be triggered.
        """

    async def count_dead_letters(self, limit: int) -> int:
        """The number of open dead letters, counted up to `limit`."""


class ApiKeys(Protocol):
    async def put_key(self, key: ApiKey) -> None:
        """Store an API key, also in place of the one with the same id."""

    async def keys(self) -> list[ApiKey]:
        """API keys in order of creation, revoked ones too."""

    async def revoke_key(self, key_id: str, now: float) -> bool:
        """Revoke an API key. False if there is none, or it was revoked before."""


class AuditLog(Protocol):
    async def write_audit(self, lines: Sequence[AuditLine]) -> None: ...

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        """Audit lines, the newest first."""

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        """Delete audit lines from before this time, the oldest first, at most so many.

        Answers how many there were.
        """


class ColdStore(Protocol):
    """A cold store: one object for each kind of thing that it has."""

    @property
    def definitions(self) -> Definitions: ...
    @property
    def executions(self) -> Executions: ...
    @property
    def signals(self) -> Signals: ...
    @property
    def waits(self) -> Waits: ...
    @property
    def posts(self) -> Posts: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def hooks(self) -> Hooks: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def counts(self) -> Counting: ...
    @property
    def api_keys(self) -> ApiKeys: ...
    @property
    def audit_log(self) -> AuditLog: ...
