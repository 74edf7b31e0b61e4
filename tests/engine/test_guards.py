"""Each guard of the core has a test here, and goes red without it.

The second half of the file takes each one out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from penstock.engine import deadlines, handling, on_execution, on_task, states, transitions
from penstock.engine import events as ev
from penstock.engine.commands import Commands, NodeRun
from penstock.engine.event_handlers import EVENT_HANDLERS
from penstock.engine.starting import start
from penstock.engine.state import Execution
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import InvalidTransition
from tests.engine.trial import Trial, node

OUTCOMES = ("started", "succeed", "fail", "lose", "hand_back")


def assert_nothing_happened(commands: Commands) -> None:
    assert not commands.history
    assert not commands.nodes
    assert not commands.outputs
    assert not commands.tasks
    assert commands.record is None


def test_a_node_cannot_leave_a_terminal_state():
    for state in states.NODE_ENDS:
        for after in NodeState:
            with pytest.raises(InvalidTransition):
                states.check_node("a", state, after)


def test_an_execution_cannot_leave_a_terminal_state():
    for state in states.EXECUTION_ENDS:
        for after in ExecutionState:
            with pytest.raises(InvalidTransition):
                states.check_execution("e", state, after)


def test_a_node_moves_only_by_the_table():
    trial = Trial(node("a"), node("b"))
    trial.succeed("a")
    with pytest.MonkeyPatch.context() as patch:
        remove_state(patch)
        with pytest.raises(InvalidTransition):
            trial.succeed("a")
    assert trial.states["a"] == "COMPLETED"


def test_an_execution_moves_only_by_the_table():
    trial = Trial(node("a"))
    trial.cancel()
    with pytest.MonkeyPatch.context() as patch:
        remove_ended(patch)
        with pytest.raises(InvalidTransition):
            trial.cancel()
    assert trial.state == "CANCELLED"


def test_an_event_for_an_execution_that_has_ended_changes_nothing():
    for event in (
        ev.CancelRequested("execution-1"),
        ev.ExecutionBroke("execution-1", "late"),
        ev.TimerFired("execution-1"),
    ):
        trial = Trial(node("a"), timeout_seconds=60)
        trial.succeed("a", at=1.0)
        commands = trial.send(event, at=100.0)
        assert_nothing_happened(commands)
        assert not commands.timer_changed
        assert not commands.finished
        assert trial.state == "COMPLETED"
        assert trial.execution.now == 1.0


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_an_earlier_attempt_changes_nothing(outcome):
    trial = Trial(node("a"), node("b"))
    trial.lose("a", at=1.0)
    assert_nothing_happened(getattr(trial, outcome)("a", at=2.0, attempt=1))
    assert trial.states["a"] == "QUEUED"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_an_attempt_that_was_never_made_changes_nothing(outcome):
    trial = Trial(node("a"))
    assert_nothing_happened(getattr(trial, outcome)("a", at=2.0, attempt=2))
    assert trial.states == {"a": "QUEUED"}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_another_generation_changes_nothing(outcome):
    for generation in (0, 2):
        trial = Trial(node("a"))
        assert_nothing_happened(getattr(trial, outcome)("a", at=2.0, generation=generation))
        assert trial.states == {"a": "QUEUED"}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_a_node_that_waits_for_its_retry_changes_nothing(outcome):
    trial = Trial(node("a"))
    trial.fail("a", at=1.0, retryable=True)
    assert_nothing_happened(getattr(trial, outcome)("a", at=1.5))
    assert trial.states == {"a": "RETRYING"}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_a_node_that_has_ended_changes_nothing(outcome):
    trial = Trial(node("a"), node("b"))
    trial.succeed("a", {"x": 1}, at=1.0)
    assert_nothing_happened(getattr(trial, outcome)("a", at=1.5))
    assert trial.output("a") == {"x": 1}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_a_node_that_has_not_started_or_does_not_exist_changes_nothing(outcome):
    for name in ("b", "no such node"):
        trial = Trial(node("a"), node("b", "a"))
        assert_nothing_happened(getattr(trial, outcome)(name, at=1.5))
        assert trial.states == {"a": "QUEUED", "b": "PENDING"}


def test_a_second_start_changes_nothing():
    trial = Trial(node("a"))
    assert_nothing_happened(trial.begin(at=1.0))
    trial.pause()
    assert_nothing_happened(trial.begin(at=2.0))
    assert trial.dispatches == [("a", 1)]


def test_a_timer_of_an_earlier_attempt_changes_nothing():
    trial = Trial(node("a", timeout_seconds=5, queue_timeout_seconds=5))
    trial.started("a", at=1.0)
    trial.lose("a", at=2.0)
    trial.started("a", at=3.0)
    assert_nothing_happened(trial.timer(at=5.0))
    assert_nothing_happened(trial.timer(at=6.0 + deadlines.BACKSTOP_SECONDS))
    assert trial.states == {"a": "RUNNING"}


def test_a_timer_of_a_state_that_was_left_changes_nothing():
    trial = Trial(node("a", queue_timeout_seconds=5), node("b"))
    trial.started("a", at=1.0)
    assert_nothing_happened(trial.timer(at=5.0))
    trial.succeed("a", at=6.0)
    assert_nothing_happened(trial.timer(at=10_000.0))
    assert trial.states["a"] == "COMPLETED"


def test_a_node_that_has_started_is_not_started_again_by_another_parent():
    trial = Trial(
        node("a"), node("b"), node("c"), node("first", "a", "b", "c", trigger_rule="one_success")
    )
    trial.succeed("a")
    trial.succeed("b")
    trial.succeed("first")
    trial.succeed("c")
    assert trial.dispatches.count(("first", 1)) == 1


def test_a_node_that_became_ready_while_paused_is_started_once():
    trial = Trial(
        node("a"), node("b"), node("c"), node("first", "a", "b", trigger_rule="one_success")
    )
    trial.pause()
    trial.succeed("a")
    trial.succeed("b")
    trial.resume()
    assert trial.dispatches.count(("first", 1)) == 1


def test_a_node_that_became_ready_twice_does_not_cut_its_retry_short(monkeypatch):
    trial = Trial(node("a"), node("b"), node("first", "a", "b", trigger_rule="one_success"))
    trial.pause()
    trial.succeed("a")
    trial.succeed("b")
    monkeypatch.setattr(
        handling, "COMMIT_WEIGHT", 1
    )  # one node in a commit: were it ready twice, it would be so still
    trial.resume()
    while ("first", 1) not in trial.dispatches:
        trial.go_on()
    trial.fail("first", retryable=True, retry_after=60.0)
    trial.go_on()
    assert trial.states["first"] == "RETRYING"


def test_for_a_new_owner_another_parent_does_not_cut_the_retry_of_a_node_short():
    trial = Trial(node("a"), node("b"), node("first", "a", "b", trigger_rule="one_success"))
    trial.succeed("a")
    trial.fail("first", retryable=True, retry_after=60.0)
    trial.lose_the_owner()
    trial.succeed("b")
    assert trial.states["first"] == "RETRYING"


def test_a_node_that_ended_while_it_waited_for_its_start_does_not_start():
    trial = Trial(node("a"), node("b"))
    trial.succeed("a")
    trial.execution.ready.append(0)
    assert_nothing_happened(trial.go_on())


GUARDS: dict[
    str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[..., None], tuple[Any, ...]]
] = {}


def guard(name: str, test: Callable[..., None], *arguments: Any) -> Any:
    def register(
        remove: Callable[[pytest.MonkeyPatch], None],
    ) -> Callable[[pytest.MonkeyPatch], None]:
        GUARDS[name] = remove, test, arguments
        return remove

    return register


def without(patch: pytest.MonkeyPatch, change: Callable[[Execution, Any], None]) -> None:
    """`_current`, blind to what `change` makes equal."""
    original = on_task.current_run

    def blind(self: Execution, event: Any) -> NodeRun | None:
        if event.node_id in self.runs:
            change(self, event)
        return original(self, event)

    patch.setattr(on_task, "current_run", blind)


@guard("states: node table, terminal rows", test_a_node_cannot_leave_a_terminal_state)
def remove_terminal_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(states.NODE_TRANSITIONS, NodeState.COMPLETED, frozenset({NodeState.RUNNING}))


@guard("states: execution table, terminal rows", test_an_execution_cannot_leave_a_terminal_state)
def remove_terminal_execution_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(
        states.EXECUTION_TRANSITIONS, ExecutionState.FAILED, frozenset({ExecutionState.RUNNING})
    )


@guard("states: check_node", test_a_node_moves_only_by_the_table)
def remove_check_node(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transitions, "check_node", lambda *_: None)


@guard("states: check_execution", test_an_execution_moves_only_by_the_table)
def remove_check_execution(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transitions, "check_execution", lambda *_: None)


@guard("Execution.handle: ended", test_an_event_for_an_execution_that_has_ended_changes_nothing)
def remove_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(handling, "EXECUTION_ENDS", frozenset())


@guard(
    "Execution.handle: ended, without the table",
    test_an_event_for_an_execution_that_has_ended_changes_nothing,
)
def remove_ended_and_the_table(patch: pytest.MonkeyPatch) -> None:
    remove_ended(patch)
    remove_check_execution(patch)


@guard(
    "_current: attempt, earlier", test_an_outcome_of_an_earlier_attempt_changes_nothing, "succeed"
)
@guard(
    "_current: attempt, later",
    test_an_outcome_of_an_attempt_that_was_never_made_changes_nothing,
    "fail",
)
@guard(
    "_current: attempt, returned",
    test_an_outcome_of_an_earlier_attempt_changes_nothing,
    "hand_back",
)
def remove_attempt(patch: pytest.MonkeyPatch) -> None:
    without(
        patch,
        lambda execution, event: setattr(event, "attempt", execution.runs[event.node_id].attempt),
    )


@guard("_current: generation", test_an_outcome_of_another_generation_changes_nothing, "succeed")
@guard("_current: generation, lost", test_an_outcome_of_another_generation_changes_nothing, "lose")
def remove_generation(patch: pytest.MonkeyPatch) -> None:
    without(
        patch, lambda execution, event: setattr(event, "generation", execution.record.generation)
    )


@guard(
    "_current: state, ended", test_an_outcome_of_a_node_that_has_ended_changes_nothing, "succeed"
)
@guard(
    "_current: state, retrying",
    test_an_outcome_of_a_node_that_waits_for_its_retry_changes_nothing,
    "lose",
)
def remove_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(on_task, "current_run", lambda self, event: self.runs.get(event.node_id))


@guard(
    "_current: state, ended, without the table",
    test_an_outcome_of_a_node_that_has_ended_changes_nothing,
    "succeed",
)
def remove_state_and_the_table(patch: pytest.MonkeyPatch) -> None:
    remove_state(patch)
    for state in NodeState:
        patch.setitem(states.NODE_TRANSITIONS, state, frozenset(NodeState))


@guard(
    "_current: no record",
    test_an_outcome_of_a_node_that_has_not_started_or_does_not_exist_changes_nothing,
    "lose",
)
def remove_no_record(patch: pytest.MonkeyPatch) -> None:
    original = on_task.current_run

    def invent(self: Execution, event: Any) -> NodeRun | None:
        if event.node_id in self.runs:
            return original(self, event)
        return NodeRun(event.node_id, NodeState.QUEUED, event.attempt)

    patch.setattr(on_task, "current_run", invent)


@guard("_on_started: pending", test_a_second_start_changes_nothing)
def remove_pending(patch: pytest.MonkeyPatch) -> None:
    original = on_execution.execution_started

    def start_again(self: Execution, event: Any) -> None:
        self.record.state = ExecutionState.PENDING
        original(self, event)

    patch.setitem(cast("dict[Any, Any]", EVENT_HANDLERS), ev.ExecutionStarted, start_again)


def before_timers(patch: pytest.MonkeyPatch, change: Callable[[Execution], None]) -> None:
    original = handling.handle

    def handle(self: Execution, event: Any, now: float) -> Commands:
        if isinstance(event, ev.TimerFired):
            change(self)
        return original(self, event, now)

    patch.setattr(handling, "handle", handle)


@guard("timers: attempt", test_a_timer_of_an_earlier_attempt_changes_nothing)
def remove_attempt_of_timers(patch: pytest.MonkeyPatch) -> None:
    def relabel(execution: Execution) -> None:
        runs = [execution.runs[node.node_id] for node in execution.nodes]
        relabelled = [
            (due, number, runs[number].attempt, kind)
            for due, number, _, kind in execution.deadlines
        ]
        execution.deadlines[:] = sorted(relabelled)

    before_timers(patch, relabel)


@guard("timers: state", test_a_timer_of_a_state_that_was_left_changes_nothing)
def remove_state_of_timers(patch: pytest.MonkeyPatch) -> None:
    def go_back(execution: Execution) -> None:
        execution.runs["a"].state = NodeState.QUEUED

    before_timers(patch, go_back)


@guard("start: state", test_a_node_that_ended_while_it_waited_for_its_start_does_not_start)
def remove_state_at_start(patch: pytest.MonkeyPatch) -> None:
    def start_anyway(execution: Execution, number: int) -> None:
        execution.runs[execution.nodes[number].node_id].state = NodeState.RETRYING
        start(execution, number)

    patch.setattr(handling, "start", start_anyway)


@pytest.mark.parametrize("name", GUARDS)
def test_the_test_of_a_guard_goes_red_when_the_guard_is_taken_out(name):
    remove, test, arguments = GUARDS[name]
    test(*arguments)
    with pytest.MonkeyPatch.context() as patch:
        remove(patch)
        with pytest.raises((AssertionError, InvalidTransition, KeyError, pytest.fail.Exception)):
            test(*arguments)
