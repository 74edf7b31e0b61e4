"""The workflow in memory, on a simulated clock. Run it with `pytest`."""

import json
from pathlib import Path

import penstock
from penstock import testing

import handlers

FLOW = json.loads(Path(__file__).with_name("workflow.json").read_text(encoding="utf-8"))


def test_a_person_is_greeted() -> None:
    run = testing.run(FLOW, input={"name": "Ada"})
    assert run.result.output == {"text": "Hello, Ada!", "length": 11}


def test_a_handler_can_be_replaced() -> None:
    run = testing.run(FLOW, handlers={"greet": {"text": "Hi!"}})
    assert run.result.output["length"] == 3


def test_a_greeting_that_fails_is_tried_again() -> None:
    def fail_once(person: handlers.Person, ctx: penstock.Context) -> dict[str, str]:
        if ctx.attempt == 1:
            raise ConnectionError("nobody is at home")
        return handlers.greet(person, ctx)

    run = testing.run(FLOW, handlers={"greet": fail_once})
    assert run.result.completed
    assert [call.attempt for call in run.calls["greet"]] == [1, 2]
