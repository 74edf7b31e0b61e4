"""What a state of the world is. All of it is immutable, small, and equal if it looks equal."""

from __future__ import annotations

from enum import StrEnum

import msgspec

Key = tuple[str, int, int]
"""A dispatch: node, generation, attempt."""


class Guard(StrEnum):
    """The refusals and the bonds (things that happen in one step) that the guarantees hang on."""

    TOKEN = "a commit needs the lease's token"
    NUMBER = "a commit needs the current commit number"
    POSITION = "the position moves with the commit"
    TASKS = "tasks are handed out with the commit"
    STOPS = "a stopped task is not handed out"
    CLAIMED = "only the worker that claimed a task reports it"
    ONE_STEP = "an outcome is in the inbox when its task is off the list"
    ATTEMPT = "a report of another attempt has no effect"
    GENERATION = "a report of another generation has no effect"
    CURRENT = "a report about a node that isn't out has no effect"
    ENDED = "an execution that has ended changes no more"
    LAST = "no attempt after the last"
    FAN_IN = "a join waits for all its parents"
    SWEPT = "an accepted execution without a start is started"
    SIGNALS_SWEPT = "a stored signal that hasn't arrived is delivered"
    ROOM = "no more items are open than max_parallel says"
    BUILT = "a store without its mark is built again"
    BUILDER = "only the owner builds a store again"
    RAISED = "what is built again is in a new generation"


class Budget(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many of each there may be in one run."""

    crash: int = 0
    """An orchestrator or a worker dies."""
    pause: int = 0
    """An owner's lease passes on, or a worker's tasks do, and it doesn't know."""
    lost: int = 0
    """A call is done, or will be, and isn't answered."""
    duplicate: int = 0
    """A message comes again, at any later time."""
    loss: int = 0
    """The store loses everything."""
    failure: int = 0
    """A handler fails."""
    cancel: int = 0
    """Somebody cancels the execution."""
    long: int = 0
    """A task runs so long that its worker says that it has started."""


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    token: int
    number: int
    position: int
    change: bytes
    tasks: tuple[Key, ...]
    stops: tuple[Key, ...]
    after: bytes
    """The execution as its owner has it in memory from here on."""


class Owner(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An orchestrator. With token 0 it owns nothing."""

    token: int = 0
    number: int = 0
    position: int = 0
    must_build: bool = False
    restored: bool = False
    cache: bytes = b""
    batch: tuple[bytes, ...] = ()
    sent: Commit | None = None


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A task in the queue.

    Ids are never used again while anybody knows them; that makes them unique.
    """

    id: int
    key: Key
    claimed_by: int = 0
    """The worker; 0 while nobody has it."""


class Worker(msgspec.Struct, frozen=True, array_like=True, gc=False):
    id: int
    entry: Entry | None = None
    outcome: bytes = b""
    """What it has reported, or tried to."""


class Store(msgspec.Struct, frozen=True, array_like=True, gc=False):
    inbox: tuple[bytes, ...]
    first: int = 1
    """Position of the first event in the inbox."""
    token: int = 0
    is_free: bool = True
    number: int = 0
    position: int = 0
    is_built: bool = True
    execution: bytes = b""
    entries: tuple[Entry, ...] = ()


class Cold(msgspec.Struct, frozen=True, array_like=True, gc=False):
    generation: int = 1
    number: int = 0
    copy: bytes = b""
    has_ended: bool = False
    is_signalled: bool = False
    """The signal is stored here."""


class Ledger(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What has happened, as far as the judge has to remember it."""

    dispatched: tuple[Key, ...] = ()
    outcomes: tuple[tuple[int, str], ...] = ()
    """Generation and node; the execution itself has no name."""
    reported: tuple[Key, ...] = ()


class World(msgspec.Struct, frozen=True, array_like=True, gc=False):
    store: Store
    budget: Budget
    owners: tuple[Owner, ...] = (Owner(), Owner())
    workers: tuple[Worker, ...] = (Worker(1), Worker(2))
    cold: Cold = Cold()
    late: tuple[Commit, ...] = ()
    """Commits that are on their way and that nobody waits for."""
    echoes: tuple[bytes, ...] = ()
    """Events that come again."""
    ledger: Ledger = Ledger()


def fresh(used: set[int]) -> int:
    """A number that is not in use.

    Not a counter, or states that differ in nothing else would be two.
    """
    number = 1
    while number in used:
        number += 1
    return number
