"""`run` and `arun`, of `penstock` and of `penstock.testing`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock
from penstock import testing
from penstock.errors import LoopRunning

FLOW = {
    "name": "nap",
    "nodes": [{"id": "a", "handler": "sleep", "config": {"seconds": "{{ input.seconds }}"}}],
}
NOW = {"seconds": 0}


def test_both_give_the_result() -> None:
    async def main() -> Any:
        return await penstock.arun(FLOW, NOW)

    outputs = [penstock.run(FLOW, NOW).unwrap(), asyncio.run(main()).unwrap()]
    assert outputs == [{"a": {"slept_seconds": 0}}] * 2


@pytest.mark.parametrize(
    ("run", "awaited"), [(penstock.run, "penstock.arun"), (testing.run, "penstock.testing.arun")]
)
def test_inside_of_an_event_loop_the_error_names_the_call_to_await(run: Any, awaited: str) -> None:
    async def main() -> None:
        with pytest.raises(LoopRunning, match=f"use 'await {awaited}") as caught:
            run(FLOW, NOW)
        assert isinstance(caught.value, penstock.PenstockError)

    asyncio.run(main())


def test_an_async_test_awaits_a_run_in_which_time_jumps() -> None:
    async def seconds() -> float:
        run = await testing.arun(FLOW, {"seconds": 3600})
        assert run.result.completed
        assert [call.node_id for call in run.calls["sleep"]] == ["a"]
        return run.seconds

    assert asyncio.run(seconds()) == pytest.approx(3600, abs=1)


def test_two_runs_at_once_have_clocks_of_their_own() -> None:
    async def main() -> list[float]:
        inputs = [{"seconds": seconds} for seconds in (10, 1000)]
        runs = await asyncio.gather(*(testing.arun(FLOW, value) for value in inputs))
        return [run.seconds for run in runs]

    assert asyncio.run(main()) == [pytest.approx(10, abs=1), pytest.approx(1000, abs=1)]
