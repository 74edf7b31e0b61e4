"""What the store does.

Each call is all or nothing, and checks everything before it changes anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tests.explorer import judge
from tests.explorer.deciding import applied, lost
from tests.explorer.world import Commit, Entry, Guard, Key, Ledger, Store, Worker, World, fresh

Removed = frozenset[Guard]
JUMP = 1000


def acquire(world: World) -> tuple[World, int]:
    """A lease, with a token that nobody has or has ever seen."""
    used = {
        world.store.token,
        *(owner.token for owner in world.owners),
        *(commit.token for commit in world.late),
    }
    token = fresh({0, *used})
    return replace(world, store=replace(world.store, token=token, is_free=False)), token


def is_fenced(store: Store, commit: Commit, removed: Removed) -> bool:
    wrong_token = commit.token != store.token and Guard.TOKEN not in removed
    return wrong_token or (commit.number != store.number and Guard.NUMBER not in removed)


def commit(world: World, commit: Commit, removed: Removed) -> World:
    """Of one that isn't fenced."""
    judge.check_commit(world, commit)
    store = trimmed(world.store, commit.position)
    execution = applied(store.execution, commit.change) if commit.change else store.execution
    store = replace(store, number=commit.number + 1, execution=execution)
    world = replace(world, store=store, ledger=judge.noted(world.ledger, commit))
    return world if Guard.TASKS in removed else hand_out(world, commit, removed)


def trimmed(store: Store, position: int) -> Store:
    read = max(0, position + 1 - store.first)
    return replace(store, position=position, first=store.first + read, inbox=store.inbox[read:])


def hand_out(world: World, commit: Commit, removed: Removed) -> World:
    """Put the tasks of a commit into the queue, and remove those that it stops.

    They are removed from the lists of workers too.
    """
    for key in commit.tasks:
        used = {entry.id for entry in known_entries(world)}
        store = replace(world.store, entries=(*world.store.entries, Entry(fresh(used), key)))
        world = replace(world, store=store)
    if Guard.STOPS in removed:
        return world
    return replace(world, store=without(world.store, commit.stops))


def known_entries(world: World) -> Iterable[Entry]:
    yield from world.store.entries
    yield from (worker.entry for worker in world.workers if worker.entry is not None)


def without(store: Store, keys: Iterable[Key]) -> Store:
    stopped = set(keys)
    return (
        replace(store, entries=tuple(entry for entry in store.entries if entry.key not in stopped))
        if stopped
        else store
    )


def append(store: Store, *events: bytes) -> Store:
    return replace(store, inbox=store.inbox + events)


def fetch(world: World, entry: Entry, worker: int) -> tuple[World, Entry]:
    judge.check_fetch(world.store.execution, entry.key)
    claimed = replace(entry, claimed_by=worker)
    entries = tuple(
        claimed if other_entry == entry else other_entry for other_entry in world.store.entries
    )
    return replace(world, store=replace(world.store, entries=entries)), claimed


def report(world: World, worker: Worker, removed: Removed) -> World:
    """The outcome into the inbox and the task off the list, if it is on this worker's."""
    assert worker.entry is not None
    if worker.entry not in world.store.entries and Guard.CLAIMED not in removed:
        return world
    entries = tuple(entry for entry in world.store.entries if entry != worker.entry)
    store = append(replace(world.store, entries=entries), worker.outcome)
    return replace(world, store=store, ledger=_reported(world.ledger, worker.entry.key))


def reap(world: World, worker: int) -> World:
    """What a dead worker had is lost: told in the same step."""
    entries = [entry for entry in world.store.entries if entry.claimed_by == worker]
    ledger = world.ledger
    for entry in entries:
        ledger = _reported(ledger, entry.key)
    left = tuple(entry for entry in world.store.entries if entry.claimed_by != worker)
    store = append(replace(world.store, entries=left), *(lost(entry.key) for entry in entries))
    return replace(world, store=store, ledger=ledger)


def _reported(ledger: Ledger, key: Key) -> Ledger:
    judge.check_report(ledger, key)
    return replace(ledger, reported=tuple(sorted((*ledger.reported, key))))


def lose_everything(store: Store) -> Store:
    """Positions are times: the inbox of a new store is after the old one's."""
    position = beyond(store.first + len(store.inbox))
    return Store((), first=position + 1, position=position, is_built=False)


def beyond(number: int) -> int:
    """A round number, so that it makes no difference how many there were before."""
    return (number // JUMP + 1) * JUMP
