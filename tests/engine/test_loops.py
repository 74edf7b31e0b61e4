"""Loops: rounds, one after another, until a condition holds."""

from __future__ import annotations

from typing import Any

from penstock.engine import handling
from penstock.engine.events import Blob, Value
from penstock.engine.reused_outputs import item_name
from tests.engine.replica import prepared
from tests.engine.trial import Trial, node, once


def loop(until: str, max_rounds: int = 5, config: dict[str, Any] | None = None, **repeat: Any):
    repeat = {"until": until, "max_rounds": max_rounds, **repeat}
    retry = {"max_attempts": 1}
    return {
        "id": "job",
        "handler": "noop",
        "config": config or {},
        "retry": retry,
        "repeat": repeat,
    }


def test_a_node_is_repeated_until_its_condition_holds():
    trial = Trial(loop("job.done", config={"n": "{{ round }}"}), node("z", "job"))
    assert trial.states == {"job": "WAITING", "job[1]": "QUEUED", "z": "PENDING"}
    trial.succeed("job[1]", {"done": False})
    assert trial.dispatches == [("job[1]", 1), ("job[2]", 1)]
    assert trial.config("job[2]") == {"n": 2}
    trial.succeed("job[2]", {"done": True, "x": 1})
    assert trial.output("job") == {"done": True, "x": 1, "rounds": 2}
    assert trial.states["z"] == "QUEUED"


def test_between_rounds_only_a_timer_waits():
    trial = Trial(loop("job.done", every_seconds=10, multiplier=2, most_every_seconds=15))
    trial.succeed("job[1]", {"done": False}, at=1.0)
    assert len(trial.dispatches) == 1
    assert trial.wake_at == 11.0
    trial.lose_the_owner()
    trial.timer(11.0)
    assert trial.dispatches[1:] == [("job[2]", 1)]
    trial.succeed("job[2]", {"done": False}, at=12.0)
    assert trial.wake_at == 27.0


def test_a_round_finds_what_the_last_one_carried_on():
    trial = Trial(
        {
            "id": "agent",
            "repeat": {
                "until": "think.stop", "max_rounds": 9,
                "initial": {"n": 0}, "carry": {"n": "{{ think.n }}", "was": "{{ previous.n }}"},
            },
            "nodes": [node("think", config={"p": "{{ previous }}"})],
        }
    )  # fmt: skip
    assert trial.config("agent[1].think") == {"p": {"n": 0}}
    trial.succeed("agent[1].think", {"stop": False, "n": 7})
    assert trial.config("agent[2].think") == {"p": {"n": 7, "was": 0}}
    trial.lose_the_owner()
    trial.succeed("agent[2].think", {"stop": False, "n": 8})
    assert trial.config("agent[3].think") == {"p": {"n": 8, "was": 7}}
    trial.succeed("agent[3].think", {"stop": True})
    error = trial.run("agent[3]").failures[-1].error
    assert "think has no key 'n'" in error.message


def test_without_a_previous_round_a_default_is_needed():
    trial = Trial(loop("job.done", config={"p": "{{ previous.x ?? 4 }}"}))
    assert trial.config("job[1]") == {"p": 4}
    trial.succeed("job[1]", {"done": False, "x": 5})
    assert trial.config("job[2]") == {"p": 5}
    strict = Trial(loop("job.done", config={"p": "{{ previous.x }}"}))
    assert strict.states == {"job": "FAILED", "job[1]": "FAILED"}
    assert "no previous round" in strict.run("job").failures[-1].error.message


def test_after_enough_rounds_the_loop_fails():
    trial = Trial(loop("job.done", max_rounds=1))
    trial.succeed("job[1]", {"done": False})
    assert trial.states["job"] == "FAILED"
    message = trial.run("job").failures[-1].error.message
    assert message == "after 1 rounds its condition was still false: job.done"


def test_after_enough_rounds_the_loop_may_go_on_with_what_it_has():
    trial = Trial(loop("job.done", max_rounds=1, on_exhausted="continue"))
    trial.succeed("job[1]", {"done": False})
    assert trial.output("job") == {"done": False, "rounds": 1, "exhausted": True}


def test_a_round_that_fails_fails_the_loop():
    trial = Trial(loop("job.done"))
    trial.fail("job[1]")
    assert trial.states == {"job": "FAILED", "job[1]": "FAILED"}
    assert trial.run("job").failures[-1].error.message == "job[1] failed: job[1] failed"


def test_a_round_that_fails_may_be_followed_by_another():
    trial = Trial(
        loop("job.done", config={"p": "{{ previous.x ?? 0 }}"}, on_round_failure="continue")
    )
    trial.succeed("job[1]", {"done": False, "x": 3})
    trial.fail("job[2]")
    assert trial.config("job[3]") == {"p": 3}
    trial.lose_the_owner()
    trial.fail("job[3]")
    assert trial.config("job[4]") == {"p": 3}


def test_a_condition_that_gives_no_boolean_fails_the_loop():
    trial = Trial(loop("job.n"))
    trial.succeed("job[1]", {"n": 3})
    assert trial.states["job"] == "FAILED"
    assert "it must give true or false" in trial.run("job").failures[-1].error.message


def test_a_large_output_of_a_round_is_fetched_for_the_condition():
    trial = Trial(loop("job.done"))
    trial.succeed("job[1]", Blob("key", 10))
    assert trial.execution.wanted.keys() == {"job[1]"}
    trial.provide(**{"job[1]": {"done": True}})
    assert trial.output("job") == {"done": True, "rounds": 1}


def test_a_paused_loop_begins_no_round():
    trial = Trial(loop("job.done", every_seconds=5))
    trial.succeed("job[1]", {"done": False})
    trial.pause()
    trial.timer(5.0)
    assert len(trial.dispatches) == 1
    trial.resume(6.0)
    assert len(trial.dispatches) == 2


def test_a_cancelled_loop_stays_so_when_its_timer_fires():
    trial = Trial(loop("job.done", every_seconds=5), node("other"))
    trial.succeed("job[1]", {"done": False})
    trial.cancel()
    trial.timer(5.0)
    assert trial.states["job"] == "CANCELLED"
    assert len(trial.dispatches) == 2


def test_an_execution_that_fails_stops_its_loops():
    trial = Trial(loop("job.done", every_seconds=5), once("bad"))
    trial.succeed("job[1]", {"done": False})
    trial.fail("bad")
    assert trial.states["job"] == "CANCELLED"
    assert trial.state == "FAILED"


def test_a_loop_may_have_a_map_in_it():
    trial = Trial(
        {
            "id": "agent",
            "repeat": {"until": "think.stop", "max_rounds": 3},
            "nodes": [
                node("think"),
                {"id": "tools", "for_each": "{{ think.calls ?? [] }}", "handler": "noop"},
                node("merge", "tools", config={"all": "{{ tools }}"}),
            ],
        }
    )
    trial.succeed("agent[1].think", {"stop": False, "calls": ["x"]})
    trial.succeed("agent[1].tools[0]", "X")
    assert trial.config("agent[1].merge") == {"all": ["X"]}
    trial.succeed("agent[1].merge", "m")
    trial.succeed("agent[2].think", {"stop": True})
    assert trial.states["agent[2].tools"] == "COMPLETED"
    trial.succeed("agent[2].merge", "n")
    assert trial.output("agent") == {"output": "n", "rounds": 2}
    keys = [task.idempotency_key for task in trial.tasks]
    assert keys[0] == "execution-1:agent#1.think"
    assert keys[1].startswith("execution-1:agent#1.tools#")


def test_a_condition_that_may_take_long_is_decided_elsewhere():
    until = "job.text.matches('a+b') && round > 1"
    trial = Trial(loop(until))
    for number, text in ((1, "aab"), (2, "aab")):
        trial.succeed(f"job[{number}]", {"text": text})
        assert trial.states["job"] == "WAITING"
        preparations = trial.execution.take_unprepared()
        assert preparations.keys() == {"job"}
        handling.provide_prepared(trial.execution, prepared(preparations))
        trial.go_on()
    assert trial.output("job") == {"text": "aab", "rounds": 2}


def test_a_new_owner_has_the_condition_decided_again():
    trial = Trial(loop("job.text.matches('a+b')"))
    trial.succeed("job[1]", {"text": "ab"})
    trial.lose_the_owner()
    preparations = trial.execution.take_unprepared()
    handling.provide_prepared(trial.execution, prepared(preparations))
    trial.go_on()
    assert trial.output("job") == {"text": "ab", "rounds": 1}


def test_a_loop_has_a_time_limit_if_it_is_given_one():
    trial = Trial({**loop("job.done", every_seconds=3), "timeout_seconds": 5})
    trial.succeed("job[1]", {"done": False}, at=1.0)
    trial.timer(4.0)
    assert trial.states["job[2]"] == "QUEUED"
    trial.timer(5.0)
    assert trial.states["job"] == "FAILED"
    assert trial.states["job[2]"] == "CANCELLED"
    assert trial.run("job").failures[-1].error.category == "timeout"


def test_a_condition_may_have_a_fallback_for_a_node_that_was_skipped():
    trial = Trial(
        {
            "id": "agent",
            "repeat": {"until": "{{ a.done ?? true }} == true", "max_rounds": 3},
            "nodes": [node("a", condition="1 > 2"), node("b")],
        }
    )
    trial.succeed("agent[1].b", "x")
    assert trial.states["agent"] == "COMPLETED"


def test_a_new_owner_finds_the_item_for_the_initial_value_of_a_loop():
    trial = Trial(
        {
            "id": "each",
            "for_each": [{"n": 4}],
            "nodes": [
                {
                    "id": "job",
                    "repeat": {
                        "until": "true",
                        "max_rounds": 3,
                        "every_seconds": 5,
                        "initial": "{{ item.n }}",
                        "on_round_failure": "continue",
                    },
                    "nodes": [once("a", config={"p": "{{ previous }}"})],
                }
            ],
        }
    )
    trial.fail("each[0].job[1].a", at=1.0)
    trial.lose_the_owner()
    trial.timer(6.0)
    assert trial.config("each[0].job[2].a") == {"p": 4}


def test_a_condition_is_decided_once_also_if_the_output_has_to_be_fetched_after_it():
    trial = Trial(loop("round >= 1 && job.text.matches('a+b')"))
    trial.succeed("job[1]", Blob("blob", 300_000))
    for _ in range(5):
        wanted = set(trial.execution.wanted)
        if wanted:
            trial.provide(**{address: {"text": "ab"} for address in wanted})
        preparations = trial.execution.take_unprepared()
        if preparations:
            handling.provide_prepared(trial.execution, prepared(preparations))
            trial.go_on()
    assert trial.output("job") == {"text": "ab", "rounds": 1}


def test_a_loop_that_is_resumed_doesnt_pause_after_rounds_that_it_reuses():
    reused: dict[str, Value] = {item_name("job", "1"): b"{}", item_name("job", "2"): b"{}"}
    trial = Trial(loop("job.done", every_seconds=3600), reused=reused)
    assert trial.states["job[3]"] == "QUEUED"


def test_only_outputs_of_the_last_rounds_are_kept():
    trial = Trial(loop("job.n == 5", max_rounds=9, keep_rounds=2))
    for n in range(1, 5):
        trial.succeed(f"job[{n}]", {"n": n})
    assert list(trial.execution.outputs) == ["job[3]", "job[4]"]
    assert trial.committed.load(trial.plan).outputs.keys() == {"job[3]", "job[4]"}
    trial.succeed("job[5]", {"n": 5})
    assert trial.output("job") == {"n": 5, "rounds": 5}
    assert trial.states["job[1]"] == "COMPLETED"


def test_what_the_last_complete_round_carried_on_is_kept_while_rounds_fail():
    trial = Trial(
        loop(
            "false",
            max_rounds=9,
            keep_rounds=1,
            initial=None,
            on_round_failure="continue",
            on_exhausted="continue",
        )
        | {"config": {"last": "{{ previous }}"}}
    )
    trial.succeed("job[1]", {"n": 1})
    for n in range(2, 6):
        trial.fail(f"job[{n}]")
    assert trial.config("job[6]") == {"last": {"n": 1}}
    assert list(trial.execution.outputs) == ["job[1]"]


def test_nodes_of_maps_inside_of_old_rounds_are_dropped_too():
    inner = {"id": "each", "for_each": [1, 2], "handler": "noop"}
    outer = node("job", nodes=[inner], repeat={"until": "false", "max_rounds": 3, "keep_rounds": 1})
    del outer["handler"]
    trial = Trial(outer)
    for n in (1, 2):
        for index in (0, 1):
            trial.succeed(f"job[{n}].each[{index}]", n)
    kept = {"job[2].each[0]", "job[2].each[1]", "job[2].each", "job[2]"}
    assert set(trial.execution.outputs) == kept
