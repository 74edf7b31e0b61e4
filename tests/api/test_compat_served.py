"""The compatible routes beside the rest of the API, over real HTTP.

This tests how a server reads a path.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest
from yarl import URL

from penstock import Engine
from penstock.config import Settings
from penstock.runtime.http_server import address_of, bind
from penstock.runtime.serving import serving
from penstock.stores.records import Search
from tests.waiting import until

DOCUMENT = {"name": "one", "nodes": [{"id": "a", "handler": "echo", "config": {"x": 1}}]}


class Served(NamedTuple):
    engine: Engine
    session: aiohttp.ClientSession
    address: str

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        url = URL(self.address + path, encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **options) as response:
            return response.status, await response.json(content_type=None)


@asynccontextmanager
async def served(tmp_path) -> AsyncIterator[Served]:
    settings = Settings.load({})
    async with Engine(f"sqlite:///{tmp_path}/penstock.db", settings=settings) as engine:
        listening = bind("127.0.0.1", 0)
        async with serving(engine, settings, listening), aiohttp.ClientSession() as session:
            yield Served(engine, session, address_of(listening))


def test_an_old_client_works_unchanged(tmp_path):
    async def story() -> None:
        async with served(tmp_path) as client:
            status, created = await client.call("POST", "/workflow", json=DOCUMENT)
            assert status == 201
            name = created["execution_id"]
            status, _ = await client.call("POST", f"/workflow/trigger/{name}", json={})
            assert status == 200

            async def completed() -> bool:
                return bool(
                    (await client.call("GET", f"/workflows/{name}"))[1]["status"] == "COMPLETED"
                )

            await until(completed)
            _, results = await client.call("GET", f"/workflows/{name}/results")
            assert results["results"] == {"a": {"x": 1}}

    asyncio.run(story())


def test_the_plural_of_the_main_api_makes_no_execution(tmp_path):
    async def story() -> None:
        async with served(tmp_path) as client:
            status, stored = await client.call("POST", "/api/v1/workflows", json=DOCUMENT)
            assert (status, stored["version"]) == (201, 1)
            assert await client.engine.service.executions.search(Search()) == []
            status, created = await client.call("POST", "/workflows", json=DOCUMENT)
            assert (status, created["workflow_definition_id"]) == (201, "one@1")

    asyncio.run(story())


RAW = [
    "%ff",
    "%00",
    "%ed%a0%80",
    "a%2fb",
    "%2e%2e",
    "%0a",
    "%0d%0aSet-Cookie:%20a=b",
    "..;",
    "%c3",
    "%25",
    "x" * 10_000,
]


@pytest.mark.parametrize("prefix", ["", "/api", "/v1", "/api/v1"])
def test_odd_bytes_in_a_path_are_just_an_unknown_id(tmp_path, prefix):
    async def story() -> None:
        async with served(tmp_path) as client:
            for raw in RAW:
                for method, path in (
                    ("GET", f"/workflow/{raw}"),
                    ("GET", f"/workflow/{raw}/results"),
                    ("POST", f"/workflow/trigger/{raw}"),
                    ("DELETE", f"/workflow/{raw}"),
                    ("POST", f"/admin/dlq/{raw}/retry"),
                    ("DELETE", f"/admin/dlq/{raw}"),
                ):
                    status, problem = await client.call(method, prefix + path)
                    assert (status, problem["code"]) == (404, "not_found"), (method, path[:80])

    asyncio.run(story())
