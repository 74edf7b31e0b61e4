"""What handlers ask for, in an engine: as they say it now, whatever an earlier process said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine, Registry, Retry, handler
from penstock.errors import SettingsError

DOCUMENT = {"name": "flow", "nodes": [{"id": "a", "handler": "shaky"}]}


def shaky(calls: list[int], **defaults: Any) -> Registry:
    registry = Registry()

    @handler("shaky", registry=registry, **defaults)
    async def never() -> None:
        calls.append(1)
        raise RuntimeError("no")

    return registry


@pytest.mark.parametrize("reference", [DOCUMENT, "flow@1"])
def test_a_changed_handler_counts_from_the_next_process_on(tmp_path: Path, reference: Any) -> None:
    async def attempts(workflow: Any, number: int) -> int:
        calls: list[int] = []
        retry = Retry(max_attempts=number, initial_delay_seconds=0, jitter_seconds=0)
        async with Engine(
            f"sqlite:///{tmp_path}/store.db", registry=shaky(calls, retry=retry, queue=f"q{number}")
        ) as engine:
            assert (await (await engine.start(workflow)).result()).state == "FAILED"
        return len(calls)

    assert asyncio.run(attempts(DOCUMENT, 5)) == 5
    assert asyncio.run(attempts(reference, 2)) == 2


def test_a_control_request_that_makes_no_sense_is_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    async def run(**defaults: Any) -> None:
        async with Engine(f"sqlite:///{tmp_path}/store.db", registry=shaky([], **defaults)):
            pass

    with pytest.raises(SettingsError, match=r"the handler 'shaky' can't be: .*timeout_seconds"):
        asyncio.run(run(timeout_seconds="soon"))
    asyncio.run(run(timeout_seconds=8))  # the file was closed
