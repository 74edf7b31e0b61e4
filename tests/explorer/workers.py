"""What workers do when nothing goes wrong.

Fetch, run, report, and look for claimed tasks that they don't have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from tests.explorer import store
from tests.explorer.deciding import SUCCEEDED
from tests.explorer.deciding import report as event_of
from tests.explorer.orchestrators import Step
from tests.explorer.store import Removed
from tests.explorer.world import Entry, Guard, Worker, World


def steps(world: World, removed: Removed) -> Iterator[Step]:
    fetches = True
    for worker in world.workers:
        name = f"worker {worker.id}"
        if worker.entry is not None:
            yield f"{name} reports {_shown(worker.entry)}", partial(report, world, worker, removed)
            continue
        stray = _stray(world, worker)
        if stray is not None:
            yield (
                f"{name} finds {_shown(stray)}",
                partial(changed, world, worker, replace(worker, entry=stray)),
            )
        waiting = first_waiting(world)
        if waiting is not None and (fetches or stray is not None):
            yield f"{name} fetches {_shown(waiting)}", partial(_fetch, world, worker, waiting)
        fetches &= stray is not None  # those that have nothing are all the same


def first_waiting(world: World) -> Entry | None:
    return next((entry for entry in world.store.entries if not entry.claimed_by), None)


def changed(world: World, old: Worker, new: Worker) -> World:
    return replace(
        world, workers=tuple(new if worker == old else worker for worker in world.workers)
    )


def report(
    world: World,
    worker: Worker,
    removed: Removed,
    outcome: str = SUCCEEDED,
    *,
    answered: bool = True,
) -> World:
    """Unanswered, it is said again."""
    assert worker.entry is not None
    saying = replace(worker, outcome=worker.outcome or event_of(worker.entry.key, outcome))
    if Guard.ONE_STEP in removed and worker.entry in world.store.entries:
        entries = tuple(entry for entry in world.store.entries if entry != worker.entry)
        return changed(replace(world, store=replace(world.store, entries=entries)), worker, saying)
    blind = removed | {Guard.CLAIMED} if Guard.ONE_STEP in removed else removed
    return changed(
        store.report(world, saying, blind), worker, Worker(worker.id) if answered else saying
    )


def _fetch(world: World, worker: Worker, entry: Entry) -> World:
    world, claimed = store.fetch(world, entry, worker.id)
    return changed(world, worker, replace(worker, entry=claimed))


def _stray(world: World, worker: Worker) -> Entry | None:
    """On its list, and its fetch was never answered."""
    return next((entry for entry in world.store.entries if entry.claimed_by == worker.id), None)


def _shown(entry: Entry) -> str:
    node, generation, attempt = entry.key
    return f"{node} (generation {generation}, attempt {attempt})"
