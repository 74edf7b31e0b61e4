"""The lists of maps in memory: what they take, and what becomes of them when they are let go of."""

from __future__ import annotations

import msgspec

from penstock.engine import lists
from penstock.engine.events import Blob
from penstock.engine.items import Region
from tests.engine.trial import Trial, node

LIST_BYTES = 5000
"""The size of the large output that the list is in."""


def each(source: object, **fields: object) -> dict[str, object]:
    return {"id": "each", "handler": "noop", "for_each": source, **fields}


def with_large_list(**fields: object) -> Trial:
    source = each("{{ list.items }}", dependencies=["list"], **fields)
    trial = Trial(node("list"), source, on_failure="continue")
    trial.succeed("list", Blob("key", LIST_BYTES))
    trial.provide(list={"items": [1, 2, 3], "more": "than that"})
    return trial


def let_go(trial: Trial, bytes_max: int = 0) -> None:
    lists.let_go(trial.execution, bytes_max)


def region_of(trial: Trial) -> Region:
    (region,) = trial.execution.regions.values()
    return region


def test_a_list_takes_all_of_the_large_output_that_it_is_in():
    trial = with_large_list()
    assert trial.execution.list_bytes == LIST_BYTES + 3 * lists.ITEM_BYTES


def test_a_list_of_little_takes_what_its_items_do():
    trial = Trial(each(["a", "bc"]))
    assert trial.execution.list_bytes == len('"a""bc"') + 2 * lists.ITEM_BYTES


def test_an_execution_without_maps_has_no_lists():
    assert Trial(node("a")).execution.list_bytes is None


def test_what_its_list_took_is_free_when_a_map_has_ended():
    trial = Trial(each([1, 2]), node("z", "each"))
    trial.succeed("each[0]")
    trial.succeed("each[1]")
    assert trial.states["z"] == "QUEUED"
    assert trial.execution.list_bytes == 0


def test_lists_are_let_go_of_until_the_others_are_small_enough():
    trial = Trial(each([1, 2, 3]), {"id": "other", "handler": "noop", "for_each": [4]})
    first, second = trial.execution.regions.values()
    let_go(trial, second.list_bytes)
    assert first.values is None
    assert second.values == [msgspec.Raw(b"4")]
    assert trial.execution.list_bytes == second.list_bytes


def test_lists_of_cancelled_maps_count_no_more_once_lists_are_let_go_of():
    tidy = node("tidy", "each", trigger_rule="all_done")
    trial = Trial(each([1, 2, 3]), tidy)
    trial.cancel()
    assert trial.states["tidy"] == "QUEUED"
    let_go(trial, 1000)
    assert trial.execution.list_bytes == 0


def test_a_list_that_was_let_go_of_is_fetched_again_for_the_next_item():
    trial = with_large_list(config={"x": "{{ item }}"}, max_parallel=1)
    let_go(trial)
    trial.succeed("each[0]")
    assert trial.execution.wanted.keys() == {"list"}
    trial.provide(list={"items": [1, 2, 3]})
    assert trial.config("each[1]") == {"x": 2}
    assert trial.execution.list_bytes == LIST_BYTES + 3 * lists.ITEM_BYTES


def test_a_list_that_was_let_go_of_is_fetched_again_for_another_attempt():
    trial = with_large_list(retry={"max_attempts": 2, "initial_delay_seconds": 1.0})
    trial.fail("each[0]", 0.0, retryable=True)
    let_go(trial)
    trial.timer(5.0)
    assert trial.execution.wanted.keys() == {"list"}
    trial.provide(list={"items": [1, 2, 3]})
    assert trial.dispatches[-1] == ("each[0]", 2)
    assert trial.tasks[-1].item == b"1"


def test_an_item_that_only_ends_needs_no_list():
    trial = with_large_list()
    let_go(trial)
    for index in range(3):
        trial.succeed(f"each[{index}]", index)
    assert trial.output("each") == [0, 1, 2]


def test_identities_stay_when_the_list_is_let_go_of():
    trial = Trial(each([{"id": "x"}, {"id": "y"}], key="{{ item.id }}", max_parallel=1))
    identities = region_of(trial).identities
    assert identities is not None
    let_go(trial)
    trial.succeed("each[0]")
    assert region_of(trial).identities is identities
    assert trial.tasks[-1].idempotency_key == "execution-1:each#y"


def test_the_lists_around_an_inner_map_are_looked_up_again_with_its_own():
    inner = {"id": "inner", "handler": "noop", "for_each": "{{ item }}", "max_parallel": 1}
    trial = Trial({"id": "each", "for_each": [[1, 2], [3]], "nodes": [inner]})
    let_go(trial)
    trial.succeed("each[0].inner[0]")
    assert trial.tasks[-1].node_id == "each[0].inner[1]"
    assert trial.tasks[-1].item == b"2"


def test_what_a_round_carried_on_is_looked_up_again():
    repeat = {"until": "job.done", "max_rounds": 5, "initial": {"n": 0}}
    trial = Trial({
        "id": "job", "handler": "noop", "repeat": repeat, "config": {"n": "{{ previous.n }}"},
        "retry": {"max_attempts": 2, "initial_delay_seconds": 1.0},
    })  # fmt: skip
    trial.succeed("job[1]", {"done": False, "n": 7})
    trial.fail("job[2]", 0.0, retryable=True)
    assert trial.execution.list_bytes
    let_go(trial)
    trial.timer(5.0)
    assert trial.dispatches[-1] == ("job[2]", 2)
    assert trial.config("job[2]") == {"n": 7}
