"""The workflow in memory, without a language model. Run it with `pytest`."""

import json
from pathlib import Path
from typing import Any

import penstock
from penstock import testing

import handlers  # noqa: F401 -- registers `make_card`

FLOW = json.loads(Path(__file__).with_name("workflow.json").read_text(encoding="utf-8"))


def answer(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    if ctx.node_id == "rating":
        return {"parsed": {"stars": 4}}
    return {"response": "Fast, but hot."}


def test_the_card_has_stars_and_summary() -> None:
    run = testing.run(FLOW, handlers={"llm_service": answer})
    assert run.result.output == {"card": {"text": "★★★★☆ Fast, but hot."}}


def test_the_model_sees_the_review() -> None:
    run = testing.run(FLOW, input={"text": "Too loud."}, handlers={"llm_service": answer})
    prompts = [call.config["prompt"] for call in run.calls["llm_service"]]
    assert all(prompt.endswith("Too loud.") for prompt in prompts)
