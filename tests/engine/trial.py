"""A workflow and the events that a test sends it.

Its store remembers only what was committed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.definition.handler_configs import ConfigRules
from penstock.definition.plan import Plan, compile_document
from penstock.engine import events as ev
from penstock.engine import handling
from penstock.engine.children import Found
from penstock.engine.commands import (
    Commands,
    DeadLetter,
    ExecutionRecord,
    NodeRun,
    Send,
    Stop,
    Task,
)
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.states import ExecutionState
from tests.engine.committed import Committed

ID = "execution-1"


def node(name: str, *dependencies: str, handler: str = "noop", **fields: Any) -> dict[str, Any]:
    return {"id": name, "handler": handler, "dependencies": list(dependencies), **fields}


def decision(name: str, *dependencies: str, gives: bool, **fields: Any) -> dict[str, Any]:
    config = {"value_a": 1, "operator": "==", "value_b": 1 if gives else 2}
    return node(name, *dependencies, handler="decision", config=config, **fields)


def once(name: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    """A node that has one attempt."""
    return node(name, *dependencies, retry={"max_attempts": 1}, **fields)


def compiled(*nodes: dict[str, Any], **workflow: Any) -> Plan:
    # as the engine gets it: stored before, perhaps when less was refused
    document = {"name": "trial", "nodes": list(nodes), **workflow}
    return compile_document(document, config_rules=ConfigRules(is_lenient=True)).plan


class Trial:
    """Starts the execution at time 0.

    Each method is an event; `now` stays where the last one put it.
    """

    def __init__(
        self,
        *nodes: dict[str, Any],
        input_value: Any = None,
        start: bool = True,
        reused: dict[str, Value] | None = None,
        overrides: dict[str, dict[str, Any]] | None = None,
        **workflow: Any,
    ) -> None:
        self.plan = compiled(*nodes, **workflow)
        encoded_input = msgspec.json.encode({} if input_value is None else input_value)
        record = ExecutionRecord(ID, "trial", 3, ExecutionState.PENDING, encoded_input, 0.0)
        record.overrides = overrides or {}
        self.committed = Committed(record, reused)
        self.execution = self.committed.load(self.plan)
        self.now = 0.0
        self.last = Commands(ID)
        self.tasks: list[Task] = []
        self.stops: list[Stop] = []
        self.dead_letters: list[DeadLetter] = []
        self.sends: list[Send] = []
        if start:
            self.begin()

    def send(self, event: ev.AnyEvent, at: float | None = None) -> Commands:
        self.now = self.now if at is None else at
        if isinstance(event, ev.TimerFired):
            self.committed.timer = None
        handling.handle(self.execution, event, self.now)
        self.last = self.execution.take_commands()
        self.committed.commit(self.last)
        self.committed.assert_equals(self.execution)
        self.tasks += self.last.tasks
        self.stops += self.last.stops
        self.dead_letters += self.last.dead_letters
        self.sends += self.last.sends
        return self.last

    def begin(self, at: float | None = None) -> Commands:
        return self.send(ev.ExecutionStarted(ID), at)

    def started(self, name: str, at: float | None = None, **about: int) -> Commands:
        return self.send(
            ev.TaskStarted(**self._about(name, **about), started_at=self.now if at is None else at),
            at,
        )

    def succeed(
        self, name: str, output: Any = None, at: float | None = None, **about: int
    ) -> Commands:
        value = output if isinstance(output, Blob) else msgspec.json.encode(output)
        return self.send(
            ev.TaskSucceeded(**self._about(name, **about), started_at=self.now, output=value), at
        )

    def fail(
        self,
        name: str,
        at: float | None = None,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        error: TaskError | None = None,
        **about: int,
    ) -> Commands:
        event = ev.TaskFailed(
            **self._about(name, **about),
            started_at=self.now,
            error=error or TaskError("handler", f"{name} failed"),
            retryable=retryable,
            retry_after=retry_after,
        )
        return self.send(event, at)

    def lose(
        self, name: str, at: float | None = None, *, interrupted: bool = False, **about: int
    ) -> Commands:
        return self.send(ev.TaskLost(**self._about(name, **about), interrupted=interrupted), at)

    def hand_back(self, name: str, at: float | None = None, **about: int) -> Commands:
        return self.send(ev.TaskReturned(**self._about(name, **about)), at)

    def timer(self, at: float) -> Commands:
        return self.send(ev.TimerFired(ID), at)

    def pause(self, at: float | None = None) -> Commands:
        return self.send(ev.PauseRequested(ID), at)

    def resume(self, at: float | None = None) -> Commands:
        return self.send(ev.ResumeRequested(ID), at)

    def cancel(self, at: float | None = None, reason: str = "cancelled") -> Commands:
        return self.send(ev.CancelRequested(ID, reason), at)

    def go_on(self) -> Commands:
        return self.send(ev.Continued(ID))

    def signal(
        self,
        number: int,
        name: str,
        payload: Any = None,
        at: float | None = None,
        *,
        correlation: str | None = None,
        sender: str = "",
    ) -> Commands:
        self.now = self.now if at is None else at
        encoded = msgspec.json.encode(payload)
        event = ev.SignalReceived(ID, number, name, encoded, correlation, sender, self.now)
        return self.send(event)

    def find(self, **found: Found) -> Commands:
        """Answer what the engine asks before it starts children; by default, billing@7."""
        lookups = self.execution.take_lookups()
        answers = {
            node_id: found.get(node_id, Found("billing", 7, msgspec.json.encode(lookup.input)))
            for node_id, lookup in lookups.items()
        }
        handling.provide_found(self.execution, answers)
        return self.go_on()

    def child(self, name: str) -> str:
        """The id of the child that a node has started."""
        more = self.run(name).more
        assert more is not None
        assert more.child is not None
        return more.child

    def child_ended(
        self,
        name: str,
        state: str = "COMPLETED",
        output: Any = None,
        *,
        attempt: int | None = None,
        child: str | None = None,
        at: float | None = None,
    ) -> Commands:
        encoded = msgspec.json.encode(output) if state == "COMPLETED" else None
        error = TaskError("handler", "no money") if state == "FAILED" else None
        attempt = attempt or self.run(name).attempt
        event = ev.ChildEnded(ID, name, attempt, child or self.child(name), state, encoded, error)
        return self.send(event, at)

    def provide(self, **values: Any) -> Commands:
        handling.provide(
            self.execution, {name: msgspec.json.encode(value) for name, value in values.items()}
        )
        return self.go_on()

    def lose_the_owner(self) -> Commands:
        """What isn't committed is gone; the next owner loads the execution and goes on."""
        self.execution = self.committed.load(self.plan)
        return self.go_on()

    def _about(self, name: str, **other: int) -> dict[str, Any]:
        run = self.execution.runs.get(name)
        attempt, generation = run.attempt if run else 1, self.execution.record.generation
        about = {"execution_id": ID, "node_id": name, "generation": generation, "attempt": attempt}
        return {**about, "worker_id": "worker-1", **other}

    @property
    def state(self) -> str:
        return str(self.execution.record.state)

    @property
    def states(self) -> dict[str, str]:
        """Of the plan's nodes, and of the items that have begun."""
        states = {node.node_id: "PENDING" for node in self.plan.nodes}
        states.update((run.node_id, str(run.state)) for run in self.execution.runs.values())
        return states

    def run(self, name: str) -> NodeRun:
        return self.execution.runs[name]

    def output(self, name: str) -> Any:
        value = self.execution.outputs[name]
        assert isinstance(value, bytes)
        return msgspec.json.decode(value)

    def config(self, name: str) -> Any:
        """As the last task of the node carries it."""
        value = next(task.config for task in reversed(self.tasks) if task.node_id == name)
        assert isinstance(value, bytes)
        return msgspec.json.decode(value)

    @property
    def dispatches(self) -> list[tuple[str, int]]:
        return [(task.node_id, task.attempt) for task in self.tasks]

    @property
    def wake_at(self) -> float | None:
        return self.committed.timer
