"""Depth and width: no recursion, bounded commits, bounded work per completion (G6)."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from penstock.engine import events as ev
from penstock.engine import handling
from penstock.engine.commands import COMMIT_WEIGHT
from tests.engine.replica import commit_weight
from tests.engine.trial import ID, Trial, decision, node, once

DEEP = 10_000


def chain(length: int, **fields: Any) -> list[dict[str, Any]]:
    return [node(f"n{i}", *([f"n{i - 1}"] if i else []), **fields) for i in range(length)]


def finish(trial: Trial) -> None:
    while trial.last.has_more:
        assert trial.wake_at == trial.now, "a crash here would leave it waiting for nothing"
        trial.go_on()


def test_a_chain_of_ten_thousand_data_nodes_ends_without_recursion():
    with commit_weight(10**9):
        trial = Trial(*chain(DEEP, handler="input"))
    assert trial.state == "COMPLETED"
    assert set(trial.states.values()) == {"COMPLETED"}


def test_a_failure_runs_down_a_chain_of_ten_thousand_without_recursion():
    trial = Trial(
        once("bad"),
        node("n", "bad"),
        *[node(f"n{i}", f"n{i - 1}" if i else "n") for i in range(DEEP)],
        on_failure="continue",
    )
    trial.fail("bad")
    finish(trial)
    assert trial.state == "FAILED"
    assert list(trial.states.values()).count("SKIPPED") == DEEP + 1


def test_failing_fast_and_cancelling_end_ten_thousand_nodes_without_recursion():
    for end in ("fail", "cancel"):
        trial = Trial(once("bad"), *chain(DEEP))
        trial.fail("bad") if end == "fail" else trial.cancel()
        finish(trial)
        assert trial.last.finished


def test_a_branch_not_taken_runs_down_a_chain_without_recursion():
    trial = Trial(
        decision("d", gives=False),
        node("n", "d", condition="d.result"),
        *[node(f"n{i}", f"n{i - 1}" if i else "n") for i in range(DEEP)],
    )
    finish(trial)
    assert trial.state == "COMPLETED"


def test_a_long_chain_of_data_nodes_is_split_into_commits_and_survives_a_crash_between_them():
    trial = Trial(*chain(2_500, handler="input"))
    commits = 1
    while trial.last.has_more:
        assert COMMIT_WEIGHT <= trial.last.weight <= COMMIT_WEIGHT + 2
        trial.lose_the_owner()
        commits += 1
    assert commits == 3
    assert trial.state == "COMPLETED"


def test_ten_thousand_children_are_dispatched_over_several_commits_each_once():
    trial = Trial(node("a"), *[node(f"c{i}", "a") for i in range(DEEP)])
    trial.succeed("a")
    commits = 1
    while trial.last.has_more:
        assert trial.last.weight <= COMMIT_WEIGHT + 2
        trial.go_on()
        commits += 1
    assert commits == DEEP // COMMIT_WEIGHT + 1
    assert len(set(trial.dispatches)) == len(trial.dispatches) == DEEP + 1


def test_ten_thousand_skips_are_split_into_commits_too():
    trial = Trial(once("a"), *[node(f"c{i}", "a") for i in range(DEEP)], on_failure="continue")
    trial.fail("a")
    assert trial.last.weight <= COMMIT_WEIGHT + 2
    while trial.last.has_more:
        trial.lose_the_owner()
        assert trial.last.weight <= COMMIT_WEIGHT + 2
    assert trial.state == "FAILED"


def test_events_between_two_commits_find_the_execution_as_it_was_committed():
    with commit_weight(3):
        trial = Trial(*[node(f"n{i}") for i in range(10)])
        assert trial.last.has_more
        trial.succeed("n0")
        trial.cancel()
    assert trial.states["n0"] == "COMPLETED"
    assert trial.state == "CANCELLED"
    assert not trial.last.has_more


def test_a_fan_in_of_a_thousand_starts_once():
    trial = Trial(
        *[node(f"p{i}") for i in range(1_000)], node("join", *[f"p{i}" for i in range(1_000)])
    )
    finish(trial)
    for i in range(1_000):
        trial.succeed(f"p{i}")
    assert trial.dispatches.count(("join", 1)) == 1


def lines_executed(action: Callable[[], object]) -> int:
    """How much Python a call runs, as a count: it doesn't depend on the machine."""
    count = 0

    def trace(_frame: FrameType, kind: str, _argument: object) -> Any:
        nonlocal count
        count += kind == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def cost_of_completing(trial: Trial, name: str) -> int:
    event = ev.TaskSucceeded(ID, name, 1, 1, "worker-1", started_at=1.0, output=b"1")
    cost = lines_executed(lambda: handling.handle(trial.execution, event, 1.0))
    trial.committed.commit(trial.execution.take_commands())
    return cost


def pairs(count: int) -> Trial:
    trial = Trial(
        *[node(f"a{i}") for i in range(count)], *[node(f"b{i}", f"a{i}") for i in range(count)]
    )
    finish(trial)
    trial.timer(at=0.0)
    return trial


def test_a_completion_costs_the_same_in_a_workflow_a_hundred_times_larger():
    small, large = pairs(20), pairs(2_000)
    assert cost_of_completing(small, "a7") == cost_of_completing(large, "a7")
    assert cost_of_completing(small, "b7") == cost_of_completing(large, "b7")


def memory_taken(action: Callable[[], object]) -> int:
    """Copies and other loops inside C don't show as lines, but as memory."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_completion_copies_nothing_that_grows_with_the_workflow():
    peaks = []
    for trial in (pairs(20), pairs(2_000)):
        event = ev.TaskSucceeded(ID, "a7", 1, 1, "worker-1", started_at=1.0, output=b"1")
        peaks.append(
            memory_taken(
                lambda event=event, trial=trial: handling.handle(trial.execution, event, 1.0)  # type: ignore[misc]
            )
        )
    assert peaks[1] < peaks[0] + 4_000


def test_a_completion_costs_the_same_after_a_thousand_others():
    trial = pairs(1_500)
    early = cost_of_completing(trial, "a0")
    for i in range(1, 1_200):
        trial.succeed(f"a{i}")
    assert cost_of_completing(trial, "a1300") == early


@pytest.mark.parametrize(
    "rule", ["all_success", "none_failed", "all_done", "one_success", "one_failed"]
)
def test_the_parent_of_a_wide_join_costs_the_same_however_wide_it_is(rule):
    costs = set()
    for width in (10, 1_000):
        parents = [f"p{i}" for i in range(width)]
        trial = Trial(*[node(name) for name in parents], node("join", *parents, trigger_rule=rule))
        finish(trial)
        trial.succeed("p0")
        costs.add(cost_of_completing(trial, "p3"))
    assert len(costs) == 1


def test_the_work_of_a_completion_grows_with_its_children_only_as_fast_as_they_do():
    costs = {}
    for width in (10, 20, 400):
        trial = Trial(node("a"), *[node(f"c{i}", "a") for i in range(width)])
        costs[width] = cost_of_completing(trial, "a")
    per_child = (costs[20] - costs[10]) / 10
    assert costs[400] < 1.05 * (costs[10] + 390 * per_child)


def test_a_failed_attempt_costs_the_same_in_a_workflow_a_hundred_times_larger():
    costs = set()
    for trial in (pairs(20), pairs(2_000)):
        about = (ID, "a7", 1, 1, "worker-1")
        event = ev.TaskFailed(
            *about, started_at=1.0, error=ev.TaskError("handler", "no"), retryable=True
        )
        costs.add(
            lines_executed(
                lambda event=event, trial=trial: handling.handle(trial.execution, event, 1.0)  # type: ignore[misc]
            )
        )
    assert len(costs) == 1


def test_a_wide_fan_out_of_large_values_is_dispatched_over_several_commits():
    """Every child gets a copy of its parent's output, and a store takes no commit of any size."""
    children = [f"n{number}" for number in range(40)]
    trial = Trial(node("a"), *(node(name, "a") for name in children))
    trial.succeed("a", "x" * 200_000)
    sizes = [trial.last.size]
    while trial.last.has_more:
        sizes.append(trial.go_on().size)
    assert len(trial.tasks) == 1 + len(children)
    assert max(sizes) <= 1.3 * COMMIT_WEIGHT * 1024


def test_stopping_the_items_of_a_map_costs_the_same_for_each_however_many_are_open():
    costs = []
    for width in (20, 200):
        each = {
            "id": "each",
            "for_each": list(range(width)),
            "nodes": [node("a", retry={"max_attempts": 1}), node("b", "a")],
        }
        trial = Trial(each)
        finish(trial)
        trial.pause()  # what would start waits in a list then
        for index in range(width - 1):
            trial.succeed(f"each[{index}].a")
        error = ev.TaskError("error", "no luck")
        failed = ev.TaskFailed(
            ID, f"each[{width - 1}].a", 1, 1, "worker-1", 1.0, error, retryable=False
        )
        cost = lines_executed(lambda failed=failed: handling.handle(trial.execution, failed, 1.0))  # type: ignore[misc] # noqa: B023
        costs.append(cost)
    assert costs[1] < 10 * costs[0]
