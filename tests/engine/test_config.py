"""A config is resolved from recorded outputs only (G3, G7).

Secrets stay names, and large outputs are fetched first.
"""

from __future__ import annotations

import msgspec
import pytest

from penstock.definition.config import SecretText
from penstock.engine import data
from penstock.engine.events import Blob
from tests.engine.trial import Trial, decision, node, once

BIG = Blob("key-1", 1_000_000)


@pytest.mark.parametrize(
    "value", [1, 1.5, "text", True, None, [1, [2]], {"a": {"b": "c"}}, "{{ a.value }}", ""]
)
def test_a_single_reference_keeps_its_type_and_is_never_read_as_a_template_again(value):
    trial = Trial(
        node("a"), node("b", "a", config={"x": "{{ a.value }}", "y": {"z": ["{{ a.value }}"]}})
    )
    trial.succeed("a", {"value": value})
    assert trial.config("b") == {"x": value, "y": {"z": [value]}}


def test_references_inside_text_go_in_as_text():
    trial = Trial(
        node("a"), node("b", "a", config={"x": "{{ a.n }} of {{a.items[0].id}}: {{ a.o }}"})
    )
    trial.succeed("a", {"n": 3, "items": [{"id": "first"}], "o": {"k": None}})
    assert trial.config("b") == {"x": '3 of first: {"k":null}'}


MANY = " ".join(["{{ input.text }}"] * 200)


@pytest.mark.parametrize(
    "config",
    [
        {"x": MANY},
        {f"x{i}": "{{ input.text }}" for i in range(200)},
        {f"x{i}": "{{ input }}" for i in range(200)},
    ],
    ids=["in one text", "in many", "whole objects"],
)
def test_references_that_fill_in_too_much_fail_the_node(config):
    trial = Trial(
        node("a", config=config, optional=True), node("b"), input_value={"text": "x" * 200_000}
    )
    assert trial.states == {"a": "FAILED", "b": "QUEUED"}
    assert trial.run("a").reason == "config"
    assert (
        "has more than 16,777,216 bytes; refer to less" in trial.run("a").failures[0].error.message
    )
    assert trial.dispatches == [("b", 1)]


def test_an_output_node_takes_only_so_much_from_its_parents(monkeypatch):
    monkeypatch.setattr(data, "OUTPUT_BYTES_MAX", 1000)
    trial = Trial(node("a"), node("b"), node("output", "a", "b", handler="output"))
    trial.succeed("a", "x" * 600)
    trial.succeed("b", "x" * 600)
    assert trial.run("output").reason == "config"
    assert (
        "have 1,204 bytes together; the limit is 1,000"
        in trial.run("output").failures[0].error.message
    )


def test_input_and_execution_can_be_referred_to():
    trial = Trial(
        node("a", config={"x": "{{ input.name }}", "id": "{{ execution.id }}"}),
        input_value={"name": "jo"},
    )
    assert trial.config("a") == {"x": "jo", "id": "execution-1"}


def test_a_missing_key_fails_the_node_and_names_the_keys_that_are_there():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.total }}"}))
    trial.succeed("a", {"sum": 1, "count": 2})
    assert trial.states == {"a": "COMPLETED", "b": "FAILED"}
    assert trial.state == "FAILED"
    message = trial.run("b").failures[0].error.message
    assert "a has no key 'total'; it has: sum, count" in message
    assert trial.run("b").reason == "config"
    assert trial.dispatches == [("a", 1)]


@pytest.mark.parametrize("how", ["skipped", "failed", "not yet"])
def test_a_reference_to_a_node_without_an_output_fails_the_node_and_says_why(how):
    trial = Trial(
        decision("d", gives=how != "skipped"),
        once("a", "d", condition="d.result", optional=True),
        node("b", "d", "a", config={"x": "{{ a.value }}"}, trigger_rule="one_success"),
        on_failure="continue",
    )
    if how == "failed":
        trial = Trial(once("a", optional=True), node("b", "a", config={"x": "{{ a.value }}"}))
        trial.fail("a")
    assert trial.states["b"] == "FAILED"
    state = {"skipped": "SKIPPED", "failed": "FAILED", "not yet": "PENDING"}[how]
    message = trial.run("b").failures[0].error.message
    assert "'a' has no output" in message
    assert state in message or trial.states["a"] in message


def test_a_fallback_stands_in_for_a_missing_key_and_for_a_node_without_an_output():
    trial = Trial(
        once("a", optional=True),
        node("b"),
        node(
            "c",
            "a",
            "b",
            config={"x": '{{ a.value ?? "none" }}', "y": "{{ b.deep.down ?? [1, 2] }}"},
        ),
    )
    trial.fail("a")
    trial.succeed("b", {"deep": 1})
    assert trial.config("c") == {"x": "none", "y": [1, 2]}


def test_a_fallback_does_not_stand_in_for_a_value_that_is_null():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.value ?? 1 }}"}))
    trial.succeed("a", {"value": None})
    assert trial.config("b") == {"x": None}


def test_the_tasks_of_two_executions_do_not_share_a_config():
    trial = Trial(node("a"), node("b", "a", config={"x": {"y": "{{ a.value }}"}}))
    trial.succeed("a", {"value": 1})
    first = trial.tasks[-1].config
    other = Trial(node("a"), node("b", "a", config={"x": {"y": "{{ a.value }}"}}))
    other.succeed("a", {"value": 2})
    assert (first, other.tasks[-1].config) == (b'{"x":{"y":1}}', b'{"x":{"y":2}}')
    assert trial.plan.nodes[1].config.value == {"x": {"y": "{{ a.value }}"}}


def test_a_task_carries_the_outputs_of_its_parents():
    trial = Trial(node("a"), once("b", optional=True), node("c", "a", "b"))
    trial.fail("b")
    trial.succeed("a", {"x": 1})
    assert trial.tasks[-1].inputs == [("a", b'{"x":1}')]


def test_a_secret_stays_a_name_and_the_task_says_where_it_goes():
    config = {
        "headers": {"Authorization": "Bearer {{ secrets.API_KEY }}"},
        "list": ["{{ secrets.TWO }}"],
    }
    trial = Trial(node("a", config=config))
    assert trial.config("a") == config
    assert set(trial.tasks[0].secrets) == {
        SecretText(("headers", "Authorization"), ("Bearer ", "API_KEY", "")),
        SecretText(("list", 0), ("", "TWO", "")),
    }


def test_an_output_cannot_smuggle_a_secret_into_a_config():
    trial = Trial(
        node("a"),
        node("b", "a", config={"x": "{{ a.text }}", "y": "{{ a.text }} {{ secrets.MINE }}"}),
    )
    trial.succeed("a", {"text": "{{ secrets.OTHER }}"})
    task = trial.tasks[-1]
    assert task.secrets == (SecretText(("y",), ("{{ secrets.OTHER }} ", "MINE", "")),)


def test_a_task_survives_being_written_and_read():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n }}", "k": "{{ secrets.KEY }}"}))
    trial.succeed("a", BIG)
    trial.provide(a={"n": 1})
    task = trial.tasks[-1]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(task), type=type(task)) == task


def test_a_large_output_that_a_config_needs_is_wanted_and_the_node_waits_for_it():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n }}"}), node("c", "a"))
    trial.succeed("a", BIG)
    assert trial.execution.wanted == {"a": BIG}
    assert trial.states == {"a": "COMPLETED", "b": "PENDING", "c": "QUEUED"}
    trial.provide(a={"n": 5})
    assert trial.config("b") == {"x": 5}
    assert not trial.execution.wanted
    assert not trial.execution.loaded


def test_a_large_output_that_only_travels_on_is_not_fetched():
    trial = Trial(node("a"), node("b", "a"))
    trial.succeed("a", BIG)
    assert not trial.execution.wanted
    assert trial.tasks[-1].inputs == [("a", BIG)]


@pytest.mark.parametrize(
    "child",
    [
        node("b", "a", condition="a.n == 5"),
        node("b", "a", handler="output"),
        node("b", "a", handler="output", config={"x": "{{ a.n }}"}),
        node(
            "b",
            "a",
            handler="decision",
            config={"value_a": "{{ a.n }}", "operator": "==", "value_b": 5},
        ),
    ],
    ids=["condition", "output", "output with a config", "decision"],
)
def test_conditions_and_data_nodes_wait_for_large_outputs_too(child):
    trial = Trial(node("a"), child)
    trial.succeed("a", BIG)
    assert trial.execution.wanted == {"a": BIG}
    trial.provide(a={"n": 5})
    assert trial.states["b"] in {"QUEUED", "COMPLETED"}


def test_a_new_owner_wants_the_large_output_again():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n }}"}))
    trial.succeed("a", BIG)
    trial.lose_the_owner()
    assert trial.execution.wanted == {"a": BIG}
    trial.provide(a={"n": 5})
    assert trial.config("b") == {"x": 5}


def test_a_large_output_that_came_while_paused_is_fetched_after_the_resume():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n }}"}))
    trial.succeed("a", BIG)
    trial.pause()
    trial.provide(a={"n": 5})
    assert trial.states["b"] == "PENDING"
    trial.resume()
    assert trial.execution.wanted == {"a": BIG}
    trial.provide(a={"n": 5})
    assert trial.config("b") == {"x": 5}


def test_the_next_attempt_gets_its_config_from_the_same_large_output():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.n }}"}))
    trial.succeed("a", BIG)
    trial.provide(a={"n": 5})
    trial.lose("b")
    assert trial.execution.wanted == {"a": BIG}
    trial.provide(a={"n": 5})
    assert trial.dispatches == [("a", 1), ("b", 1), ("b", 2)]
    assert trial.config("b") == {"x": 5}


def test_two_nodes_that_want_the_same_large_output_both_start():
    trial = Trial(
        node("a"),
        node("b", "a", config={"x": "{{ a.n }}"}),
        node("c", "a", config={"x": "{{ a.n }}"}),
    )
    trial.succeed("a", BIG)
    trial.provide(a={"n": 5})
    assert trial.dispatches == [("a", 1), ("b", 1), ("c", 1)]
