"""The protocol of cold stores: definitions, intents and everything that outlives an execution's run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Transition
from penstock.stores.base import ControlRequest, Intent, Stored, WorkflowVersion
from penstock.stores.idempotency import KeyUse
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

NO_LINES: Mapping[str, AuditLine] = {}


class Definitions(Protocol):
    async def put_workflow(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        """The same content gives the same version (a deleted one is back then), changed content the next."""

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        """A document that was started as it is, stored for its executions only: no name, alias or list leads to it.

        It takes the next number of its name, so that executions show both as usual. Content that is a version already
        is that version; but a deleted one stays deleted.
        """

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        """Without a version the newest that isn't deleted; a deleted or inline one only by its number."""

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        """By name, from the one behind `after`."""

    async def versions(self, name: str) -> list[WorkflowVersion]:
        """The newest first, without deleted ones."""

    async def delete_workflow(self, name: str) -> bool:
        """All its versions and aliases: it isn't listed and can't be started any more.

        False if there is none.
        """

    async def aliases(self, name: str) -> dict[str, Weights]: ...

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        """Raises `NotFound` if one of the versions doesn't exist."""

    async def remove_alias(self, name: str, alias: str) -> bool: ...

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        """What workers have, and what their handlers ask for; of one name the last word counts."""

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
        """What an idempotency key was used for, or None."""

    async def trigger(
        self, execution_id: str, given: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        """Start one that `waits`, with this input (None: the one it has).

        Compare and set: of two triggers one wins.

        `overrides` are put over those that it has, node by node.

        Raises `NotFound`, or `Conflict` if it doesn't wait.
        """

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """Record a control request for an execution that hasn't ended, before it is tried.

        The last one counts.

        A cancel also makes one that `waits` begin, so that it can end. Raises `NotFound`, or `Conflict` if it has ended
        or, for the other control requests, waits.
        """

    async def control_requests(self, partition: int) -> Mapping[str, ControlRequest]:
        """The control requests of executions that haven't ended: what a new owner has to see to.

        What is fulfilled may be left out.
        """

    async def started(self, partition: int) -> list[str]:
        """Executions that should run and haven't ended: what recovery compares with the hot store.

        Those that the hot store is known to have may be left out where it keeps its tasks.
        """

    async def execution(self, execution_id: str) -> Stored | None:
        """One that nothing was committed for is PENDING, whether it waits or is about to begin."""

    async def intent(self, execution_id: str) -> Intent | None: ...

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        """Of many at once; unknown ones are missing.

        Where ended executions leave the hot store, the record of one that has ended says so in its
        state.
        """

    async def search(self, search: Search) -> list[ExecutionRow]: ...

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        """Lines with a greater `seq`; None if there is no such execution."""

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        """The commit feed behind a cursor: what all executions went through; empty at its end.

        In the order of commits within each partition, in any order among partitions; no entry of a
        partition is left out before a later one. Raises `FeedGap` if some of it isn't kept any more.
        """

    async def commits_end(self) -> FeedCursor:
        """The cursor behind the last commit.

        Whatever is before it can be read, and whatever comes will be behind it.
        """


class DeadLetters(Protocol):
    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        """With `closed`, those that are closed as well."""

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None: ...

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        """Answers how many of them were open; those that were closed stay as they are."""


class Counting(Protocol):
    """What a page of charts asks for all the time: none of these reads more rows than about what `most` says.

    States are those that a search shows. Where hot and cold are two, an end is counted once the cold store has heard of
    it, a moment later; and of what it has heard nothing yet, only the newest are looked up in the hot store.
    """

    async def count_created(self, window: Window, most: int) -> Counts:
        """Those created since the window began, by workflow, state and bucket: the newest `most` of them."""

    async def count_active(self, most: int) -> dict[str, int]:
        """How many are PENDING, RUNNING and PAUSED, whatever their age; each is counted up to `most`.

        Of those that should run, whether they have begun or not, only the newest 2 × `most` are looked at.
        """

    async def count_unfinished(self) -> dict[str, int]:
        """By workflow, how many executions should run and haven't ended; not those that wait to be triggered."""

    async def count_dead_letters(self, most: int) -> int:
        """Those that are open, counted up to `most`."""


class Keys(Protocol):
    async def put_key(self, key: ApiKey) -> None:
        """Also in place of the one with the same id."""

    async def keys(self) -> list[ApiKey]:
        """Revoked ones too, in order of creation."""

    async def revoke_key(self, key_id: str, now: float) -> bool:
        """False if there is none, or it was revoked before."""


class Audit(Protocol):
    async def write_audit(self, lines: Sequence[AuditLine]) -> None: ...

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        """The newest first."""

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        """Delete lines from before this time, the oldest first, at most so many; answers how many there were."""


class ColdStore(Definitions, Executions, DeadLetters, Counting, Keys, Audit, Protocol):
    """All of it."""
