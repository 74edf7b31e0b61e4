"""How nodes and the execution have ended, in templates and conditions; expressions in configs."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from penstock.engine import handling
from penstock.engine.events import TaskError
from penstock.engine.state import INLINE_BYTES_MAX
from tests.engine.replica import inline_bytes, prepared
from tests.engine.trial import Trial, node, once

HTTP_503 = TaskError("http", "overloaded", "HTTPError", {"status_code": 503})
IN_PLACE_AND_ELSEWHERE = pytest.mark.parametrize("inline", [INLINE_BYTES_MAX, 0])


def finish(trial: Trial) -> None:
    """Work out what has to be, as the owner does."""
    while unprepared := trial.execution.take_unprepared():
        handling.provide_prepared(trial.execution, prepared(unprepared))
        trial.go_on()


def clean_config(config: dict[str, Any], inline: int, **fields: Any) -> Any:
    """The config of a clean-up node after `a`, which has failed."""
    with inline_bytes(inline):
        trial = Trial(
            once("a"),
            node("clean", "a", trigger_rule="all_done", config=config, **fields),
        )
        trial.fail("a", error=HTTP_503)
        finish(trial)
    assert trial.states["clean"] == "QUEUED", trial.states
    return trial.config("clean")


@IN_PLACE_AND_ELSEWHERE
def test_a_template_sees_how_a_node_and_the_execution_have_ended(inline):
    config = {
        "state": "{{ nodes.a.state }}",
        "error": "{{ nodes.a.error }}",
        "by_id": '{{ nodes["a"].error.category }}',
        "text": "a is {{ nodes.a.state }}: {{ nodes.a.error.message }}",
        "execution": "{{ execution.state }}",
        "of": "{{ execution.error.node_id }}",
        "is_http": "{{ nodes.a.error.status_code >= 500 && execution.state == 'FAILED' }}",
    }
    error = {
        "category": "http",
        "message": "overloaded",
        "type": "HTTPError",
        "status_code": 503,
    }
    assert clean_config(config, inline) == {
        "state": "FAILED",
        "error": error,
        "by_id": "http",
        "text": "a is FAILED: overloaded",
        "execution": "FAILED",
        "of": "a",
        "is_http": True,
    }


@IN_PLACE_AND_ELSEWHERE
@pytest.mark.parametrize(
    "condition",
    [
        "nodes.a.state == 'FAILED'",
        "nodes['a'].state == 'FAILED'",
        "nodes.a.error.category == 'http' && nodes.a.error.status_code == 503",
        "execution.state == 'FAILED' && execution.error.node_id == 'a'",
    ],
)
def test_a_condition_sees_the_same(inline, condition):
    assert clean_config({}, inline, condition=condition) == {}


@IN_PLACE_AND_ELSEWHERE
def test_without_a_failure_the_error_is_null_and_the_execution_completes(inline):
    config = {"x": "{{ nodes.a.error }}", "y": "{{ execution.state }}", "z": "{{ nodes.a.state }}"}
    with inline_bytes(inline):
        trial = Trial(node("a"), node("clean", "a", trigger_rule="all_done", config=config))
        trial.succeed("a")
        finish(trial)
    assert trial.config("clean") == {"x": None, "y": "COMPLETED", "z": "COMPLETED"}


def test_a_cancelled_execution_says_so_to_its_clean_up():
    config = {"x": "{{ execution.state }}", "y": "{{ nodes.a.state }}"}
    trial = Trial(node("a"), node("clean", "a", trigger_rule="all_done", config=config))
    trial.cancel()
    assert trial.config("clean") == {"x": "CANCELLED", "y": "CANCELLED"}


def test_a_node_that_has_no_output_can_be_asked_how_it_has_ended():
    config = {"x": "{{ nodes.b.state }}"}
    trial = Trial(
        node("a"),
        node("b", "a", condition="false"),
        node("c", "b", trigger_rule="all_done", config=config),
    )
    trial.succeed("a")
    assert trial.config("c") == {"x": "SKIPPED"}


def test_a_state_that_changes_while_it_is_worked_out_elsewhere_is_asked_for_again():
    with inline_bytes(0):
        trial = Trial(
            node("a"),
            node("b"),
            node("c", "a", "b", trigger_rule="one_success", config={"x": "{{ nodes.b.state }}"}),
        )
        trial.succeed("a")
        early = prepared(trial.execution.take_unprepared())
        trial.succeed("b")
        handling.provide_prepared(trial.execution, early)
        trial.go_on()
        assert trial.states["c"] == "PENDING"
        finish(trial)
    assert trial.config("c") == {"x": "COMPLETED"}


@IN_PLACE_AND_ELSEWHERE
def test_an_expression_is_computed_when_its_node_starts(inline):
    config = {"sum": "{{ a.n + 1 }}", "{{ a.name + '!' }}": "{{ size(a.items) > 1 }}"}
    with inline_bytes(inline):
        trial = Trial(node("a"), node("b", "a", config=config))
        trial.succeed("a", {"n": 1.5, "name": "key", "items": [1, 2]})
        finish(trial)
    assert trial.config("b") == {"sum": 2.5, "key!": True}


@IN_PLACE_AND_ELSEWHERE
def test_one_that_can_not_be_evaluated_fails_its_node(inline):
    with inline_bytes(inline):
        trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n + 1 }}"}))
        trial.succeed("a", {"n": "text"})
        finish(trial)
    error = trial.execution.runs["b"].failures[-1].error
    assert error.category == "config"
    assert error.message.startswith("the expression 'a.n + 1' can't be evaluated")


@pytest.mark.parametrize(
    ("template", "output"),
    [
        ("{{ a.s.matches('(x+x+)+y') }}", {"s": "x"}),
        ("{{ a.items.map(x, a.items.map(y, x + y)) }}", {"items": [1]}),
        ("{{ a.items.exists(x, x > 2) }}", {"items": list(range(5000))}),
        ("{{ a.s + a.s }}", {"s": "x" * 20_000}),
    ],
)
def test_one_that_may_take_long_is_worked_out_elsewhere(template, output):
    trial = Trial(node("a"), node("b", "a", config={"x": template}))
    trial.succeed("a", output)
    assert trial.states["b"] == "PENDING"
    assert "b" in trial.execution.unprepared
    finish(trial)
    assert trial.states["b"] == "QUEUED"


def test_cheap_ones_are_not_worked_out_elsewhere_and_counted():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n + 1 }}"}))
    with patch.object(handling, "INLINE_BYTES_MAX", 60):
        trial.succeed("a", {"n": 1})
    assert trial.states["b"] == "PENDING"
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n + 1 }}"}))
    trial.succeed("a", {"n": 1})
    assert trial.states["b"] == "QUEUED"
    assert trial.config("b") == {"x": 2}


def test_what_came_from_an_output_is_never_read_as_an_expression():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.s }}", "y": "{{ a.s + '' }}"}))
    hostile = "{{ 1 + 1 }} {{ secrets.TOKEN }}"
    trial.succeed("a", {"s": hostile})
    assert trial.config("b") == {"x": hostile, "y": hostile}
