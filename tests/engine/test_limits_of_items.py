"""Time limits of items, maps and loops: what they stop, and what a new owner knows of them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine import regions
from penstock.engine.events import Blob
from tests.engine.trial import Trial, node, once


def each(*nodes: dict[str, Any], items: Any = (1, 2), **fields: Any) -> dict[str, Any]:
    return {"id": "each", "for_each": list(items), "nodes": list(nodes), **fields}


def single(items: Any = (1, 2), **fields: Any) -> dict[str, Any]:
    return {"id": "each", "for_each": list(items), "handler": "noop", **fields}


def test_an_item_that_is_one_node_fails_when_its_time_is_up():
    trial = Trial(single(item_timeout_seconds=5, on_item_failure="collect"))
    trial.succeed("each[1]", "b", at=1.0)
    trial.timer(5.0)
    assert trial.states == {"each": "COMPLETED", "each[0]": "FAILED", "each[1]": "COMPLETED"}
    error = {"category": "timeout", "message": "the item didn't end within 5 s", "node": "each"}
    assert trial.output("each") == [{"error": error, "index": 0}, "b"]
    assert [stop.node_id for stop in trial.stops] == ["each[0]"]


def test_an_item_that_waits_for_its_next_attempt_fails_when_its_time_is_up():
    retry = {"max_attempts": 2, "initial_delay_seconds": 60}
    trial = Trial(single([1], item_timeout_seconds=5, on_item_failure="skip", retry=retry))
    trial.fail("each[0]", at=1.0, retryable=True)
    trial.timer(5.0)
    assert trial.states == {"each": "COMPLETED", "each[0]": "FAILED"}
    trial.timer(61.0)
    assert trial.dispatches == [("each[0]", 1)]


def test_an_item_that_waits_for_a_resume_fails_when_its_time_is_up():
    trial = Trial(single([1], item_timeout_seconds=5, on_item_failure="skip"))
    trial.pause(at=1.0)
    trial.hand_back("each[0]")
    trial.timer(5.0)
    assert trial.states["each[0]"] == "FAILED"
    trial.resume(at=6.0)
    assert trial.dispatches == [("each[0]", 1)]


def test_a_new_owner_counts_the_time_of_an_item_from_its_opening():
    retry = {"max_attempts": 3, "initial_delay_seconds": 2, "jitter_seconds": 0}
    trial = Trial(each(node("a", retry=retry), items=[1], item_timeout_seconds=5), start=False)
    trial.begin(at=10.0)
    trial.fail("each[0].a", at=11.0, retryable=True)
    trial.timer(13.0)
    trial.lose_the_owner()
    trial.timer(14.0)
    assert trial.states["each[0].a"] == "QUEUED"
    trial.timer(15.0)
    assert trial.states["each[0]"] == "FAILED"


@pytest.mark.parametrize("is_lost", [False, True])
def test_after_its_time_an_item_only_cleans_up(is_lost: bool):  # noqa: FBT001
    trial = Trial(
        each(
            once("a"),
            once("tidy", "a", trigger_rule="all_done"),
            once("z", "tidy"),
            items=[1],
            item_timeout_seconds=5,
            on_item_failure="skip",
        )
    )
    trial.timer(5.0)
    assert trial.states["each[0]"] == "WAITING"
    assert trial.run("each[0]").reason == "item_timeout"
    if is_lost:
        trial.lose_the_owner()
    assert trial.states["each[0].tidy"] == "QUEUED"
    assert trial.states["each[0].z"] == "SKIPPED"
    trial.succeed("each[0].tidy")
    assert trial.states["each[0]"] == "FAILED"
    assert trial.output("each") == [None]


@pytest.mark.parametrize("is_lost", [False, True])
def test_after_its_time_a_map_opens_nothing_more(is_lost: bool):  # noqa: FBT001
    tidy = once("tidy", "a", trigger_rule="all_done")
    trial = Trial(each(once("a"), tidy, max_parallel=1, timeout_seconds=5))
    trial.timer(5.0)
    if is_lost:
        trial.lose_the_owner()
    trial.succeed("each[0].tidy")
    assert trial.states["each"] == "FAILED"
    assert trial.run("each").failures[-1].error.category == "timeout"
    assert "each[1].a" not in trial.states


def test_a_clean_up_in_an_item_can_be_cancelled_after_the_items_time():
    tidy = once("tidy", "a", trigger_rule="all_done")
    trial = Trial(each(once("a"), tidy, items=[1], item_timeout_seconds=5))
    trial.timer(5.0)
    trial.cancel()
    assert trial.states["each[0]"] == "CANCELLED"
    assert trial.state == "CANCELLED"


def test_an_item_whose_nodes_have_all_ended_has_no_time_limit_any_more():
    trial = Trial(
        single([1], item_timeout_seconds=5, config={"x": "{{ item }}"}), node("z", "each")
    )
    trial.succeed("each[0]", "a", at=4.0)
    trial.timer(5.0)
    assert trial.states == {"each": "COMPLETED", "each[0]": "COMPLETED", "z": "QUEUED"}


def test_an_item_that_only_lacks_a_large_output_has_run_in_time():
    trial = Trial(each(once("a"), items=[1], item_timeout_seconds=5, collect="{{ a.x }}"))
    trial.succeed("each[0].a", Blob("large", 300_000), at=4.0)
    trial.timer(5.0)
    trial.provide(**{"each[0].a": {"x": 3}})
    assert trial.output("each") == [3]


def test_an_item_that_has_failed_before_its_time_keeps_its_failure():
    tidy = once("tidy", "a", trigger_rule="all_done")
    trial = Trial(each(once("a"), tidy, items=[1], item_timeout_seconds=5))
    trial.fail("each[0].a", at=1.0)
    trial.timer(5.0)
    trial.succeed("each[0].tidy")
    assert trial.run("each[0]").failures[-1].error.message == "each[0].a failed"


def test_the_time_limit_of_a_map_that_has_ended_has_no_effect():
    trial = Trial(single([1], timeout_seconds=5), node("z", "each"))
    trial.succeed("each[0]", at=1.0)
    trial.timer(5.0)
    assert trial.states == {"each": "COMPLETED", "each[0]": "COMPLETED", "z": "QUEUED"}


def test_the_next_round_of_a_loop_that_has_run_out_of_time_never_begins():
    repeat = {"until": "job.done", "max_rounds": 3, "every_seconds": 10}
    job = node("job", repeat=repeat, timeout_seconds=5)
    trial = Trial(job, single(), on_failure="continue")
    trial.succeed("job[1]", {"done": False}, at=1.0)
    trial.timer(5.0)
    assert trial.states["job"] == "FAILED"
    trial.timer(11.0)
    assert ("job[2]", 1) not in trial.dispatches


def test_a_round_that_came_due_in_a_pause_doesnt_begin_after_the_loops_time():
    repeat = {"until": "job.done", "max_rounds": 3, "every_seconds": 2}
    job = node("job", repeat=repeat, timeout_seconds=5)
    trial = Trial(job, node("z"), on_failure="continue")
    trial.succeed("job[1]", {"done": False}, at=1.0)
    trial.pause()
    trial.timer(3.0)
    trial.timer(5.0)
    trial.resume(at=6.0)
    assert trial.states["job"] == "FAILED"
    assert ("job[2]", 1) not in trial.dispatches


@pytest.mark.parametrize(
    ("name", "limit", "message"),
    [
        ("BODY_NODES_MAX", 3, "2 items with 2 nodes are 4 nodes; the limit is 3 (too_many_items)"),
        ("ITEM_BYTES_MAX", 3, "item 1 has more than 3 bytes"),
    ],
)
def test_a_list_that_is_too_large_opens_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int, message: str
):
    monkeypatch.setattr(regions, name, limit)
    trial = Trial(each(once("a"), once("b"), items=[1, "long"]))
    assert trial.states == {"each": "FAILED"}
    assert trial.run("each").failures[-1].error.message == message


def test_outputs_that_are_too_large_together_fail_the_map(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(regions, "OUTPUT_BYTES_MAX", 5)
    trial = Trial(single())
    trial.succeed("each[0]", "abc")
    trial.succeed("each[1]", "def")
    assert trial.states["each"] == "FAILED"
    assert "output_too_large" in trial.run("each").failures[-1].error.message


@pytest.mark.parametrize("outer", ["fails", "runs out of time"])
def test_a_new_owner_opens_nothing_in_a_map_that_was_stopped_from_outside(outer: str):
    """Its clean-up still runs; what had not been opened stays so."""
    inner = {
        "id": "list",
        "for_each": [1, 2],
        "max_parallel": 1,
        "nodes": [once("a"), once("tidy", "a", trigger_rule="all_done")],
    }
    trial = Trial(each(inner, once("bad"), items=[1], item_timeout_seconds=5))
    if outer == "fails":
        trial.fail("each[0].bad", at=1.0)
    else:
        trial.timer(5.0)
    assert trial.states["each[0].list[0].tidy"] == "QUEUED"
    trial.lose_the_owner()
    trial.succeed("each[0].list[0].tidy")
    assert trial.states["each[0].list"] == "CANCELLED"
    assert "each[0].list[1].a" not in trial.states
    assert trial.states["each"] == "FAILED"


def test_a_map_whose_last_item_fails_ends_once():
    other = {"id": "other", "for_each": [1], "handler": "noop"}
    trial = Trial(single([1]), other, on_failure="continue")
    trial.fail("each[0]")
    assert trial.states == {
        "each": "FAILED", "each[0]": "FAILED", "other": "WAITING", "other[0]": "QUEUED",
    }  # fmt: skip
