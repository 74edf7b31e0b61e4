"""The workflow in memory, on a simulated clock. Run it with `pytest`."""

from typing import Any

import penstock
from penstock import testing

from flow import flow


def test_a_person_is_greeted_by_the_full_name() -> None:
    run = testing.run(flow, input={"name": " grace   hopper "})
    assert run.result.output == {"text": "Hello, Grace Hopper!", "initials": "GH"}


def test_a_step_that_fails_is_tried_three_times() -> None:
    def fail(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
        raise ConnectionError("no answer")

    run = testing.run(flow, input={"name": "Ada"}, handlers={"tidy_name": fail})
    assert run.result.state == "FAILED"
    assert len(run.calls["tidy_name"]) == 3
