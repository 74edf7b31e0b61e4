"""What a retry keeps and runs, and the words in which it says why."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.plan import Plan
from penstock.definition.waits import decision_name
from penstock.errors import Conflict, NotFound
from penstock.service.retries import RetryPlan, plan_retry
from penstock.stores.base import Stored
from penstock.views.retries import RetryItems
from tests.engine.trial import Trial, compiled, decision, node, once

BRANCH = "its branch wasn't taken; the condition is decided again"


def stored(trial: Trial) -> Stored:
    execution = trial.execution
    return Stored(execution.record, execution.runs, execution.outputs, execution.last_seq, [], [])


def planned(
    trial: Trial, new: Plan | None = None, start: str | None = None
) -> tuple[list[str], dict[str, str]]:
    plan = plan_retry(stored(trial), trial.plan, new or trial.plan, start=start)
    names = plan.reused + [run.node_id for run in plan.runs]
    assert sorted(names) == sorted((new or trial.plan).numbers), (
        "every node is in one of the two lists, once"
    )
    return plan.reused, {run.node_id: run.reason for run in plan.runs}


def version(number: int, *nodes: dict[str, Any]) -> Plan:
    plan = compiled(*nodes)
    plan.version = number
    return plan


def finished(*nodes: dict[str, Any], **workflow: Any) -> Trial:
    """Everything succeeds."""
    trial = Trial(*nodes, **workflow)
    while trial.state == "RUNNING":
        trial.succeed(
            next(name for name, state in trial.states.items() if state == "QUEUED"), {"x": 1}
        )
    return trial


def test_what_completed_is_reused_and_the_rest_runs():
    trial = Trial(node("a"), once("b", "a"), node("c", "b"), node("d"))
    trial.succeed("a")
    trial.fail("b")
    assert planned(trial) == (["a"], {"b": "failed", "c": "never ran", "d": "cancelled"})


def test_of_a_cancelled_execution_all_that_had_not_completed_runs():
    trial = Trial(node("a"), node("b", "a"), node("c", "b"))
    trial.succeed("a")
    trial.cancel()
    assert planned(trial) == (["a"], {"b": "cancelled", "c": "cancelled"})


def test_an_execution_that_broke_before_it_began_runs_everything():
    trial = Trial(node("a"), node("b", "a"), start=False)
    assert planned(trial) == ([], {"a": "never ran", "b": "never ran"})


def test_what_completed_after_something_that_failed_runs_again():
    trial = Trial(
        once("a"),
        node("tidy", "a", trigger_rule="all_done"),
        node("b", "tidy", trigger_rule="all_done"),
    )
    trial.fail("a")
    trial.succeed("tidy")
    trial.succeed("b")
    again = "comes after {}, which runs again"
    assert planned(trial) == (
        [],
        {"a": "failed", "tidy": again.format("a"), "b": again.format("tidy")},
    )


def test_an_optional_node_that_failed_runs_again_with_what_comes_after_it():
    trial = Trial(once("a", optional=True), node("b", "a"), once("c"))
    trial.fail("a")
    trial.succeed("b")
    trial.fail("c")
    _, runs = planned(trial)
    assert runs == {"a": "failed", "b": "comes after a, which runs again", "c": "failed"}


def test_a_join_after_a_branch_that_was_not_taken_is_reused():
    branches = [node("yes", "d", condition="d.result"), node("no", "d", condition="!d.result")]
    trial = Trial(
        decision("d", gives=True),
        *branches,
        node("no2", "no"),
        node("join", "yes", "no2"),
        once("z", "join"),
    )
    for name in ("yes", "join"):
        trial.succeed(name)
    trial.fail("z")
    assert planned(trial) == (["d", "yes", "join"], {"no": BRANCH, "no2": BRANCH, "z": "failed"})


@pytest.mark.parametrize(
    "fields",
    [
        {"condition": "execution.id == 'another'"},
        {"condition": "d.result", "trigger_rule": "one_success"},
    ],
    ids=["it asks which execution this is", "it may have been decided before all had settled"],
)
def test_what_comes_after_a_branch_that_may_be_decided_differently_runs_again(fields):
    trial = Trial(
        decision("d", gives=False),
        node("a", "d", **fields),
        node("b", "a", trigger_rule="none_failed"),
        once("z", "b"),
    )
    trial.succeed("b")
    trial.fail("z")
    assert planned(trial) == (
        ["d"],
        {"a": BRANCH, "b": "comes after a, which runs again", "z": "failed"},
    )


def test_a_branch_that_a_retry_did_not_come_to_decide_again_is_still_not_taken():
    branches = [
        node("yes", "d", condition="d.result"),
        node("no", "d", condition="!d.result"),
        node("no2", "no"),
    ]
    trial = Trial(
        decision("d", gives=True),
        *branches,
        node("join", "yes", "no2"),
        node("z", "join"),
        start=False,
        reused=dict.fromkeys(("d", "yes", "join"), b"{}"),
    )
    trial.cancel()
    assert trial.states["no"] == trial.states["no2"] == "CANCELLED"
    assert planned(trial) == (["d", "yes", "join"], {"no": BRANCH, "no2": BRANCH, "z": "cancelled"})


def test_a_skip_because_of_a_failure_is_no_branch_that_was_not_taken():
    trial = Trial(once("a"), node("b", "a"), node("c"), node("d", "c"), on_failure="continue")
    trial.fail("a")
    trial.succeed("c")
    trial.succeed("d")
    assert planned(trial) == (["c", "d"], {"a": "failed", "b": "never ran"})


def test_the_chosen_node_and_all_that_comes_after_it_run_again():
    trial = finished(node("a"), node("b", "a"), node("c", "b"), node("d", "a"))
    assert planned(trial, start="b") == (
        ["a", "d"],
        {"b": "asked for with from", "c": "comes after b, which runs again"},
    )


def test_a_chosen_node_does_not_make_a_failed_one_elsewhere_be_reused():
    trial = Trial(once("a"), node("b"), on_failure="continue")
    trial.fail("a")
    trial.succeed("b")
    assert planned(trial, start="b") == ([], {"a": "failed", "b": "asked for with from"})


def test_an_unknown_node_is_refused_with_the_nearest_name():
    trial = finished(node("fetch"))
    with pytest.raises(NotFound, match=r"trial@0 has no node 'fecth'; did you mean 'fetch'\?"):
        planned(trial, start="fecth")
    with pytest.raises(NotFound, match=r"has no node 'zzz'$"):
        planned(trial, start="zzz")


def test_with_another_version_what_changed_and_what_is_new_runs():
    old = [
        node("a"),
        node("b", "a", config={"x": 1, "y": 2}),
        node("c", "b"),
        node("gone"),
        node("e", "a"),
    ]
    new = version(
        4,
        node("a"),
        node("b", "a", config={"x": 1, "y": 3}),
        node("c", "b"),
        node("d", "a"),
        node("e", "a"),
    )
    reused, runs = planned(finished(*old), new)
    assert reused == ["a", "e"]
    assert runs == {
        "b": "changed in version 4",
        "c": "comes after b, which runs again",
        "d": "new in version 4",
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"handler": "echo"},
        {"config": {"x": True}},
        {"config": {}},
        {"dependencies": ["a"]},
        {"condition": "a.x == 1"},
        {"trigger_rule": "none_failed"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_each_part_of_a_nodes_meaning_counts(changed):
    old = [node("a"), node("b"), node("c", "a", "b", config={"x": 1})]
    new = version(2, *old[:2], {**old[2], **changed})
    assert planned(finished(*old), new) == (["a", "b"], {"c": "changed in version 2"})


def test_a_reference_that_means_another_node_now_is_a_change():
    old = [node("a"), node("mid", "a"), node("z", "mid", config={"v": '{{ a.b ?? "none" }}'})]
    new = version(2, node("a"), node("a.b", "a"), node("mid", "a.b"), old[2])
    _, runs = planned(finished(*old), new)
    assert runs["z"] == "changed in version 2"


def test_order_retries_and_timeouts_are_no_change_of_meaning():
    old = [node("a"), node("b"), node("c", "a", "b", config={"x": 1, "y": 2})]
    new = version(
        2,
        node("b", timeout_seconds=9),
        node("a", retry={"max_attempts": 9}),
        node("c", "b", "a", config={"y": 2, "x": 1}, optional=True, queue="other"),
    )
    assert planned(finished(*old), new) == (["b", "a", "c"], {})


def test_a_plan_with_nothing_but_branches_not_taken_is_idle():
    trial = finished(
        decision("d", gives=False), node("a", "d", condition="d.result"), node("b", "d")
    )
    plan = plan_retry(stored(trial), trial.plan, trial.plan)
    assert plan == RetryPlan(0, ["d", "b"], plan.runs)
    assert plan.is_idle
    assert not plan_retry(stored(trial), trial.plan, trial.plan, start="a").is_idle


def over(items: Any, *dependencies: str) -> dict[str, Any]:
    return {
        "id": "each",
        "for_each": items,
        "dependencies": list(dependencies),
        "handler": "noop",
        "retry": {"max_attempts": 1},
        "on_item_failure": "continue",
    }


def items_of(
    trial: Trial, new: Plan | None = None, identities: Any = None, **asked: Any
) -> RetryItems:
    """What is planned of the items of the map `each`; `identities` are old and new ones."""
    old_identities, new_identities = identities or (["x", "y", "z"], None)
    plan = plan_retry(
        stored(trial),
        trial.plan,
        new or trial.plan,
        identities={} if old_identities is None else {"each": old_identities},
        new_identities=None if new_identities is None else {"each": new_identities},
        **asked,
    )
    [run] = [run for run in plan.runs if run.node_id == "each"]
    assert run.items
    return run.items


def half_done(*before: dict[str, Any], items: Any = ("x", "y", "z")) -> Trial:
    """A map of which one item of three completed."""
    source = list(items) if isinstance(items, tuple) else items
    trial = Trial(*before, over(source, *(item["id"] for item in before)), on_failure="continue")
    for item in before:
        if trial.states[item["id"]] == "QUEUED":
            trial.succeed(item["id"], {"words": ["x", "y", "z"]})
    trial.succeed("each[0]", 1)
    trial.fail("each[1]")
    trial.fail("each[2]")
    assert trial.states["each"] == "FAILED"
    return trial


def test_the_same_list_has_no_new_items_and_lacks_none():
    for trial in (half_done(), half_done(node("list"), items="{{ list.words }}")):
        items = items_of(trial)
        assert (items.runs, items.keeps, items.new, items.gone) == (2, 1, 0, 0)
        assert not items.decided_again
        assert not items.list_changes


def test_items_of_another_versions_list_are_compared_by_identity():
    trial = half_done()
    new = version(2, over(["z", "new", "other", "x"]))
    items = items_of(trial, new, (["x", "y", "z"], ["z", "new", "other", "x"]))
    assert (items.runs, items.keeps, items.new, items.gone) == (1, 1, 2, 1)
    assert items.sample == ["each[2]"], "each[1] is gone, so it doesn't run"
    assert items.list_changes == "2 new, 1 gone"

    items = items_of(trial, new, (["x", "y", "z"], ["y", "z"]))
    assert (items.runs, items.keeps, items.new, items.gone) == (2, 0, 0, 1)
    assert items.list_changes == "1 gone"


def test_a_list_from_a_node_that_runs_again_is_not_known_yet():
    trial = half_done(node("list"), items="{{ list.words }}")
    items = items_of(trial, start="list")
    assert (items.decided_again, items.new, items.gone) == (True, None, None)
    assert (items.runs, items.keeps) == (2, 1)


def test_a_list_is_known_although_another_node_before_the_map_runs_again():
    trial = half_done(node("list"), node("setup"), items="{{ list.words }}")
    items = items_of(trial, start="setup")
    assert (items.decided_again, items.new, items.gone) == (False, 0, 0)


def test_a_list_with_the_id_of_its_execution_is_made_again():
    trial = half_done(items=("{{ execution.id }}", "y", "z"))
    items = items_of(trial)
    assert (items.decided_again, items.new, items.gone) == (True, None, None)


def test_a_list_that_cannot_be_made_is_compared_with_nothing():
    trial = half_done()
    new = version(2, over(["x"]))
    plans = [
        plan_retry(stored(trial), trial.plan, new, identities={}, new_identities={"each": ["x"]}),
        plan_retry(stored(trial), trial.plan, new, identities={"each": ["x"]}, new_identities={}),
    ]
    for plan in plans:
        [run] = plan.runs
        assert run.items
        assert (run.items.new, run.items.gone) == (None, None)


def test_a_loop_goes_on_only_after_a_round_of_which_the_output_is_kept():
    repeat = {"until": "job.n == 5", "max_rounds": 9, "keep_rounds": 2}
    trial = Trial(node("job", config={"n": "{{ round }}"}, repeat=repeat))
    for n in range(1, 6):
        trial.succeed(f"job[{n}]", {"n": n})
    assert trial.state == "COMPLETED"
    with pytest.raises(Conflict, match="keep_rounds") as raised:
        planned(trial, start="job[3]")
    assert "the first round to go on at is job[4]" in str(raised.value)
    assert planned(trial, start="job[4]")[1]["job"] == "asked for with from"
    assert planned(trial, start="job")[1]["job"] == "asked for with from"


def test_others_are_told_again_of_an_approval_that_asks_again_and_of_no_other():
    config = {"title": "Go?", "notify": "https://hooks.example.com/x"}
    trial = Trial(node("ask", handler="approval", config=config), node("late", "ask"))
    trial.succeed("ask~notify", {"notified": 1})
    trial.cancel()
    assert planned(trial)[1]["ask~notify"] == "ask asks again"

    trial = Trial(node("ask", handler="approval", config=config), node("late", "ask"))
    trial.fail("ask~notify", retryable=False)
    trial.signal(1, decision_name("ask", 1), {"decision": "approved"})
    trial.fail("late", retryable=False)
    assert planned(trial) == (["ask", "ask~notify"], {"late": "failed"})
