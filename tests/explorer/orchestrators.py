"""What orchestrators do when nothing goes wrong: own, build, read, decide, commit, reap, copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from penstock.engine.events import CancelRequested, Continued, ExecutionStarted
from penstock.stores import codec
from tests.explorer import judge, store
from tests.explorer.deciding import ID, SIGNAL, decide, intent, rebuilt, thawed_once
from tests.explorer.store import Removed
from tests.explorer.world import Commit, Guard, Owner, World

Step = tuple[str, Callable[[], World]]
STARTED, CONTINUED = codec.encode(ExecutionStarted(ID)), codec.encode(Continued(ID))
MAY_BE_FIRST = (STARTED, codec.encode(CancelRequested(ID)))


def steps(world: World, removed: Removed) -> Iterator[Step]:
    # any of those that own nothing: they are all the same
    if world.store.is_free and Owner() in world.owners:
        yield "an orchestrator gets the lease", partial(_acquire, world, Owner(), removed)
    for owner in world.owners:
        if owner.token:
            yield from _owner_steps(world, owner, removed)
    for late in world.late:
        yield f"the late commit {late.number} arrives", partial(_arrive, world, late, removed)
        yield f"the late commit {late.number} never arrives", partial(_without_late, world, late)


def _owner_steps(world: World, owner: Owner, removed: Removed) -> Iterator[Step]:
    name = f"owner {owner.token}"
    if owner.sent is not None:
        yield f"{name}: commit {owner.number} arrives", partial(deliver, world, owner, removed)
    elif owner.token != world.store.token and not (owner.must_build and Guard.BUILDER in removed):
        yield f"{name} learns that its lease is gone", partial(changed, world, owner, Owner())
    elif owner.must_build:
        yield from _building(world, owner, name, removed)
    elif owner.batch:
        yield f"{name} decides", partial(_decide, world, owner)
    elif _unread(world, owner):
        yield f"{name} reads the inbox", partial(_read, world, owner, removed)
    elif _is_start_missing(world, removed):
        yield (
            f"{name} makes up for a start",
            lambda: replace(world, store=store.append(world.store, STARTED)),
        )
    elif _is_signal_missing(world) and Guard.SIGNALS_SWEPT not in removed:
        yield (
            f"{name} makes up for a signal",
            lambda: replace(world, store=store.append(world.store, SIGNAL)),
        )
    if owner.token == world.store.token and not owner.must_build:
        yield from _beside(world, owner, name)


def _building(world: World, owner: Owner, name: str, removed: Removed) -> Iterator[Step]:
    if owner.restored:
        yield f"{name} marks the store as built", partial(_mark, world, owner)
    else:
        yield f"{name} restores the execution", partial(_restore, world, owner, removed)


def _beside(world: World, owner: Owner, name: str) -> Iterator[Step]:
    """The reaper and the tiering. A copy is of no use once there is nothing more to lose."""
    living = {worker.id for worker in world.workers}
    for dead in sorted({entry.claimed_by for entry in world.store.entries} - living - {0}):
        yield f"{name} reaps worker {dead}", partial(store.reap, world, dead)
    if world.budget.loss and world.store.execution and world.cold.copy != world.store.execution:
        yield f"{name} copies the execution", partial(_copy, world)


def changed(world: World, old: Owner, new: Owner, *, frees: bool = False) -> World:
    """`frees`: the lease, if it is still the old one's, may be had."""
    at = world.owners.index(old)
    owners = sorted((*world.owners[:at], new, *world.owners[at + 1 :]), key=codec.encode)
    if frees and old.token == world.store.token:
        world = replace(world, store=replace(world.store, is_free=True))
    return replace(world, owners=tuple(owners))


def _acquire(world: World, idle: Owner, removed: Removed) -> World:
    world, token = store.acquire(world)
    must_build = not world.store.is_built and Guard.BUILT not in removed
    owner = Owner(token, world.store.number, world.store.position, must_build)
    return changed(world, idle, owner)


def _is_start_missing(world: World, removed: Removed) -> bool:
    is_known = world.store.execution or world.cold.has_ended or STARTED in world.store.inbox
    return not is_known and Guard.SWEPT not in removed


def _is_signal_missing(world: World) -> bool:
    execution = world.store.execution
    if not world.cold.is_signalled or not execution or judge.has_ended(execution):
        return False
    return SIGNAL not in world.store.inbox and not thawed_once(execution).signals


def _unread(world: World, owner: Owner) -> tuple[bytes, ...]:
    return world.store.inbox[max(0, owner.position + 1 - world.store.first) :]


def _read(world: World, owner: Owner, removed: Removed) -> World:
    batch = _unread(world, owner)
    position = world.store.first + len(world.store.inbox) - 1
    reading = replace(owner, batch=batch, position=position)
    if Guard.POSITION in removed:
        world = replace(world, store=store.trimmed(world.store, position))
    return changed(world, owner, reading)


def _decide(world: World, owner: Owner) -> World:
    """And send it."""
    execution = owner.cache or world.store.execution
    if not execution and not world.cold.has_ended and not set(MAY_BE_FIRST).isdisjoint(owner.batch):
        execution = intent()
    decision = decide(execution, owner.batch) if execution else (b"", (), (), b"")
    return changed(
        world,
        owner,
        replace(owner, batch=(), sent=Commit(owner.token, owner.number, owner.position, *decision)),
    )


def deliver(world: World, owner: Owner, removed: Removed) -> World:
    """And the answer arrives."""
    sent = owner.sent
    assert sent is not None
    if store.is_fenced(world.store, sent, removed):
        return changed(world, owner, Owner(), frees=True)
    world = store.commit(world, sent, removed)
    if Guard.TASKS in removed:
        world = store.hand_out(world, sent, removed)
    return changed(
        world, owner, replace(owner, number=sent.number + 1, cache=sent.after, sent=None)
    )


def arrive_unanswered(world: World, commit: Commit, removed: Removed) -> World:
    return (
        world
        if store.is_fenced(world.store, commit, removed)
        else store.commit(world, commit, removed)
    )


def _arrive(world: World, late: Commit, removed: Removed) -> World:
    return arrive_unanswered(_without_late(world, late), late, removed)


def _without_late(world: World, late: Commit) -> World:
    at = world.late.index(late)
    return replace(world, late=world.late[:at] + world.late[at + 1 :])


def _restore(world: World, owner: Owner, removed: Removed) -> World:
    """Rebuild from the last copy, or from the intent.

    In a new generation, so that nothing of the old one has an effect.
    """
    cold, old = world.cold, world.store
    generation = cold.generation + (Guard.RAISED not in removed)
    number = store.beyond(max(cold.number, owner.number))
    execution = b"" if cold.has_ended else rebuilt(cold.copy or intent(), generation)
    new = replace(old, execution=execution, entries=())
    if execution:
        new = store.append(new, CONTINUED if cold.copy else STARTED)
    ledger = judge.since(world.ledger, generation)
    world = replace(
        world, store=new, cold=replace(cold, generation=generation, number=number), ledger=ledger
    )
    return changed(world, owner, replace(owner, restored=True, number=number))


def _mark(world: World, owner: Owner) -> World:
    # nobody will look at it again
    cold = world.cold if world.budget.loss else replace(world.cold, copy=b"")
    world = replace(
        world, store=replace(world.store, is_built=True, number=owner.number), cold=cold
    )
    return changed(world, owner, replace(owner, must_build=False, restored=False))


def _copy(world: World) -> World:
    """A checkpoint; of an execution that has ended, the archive."""
    execution = world.store.execution
    number = max(world.cold.number, world.store.number)
    cold = replace(world.cold, copy=execution, number=number, has_ended=judge.has_ended(execution))
    return replace(world, cold=cold)
