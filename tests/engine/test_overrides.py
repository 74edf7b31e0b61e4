"""Config that an execution puts over its nodes', and what else of it goes into every task."""

from __future__ import annotations

from penstock.engine import events as ev
from penstock.engine import handling
from tests.engine.trial import ID, Trial, decision, node


def test_an_override_is_put_over_a_fixed_config_and_over_no_other_node():
    config = {"x": 1, "y": 2}
    trial = Trial(
        node("a", config=config), node("b", config=config), overrides={"a": {"x": 9, "z": [3]}}
    )
    assert trial.config("a") == {"x": 9, "y": 2, "z": [3]}
    assert trial.config("b") == config


def test_an_override_is_put_over_what_references_gave():
    config = {"x": "{{ input.n }}", "y": "{{ input.n }}"}
    trial = Trial(node("a", config=config), input_value={"n": 5}, overrides={"a": {"x": 9}})
    assert trial.config("a") == {"x": 9, "y": 5}


def test_nothing_in_an_override_is_a_template():
    trial = Trial(
        node("a", config={"x": 1}),
        node("b", config={"x": "{{ input.n }}"}),
        input_value={"n": 5},
        overrides={"a": {"x": "{{ input.n }}"}, "b": {"y": "{{ secrets.KEY }}"}},
    )
    assert trial.config("a") == {"x": "{{ input.n }}"}
    assert trial.config("b") == {"x": 5, "y": "{{ secrets.KEY }}"}
    assert [task.secrets for task in trial.tasks] == [(), ()]


def test_a_secret_is_not_filled_in_where_an_override_stands():
    config = {
        "headers": {"Authorization": "Bearer {{ secrets.KEY }}"},
        "token": "{{ secrets.KEY }}",
    }
    trial = Trial(node("a", config=config), overrides={"a": {"headers": "none"}})
    [task] = trial.tasks
    assert [secret.path for secret in task.secrets] == [("token",)]
    assert trial.config("a")["headers"] == "none"


def test_data_nodes_have_overrides_too():
    trial = Trial(
        node("in", handler="input", config={"x": 1, "y": 1}),
        decision("d", gives=True),
        node("out", "in", handler="output"),
        overrides={"in": {"x": 2}, "d": {"value_b": 7}, "out": {"said": "{{ in }}"}},
        input_value={"n": 5},
    )
    assert trial.output("in") == {"x": 2, "y": 1, "n": 5}
    assert trial.output("d") == {"result": False}
    assert trial.output("out") == {"said": "{{ in }}"}


def test_overrides_hold_for_every_attempt_and_every_owner():
    trial = Trial(node("a", config={"x": 1}), overrides={"a": {"x": 9}})
    trial.lose_the_owner()
    trial.lose("a")
    assert [task.config for task in trial.tasks] == [b'{"x":9}', b'{"x":9}']


def test_the_priority_and_the_trace_of_an_execution_are_in_every_task():
    trial = Trial(node("a"), node("b", "a"), start=False)
    record = trial.execution.record
    record.priority, record.trace = 7, "00-trace-01"
    handling.handle(trial.execution, ev.ExecutionStarted(ID), 0.0)
    handling.handle(
        trial.execution,
        ev.TaskSucceeded(ID, "a", 1, 1, "worker-1", started_at=0.0, output=b"1"),
        1.0,
    )
    tasks = trial.execution.take_commands().tasks
    assert [(task.priority, task.trace) for task in tasks] == [(7, "00-trace-01")] * 2
    assert [(task.priority, task.trace) for task in Trial(node("a")).tasks] == [(0, "")]
