"""Maps: a node, or a sub-graph, that runs once for each item of a list."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine import handling
from penstock.engine.events import Blob, Value
from penstock.engine.reused_outputs import item_name
from penstock.engine.states import NodeState
from penstock.engine.transitions import move_item
from penstock.errors import InvalidTransition
from tests.engine.replica import commit_weight, inline_bytes, prepared
from tests.engine.trial import Trial, node, once


def over(items: Any, name: str = "each", *dependencies: str, **fields: Any) -> dict[str, Any]:
    """A map of one node that fails without a second attempt."""
    fields = {"handler": "noop", "retry": {"max_attempts": 1}, **fields}
    return {"id": name, "for_each": items, "dependencies": list(dependencies), **fields}


def body(*nodes: dict[str, Any], items: Any, name: str = "each", **fields: Any) -> dict[str, Any]:
    return {"id": name, "for_each": items, "nodes": list(nodes), **fields}


def test_a_node_runs_once_for_each_item():
    trial = Trial(over(["a", "b"], config={"text": "{{ item }} {{ index }}"}), node("z", "each"))
    assert trial.dispatches == [("each[0]", 1), ("each[1]", 1)]
    assert trial.states == {
        "each": "WAITING", "z": "PENDING", "each[0]": "QUEUED", "each[1]": "QUEUED",
    }  # fmt: skip
    assert trial.config("each[1]") == {"text": "b 1"}
    trial.succeed("each[1]", "second")
    trial.succeed("each[0]", "first")
    assert trial.output("each") == ["first", "second"]
    assert trial.states["z"] == "QUEUED"


def test_a_list_comes_from_an_output():
    trial = Trial(node("list"), over("{{ list.words }}", config={"text": "{{ item.w }}"}))
    trial.succeed("list", {"words": [{"w": 1}, {"w": 2}]})
    assert trial.config("each[1]") == {"text": 2}
    assert trial.tasks[-1].item == b'{"w":2}'
    assert trial.tasks[-1].index == 1
    assert trial.tasks[-1].inputs == []


def test_an_empty_list_is_a_success():
    trial = Trial(over([]), node("z", "each"))
    assert trial.states == {"each": "COMPLETED", "z": "QUEUED"}
    assert trial.output("each") == []


@pytest.mark.parametrize("value", [None, 3, "text", {"a": 1}])
def test_what_is_no_list_fails_the_map(value):
    trial = Trial(node("list"), over("{{ list.words }}"))
    trial.succeed("list", {"words": value})
    assert trial.state == "FAILED"
    error = trial.run("each").failures[-1].error
    assert error.category == "items"
    assert "for_each needs a list, and {{ list.words }} is" in error.message


def test_only_so_many_items_are_open_at_once():
    trial = Trial(over([1, 2, 3], max_parallel=2))
    assert trial.dispatches == [("each[0]", 1), ("each[1]", 1)]
    trial.succeed("each[1]", 20)
    assert trial.dispatches[2:] == [("each[2]", 1)]
    trial.succeed("each[2]", 30)
    trial.succeed("each[0]", 10)
    assert trial.output("each") == [10, 20, 30]
    assert trial.state == "COMPLETED"


def test_a_body_runs_as_a_graph_of_its_own_in_each_item():
    trial = Trial(
        body(
            node("fetch", config={"url": "{{ page.url }}"}),
            node("parse", "fetch", config={"text": "{{ fetch.data }}"}),
            items=[{"url": "a"}, {"url": "b"}],
            **{"as": "page"},
        )
    )
    assert trial.config("each[1].fetch") == {"url": "b"}
    trial.succeed("each[0].fetch", {"data": "A"})
    assert trial.config("each[0].parse") == {"text": "A"}
    assert trial.tasks[-1].inputs == [("fetch", b'{"data":"A"}')]
    trial.succeed("each[0].parse", "parsed A")
    assert trial.states["each[0]"] == "COMPLETED"
    trial.succeed("each[1].fetch", {"data": "B"})
    trial.succeed("each[1].parse", "parsed B")
    assert trial.output("each") == ["parsed A", "parsed B"]


def test_what_is_collected_is_the_output_of_an_item():
    trial = Trial(
        body(node("a"), node("b"), items=[1, 2], collect={"sum": "{{ a.n }}", "of": "{{ item }}"})
    )
    for i in (0, 1):
        trial.succeed(f"each[{i}].a", {"n": i})
        trial.succeed(f"each[{i}].b", None)
    assert trial.output("each") == [{"sum": 0, "of": 1}, {"sum": 1, "of": 2}]


def test_several_sinks_are_an_object():
    trial = Trial(body(node("a"), node("b"), items=[1]))
    trial.succeed("each[0].a", 1)
    trial.succeed("each[0].b", Blob("key", 3))
    trial.provide(**{"each[0].b": 2})
    assert trial.output("each") == [{"a": 1, "b": 2}]


def test_a_failed_item_stops_the_others():
    trial = Trial(over([1, 2, 3], max_parallel=2), node("z", "each"))
    trial.fail("each[0]")
    assert trial.states == {
        "each": "FAILED", "z": "SKIPPED", "each[0]": "FAILED", "each[1]": "CANCELLED",
    }  # fmt: skip
    assert [stop.node_id for stop in trial.stops] == ["each[1]"]
    assert trial.state == "FAILED"
    message = trial.run("each").failures[-1].error.message
    assert message == "1 of 3 items failed; first: each[0]: each[0] failed"


def test_the_rest_runs_when_failures_are_left_to_the_end():
    trial = Trial(over([1, 2, 3], max_parallel=1, on_item_failure="continue"))
    trial.succeed("each[0]", 1)
    trial.fail("each[1]")
    trial.succeed("each[2]", 3)
    assert trial.states["each"] == "FAILED"
    assert "1 of 3 items failed" in trial.run("each").failures[-1].error.message


def test_a_failed_item_can_be_null_in_the_list():
    trial = Trial(over([1, 2], on_item_failure="skip"))
    trial.fail("each[0]")
    trial.succeed("each[1]", 2)
    assert trial.output("each") == [None, 2]
    assert trial.state == "COMPLETED"


def test_a_failed_item_can_be_its_error_in_the_list():
    trial = Trial(body(once("a"), once("b", "a"), items=[1, 2], on_item_failure="collect"))
    trial.fail("each[0].a")
    trial.succeed("each[1].a", 2)
    trial.succeed("each[1].b", 3)
    error = {"category": "handler", "message": "each[0].a failed", "node": "a"}
    assert trial.output("each") == [{"error": error, "index": 0}, 3]


@pytest.mark.parametrize(("limit", "state"), [(1, "WAITING"), (0, "FAILED"), ("50%", "WAITING")])
def test_too_many_failures_end_the_map(limit, state):
    trial = Trial(over([1, 2, 3, 4], on_item_failure="skip", max_failures=limit))
    trial.fail("each[0]")
    assert trial.states["each"] == state


def test_a_failure_in_one_item_starts_no_clean_up_in_another():
    trial = Trial(
        body(once("a"), node("mend", "a", trigger_rule="one_failed"), items=[1, 2]),
        on_failure="continue",
    )
    trial.fail("each[0].a")
    assert trial.states["each[0].mend"] == "QUEUED"
    assert "each[1].mend" not in trial.states
    trial.succeed("each[0].mend", 1)
    assert trial.states["each[0]"] == "FAILED"


def test_clean_up_of_an_item_runs_while_the_others_are_stopped():
    trial = Trial(
        body(once("a"), node("tidy", "a", trigger_rule="all_done"), items=[1, 2]),
        node("z", "each"),
    )
    trial.fail("each[0].a")
    assert trial.states["each[1].a"] == "QUEUED"
    trial.lose_the_owner()
    trial.succeed("each[0].tidy", 1)  # the item has failed when it has ended
    assert trial.states["each[1].a"] == "CANCELLED"
    assert trial.states["each[1].tidy"] == "QUEUED"
    assert trial.states["each"] == "WAITING"
    trial.lose_the_owner()
    trial.succeed("each[1].tidy", 1)
    assert trial.states["each[1]"] == "CANCELLED"
    assert trial.states["each"] == "FAILED"
    assert trial.state == "FAILED"


def test_an_item_of_which_all_ends_are_skipped_is_null():
    trial = Trial(body(node("a", condition="item > 1"), items=[1, 2]))
    trial.succeed("each[1].a", "ok")
    assert trial.states["each[0]"] == "SKIPPED"
    assert trial.output("each") == [None, "ok"]


def test_maps_nest():
    trial = Trial(
        body(
            node("list"),
            over("{{ list.of }}", "inner", "list", config={"both": "{{ page }}{{ item }}"}),
            items=["x", "y"],
            **{"as": "page"},
        )
    )
    trial.succeed("each[1].list", {"of": [1, 2]})
    assert trial.dispatches[-2:] == [("each[1].inner[0]", 1), ("each[1].inner[1]", 1)]
    assert trial.config("each[1].inner[1]") == {"both": "y2"}
    trial.lose_the_owner()
    trial.succeed("each[1].inner[0]", "a")
    trial.succeed("each[0].list", {"of": []})
    trial.succeed("each[1].inner[1]", "b")
    assert trial.output("each") == [[], ["a", "b"]]
    assert trial.state == "COMPLETED"


def test_a_retry_of_an_attempt_is_the_nodes_own():
    trial = Trial(over([1], retry={"max_attempts": 2, "initial_delay_seconds": 1, "jitter": 0}))
    trial.fail("each[0]", retryable=True)
    assert trial.states["each[0]"] == "RETRYING"
    trial.lose_the_owner()
    trial.timer(1.0)
    trial.succeed("each[0]", "late")
    assert trial.output("each") == ["late"]


def test_nothing_opens_while_the_execution_is_paused():
    trial = Trial(over([1, 2], max_parallel=1))
    trial.pause()
    trial.succeed("each[0]", 1)
    assert len(trial.dispatches) == 1
    trial.resume()
    assert trial.dispatches[1:] == [("each[1]", 1)]


def test_a_cancel_ends_open_items_and_leaves_the_others_alone():
    trial = Trial(body(node("a"), node("b", "a"), items=[1, 2], max_parallel=1))
    trial.cancel()
    assert trial.states == {
        "each": "CANCELLED", "each[0].a": "CANCELLED", "each[0].b": "CANCELLED",
        "each[0]": "CANCELLED",
    }  # fmt: skip
    assert [stop.node_id for stop in trial.stops] == ["each[0].a"]


def test_a_cancel_leaves_nodes_of_items_that_have_ended():
    trial = Trial(body(node("a"), node("b", "a"), items=[1]))
    trial.succeed("each[0].a", 1)
    trial.cancel()
    assert trial.states["each[0].a"] == "COMPLETED"
    assert trial.states["each[0].b"] == "CANCELLED"


def test_an_item_that_has_ended_stays_so():
    trial = Trial(body(node("a"), items=[1, 2], max_parallel=1))
    trial.succeed("each[0].a", 1)
    with pytest.raises(InvalidTransition):
        move_item(trial.execution, trial.run("each[0]"), NodeState.FAILED)


def test_a_map_has_no_time_limit_unless_it_is_given_one():
    trial = Trial(over([1], timeout_seconds=5))
    trial.timer(4.0)
    assert trial.states["each"] == "WAITING"
    trial.lose_the_owner()
    trial.timer(5.0)
    assert trial.states == {"each": "FAILED", "each[0]": "CANCELLED"}
    assert trial.run("each").failures[-1].error.category == "timeout"
    patient = Trial(over([1]))
    patient.timer(100000.0)
    assert patient.states["each"] == "WAITING"


def test_an_item_has_a_time_limit_of_its_own():
    trial = Trial(body(node("a"), items=[1, 2], item_timeout_seconds=5, on_item_failure="skip"))
    trial.succeed("each[1].a", 1)
    trial.lose_the_owner()
    trial.timer(5.0)
    assert trial.states["each[0]"] == "FAILED"
    assert trial.output("each") == [None, 1]


def test_the_time_of_an_item_is_recorded_also_if_another_owner_has_opened_it():
    with inline_bytes(0):
        trial = Trial(
            body(
                node("a", config={"x": "{{ item }}"}),
                items=[1],
                item_timeout_seconds=5,
                on_item_failure="skip",
            )
        )
    assert "each[0].a" not in trial.states
    trial.now = 100.0
    trial.lose_the_owner()
    assert trial.states["each[0].a"] == "QUEUED"
    trial.timer(104.0)
    trial.lose_the_owner()
    assert trial.states["each[0].a"] == "QUEUED"
    trial.timer(105.0)
    assert trial.states["each[0]"] == "FAILED"


def test_identities_and_not_indexes_are_in_idempotency_keys():
    trial = Trial(over([{"id": "x", "n": 1}, {"id": "y", "n": 1}], key="{{ item.id }}"))
    keys = [task.idempotency_key for task in trial.tasks]
    assert keys == ["execution-1:each#x", "execution-1:each#y"]
    hashed = Trial(body(node("a"), items=[{"a": 1, "b": 2}, 5, {"b": 2, "a": 1}]))
    keys = [task.idempotency_key for task in hashed.tasks]
    assert keys[2] == keys[0].removesuffix(".a") + "~2.a"


def test_two_items_with_one_key_fail_the_map():
    trial = Trial(over([{"id": 1}, {"id": 2}, {"id": 1}], key="{{ item.id }}"))
    assert trial.states["each"] == "FAILED"
    message = trial.run("each").failures[-1].error.message
    assert message == "items 0 and 2 have the same key '1' (duplicate_key)"


def test_large_outputs_of_items_are_fetched_before_the_list_is_made():
    trial = Trial(over([1, 2]), node("z", "each"))
    trial.succeed("each[0]", Blob("key", 3))
    trial.succeed("each[1]", 2)
    assert trial.execution.wanted.keys() == {"each[0]"}
    trial.provide(**{"each[0]": 1})
    assert trial.output("each") == [1, 2]


def test_a_large_list_is_fetched_again_by_a_new_owner():
    trial = Trial(node("list"), over("{{ list }}", config={"x": "{{ item }}"}, max_parallel=1))
    trial.succeed("list", Blob("key", 9))
    trial.provide(list=[5, 6])
    trial.lose_the_owner()
    trial.succeed("each[0]", 0)
    assert trial.execution.wanted.keys() == {"list"}
    trial.provide(list=[5, 6])
    assert trial.config("each[1]") == {"x": 6}


def test_counts_or_nothing_can_be_the_output():
    counted = Trial(over([1, 2], output="counts", on_item_failure="skip"))
    counted.fail("each[0]")
    counted.succeed("each[1]")
    assert counted.output("each") == {"total": 2, "completed": 1, "failed": 1, "skipped": 0}
    silent = Trial(over([1], output="none"))
    silent.succeed("each[0]", "much")
    assert silent.output("each") is None


def test_an_execution_that_fails_stops_its_maps():
    trial = Trial(once("bad"), over([1, 2, 3], max_parallel=2))
    trial.fail("bad")
    assert trial.states == {
        "bad": "FAILED", "each": "CANCELLED", "each[0]": "CANCELLED", "each[1]": "CANCELLED",
    }  # fmt: skip
    assert trial.state == "FAILED"


def test_dead_letters_of_a_map_are_bounded():
    trial = Trial(over([0] * 150, on_item_failure="skip"))
    for i in range(150):
        trial.fail(f"each[{i}]")
    assert [letter.node_id for letter in trial.dead_letters[99:]] == ["each[99]", "each"]
    message = trial.dead_letters[-1].attempts[0].error.message
    assert message.startswith("150 of 150 items failed")


def test_completed_items_are_reused_by_their_identities():
    reused: dict[str, Value] = {item_name("each", "y"): b'"Y"', item_name("each", "gone"): b"0"}
    trial = Trial(
        body(node("a"), items=[{"id": "x"}, {"id": "y"}], key="{{ item.id }}"), reused=reused
    )
    assert trial.dispatches == [("each[0].a", 1)]
    assert trial.run("each[1]").reason == "kept"
    trial.lose_the_owner()
    trial.succeed("each[0].a", "X")
    assert trial.output("each") == ["X", "Y"]
    assert not trial.execution.record.reused


def test_a_new_owner_still_knows_which_items_are_reused():
    reused: dict[str, Value] = {item_name("each", "y"): b'"Y"'}
    trial = Trial(
        over([{"id": "x"}, {"id": "y"}], key="{{ item.id }}", max_parallel=1), reused=reused
    )
    trial.lose_the_owner()
    trial.succeed("each[0]", "X")
    assert trial.output("each") == ["X", "Y"]
    assert trial.dispatches == [("each[0]", 1)]


def test_a_loop_goes_on_in_the_round_that_failed():
    reused: dict[str, Value] = {
        item_name("job", "1"): b'{"n":1}',
        item_name("job", "2"): b'{"n":2}',
    }
    repeat = {"until": "job.n > 3", "max_rounds": 9}
    trial = Trial(node("job", config={"p": "{{ previous.n }}"}, repeat=repeat), reused=reused)
    assert trial.dispatches == [("job[3]", 1)]
    assert trial.config("job[3]") == {"p": 2}
    trial.succeed("job[3]", {"n": 4})
    assert trial.output("job") == {"n": 4, "rounds": 3}


def test_a_list_that_is_too_long_fails_the_map():
    trial = Trial(node("list"), over("{{ list }}"))
    trial.succeed("list", [0] * 10_001)
    assert trial.states["each"] == "FAILED"
    message = trial.run("each").failures[-1].error.message
    assert message.startswith("the list has 10,001 items; the limit is 10,000 (too_many_items)")


def test_values_of_items_that_are_prepared_together_are_their_own():
    text = "x" * 300_000  # too much to be looked at in the decision
    trial = Trial(
        node("list"), over("{{ list }}", config={"x": "{{ item.x }}", "of": "{{ item.text }}"})
    )
    trial.succeed("list", [{"x": 1, "text": text}, {"x": 2, "text": text}])
    preparations = trial.execution.take_unprepared()
    assert preparations.keys() == {"each[0]", "each[1]"}
    handling.provide_prepared(trial.execution, prepared(preparations))
    trial.go_on()
    assert [trial.config(f"each[{index}]")["x"] for index in (0, 1)] == [1, 2]


def test_a_long_output_is_put_together_in_portions_that_a_new_owner_begins_again():
    text = "x" * 400_000
    trial = Trial(over(list(range(8))), node("z", "each"))
    for index in range(8):
        trial.succeed(f"each[{index}]", text)
    assert trial.last.has_more
    assert trial.states["each"] == "WAITING"
    trial.lose_the_owner()
    commits = 1
    while trial.last.has_more:
        trial.go_on()
        commits += 1
    assert commits == 4, "three portions, and the node after the map"
    assert trial.output("each") == [text] * 8
    assert trial.states["z"] == "QUEUED"


def test_large_outputs_of_items_are_fetched_a_portion_at_a_time():
    trial = Trial(over(list(range(8))))
    for index in range(8):
        trial.succeed(f"each[{index}]", Blob(f"key-{index}", 400_000))
    fetched = []
    while trial.execution.wanted or trial.last.has_more:
        wanted = list(trial.execution.wanted)
        if wanted:
            fetched.append(len(wanted))
            handling.provide(trial.execution, dict.fromkeys(wanted, b'"%b"' % (b"x" * 399998)))
        trial.go_on()
    assert fetched == [3, 3, 2]
    assert len(trial.output("each")) == 8


def test_what_waits_in_an_item_finds_the_item():
    trial = Trial(
        body(node("nap", handler="wait", config={"seconds": "{{ item.s }}"}), items=[{"s": 7}])
    )
    assert trial.wake_at == 7.0
    trial.timer(7.0)
    assert trial.states["each"] == "COMPLETED"


def test_every_owner_names_the_same_failure_of_an_item():
    def story() -> Trial:
        return Trial(
            body(
                {"id": "list", "for_each": "{{ item }}", "handler": "noop"},
                once("a"),
                once("tidy", "list", trigger_rule="all_done"),
                items=[5],
                on_item_failure="skip",
            ),
            on_failure="continue",
        )

    trials = (story(), story())
    for trial in trials:
        trial.fail("each[0].a")
    trials[1].lose_the_owner()
    for trial in trials:
        trial.succeed("each[0].tidy")
    first, second = (trial.run("each[0]").failures[-1].error.detail for trial in trials)
    assert first == second == {"node": "a"}


def test_an_item_that_has_run_to_its_end_isnt_cancelled_by_another():
    trial = Trial(
        body(
            node("a"),
            items=[1, 2],
            collect="{{ a.x }}",
        )
    )
    trial.succeed("each[0].a", Blob("large", 300_000))
    assert trial.states["each[0].a"] == "COMPLETED"
    trial.fail("each[1].a")
    trial.provide(**{"each[0].a": {"x": 3}})
    assert trial.states["each[0]"] == "COMPLETED"
    assert trial.states["each"] == "FAILED"


@pytest.mark.parametrize("is_lost", [False, True])
def test_items_are_stopped_also_if_the_owner_dies_after_the_first_failure(is_lost: bool):  # noqa: FBT001
    with commit_weight(1):
        trial = Trial(over([1, 2]))
        while trial.last.has_more:
            trial.go_on()
        trial.fail("each[0]")
        if is_lost:
            trial.lose_the_owner()
        while trial.last.has_more:
            trial.go_on()
    assert trial.states == {"each": "FAILED", "each[0]": "FAILED", "each[1]": "CANCELLED"}


def test_the_history_says_how_many_items_failed_and_which_first():
    body = [node("parse", retry={"max_attempts": 1})]
    trial = Trial({"id": "each", "for_each": [1, 2], "on_item_failure": "continue", "nodes": body})
    trial.succeed("each[0].parse")
    trial.fail("each[1].parse")
    assert trial.run("each").reason == "1 of 2 items failed; first: each[1].parse"
    (failure,) = trial.run("each").failures
    assert failure.error.category == "items"
