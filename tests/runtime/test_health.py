"""What a worker and an orchestrator answer about themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from penstock.errors import SettingsError, StoreUnavailable
from penstock.runtime.health import Health
from penstock.telemetry.metrics import Metrics


class Store:
    answers = True

    def check(self) -> None:
        if not self.answers:
            raise StoreUnavailable("Redis is away")


async def get(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, address + path) as answer,
    ):
        return answer.status, await answer.text()


def asked(work: Any, store: Store | None = None) -> None:
    async def main() -> None:
        async with Health("127.0.0.1", 0, (store or Store()).check, Metrics()) as served:
            await work(served.address)

    asyncio.run(main())


def test_readiness_goes_and_comes_with_the_store():
    store = Store()

    async def work(address: str) -> None:
        assert await get(address, "/health/ready") == (200, '{"status": "ok"}')
        store.answers = False
        status, said = await get(address, "/health/ready")
        assert status == 503
        assert "a store of this service is away" in said
        assert "Redis is away" not in said  # it may name an address: only the log has it
        assert (await get(address, "/health/live"))[0] == 200
        store.answers = True
        assert (await get(address, "/health/ready"))[0] == 200

    asked(work, store)


def test_metrics_are_shown():
    async def work(address: str) -> None:
        status, text = await get(address, "/metrics")
        assert status == 200
        assert "penstock_executions_started_total" in text

    asked(work)


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/", "GET", 404), ("/metrics", "POST", 405)]
)
def test_nothing_else_is_answered(path, method, status):
    async def work(address: str) -> None:
        assert (await get(address, path, method))[0] == status

    asked(work)


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n\r\n", b"GET " + b"x" * 100_000, b"\xff\xfe \xff\r\n\r\n"]
)
def test_what_is_not_a_request_harms_nobody(sent):
    async def work(address: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(sent)
        writer.write_eof()
        with_answer = await reader.read()
        assert with_answer.startswith(b"HTTP/1.1 40") or with_answer == b""
        writer.close()
        assert (await get(address, "/health/live"))[0] == 200

    asked(work)


def test_a_port_in_use_is_a_clear_error():
    async def work(address: str) -> None:
        second = Health("127.0.0.1", int(address.rpartition(":")[2]), Store().check, Metrics())
        with pytest.raises(SettingsError, match="--health-port"):
            await second.__aenter__()

    asked(work)
