"""What a node was given, seen afterwards: held against the very task that the engine handed out."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from penstock.engine.events import Blob, Value
from penstock.errors import StoreError
from penstock.service.nodes import find_node
from penstock.service.resolving import CONFIG_BYTES_MAX, Resolved, resolved_config
from penstock.stores.base import Stored
from penstock.stores.blobs import MemoryBlobs
from tests.engine.trial import Trial, node, once


def given(trial: Trial, name: str, blobs: MemoryBlobs | None = None) -> Resolved:
    execution = trial.execution
    stored = Stored(
        execution.record,
        execution.runs,
        execution.outputs,
        execution.last_seq,
        trial.committed.history,
        [],
    )
    plan_node, _ = find_node(trial.plan, name)
    return asyncio.run(resolved_config(stored, trial.plan, plan_node, blobs or MemoryBlobs()))


def as_dispatched(trial: Trial, name: str) -> Resolved:
    return Resolved(trial.config(name))


CONFIG = {
    "whole": "{{ a }}",
    "field": "{{ a.n }}",
    "text": "n is {{ a.n }}, {{ input.who }}",
    "deep": [{"x": "{{ a.list[1] }}"}],
    "fallback": "{{ a.nothing ?? 7 }}",
    "id": "{{ execution.id }}",
    "fixed": [1, None, True],
    "token": "Bearer {{ secrets.TOKEN }}",
}


def test_a_config_is_what_the_task_was_given_with_its_secrets_as_references() -> None:
    trial = Trial(node("a"), node("b", "a", config=CONFIG), input_value={"who": "Ada"})
    trial.succeed("a", {"n": 1, "list": [0, "{{ input.who }}"]})
    assert given(trial, "b") == as_dispatched(trial, "b")
    config = given(trial, "b").config
    assert config is not None
    assert (config["field"], config["text"], config["fallback"]) == (1, "n is 1, Ada", 7)
    assert config["deep"] == [{"x": "{{ input.who }}"}], (
        "what came from an output is never read as a template"
    )
    assert config["token"] == "Bearer {{ secrets.TOKEN }}"


def test_overrides_are_put_over_it_as_plain_data() -> None:
    config = {"x": "{{ input.n }}", "y": 1, "s": "{{ secrets.S }}"}
    over = {"b": {"y": 2, "z": "{{ a.n }}", "s": "mine"}}
    trial = Trial(node("b", config=config), input_value={"n": 5}, overrides=over)
    assert (
        given(trial, "b")
        == as_dispatched(trial, "b")
        == Resolved({"x": 5, "y": 2, "z": "{{ a.n }}", "s": "mine"})
    )


def test_a_node_that_waits_is_resolved_as_soon_as_all_that_it_refers_to_has_ended() -> None:
    config = {"n": "{{ a.n }}", "m": "{{ b.m ?? 3 }}"}
    trial = Trial(
        node("a"),
        once("b"),
        node("c"),
        once("d", "a", "b", "c", config=config, trigger_rule="all_done"),
    )
    assert given(trial, "d") == Resolved(None, "it waits for the output of 'a', which is QUEUED")
    trial.succeed("a", {"n": 1})
    assert given(trial, "d") == Resolved(None, "it waits for the output of 'b', which is QUEUED"), (
        "it may still come"
    )
    trial.succeed("b", {"m": 2})
    assert given(trial, "d") == Resolved({"n": 1, "m": 2}), (
        "c, which it doesn't refer to, still runs"
    )
    trial.succeed("c")
    assert given(trial, "d") == as_dispatched(trial, "d")


def test_before_an_execution_begins_what_refers_to_nothing_is_resolved() -> None:
    trial = Trial(
        node("a", config={"n": "{{ input.n }}"}),
        node("b", "a", config={"m": "{{ a.n }}"}),
        input_value={"n": 4},
        start=False,
    )
    assert given(trial, "a") == Resolved({"n": 4})
    assert given(trial, "b") == Resolved(None, "it waits for the output of 'a', which is PENDING")


def test_a_fallback_that_stood_in_still_does_when_the_output_came_later() -> None:
    early = node("c", "a", "b", config={"n": "{{ b.n ?? 0 }}"}, trigger_rule="one_success")
    trial = Trial(node("a"), node("b"), early)
    trial.succeed("a")
    assert given(trial, "c") == as_dispatched(trial, "c") == Resolved({"n": 0})
    trial.succeed("b", {"n": 9})
    assert given(trial, "c") == as_dispatched(trial, "c") == Resolved({"n": 0})


def test_the_last_attempt_sees_what_came_before_it() -> None:
    early = node("c", "a", "b", config={"n": "{{ b.n ?? 0 }}"}, trigger_rule="one_success")
    trial = Trial(node("a"), node("b"), early)
    trial.succeed("a")
    trial.fail("c", retryable=True, at=1.0)
    trial.succeed("b", {"n": 9}, at=2.0)
    assert given(trial, "c") == Resolved({"n": 0}), "the next attempt isn't handed out yet"
    trial.timer(at=100.0)
    assert trial.run("c").attempt == 2
    assert given(trial, "c") == as_dispatched(trial, "c") == Resolved({"n": 9})


def test_what_could_not_be_resolved_says_what_the_node_failed_with() -> None:
    trial = Trial(node("a"), once("b", "a", config={"n": "{{ a.n }}"}))
    trial.succeed("a", {"m": 1})
    assert trial.states["b"] == "FAILED"
    assert given(trial, "b") == Resolved(None, trial.run("b").failures[-1].error.message)
    assert "it has: m" in (given(trial, "b").unresolved or "")


def test_what_never_started_was_given_nothing() -> None:
    trial = Trial(
        once("a"), node("b", "a", config={"n": "{{ a.n ?? 1 }}"}), node("c", condition="1 > 2")
    )
    trial.fail("a")
    assert given(trial, "b") == Resolved(None, "it never started: it is SKIPPED (upstream_failed)")
    assert given(trial, "c") == Resolved(None, "it never started: it is SKIPPED (condition_false)")
    trial = Trial(node("a"), node("b", "a"))
    trial.cancel()
    assert given(trial, "a") == Resolved({})
    assert given(trial, "b") == Resolved(None, "it never started: it is CANCELLED (cancelled)")


def test_data_nodes_and_nodes_that_a_retry_reuses_show_theirs() -> None:
    reused: dict[str, Value] = {"a": b'{"n": 1}', "b": b'{"n": 2}'}
    out = node("out", "b", handler="output", config={"got": "{{ b.n }}", "no": "{{ c.n ?? 0 }}"})
    out["dependencies"] = ["b", "c"]
    trial = Trial(
        node("a"), node("b", "a", config={"n": "{{ a.n }}"}), node("c"), out, reused=reused
    )
    assert given(trial, "b") == Resolved({"n": 1})
    trial.succeed("c", {"n": 3})
    assert given(trial, "out") == Resolved({"got": 2, "no": 3}) == Resolved(trial.output("out"))


def test_only_large_outputs_that_it_refers_to_are_fetched() -> None:
    blobs = MemoryBlobs()
    large = asyncio.run(blobs.put(msgspec.json.encode({"n": 1, "text": "x" * 1000})))
    trial = Trial(node("a"), node("b"), node("c", "a", "b", config={"n": "{{ a.n }}"}))
    trial.succeed("b", Blob("gone", 10))
    trial.succeed("a", large)
    trial.provide(a={"n": 1, "text": "x" * 1000})
    assert given(trial, "c", blobs) == as_dispatched(trial, "c") == Resolved({"n": 1})
    with pytest.raises(StoreError):
        given(trial, "c", MemoryBlobs())


@pytest.mark.parametrize(("more", "shown"), [(0, True), (1, False)])
def test_a_config_that_is_too_large_to_show_says_so(more: int, shown: bool) -> None:  # noqa: FBT001 -- the case
    text = "x" * (CONFIG_BYTES_MAX - len('{"t":""}') + more)
    trial = Trial(node("a"), node("b", "a", config={"t": "{{ a }}"}))
    trial.succeed("a", text)
    expected: Any = (
        Resolved({"t": text}) if shown else Resolved(None, "too large to show (257 KiB)")
    )
    assert given(trial, "b") == expected


def test_a_node_inside_of_a_loop_is_resolved_with_its_round() -> None:
    repeat = {"until": "round > 2", "max_rounds": 3, "initial": {"n": 5}}
    config = {"n": "{{ previous.n ?? 0 }}", "round": "{{ round }}"}
    trial = Trial(node("job", config=config, repeat=repeat))
    trial.succeed("job[1]", {"n": 6})
    assert given(trial, "job[1]") == Resolved({"n": 5, "round": 1})
    assert (
        given(trial, "job[2]") == as_dispatched(trial, "job[2]") == Resolved({"n": 6, "round": 2})
    )


def test_a_node_inside_of_nested_maps_is_resolved_with_both_items() -> None:
    inner: dict[str, Any] = {"id": "inner", "for_each": "{{ page.of }}", "handler": "noop"}
    inner["config"] = {"both": "{{ page.x }}{{ item }}"}
    pages = [{"x": "a", "of": [1]}, {"x": "b", "of": [2, 3]}]
    trial = Trial({"id": "each", "for_each": pages, "as": "page", "nodes": [inner]})
    assert given(trial, "each[1].inner[1]") == Resolved({"both": "b3"})
