"""The rebuild of a partition of the hot store that has lost its data or gone back in time.

It is done before the partition's inbox is read. That a hot store is empty can't be seen: whoever
produces events fills the keys again at once. So a partition has a mark, written last, that says
which store it was built for; and the cold store knows the commit number that its copies came with.

A replica of the hot store that was promoted, while some still use the one before it, looks like
time travel from both of them. So an owner claims its partition in the cold store before anything
else (`claim`), and builds under that claim.

Everything that is unfinished comes back in a new generation, so that what workers still do for the
old one has no effect: from its last checkpoint, or from its intent if there is none. A brand-new
store takes the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from penstock.engine.commands import StartChild
from penstock.engine.events import (
    AnyEvent,
    CancelRequested,
    Continued,
    ExecutionStarted,
    PauseRequested,
)
from penstock.engine.states import EXECUTION_ENDS
from penstock.engine.transitions import begin_generation
from penstock.orchestrator.children import Relay, children_of
from penstock.orchestrator.tiering.portions import Portions
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores import codec
from penstock.stores.base import ControlRequest, Intent, Lease, Stored, Stores
from penstock.stores.tiering import REBUILD_JUMP, Claim, Tiering, Unfinished
from penstock.stores.waits import WaitChange, changes_of
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.orchestrator")


async def claim(tiering: Tiering, lease: Lease, timing: OrchestratorTiming) -> Claim:
    """Claim the partition in the cold store: its next term.

    Waits until no owner on another server of the hot store lives any more.
    """
    partition = lease.partition
    is_first = True
    seconds = timing.claim_wait_seconds
    while True:
        server_id = await tiering.hot.server_id(partition)
        claimed = await tiering.cold.claim(partition, lease.owner, server_id)
        if claimed is not None:
            lease.claim_term = claimed.term
            return claimed
        if is_first:
            is_first = False
            log.warning(
                "partition %d is run by somebody on another Redis server than this one (%s): "
                "are there two masters? "
                "Nothing is run or built again here before that one is gone",
                partition,
                server_id,
            )
        await asyncio.sleep(seconds)
        seconds = min(2 * seconds, timing.claim_wait_seconds_max)


async def build(  # noqa: PLR0913 -- what it is decided by
    stores: Stores,
    tiering: Tiering,
    lease: Lease,
    claimed: Claim,
    *,
    known_number: int = 0,
    metrics: Metrics | None = None,
    timing: OrchestratorTiming,
    portions: Portions,
    relay: Relay | None = None,
) -> int | None:
    """Rebuild the partition if it has to be.

    Returns the number of executions that came back; None if nothing was missing. `known_number` is
    a commit number that the store has reached for certain.
    """
    partition = lease.partition
    store_id = tiering.cold.store_id
    metrics = metrics or Metrics()
    claimed_number = claimed.commit_number
    known_number = max(known_number, claimed_number)

    built = await tiering.hot.built(lease)
    if built == store_id and lease.commit_number >= known_number:
        if claimed_number < lease.cold_number:
            await _follow_cold_store_back(
                stores, tiering, lease, claimed_number, metrics, portions, relay
            )
        return None

    if built == store_id:
        log.warning(
            "partition %d has gone back from commit %d to %d",
            partition,
            known_number,
            lease.commit_number,
        )
        if claimed.seconds_since_rebuild is not None:
            pause = timing.rebuild_pause_seconds - claimed.seconds_since_rebuild
            await asyncio.sleep(max(0.0, pause))

    number = max(known_number, lease.commit_number) + REBUILD_JUMP
    # recorded before anything is wiped, so that a later owner notices a rebuild that was broken off
    # or undone
    generation = await tiering.cold.begin_rebuild(partition, lease.claim_term, number)
    await tiering.hot.wipe(lease)
    restored = await _restore(stores, tiering, lease, generation, portions, relay)
    metrics.rebuilds += 1
    await tiering.hot.mark_built(lease, store_id, number)
    lease.commit_number = number
    await tiering.hot.acknowledge_commit(lease, number)
    lease.cold_number = number

    if restored and known_number:  # else the store is new, and this was expected
        log.warning(
            "partition %d was built again from the cold store: %d executions", partition, restored
        )
    return restored


async def _follow_cold_store_back(  # noqa: PLR0913, PLR0917 -- what it is decided by
    stores: Stores,
    tiering: Tiering,
    lease: Lease,
    commit_number: int,
    metrics: Metrics,
    portions: Portions,
    relay: Relay | None,
) -> None:
    """Follow a cold store that was put back to an older copy, with this commit number.

    What runs in the hot store goes on, and its rows are written again with the next copies. An
    execution that runs in the older copy, and that has ended and left the hot store since, would
    never end: it runs again from its checkpoint.
    """
    partition = lease.partition
    log.error(
        "PostgreSQL was put back to an older copy: "
        "it knows partition %d up to commit %d and had acknowledged %d. What runs goes on; "
        "what has ended since that copy was made and left Redis runs again",
        partition,
        commit_number,
        lease.cold_number,
    )
    metrics.cold_store_went_back += 1
    generation = await tiering.cold.begin_rebuild(partition, lease.claim_term, commit_number)
    # whatever was copied since is missing there: copies begin with the first change again
    await tiering.hot.forget_copies(lease)
    restored = await _restore(
        stores, tiering, lease, generation, portions, relay, only_unknown=True
    )
    if restored:
        log.error(
            "partition %d: %d executions run again from older checkpoints", partition, restored
        )
    # last: whoever comes after one that broke off here notices it too
    await tiering.cold.put_copies(partition, lease.commit_number, [], term=lease.claim_term)
    await tiering.hot.acknowledge_commit(lease, lease.commit_number)
    lease.cold_number = lease.commit_number


async def _restore(  # noqa: PLR0913, PLR0917 -- what it is decided by
    stores: Stores,
    tiering: Tiering,
    lease: Lease,
    generation: int,
    portions: Portions,
    relay: Relay | None,
    *,
    only_unknown: bool = False,
) -> int:
    """Put unfinished executions into the hot store.

    With `only_unknown`, those that were copied and aren't there.
    """
    control_requests = await stores.cold.executions.control_requests(lease.partition)
    restored = 0
    after = ""
    count = portions.rebuild_executions_first
    while portion := await tiering.cold.unfinished(lease.partition, after, count):
        after = portion[-1].execution_id
        is_large = sum(map(_size, portion)) > portions.bytes_max
        count = max(1, count // 2) if is_large else min(portions.rebuild_executions_max, 2 * count)
        if only_unknown:  # those without a copy are found by the reconciler, which starts them
            portion = await _unknown_copies(stores, portion)

        going_on, waits, starts = await _from_checkpoints(
            portion, generation, stores.hot.now(), portions.large_bytes
        )
        without_checkpoint = [
            unfinished.execution_id
            for unfinished in portion
            if unfinished.execution_id not in going_on
        ]
        intents: Mapping[str, Intent] = {}
        if without_checkpoint:
            intents = await stores.cold.executions.intents(without_checkpoint)
        beginning = _from_intents(intents, generation)

        signals = await stores.cold.signals.of([*going_on, *beginning])
        events: list[AnyEvent] = []
        for execution_id in going_on:
            events += _going_on(execution_id, control_requests.get(execution_id))
            events += signals.get(execution_id, ())
        for execution_id in beginning:
            events += _beginning(execution_id, control_requests.get(execution_id))
            events += signals.get(execution_id, ())
        await tiering.hot.restore(lease, {**going_on, **beginning})
        if waits:  # what the outbox still had of these is lost
            await tiering.cold.put_waits(waits)
        if starts and relay is not None:  # as well as what was sent to children, and their ends
            await relay.deliver(starts)
        # they wait in the inbox until everything is there
        await stores.hot.append(events, own=True)
        restored += len(going_on) + len(beginning)
    return restored


async def _unknown_copies(stores: Stores, portion: Sequence[Unfinished]) -> list[Unfinished]:
    """Unfinished executions that were copied and that the hot store doesn't have."""
    known_ids = await stores.hot.known([unfinished.execution_id for unfinished in portion])
    return [
        unfinished
        for unfinished in portion
        if unfinished.changes and unfinished.execution_id not in known_ids
    ]


def _going_on(execution_id: str, request: ControlRequest | None) -> list[AnyEvent]:
    """Events for an execution that goes on from a checkpoint.

    A control request comes first: nothing is handed out that somebody has stopped.
    """
    if request == "cancel":
        return [CancelRequested(execution_id)]
    if request == "pause":
        return [PauseRequested(execution_id), Continued(execution_id)]
    return [Continued(execution_id)]


def _beginning(execution_id: str, request: ControlRequest | None) -> list[AnyEvent]:
    """Events for an execution that begins from its intent.

    One that hasn't begun can't be paused: that is handled with its beginning, in one commit.
    """
    if request == "cancel":
        return [CancelRequested(execution_id)]
    if request == "pause":
        return [ExecutionStarted(execution_id), PauseRequested(execution_id)]
    return [ExecutionStarted(execution_id)]


def _size(unfinished: Unfinished) -> int:
    return sum(len(change) for change in unfinished.changes)


async def _from_checkpoints(
    portion: Sequence[Unfinished], generation: int, now: float, large_bytes: int
) -> tuple[dict[str, bytes], list[WaitChange], list[StartChild]]:
    """Executions from their checkpoints, each as one change in the new generation.

    Those without a checkpoint that can be read are missing. And which nodes of them wait for
    somebody, and which children they have.
    """
    executions: dict[str, bytes] = {}
    waits: list[WaitChange] = []
    starts: list[StartChild] = []
    for unfinished in portion:
        if not unfinished.changes:
            continue
        try:
            stored = _snapshot(unfinished, generation, now)
            executions[unfinished.execution_id] = codec.encode_whole(stored)
            waits += changes_of(unfinished.execution_id, stored.runs.values())
            starts += children_of(stored, with_detached=True)
        except Exception:
            log.exception(
                "the checkpoint of execution %s can't be read; it begins again",
                unfinished.execution_id,
            )
        if _size(unfinished) > large_bytes:
            await asyncio.sleep(0)  # the lease has to be renewed meanwhile
    return executions, waits, starts


def _snapshot(unfinished: Unfinished, generation: int, now: float) -> Stored:
    changes = [codec.decode_change(data) for data in unfinished.changes]
    record = next(change.record for change in changes if change.record is not None)
    stored = codec.fold(record, changes)
    lines = begin_generation(stored.record, stored.runs.values(), stored.last_seq, generation, now)
    stored.history += lines
    return stored


def _from_intents(intents: Mapping[str, Intent], generation: int) -> dict[str, bytes]:
    """Executions from their intents, in the new generation.

    They are stored although nothing has happened: they may have begun in the generation that is
    lost.
    """
    executions: dict[str, bytes] = {}
    for execution_id, intent in intents.items():
        if intent.record.state not in EXECUTION_ENDS:
            intent.record.generation = generation
            intent.remember_key()
            executions[execution_id] = codec.encode(
                codec.Change(codec.SCHEMA, intent.record, [], {}, [])
            )
    return executions
