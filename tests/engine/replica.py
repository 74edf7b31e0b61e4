"""One owner, or a row of owners, of an execution, compared with the model after every event.

Lanes get the same events; they differ in how often the owner is lost and in how much one commit
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from penstock.engine import events as ev
from penstock.engine import handling, lists, on_timer, preparing
from penstock.engine.commands import Commands, ExecutionRecord, Task, Transition
from penstock.engine.deadlines import BACKSTOP_SECONDS
from penstock.engine.events import Blob, Value
from penstock.engine.preparing import Preparation, Prepared
from penstock.engine.state import INLINE_BYTES_MAX, Execution
from penstock.engine.states import ExecutionState
from tests.engine.committed import Committed
from tests.engine.model import ENDED, EXECUTION_ENDED, Dispatch, Model, Signal
from tests.engine.workflows import Workflow

EXECUTION_ID = "the-execution"


@contextmanager
def commit_weight(lines: int) -> Iterator[None]:
    with patch.object(handling, "COMMIT_WEIGHT", lines):
        yield


@contextmanager
def inline_bytes(limit: int) -> Iterator[None]:
    with patch.object(handling, "INLINE_BYTES_MAX", limit):
        yield


class Mark(NamedTuple):
    """How far the engine had come when a deadline was about to have its effect."""

    lines: int
    """Lines of history."""
    complete: bool
    """Nothing had to be fetched or computed elsewhere before."""
    facts: dict[str, Any]
    """See `_facts`."""


@contextmanager
def firing_marks() -> Iterator[list[Mark]]:
    """A mark for each deadline that had an effect."""
    marks: list[Mark] = []
    fire_next = on_timer.fire_next

    def fire_and_mark(execution: Execution) -> None:
        is_complete = not (execution.wanted or execution.preparing)
        mark = Mark(len(execution.commands.history), is_complete, _facts(execution))
        fire_next(execution)
        if execution.firing_until is not None:
            marks.append(mark)

    with patch.object(on_timer, "fire_next", fire_and_mark):
        yield marks


class Replica:
    def __init__(
        self,
        workflow: Workflow,
        blobs: dict[str, bytes],
        reused: dict[str, Value],
        *,
        weight: int = 1000,
        inline: int = INLINE_BYTES_MAX,
    ) -> None:
        self.workflow, self.blobs, self.weight, self.inline = workflow, blobs, weight, inline
        self.preparing: dict[str, Preparation] = {}
        """What is being worked out elsewhere."""
        self.model = workflow.model(
            BACKSTOP_SECONDS, {name: self._value(reused[name]) for name in reused}
        )
        record = ExecutionRecord(
            EXECUTION_ID,
            "random",
            1,
            ExecutionState.PENDING,
            msgspec.json.encode(workflow.input_value),
            0.0,
        )
        self.committed = Committed(record, reused)
        self.execution = self.committed.load(workflow.plan)
        self.tasks: list[Task] = []
        self.handed_out: set[tuple[str, int]] = set()
        """Tasks that a worker has, or that lie in a queue."""
        self.has_more = False
        self.diverged = False
        """Something happened before it had finished what followed from the last event or deadline:
        another story from here on.
        """

    @property
    def ended(self) -> bool:
        return self.execution.record.state in EXECUTION_ENDED

    @property
    def unfinished(self) -> bool:
        return self.has_more or bool(self.execution.wanted) or bool(self.execution.preparing)

    def handle(self, event: ev.AnyEvent, now: float) -> None:
        if isinstance(event, ev.TimerFired):
            self.committed.timer = None
        was_firing = self.execution.firing_until is not None
        with commit_weight(self.weight), inline_bytes(self.inline), firing_marks() as marks:
            handling.handle(self.execution, event, now)
        self.preparing.update(self.execution.take_unprepared())
        commands = self.execution.take_commands()
        again = [
            (task.node_id, "QUEUED") for task in commands.tasks if task.node_id in self.model.again
        ]  # they come first
        self._commit(commands, event)
        tell(self.model, event, now, self.blobs)
        self.has_more = commands.has_more
        is_complete = not self.unfinished
        last = Mark(len(commands.history), is_complete, _facts(self.execution))
        self.diverged |= not all(mark.complete for mark in marks)
        hints = again + _hints(commands.history[: [*marks, last][0].lines])
        for number, (mark, following) in enumerate(pairwise([*marks, last])):
            if number or was_firing:
                self.model.follow(hints, complete=mark.complete, **mark.facts)
                hints = []
            self.model.strike_next()
            hints += _hints(commands.history[mark.lines : following.lines])
        self.model.follow(hints, complete=is_complete, **last.facts)
        assert last.facts["opened"] == {
            name: len(self.model._items_of(name))
            for name in self.model.nodes
            if self.model._items_of(name)
        }
        if self.execution.firing_until is None and not self.unfinished:
            assert not self.model.has_due()
            self.model.firing_until = None
        self._compare()
        self._compare_dispatches(commands.tasks)
        self._assert_not_stuck()
        if isinstance(event, ev.TimerFired) and not self.has_more:
            assert self.committed.timer is None or self.committed.timer > now, (
                "the timer would fire for ever"
            )

    def lose_the_owner(self, now: float) -> None:
        waited = bool(self.model.waited)
        self.execution = self.committed.load(self.workflow.plan)
        self.preparing.clear()
        self.model.forget_waits()
        self.handle(ev.Continued(EXECUTION_ID), now)
        if waited and not self.ended and self.model.execution == "RUNNING":
            self.handle(ev.TimerFired(EXECUTION_ID), now)

    def let_go_of_lists(self) -> None:
        """As an owner does whose maps have too large ones together."""
        lists.let_go(self.execution, -1)  # also of empty ones
        assert all(region.values is None for region in self.execution.regions.values())

    def lose_the_store(self, now: float) -> None:
        """What was committed is rebuilt, in the next generation."""
        self.model.now = now
        self.model.lose_the_store()
        self.committed.rebuild(self.model.generation, now)
        self.tasks.clear()
        self.handed_out.clear()
        self.lose_the_owner(now)

    def finish_commits(self, now: float) -> None:
        """Fetch what is wanted and go on until one commit takes everything that is left."""
        for _ in range(2000):
            if self.execution.wanted:
                wanted = self.execution.wanted.items()
                handling.provide(
                    self.execution, {address: self.blobs[blob.key] for address, blob in wanted}
                )
            elif self.preparing:
                handling.provide_prepared(self.execution, prepared(self.preparing))
                self.preparing.clear()
            elif not self.has_more:
                return
            self.handle(ev.Continued(EXECUTION_ID), now)
        raise AssertionError("it never ends")

    def summary(self) -> Any:
        """What the model doesn't know.

        Texts and reasons of skips are left out: they tell of the order of starts.
        """
        runs, record = self.execution.runs.values(), self.execution.record
        errors = {
            run.node_id: [(failure.attempt, failure.error.category) for failure in run.failures]
            for run in runs
        }
        reasons = {run.node_id: run.reason for run in runs if run.state != "SKIPPED"}
        return reasons, errors, record.failing, record.error is None

    def _commit(self, commands: Commands, event: ev.AnyEvent) -> None:
        self.committed.commit(commands)
        self.committed.assert_equals(self.execution)
        assert commands.finished == (self.ended and bool(commands.history))
        if (
            isinstance(event, ev.TaskSucceeded | ev.TaskFailed | ev.TaskLost)
            and event.generation == self.model.generation
        ):
            self.handed_out.discard((event.node_id, event.attempt))
        self.handed_out.update((task.node_id, task.attempt) for task in commands.tasks)
        self.handed_out.difference_update((stop.node_id, stop.attempt) for stop in commands.stops)

    def _compare_error_nodes(self) -> None:
        """The first failure is the execution's error: any of those at the same moment."""
        ours, models = self.execution.record.error_node_id, self.model.error_node
        if ours != models:
            assert ours is not None
            assert models is not None
            runs = self.execution.runs
            assert runs[ours].finished_at == runs[models].finished_at

    def _compare(self) -> None:
        model, execution = self.model, self.execution
        states = {node.node_id: "PENDING" for node in self.workflow.plan.nodes}
        states.update((address, str(run.state)) for address, run in execution.runs.items())
        assert states == {
            name: state
            for name, state in model.state.items()
            if state != "PENDING" or name not in model.item_of
        }
        assert str(execution.record.state) == model.execution
        self._compare_error_nodes()
        attempts = {name: attempt for name, attempt in model.attempt.items() if attempt}
        assert {
            address: run.attempt for address, run in execution.runs.items() if run.attempt
        } == attempts
        assert all(attempt <= model.allowed[name] for name, attempt in attempts.items())
        assert {
            address: _without_messages(self._value(value))
            for address, value in execution.outputs.items()
        } == model.outputs

    def _compare_dispatches(self, tasks: list[Task]) -> None:
        self.tasks += tasks
        assert len({(task.node_id, task.generation, task.attempt) for task in self.tasks}) == len(
            self.tasks
        )
        assert {(task.node_id, task.attempt) for task in self.tasks} == self.model.dispatched.keys()
        assert self.committed.reused.keys().isdisjoint(task.node_id for task in tasks), (
            "it was reused"
        )
        for task in tasks:
            assert isinstance(task.inputs, list)
            inputs = {name: _without_messages(self._value(value)) for name, value in task.inputs}
            assert (
                Dispatch(_without_messages(self._value(task.config)), inputs)
                == self.model.dispatched[task.node_id, task.attempt]
            )

    def _assert_not_stuck(self) -> None:
        """Something in a store will make it go on: a task, a timer, or whoever paused it."""
        model, timer = self.model, self.committed.timer
        if model.execution in EXECUTION_ENDED:
            assert all(state in ENDED for state in model.state.values())
            return
        deadlines = model.deadlines()
        if deadlines:
            assert timer is not None
            assert timer <= deadlines[0][0]
        waits = model.execution in {"PENDING", "PAUSED"} or self.execution.wanted
        assert waits or timer is not None or self.handed_out, "stuck"
        current = {
            (name, model.attempt[name])
            for name, state in model.state.items()
            if state in {"QUEUED", "RUNNING"}
        }
        if model.execution == "PAUSED" or self.unfinished:
            current -= {(name, model.attempt[name]) for name in model.again}
        assert current <= self.handed_out, "queued or running, but no worker will ever see it"

    def _value(self, value: Value) -> Any:
        return msgspec.json.decode(self.blobs[value.key] if isinstance(value, Blob) else value)


def _facts(execution: Execution) -> dict[str, Any]:
    """What the history doesn't tell of maps and loops: the model is told."""
    regions = execution.regions
    return {
        "opened": {
            run.node_id: run.more.opened
            for run in execution.runs.values()
            if run.more and run.more.opened
        },
        # items that have ended
        "closed": {
            region.item_address(index)
            for region in regions.values()
            for index, code in enumerate(region.ended)
            if code
        },
        "under_way": {region.address for region in regions.values()},
        # loops that wait for the time of their next round
        "pausing": {
            regions[number].address
            for _, number, _, kind in execution.deadlines
            if kind == "round" and number in regions
        },
    }


def _hints(history: list[Transition]) -> list[tuple[str, str]]:
    """The nodes that have started, ended or begun to wait, in order, with their new states."""
    return [
        (line.node_id, str(line.after))
        for line in history
        if line.node_id
        and line.before in {"PENDING", "RETRYING", "WAITING"}
        and line.reason != "item_timeout"
    ]


def prepared(preparations: dict[str, Preparation]) -> dict[str, Prepared]:
    """As a sandbox works them out."""
    answers = preparing.run(preparing.parts_of(list(preparations.values())))
    return {
        name: msgspec.msgpack.decode(answer, type=Prepared)
        for name, answer in zip(preparations, answers, strict=True)
    }


def _without_messages(value: Any) -> Any:
    """Errors in lists, without their texts: only which node failed."""
    if isinstance(value, list):
        return [_without_messages(item) for item in value]
    if isinstance(value, dict) and value.keys() == {"error", "index"}:
        return {"failed": value["error"]["node"], "index": value["index"]}
    if isinstance(value, dict):
        return {key: _without_messages(item) for key, item in value.items()}
    return value


IN_OTHER_WORDS: dict[type, Callable[[Model], None]] = {
    ev.ExecutionStarted: Model.start_execution,
    ev.TimerFired: Model.fire,
    ev.PauseRequested: Model.pause,
    ev.ResumeRequested: Model.resume,
    ev.CancelRequested: Model.cancel,
}


def tell(model: Model, event: ev.AnyEvent, now: float, blobs: dict[str, bytes]) -> None:
    """The same event in the model's words."""
    if model.execution in EXECUTION_ENDED:
        return
    model.now = now
    if isinstance(event, ev.TaskEvent):
        if model.is_current(event.node_id, event.generation, event.attempt):
            _tell_of_task(model, event, blobs)
    elif isinstance(event, ev.SignalReceived):
        payload = msgspec.json.decode(event.payload)
        about = (event.number, event.name, payload, event.correlation, event.at)
        model.signal_received(Signal(*about))
    elif not isinstance(event, ev.Continued):
        IN_OTHER_WORDS[type(event)](model)


def _tell_of_task(model: Model, event: ev.TaskEvent, blobs: dict[str, bytes]) -> None:
    match event:
        case ev.TaskStarted(node_id=node, started_at=at):
            model.task_started(node, at)
        case ev.TaskSucceeded(node_id=node, output=output):
            text = blobs[output.key] if isinstance(output, Blob) else output
            model.task_succeeded(node, msgspec.json.decode(text))
        case ev.TaskFailed(node_id=node, error=error):
            model.task_failed(
                node,
                category=error.category,
                retryable=event.retryable,
                retry_after=event.retry_after,
            )
        case ev.TaskLost(node_id=node, interrupted=interrupted):
            model.task_lost(node, interrupted=interrupted)
