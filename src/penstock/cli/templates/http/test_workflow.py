"""The workflow in memory, without a network. Run it with `pytest`."""

import json
from pathlib import Path
from typing import Any

import penstock
from penstock import testing

import handlers  # noqa: F401 -- registers `summarise`

FLOW = json.loads(Path(__file__).with_name("workflow.json").read_text(encoding="utf-8"))
ANSWERS = {
    "https://api.github.com/users/ada": {"name": "Ada Lovelace"},
    "https://api.github.com/repos/ada/engine": {"name": "engine", "description": None},
}


def answer(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    return {"data": ANSWERS[config["url"]]}


def test_both_answers_are_in_the_summary() -> None:
    run = testing.run(
        FLOW,
        input={"owner": "ada", "repository": "engine"},
        handlers={"call_external_service": answer},
    )
    assert run.result.output == {"summary": {"text": "engine by Ada Lovelace: no description"}}


def test_a_service_that_is_down_is_called_three_times() -> None:
    def down(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
        raise ConnectionError("no route")

    run = testing.run(FLOW, handlers={"call_external_service": down})
    assert run.result.state == "FAILED"
    assert max(call.attempt for call in run.calls["call_external_service"]) == 3
