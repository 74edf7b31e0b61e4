"""The background services of a role run for as long as it does, and one that fails is named."""

from __future__ import annotations

import asyncio
import logging

import pytest

from penstock.runtime.background import BackgroundService, run_all
from tests.waiting import until


def test_services_run_while_the_block_lasts_and_have_ended_after_it() -> None:
    events: list[str] = []

    async def service() -> None:
        events.append("begins")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            events.append("ends")

    async def main() -> None:
        services = [BackgroundService("one", service), BackgroundService("other", service)]
        async with run_all(services):
            await until(lambda: events == ["begins", "begins"])
        assert events == ["begins", "begins", "ends", "ends"]

    asyncio.run(main())


def test_a_service_that_fails_is_logged_by_its_name_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> None:
        raise RuntimeError("a bug")

    async def main() -> None:
        ticks: list[int] = []

        async def works() -> None:
            while True:
                ticks.append(1)
                await asyncio.sleep(0)

        services = [BackgroundService("counting", fails), BackgroundService("ticking", works)]
        async with run_all(services):
            await until(lambda: caplog.records)
            ticked = len(ticks)
            await until(lambda: len(ticks) > ticked)

    with caplog.at_level(logging.ERROR, "penstock.runtime"):
        asyncio.run(main())
    (record,) = caplog.records
    assert "'counting'" in record.getMessage()
    assert record.exc_info is not None


def test_a_role_that_fails_ends_its_services_too() -> None:
    ended: list[str] = []

    async def service() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("service")

    async def main() -> None:
        async with run_all([BackgroundService("one", service)]):
            await asyncio.sleep(0)
            raise RuntimeError("the role")

    with pytest.raises(RuntimeError, match="the role"):
        asyncio.run(main())
    assert ended == ["service"]
