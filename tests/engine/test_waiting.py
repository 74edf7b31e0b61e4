"""Nodes that wait for a time: WAITING with a deadline, and no task."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.trial import Trial, node


def wait(name: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    config = fields.pop("config", {"seconds": 10})
    return node(name, *dependencies, handler="wait", config=config, **fields)


def test_a_wait_ends_when_its_time_has_come_and_hands_out_no_task():
    trial = Trial(wait("nap"), node("next", "nap"))
    assert trial.states == {"nap": "WAITING", "next": "PENDING"}
    assert trial.tasks == []
    assert trial.wake_at == 10.0

    trial.timer(9.0)
    assert trial.states["nap"] == "WAITING"
    assert trial.wake_at == 10.0
    trial.timer(10.5)
    assert trial.states == {"nap": "COMPLETED", "next": "QUEUED"}
    assert trial.output("nap") == {"until": "1970-01-01T00:00:10.000Z", "waited_seconds": 10.5}


def test_a_wait_until_the_past_is_over_at_once():
    trial = Trial(wait("nap", config={"until": 0}), wait("none", config={"seconds": 0}))
    assert trial.states == {"nap": "COMPLETED", "none": "COMPLETED"}
    assert trial.output("nap") == {"until": "1970-01-01T00:00:00.000Z", "waited_seconds": 0.0}


@pytest.mark.parametrize(
    ("config", "due_at"),
    [
        ({"until": "1970-01-02T00:00:00+01:00"}, 82_800.0),
        ({"until": "1970-01-02T00:00:00Z"}, 86_400.0),
        ({"until": "1970-01-02T00:00:00", "timezone": "America/New_York"}, 104_400.0),
        ({"until": 12.5}, 12.5),
        ({"until": "{{ input.at }}"}, 77.0),
    ],
)
def test_an_end_is_a_unix_time_a_time_with_an_offset_or_a_local_time(config, due_at):
    trial = Trial(wait("nap", config=config), input_value={"at": 77})
    assert trial.wake_at == due_at
    assert str(trial.run("nap").reason).startswith("until 1970-01-0")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tomorrow", "must be a Unix time"),
        ("2027-01-01T00:00:00", "add an offset"),
        (True, "must be a Unix time"),
        (10**12, "out of range"),
        (11 * 365 * 86400, "more than 10 years away"),
        (None, 'either "seconds" or "until"'),
    ],
)
def test_an_end_that_cannot_be_read_fails_the_node(value, message):
    trial = Trial(wait("nap", config={"until": "{{ input.at }}"}), input_value={"at": value})
    assert trial.states["nap"] == "FAILED"
    error = trial.run("nap").failures[-1].error
    assert error.category == "config"
    assert message in error.message


def test_a_wait_runs_on_while_the_execution_is_paused_and_what_follows_starts_later():
    trial = Trial(wait("nap"), node("next", "nap"))
    trial.pause(at=1.0)
    trial.timer(10.0)
    assert trial.states == {"nap": "COMPLETED", "next": "PENDING"}
    trial.resume(at=20.0)
    assert trial.states["next"] == "QUEUED"


def test_a_cancel_ends_a_wait_at_once_and_its_timer_has_no_effect():
    trial = Trial(wait("nap"))
    trial.cancel(at=1.0)
    assert trial.states["nap"] == "CANCELLED"
    assert trial.stops == []
    assert trial.timer(10.0).history == []


def test_a_failure_elsewhere_ends_a_wait_but_not_one_that_cleans_up():
    trial = Trial(node("bad"), wait("nap"), wait("after", "bad", trigger_rule="one_failed"))
    trial.fail("bad", at=2.0)
    assert trial.states == {"bad": "FAILED", "nap": "CANCELLED", "after": "WAITING"}
    trial.timer(12.0)
    assert trial.states["after"] == "COMPLETED"
    assert trial.state == "FAILED"


def test_the_next_owner_knows_when_a_wait_is_over():
    trial = Trial(wait("nap"))
    trial.lose_the_owner()
    trial.timer(10.0)
    assert trial.states["nap"] == "COMPLETED"


def test_the_default_time_limit_is_not_for_nodes_that_wait():
    trial = Trial(wait("nap", config={"seconds": 3600}), defaults={"timeout_seconds": 5})
    trial.timer(400.0)
    assert trial.states["nap"] == "WAITING"


def test_a_time_limit_of_its_own_fails_a_wait():
    trial = Trial(wait("nap", timeout_seconds=4))
    trial.timer(4.0)
    assert trial.states["nap"] == "FAILED"
    assert trial.run("nap").failures[-1].error.category == "timeout"


def test_the_timer_of_a_wait_that_is_over_has_no_effect():
    trial = Trial(wait("nap"), node("next", "nap"))
    trial.timer(10.0)
    assert trial.timer(11.0).history == []


@pytest.mark.parametrize(
    ("handler", "config"),
    [
        ("signal", {"name": "paid", "schema": "{{ input.schema }}"}),
        ("approval", {"title": "Go?", "form": "{{ input.schema }}"}),
    ],
)
def test_a_schema_that_cannot_be_used_fails_the_node_when_it_would_wait(handler, config):
    schema = {"type": "objekt"}
    trial = Trial(node("ask", handler=handler, config=config), input_value={"schema": schema})
    assert trial.states == {"ask": "FAILED"}
    (failure,) = trial.run("ask").failures
    assert failure.error.category == "config"
    assert "isn't a type" in failure.error.message
