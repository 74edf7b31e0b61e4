"""A commit plan: everything that one batch of events decided for a partition, as lists to write.

The core decides in `Commands`, one for each execution. `plan_commit` reads them, once and in one
place; a store writes the lists of the plan and looks at nothing else. All of a plan happens, or
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import msgspec

from penstock.engine.commands import Commands, DeadLetter, Send, Stop, Task, Transition
from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.base import Lease
from penstock.stores.reports import report_of
from penstock.stores.task_keys import key_of
from penstock.stores.tiering import Outgoing, summary_of
from penstock.stores.waits import WaitChange, changes_of


class EndedExecution(msgspec.Struct, array_like=True):
    """An execution that ends with this commit."""

    execution_id: str
    state: ExecutionState
    finished_at: float | None
    report: bytes
    """What SQL views show of it (`stores.reports`), as JSON."""


class CommitPlan(msgspec.Struct):
    partition: int
    token: str
    """Of the lease. A store refuses the plan if the partition's lease has another token."""
    commit_number: int
    """The number that the store must be at."""
    position: int
    """Up to where the inbox has been handled."""
    changes: list[tuple[str, bytes]] = []
    """By execution id, what happened to it: an encoded `codec.Change`.

    Encoded before the commit is on its way: the executions go on meanwhile, and what they become
    isn't part of it.
    """
    tasks: list[Task] = []
    """Tasks to queue, except those that are queued or claimed already. None is in `stops`."""
    stops: list[Stop] = []
    """Tasks that nobody waits for any more, wherever they are."""
    timers_set: list[tuple[str, float]] = []
    """By execution id, when its timer is to fire: in place of the one it has."""
    timers_cleared: list[str] = []
    """Executions without a timer now; those that ended have none either, and aren't listed."""
    paused: list[str] = []
    """Executions of which no task is handed out from now on."""
    resumed: list[str] = []
    """Executions whose tasks are handed out again."""
    ended: list[EndedExecution] = []
    dead_letters: list[DeadLetter] = []
    waits: list[WaitChange] = []
    """Waits for somebody that are opened or closed."""
    sends: list[Send] = []
    """What goes to other executions. Where hot and cold store are two, only `outbox` counts."""
    outbox: list[Outgoing] = []
    """What the cold store has to hear of soon, where it is another store."""
    feed: list[tuple[str, list[Transition]]] = []
    """By execution id, its history lines: what those who follow commits get."""


def plan_commit(  # noqa: C901, PLR0912 -- one list after another, hot
    lease: Lease, position: int, decided: Sequence[Commands], *, has_outbox: bool = True
) -> CommitPlan:
    """The plan for what was decided, as it is now: later decisions change the same records.

    `has_outbox` is False where the cold store is the hot one: nothing has to be sent to it.
    """
    plan = CommitPlan(lease.partition, lease.token, lease.commit_number, position)
    for commands in decided:
        execution_id = commands.execution_id
        change = codec.encode_change(commands)
        if change:
            plan.changes.append((execution_id, change))
        if commands.history:
            plan.feed.append((execution_id, commands.history))
        if commands.stops:
            plan.stops += commands.stops
            plan.tasks += _without_stopped(commands)
        elif commands.tasks:
            plan.tasks += commands.tasks
        if commands.dead_letters:
            plan.dead_letters += commands.dead_letters
        # of nearly all nodes there is no more, and this is done for every commit
        waiting = [run for run in commands.nodes.values() if run.more is not None]
        waits = changes_of(execution_id, waiting) if waiting else []
        if waits:
            plan.waits += waits
        if commands.sends:
            plan.sends += commands.sends

        if commands.finished:
            report = _add_end(plan, commands)
            if has_outbox:
                _add_outgoing(plan, commands, waits, report)
            continue
        if commands.timer_changed:
            _add_timer(plan, commands)
        if commands.paused is not None:
            (plan.paused if commands.paused else plan.resumed).append(execution_id)
        is_told = commands.paused is not None or commands.dead_letters or waits or commands.sends
        if has_outbox and is_told:
            _add_outgoing(plan, commands, waits)
        # a plan that is refused is made again in parts, when the execution may have gone on
        if commands.record is not None:
            commands.record = copy(commands.record)
    return plan


def _without_stopped(commands: Commands) -> list[Task]:
    """Tasks of an execution, without those that the same commit stops."""
    stopped = set(map(key_of, commands.stops))
    return [task for task in commands.tasks if key_of(task) not in stopped]


def _add_timer(plan: CommitPlan, commands: Commands) -> None:
    if commands.wake_at is None:
        plan.timers_cleared.append(commands.execution_id)
    else:
        plan.timers_set.append((commands.execution_id, commands.wake_at))


def _add_end(plan: CommitPlan, commands: Commands) -> bytes:
    """Put an end into the plan; returns the report of the execution."""
    record = commands.record
    if record is None:  # the end of an execution changes its record, so this is a bug
        raise ValueError(f"execution {commands.execution_id} ended without a record")
    report = report_of(commands)
    plan.ended.append(
        EndedExecution(commands.execution_id, record.state, record.finished_at, report)
    )
    return report


def _add_outgoing(
    plan: CommitPlan, commands: Commands, waits: list[WaitChange], report: bytes = b""
) -> None:
    """Put what the cold store has to know of an execution into the outbox."""
    summary = None
    tells_state = commands.finished or commands.paused is not None
    if tells_state and commands.record is not None:
        revision = commands.history[-1].seq if commands.history else 0
        summary = summary_of(commands.record, revision)
    if summary is not None or commands.dead_letters or waits or commands.sends:
        plan.outbox.append(
            Outgoing(
                commands.execution_id,
                summary,
                commands.dead_letters,
                report,
                waits,
                commands.sends,
            )
        )
