"""What a node takes to start, worked out elsewhere when it is too much for a decision."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine import handling, starting
from penstock.engine.handling import PREPARE_AGAIN_SECONDS
from penstock.engine.state import INLINE_BYTES_MAX
from tests.engine.replica import prepared
from tests.engine.trial import Trial, node

COSTLY = "a.text.matches('x+')"
LARGE = "x" * INLINE_BYTES_MAX


def prepare(trial: Trial) -> None:
    """All that is asked for, and its effect."""
    handling.provide_prepared(trial.execution, prepared(trial.execution.take_unprepared()))
    trial.go_on()


def trial_of(*nodes: dict[str, Any], output: Any, **fields: Any) -> Trial:
    trial = Trial(node("a"), *nodes, **fields)
    trial.succeed("a", output)
    return trial


@pytest.mark.parametrize(
    ("condition", "output"),
    [
        (COSTLY, {"text": "xx"}),
        ("a.text.contains('x')", {"text": "x" * 20_000}),
        ("a.list.exists(i, i == 3)", {"list": [*range(300), 3]}),
        ("a.n == 1", {"n": 1, "rest": LARGE}),
    ],
)
def test_a_condition_that_is_not_cheap_waits_to_be_evaluated(condition: str, output: Any):
    trial = trial_of(node("b", "a", condition=condition), output=output)
    assert trial.states == {"a": "COMPLETED", "b": "PENDING"}
    prepare(trial)
    assert trial.states == {"a": "COMPLETED", "b": "QUEUED"}


@pytest.mark.parametrize(
    "condition", ["a.n == 1", "a.list.exists(i, i == 3)", "input.n == 2", "{{ a.n }} == 1"]
)
def test_a_cheap_condition_is_decided_at_once(condition: str):
    output = {"n": 1, "list": [1, 2, 3], "rest": "x" * 100_000}
    trial = trial_of(
        node("b", "a", condition=condition),
        output=output,
        input_value={"n": 2, "rest": "x" * 100_000},
    )
    assert trial.states["b"] == "QUEUED"


def test_the_next_event_has_its_own_share_of_cheap_ones():
    conditions = [node(f"n{i}", "a", condition=f"a.x{i} == 'x'") for i in range(300)]
    trial = trial_of(*conditions, output={f"x{i}": "x" * 600 for i in range(300)})
    assert 0 < len(trial.execution.unprepared) < 300
    prepare(trial)
    assert set(trial.states.values()) == {"COMPLETED", "SKIPPED"}


@pytest.mark.parametrize(
    ("condition", "output", "state", "message"),
    [
        (COSTLY, {"text": "y"}, "SKIPPED", ""),
        (COSTLY, {"text": 3}, "FAILED", "matches"),
        (COSTLY, {}, "FAILED", 'there is no key "text"; a has: none'),
        (
            "a.big.matches('x')",
            {"text": LARGE, "n": 1},
            "FAILED",
            'there is no key "big"; a has: text, n',
        ),
    ],
)
def test_what_was_evaluated_elsewhere_has_the_same_effect(
    condition: str, output: Any, state: str, message: str
):
    trial = trial_of(node("b", "a", condition=condition), output=output)
    prepare(trial)
    assert trial.states["b"] == state
    if message:
        (failure,) = trial.run("b").failures
        assert failure.error.category == "condition"
        assert message in failure.error.message


def test_a_timer_makes_the_next_owner_ask_again():
    trial = trial_of(node("b", "a", condition=COSTLY), output={"text": "x"})
    assert trial.wake_at == trial.now + PREPARE_AGAIN_SECONDS
    trial.execution.take_unprepared()
    trial.timer(trial.now + PREPARE_AGAIN_SECONDS)
    assert trial.wake_at == trial.now + PREPARE_AGAIN_SECONDS
    assert not trial.execution.unprepared, "the same owner waits for its answer"
    trial.lose_the_owner()
    prepare(trial)
    assert trial.states["b"] == "QUEUED"


def test_what_was_prepared_before_an_output_came_is_prepared_again():
    trial = Trial(
        node("a"),
        node("late"),
        node(
            "b",
            "a",
            "late",
            trigger_rule="one_success",
            condition=COSTLY,
            config={"x": "{{ late.n ?? 0 }}"},
        ),
    )
    trial.succeed("a", {"text": "x"})
    first = prepared(trial.execution.take_unprepared())
    trial.succeed("late", {"n": 7})
    handling.provide_prepared(trial.execution, first)
    trial.go_on()
    assert trial.states["b"] == "PENDING"
    prepare(trial)
    assert trial.config("b") == {"x": 7}


def test_a_large_value_in_a_config_keeps_its_text():
    config = {
        "all": "{{ a }}",
        "some": "{{ a.rows[1] }}",
        "text": "<{{ a.rows[0] }}>",
        "none": "{{ a.nope ?? null }}",
    }
    output = {"rows": [{"é": 1.5}, [None, True]], "rest": LARGE}
    trial = trial_of(node("b", "a", config=config), output=output)
    prepare(trial)
    assert trial.config("b") == {
        "all": output,
        "some": [None, True],
        "text": '<{"é":1.5}>',
        "none": None,
    }


def test_a_missing_key_in_a_large_value_says_what_is_there():
    trial = trial_of(
        node("b", "a", config={"x": "{{ a.rows.nope }}"}), output={"rows": {"k": LARGE}}
    )
    prepare(trial)
    (failure,) = trial.run("b").failures
    assert failure.error.message == "{{ a.rows.nope }}: a.rows has no key 'nope'; it has: k"


def test_a_large_input_is_given_on_by_its_node():
    value = {"text": LARGE}
    trial = Trial(node("in", handler="input", config={"more": 1}), input_value=value)
    prepare(trial)
    assert trial.output("in") == {"more": 1, **value}


def test_an_override_stands_over_what_was_prepared():
    trial = trial_of(
        node("b", "a", config={"x": "{{ a.n }}", "y": "{{ a.n }} {{ secrets.KEY }}"}),
        output={"n": 1, "rest": LARGE},
        overrides={"b": {"y": 2}},
    )
    prepare(trial)
    assert trial.config("b") == {"x": 1, "y": 2}
    assert trial.tasks[-1].secrets == ()


def test_secrets_stay_names_in_what_was_prepared():
    trial = trial_of(
        node("b", "a", config={"y": "{{ a.n }} {{ secrets.KEY }}"}), output={"n": 1, "rest": LARGE}
    )
    prepare(trial)
    (secret,) = trial.tasks[-1].secrets
    assert (secret.path, secret.pieces) == (("y",), ("1 ", "KEY", ""))


def test_more_than_can_be_prepared_fails_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(starting, "PREPARATION_BYTES_MAX", 300_000)
    trial = trial_of(node("b", "a", config={"x": "{{ a.n }}"}), output={"n": "x" * 400_000})
    (failure,) = trial.run("b").failures
    assert failure.error.category == "config"
    assert (
        failure.error.message
        == "it refers to 400,008 bytes of outputs and input; the limit is 300,000"
    )


def test_a_cancelled_node_ignores_its_verdict():
    trial = trial_of(node("b", "a", condition=COSTLY), output={"text": "x"})
    answers = prepared(trial.execution.take_unprepared())
    trial.cancel()
    handling.provide_prepared(trial.execution, answers)
    trial.go_on()
    assert trial.states["b"] == "CANCELLED"
    assert not trial.last.tasks
