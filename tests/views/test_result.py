"""`Result.unwrap`: the output, or an exception that says where it failed and why."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest

import penstock
from penstock import ExecutionFailed, Registry, testing
from penstock.errors import HandlerError, RecordedError
from penstock.worker.registry import Handler


def flow(handler: str, **fields: Any) -> dict[str, Any]:
    return {"name": "order", "nodes": [{"id": "charge", "handler": handler, **fields}]}


def divide(_config: Any) -> float:
    return 1 / 0


def refuse(_config: Any) -> None:
    raise penstock.Terminal("the card was refused", category="payment", detail={"code": 51})


def failure_of(handler: Any) -> ExecutionFailed:
    no_retry = {"retry": {"max_attempts": 1}}
    result = testing.run(flow("charge", **no_retry), handlers={"charge": handler}).result
    with pytest.raises(ExecutionFailed) as caught:
        result.unwrap()
    return caught.value


def test_a_completed_execution_gives_its_output() -> None:
    assert testing.run(flow("echo", config={"x": 1})).result.unwrap() == {"charge": {"x": 1}}


def test_a_failed_one_says_where_and_why() -> None:
    error = failure_of(refuse)
    assert error.execution_id in str(error)
    assert str(error).endswith("of order@1 failed at node 'charge' (payment): the card was refused")
    assert (error.state, error.node_id, error.category) == ("FAILED", "charge", "payment")
    assert (error.message, error.detail) == ("the card was refused", {"code": 51})
    assert isinstance(error.__cause__, HandlerError)
    assert str(error.__cause__) == "the card was refused"


def test_its_cause_has_the_traceback_of_the_handler() -> None:
    error = failure_of(divide)
    assert isinstance(error.__cause__, RecordedError)
    text = "".join(traceback.format_exception(error))
    assert "return 1 / 0" in text
    assert "ZeroDivisionError: division by zero" in text
    assert "The above exception was the direct cause of the following exception" in text


def test_an_execution_that_ran_out_of_time_has_no_node() -> None:
    result = testing.run({**flow("sleep", config={"seconds": 60}), "timeout_seconds": 1}).result
    with pytest.raises(ExecutionFailed, match=r"failed \(timeout\)") as caught:
        result.unwrap()
    assert caught.value.node_id is None


def test_a_cancelled_one_and_one_that_still_runs_have_no_output() -> None:
    async def wait(_config: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        registry = Registry([Handler("linger", wait)])
        async with penstock.Engine("memory://", registry=registry) as engine:
            execution = await engine.start(flow("linger"))
            with pytest.raises(penstock.Conflict, match="has no output yet"):
                (await execution.status()).unwrap()
            await execution.cancel()
            with pytest.raises(ExecutionFailed, match="was cancelled") as caught:
                (await execution.result()).unwrap()
            assert (caught.value.state, caught.value.category) == ("CANCELLED", "cancelled")
            assert caught.value.__cause__ is None

    asyncio.run(main())
