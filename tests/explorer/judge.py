"""What must be true, whatever happened.

It looks at what was handed to the store, and remembers what it has to.
"""

from __future__ import annotations

from msgspec.structs import replace

from penstock.engine.states import EXECUTION_ENDS, NODE_ENDS, ExecutionState, NodeState
from penstock.stores import codec
from tests.explorer import deciding
from tests.explorer.deciding import ATTEMPTS_MAX, JOIN, parents, thawed_once
from tests.explorer.world import Commit, Key, Ledger, World

OUT = (NodeState.QUEUED, NodeState.RUNNING)


class Violation(Exception):
    pass


def has_ended(execution: bytes) -> bool:
    return bool(execution) and thawed_once(execution).record.state in EXECUTION_ENDS


def check_commit(world: World, commit: Commit) -> None:
    """Before it is written."""
    for key in commit.tasks:
        if key in world.ledger.dispatched:
            raise Violation(f"G2 {key} is dispatched twice")
        _check_attempt(key, commit.after)
        if key[0] == JOIN:
            _check_parents(commit.after)
    _check_room(commit.after)
    if commit.change:
        _check_change(world, commit)


def _check_attempt(key: Key, execution: bytes) -> None:
    """One more than the most only if the last one was lost with its worker, and none before it."""
    name, _, attempt = key
    run = thawed_once(execution).runs.get(name)
    lost = (
        [failure.attempt for failure in run.failures if failure.error.category == "lost"]
        if run
        else []
    )
    attempts_max = ATTEMPTS_MAX + (lost == [ATTEMPTS_MAX])
    if attempt > attempts_max:
        raise Violation(f"{key} is attempt {attempt} of {attempts_max}")


def _check_parents(execution: bytes) -> None:
    runs = thawed_once(execution).runs
    if any(name not in runs or runs[name].state is not NodeState.COMPLETED for name in parents()):
        raise Violation("G3 the join starts before its parents have completed")


def _check_room(execution: bytes) -> None:
    room = deciding.SHAPES[deciding.SHAPE].room
    runs = thawed_once(execution).runs.values() if execution else ()
    opened = [run.node_id for run in runs if "[" in run.node_id and run.state in OUT]
    if len(opened) > room:
        raise Violation(f"{opened} are open at once, and there is room for {room}")


def _check_change(world: World, commit: Commit) -> None:
    before = world.store.execution
    if has_ended(before):
        raise Violation("G4 something is recorded after the end")
    if thawed_once(commit.after).record.generation < world.cold.generation:
        raise Violation("G4 a commit of a generation that is over is taken")
    history = codec.decode_change(commit.change).history
    last_seq = thawed_once(before).last_seq if before else 0
    if history and history[0].seq != last_seq + 1:
        raise Violation(f"G4 the history doesn't join: line {history[0].seq} after {last_seq}")
    for outcome in _outcomes(commit):
        if outcome in world.ledger.outcomes:
            raise Violation(f"G2 {outcome[1] or 'the execution'} has two outcomes")


def _outcomes(commit: Commit) -> list[tuple[int, str]]:
    if not commit.change:
        return []
    generation = thawed_once(commit.after).record.generation
    ends = {*map(str, NODE_ENDS), *map(str, EXECUTION_ENDS)}
    history = codec.decode_change(commit.change).history
    return [(generation, line.node_id) for line in history if line.after in ends]


def noted(ledger: Ledger, commit: Commit) -> Ledger:
    dispatched = tuple(sorted((*ledger.dispatched, *commit.tasks)))
    outcomes = tuple(sorted((*ledger.outcomes, *_outcomes(commit))))
    return replace(ledger, dispatched=dispatched, outcomes=outcomes)


def since(ledger: Ledger, generation: int) -> Ledger:
    """Without what can't come again: a commit of an earlier generation is a violation by itself."""
    return Ledger(
        tuple(key for key in ledger.dispatched if key[1] >= generation),
        tuple(outcome for outcome in ledger.outcomes if outcome[0] >= generation),
        tuple(key for key in ledger.reported if key[1] >= generation),
    )


def check_fetch(execution: bytes, key: Key) -> None:
    node, generation, attempt = key
    stored = thawed_once(execution) if execution else None
    run = stored.runs.get(node) if stored else None
    if stored is None or run is None or stored.record.generation != generation:
        raise Violation(f"G4 {key} is handed out, and its execution knows nothing of it")
    if run.attempt != attempt or run.state not in OUT:
        raise Violation(
            f"G4 {key} is handed out, and nobody waits for it: {run.state}, attempt {run.attempt}"
        )


def check_report(ledger: Ledger, key: Key) -> None:
    if key in ledger.reported:
        raise Violation(f"G2 {key} is reported twice")


def check_rest(world: World) -> None:
    """Nobody has anything to do any more, unless a fault comes."""
    store = world.store
    if not (has_ended(store.execution) or world.cold.has_ended):
        state = (
            thawed_once(store.execution).record.state if store.execution else ExecutionState.PENDING
        )
        raise Violation(f"G1, G5 stuck: nothing goes on, and the execution is {state}")
    if store.entries:
        raise Violation(f"a task is left over: {store.entries}")
    if store.inbox:
        raise Violation("an event is left over in the inbox")
