"""The tokens of language models in an execution are added up in one place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import penstock
from penstock import testing
from penstock.engine import events as ev
from penstock.engine.events import TaskError
from penstock.views.tokens import Tokens, tokens_of
from tests.engine.trial import ID, Trial, node


def llm(name: str, *dependencies: str) -> dict[str, Any]:
    retry = {"max_attempts": 2, "initial_delay_seconds": 0, "jitter_seconds": 0}
    return node(name, *dependencies, handler="llm_service", retry=retry)


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def tokens_in(trial: Trial) -> Tokens | None:
    values = trial.execution.outputs.items()
    outputs = {name: value for name, value in values if isinstance(value, bytes)}
    return tokens_of(trial.execution.runs, outputs, trial.plan)


def test_the_tokens_of_all_nodes_are_added() -> None:
    trial = Trial(llm("a"), llm("b"), node("c"))
    assert tokens_in(trial) is None
    trial.succeed("a", usage(10, 5))
    assert tokens_in(trial) == Tokens(prompt=10, completion=5, total=15)
    trial.succeed("b", {"usage": {"input_tokens": 2, "output_tokens": 1, "total_tokens": 4}})
    trial.succeed("c", {"text": "no model"})
    assert tokens_in(trial) == Tokens(prompt=12, completion=6, total=19)


def test_tokens_inside_of_maps_and_loops_count_once() -> None:
    each = {
        "for_each": [1, 2],
        "nodes": [llm("inside")],
        "collect": {"usage": "{{ inside.usage }}"},
    }
    again = {"repeat": {"until": "round == 3", "max_rounds": 3}}
    flow = {"name": "w", "nodes": [{"id": "each", **each}, {**llm("loop"), **again}]}
    spent = usage(10, 5)
    run = testing.run(flow, handlers={"llm_service": spent})
    assert run.result.view["tokens"] == {"prompt": 50, "completion": 25, "total": 75}
    assert run.result.nodes["each"]["items"]["total"] == 2


@pytest.mark.parametrize(
    "output",
    [
        None,
        "usage",
        ["usage"],
        {"text": "usage"},
        {"usage": None},
        {"usage": 7},
        {"usage": {"cpu": 3}},
        {"usage": {"total_tokens": "7"}},
        {"usage": {"total_tokens": True}},
        {"inner": {"usage": {"total_tokens": 7}}},
    ],
    ids=str,
)
def test_an_output_that_reports_no_tokens_has_none(output: Any) -> None:
    trial = Trial(llm("a"))
    trial.succeed("a", output)
    assert tokens_in(trial) is None


def test_nodes_that_pass_a_report_on_do_not_count() -> None:
    trial = Trial(llm("a"), node("b", "a", handler="echo"), node("out", "b", handler="noop"))
    trial.succeed("a", usage(10, 5))
    trial.succeed("b", usage(10, 5))
    assert tokens_in(trial) == Tokens(prompt=10, completion=5, total=15)


def test_attempts_with_a_wrong_answer_count() -> None:
    trial = Trial(llm("a"))
    failed = ev.TaskFailed(
        execution_id=ID,
        node_id="a",
        generation=1,
        attempt=1,
        worker_id="worker-1",
        started_at=0.0,
        error=TaskError("llm", "the reply isn't JSON", detail=usage(7, 3)),
        retryable=True,
        retry_after=None,
    )
    trial.send(failed)
    assert tokens_in(trial) == Tokens(prompt=7, completion=3, total=10)
    trial.timer(trial.wake_at or 0.0)
    trial.succeed("a", usage(10, 5))
    assert tokens_in(trial) == Tokens(prompt=17, completion=8, total=25)


def test_reused_outputs_do_not_count_again() -> None:
    trial = Trial(llm("a"), llm("b", "a"), reused={"a": msgspec.json.encode(usage(10, 5))})
    trial.succeed("b", usage(2, 1))
    assert trial.states["a"] == "COMPLETED"
    assert tokens_in(trial) == Tokens(prompt=2, completion=1, total=3)


def test_handlers_of_ones_own_count_and_results_show_the_sum() -> None:
    document = {
        "nodes": [
            {"id": "a", "handler": "ask_claude"},
            {"id": "b", "handler": "llm", "config": {"prompt": "{{ a.text }}", "model": "m"}},
        ]
    }
    run = testing.run(
        document,
        handlers={"ask_claude": {"text": "Hi there", **usage(10, 5)}, "llm_service": usage(2, 1)},
    )
    assert run.result.tokens == {"prompt": 12, "completion": 6, "total": 18}
    assert run.result.view["tokens"] == run.result.tokens


def test_a_result_without_tokens_has_none() -> None:
    result = penstock.run({"nodes": [{"id": "a", "handler": "noop"}]})
    assert result.tokens is None
    assert "tokens" not in result.view
