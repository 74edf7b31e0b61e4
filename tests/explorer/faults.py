"""What can go wrong, while the budget lasts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from penstock.engine.events import CancelRequested
from penstock.stores import codec
from tests.explorer import clients, orchestrators, store, workers
from tests.explorer.deciding import FAILED, ID, REFUSED, started
from tests.explorer.orchestrators import STARTED, Step
from tests.explorer.store import Removed
from tests.explorer.world import Commit, Entry, Owner, Store, Worker, World, fresh

CANCEL = codec.encode(CancelRequested(ID))


def steps(world: World, removed: Removed) -> Iterator[Step]:
    """Each costs one of its kind."""
    for kind in world.budget.__struct_fields__:
        left = getattr(world.budget, kind)
        if left:
            spent = replace(world, budget=replace(world.budget, **{kind: left - 1}))
            yield from _FAULTS[kind](spent, removed)


def echoes(world: World) -> Iterator[Step]:
    """A copy that was on its way arrives."""
    for echo in world.echoes:
        yield f"{_shown(echo)} comes again", partial(_echo, world, echo)


def _echo(world: World, echo: bytes) -> World:
    at = world.echoes.index(echo)
    left = world.echoes[:at] + world.echoes[at + 1 :]
    return replace(world, store=store.append(world.store, echo), echoes=left)


def _crash(world: World, _removed: Removed) -> Iterator[Step]:
    for owner in world.owners:
        if owner.token:
            yield f"owner {owner.token} dies", partial(_abandon, world, owner)
    claimed = {entry.claimed_by for entry in world.store.entries}
    for worker in world.workers:
        if worker.entry is not None or worker.id in claimed:
            yield f"worker {worker.id} dies", partial(_die, world, worker)


def _abandon(world: World, owner: Owner) -> World:
    """What it has sent is on its way, and the lease runs out by itself."""
    if owner.sent is not None:
        world = _with_late(world, owner.sent)
    return orchestrators.changed(world, owner, Owner(), frees=True)


def _with_late(world: World, commit: Commit) -> World:
    return replace(world, late=tuple(sorted((*world.late, commit), key=codec.encode)))


def _die(world: World, worker: Worker) -> World:
    """Another one comes in its place, under another name."""
    used = (
        {other_worker.id for other_worker in world.workers}
        | {entry.claimed_by for entry in world.store.entries}
        | {0}
    )
    return workers.changed(world, worker, Worker(fresh(used)))


def _pause(world: World, _removed: Removed) -> Iterator[Step]:
    claimed = {entry.claimed_by for entry in world.store.entries}
    for owner in world.owners:
        if not owner.token or owner.token != world.store.token:
            continue
        if not world.store.is_free:
            freed = replace(world, store=replace(world.store, is_free=True))
            yield (
                f"owner {owner.token} is paused until its lease has run out",
                partial(replace, freed),
            )
        if owner.must_build:
            continue
        for worker in world.workers:
            if worker.id in claimed:
                name = f"worker {worker.id} is paused, and owner {owner.token} takes it for dead"
                yield name, partial(store.reap, world, worker.id)


def _lost(world: World, removed: Removed) -> Iterator[Step]:
    if world.store == Store((STARTED,)):
        yield (
            "the start is accepted, and doesn't reach the inbox",
            lambda: replace(world, store=Store(())),
        )
    if clients.may_send(world):
        name = "the signal is accepted, and doesn't reach the inbox"
        yield name, partial(clients.send, world, arrives=False)
    for owner in world.owners:
        if owner.sent is not None:
            name = f"owner {owner.token}: commit {owner.number}"
            yield f"{name} arrives, its answer doesn't", partial(_unanswered, world, owner, removed)
            yield f"{name} is late, and isn't waited for", partial(_abandon, world, owner)
    for worker in world.workers:
        if worker.entry is not None:
            name = f"worker {worker.id} reports {worker.entry.key}, and hears no answer"
            yield name, partial(workers.report, world, worker, removed, answered=False)
        waiting = workers.first_waiting(world)
        if worker.entry is None and waiting is not None:
            name = f"worker {worker.id} fetches {waiting.key}, and hears no answer"
            yield name, partial(_fetch_unheard, world, worker, waiting)


def _unanswered(world: World, owner: Owner, removed: Removed) -> World:
    assert owner.sent is not None
    world = orchestrators.arrive_unanswered(world, owner.sent, removed)
    return orchestrators.changed(world, owner, Owner(), frees=True)


def _fetch_unheard(world: World, worker: Worker, waiting: Entry) -> World:
    return store.fetch(world, waiting, worker.id)[0]


def _duplicate(world: World, removed: Removed) -> Iterator[Step]:
    for owner in world.owners:
        if owner.sent is not None:
            name = f"owner {owner.token}: commit {owner.number} arrives, and will again"
            yield (
                name,
                partial(orchestrators.deliver, _with_late(world, owner.sent), owner, removed),
            )
    for event in sorted(set(world.store.inbox)):
        echoed = replace(world, echoes=tuple(sorted((*world.echoes, event))))
        yield f"{_shown(event)} will come again", partial(replace, echoed)


def _loss(world: World, _removed: Removed) -> Iterator[Step]:
    yield (
        "the store loses everything",
        lambda: replace(world, store=store.lose_everything(world.store)),
    )


def _failure(world: World, removed: Removed) -> Iterator[Step]:
    for worker in world.workers:
        if worker.entry is not None and not worker.outcome:
            for outcome in (FAILED, REFUSED):
                name = f"worker {worker.id} reports that {worker.entry.key} {outcome}"
                yield name, partial(workers.report, world, worker, removed, outcome)


def _cancel(world: World, _removed: Removed) -> Iterator[Step]:
    yield "somebody cancels", lambda: replace(world, store=store.append(world.store, CANCEL))


def _long(world: World, _removed: Removed) -> Iterator[Step]:
    for entry in world.store.entries:
        if entry in [worker.entry for worker in world.workers]:
            said = replace(world, store=store.append(world.store, started(entry.key)))
            yield (
                f"worker {entry.claimed_by} says that {entry.key} has started",
                partial(replace, said),
            )


def _shown(event: bytes) -> str:
    decoded = codec.decode_event(event)
    return f"{type(decoded).__name__} {getattr(decoded, 'node', '')}".strip()


_FAULTS = {
    "crash": _crash,
    "pause": _pause,
    "lost": _lost,
    "duplicate": _duplicate,
    "loss": _loss,
    "failure": _failure,
    "cancel": _cancel,
    "long": _long,
}
