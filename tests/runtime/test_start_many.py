"""Many executions started at once.

They are stored together, and a new document is compiled for the first of them only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.definition.plan import compile_document
from penstock.errors import InvalidInput
from penstock.service import submissions, workflows
from penstock.stores.records import Search
from tests.waiting import until

COUNT = {
    "name": "count",
    "input_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
    "nodes": [{"id": "say", "handler": "echo", "config": {"n": "{{ input.n }}"}}],
}


def in_an_engine(tmp_path: Path, scenario: Callable[[penstock.Engine], Awaitable[None]]) -> None:
    async def main() -> None:
        async with penstock.Engine(f"sqlite:///{tmp_path / 'work.db'}") as engine:
            await scenario(engine)

    asyncio.run(main())


def test_an_execution_is_started_for_each_input_in_its_order(tmp_path: Path) -> None:
    async def scenario(engine: penstock.Engine) -> None:
        count = 2 * submissions.STARTS_MAX + 1
        started = await engine.start_many(
            COUNT, ({"n": n} for n in range(count)), labels={"team": "a"}
        )
        results = await asyncio.gather(*(execution.result() for execution in started))
        assert [result.output["say"]["n"] for result in results] == list(range(count))
        assert results[-1]["labels"] == {"team": "a"}

    in_an_engine(tmp_path, scenario)


def test_one_input_that_does_not_fit_starts_none(tmp_path: Path) -> None:
    async def scenario(engine: penstock.Engine) -> None:
        with pytest.raises(InvalidInput, match="input_schema"):
            await engine.start_many(COUNT, [{"n": 1}, {"n": "two"}])
        assert await engine.stores.cold.executions.search(Search()) == []

    in_an_engine(tmp_path, scenario)


def test_a_new_document_that_many_start_at_once_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []

    def noted(document: Any, **options: Any) -> Any:
        compiled.append(document)
        return compile_document(document, **options)

    monkeypatch.setattr(workflows, "compile_document", noted)

    async def scenario(engine: penstock.Engine) -> None:
        started = await asyncio.gather(*(engine.start(COUNT, {"n": n}) for n in range(50)))
        results = await asyncio.gather(*(execution.result() for execution in started))
        assert all(result.completed for result in results)
        assert len(compiled) == 1

    in_an_engine(tmp_path, scenario)


def test_a_result_is_found_although_the_news_of_its_end_got_lost(tmp_path: Path) -> None:
    async def scenario(engine: penstock.Engine) -> None:
        on_commit = engine.service.on_commit
        engine.service.on_commit = lambda *_: None  # type: ignore[method-assign]
        execution = await engine.start(COUNT, {"n": 1})

        async def is_over() -> bool:
            return (await execution.status()).completed

        await until(is_over)
        engine.service.on_commit = on_commit  # type: ignore[method-assign]
        await engine.service.look_again()  # as when a new owner begins
        assert (await execution.result()).completed

    in_an_engine(tmp_path, scenario)
