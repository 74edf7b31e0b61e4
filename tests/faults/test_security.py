"""Secrets and forbidden addresses in a plant of real processes (G7).

They are searched for where they must not be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.acceptance import works
from tests.acceptance.outside import begin
from tests.acceptance.plant import Client, Plant, open_plant
from tests.faults.launching import HANDLERS
from tests.faults.table import Fault

CANARY = "canary-7c1f0b52e9d84a6f"
ONCE = {"max_attempts": 1}
HOSTS = (
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "2130706433",
    "017700000001",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "2852039166",
    "169.254.169.254",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "10.0.0.1",
    "192.168.1.1",
    "[fe80::1]",
    "[ff02::1]",
    "224.0.0.1",
    "0.0.0.0",  # noqa: S104
)
SCHEMES = (
    "file:///etc/passwd",
    "ftp://example.com/",
    "gopher://example.com/",
    "unix:///tmp/x",
    "data:text/plain,x",
)


def _telling(name: str, *, fails: bool) -> dict[str, Any]:
    config = {"token": "{{ secrets.TOKEN }}", "fails": fails}
    return works.single(name, "work_tell", config=config, retry=ONCE)


async def _answers(address: str, names: list[str]) -> str:
    """All that the API has to say."""
    paths = [
        f"/executions/{name}{suffix}"
        for name in names
        for suffix in ("", "/results", "/history", "/graph", "/nodes/a", "/nodes/a/logs")
    ]
    paths += ["/executions", "/dead-letters", "/workflows/telling", "/workers", "/audit"]
    async with aiohttp.ClientSession() as session:
        answers = []
        for path in paths:
            async with session.get(f"{address}/api/v1{path}") as answer:
                answers.append(await answer.text())
    return "\n".join(answers)


def _in_redis(plant: Plant) -> Iterator[bytes]:
    with plant.connect_redis() as link:
        for key in link.scan_iter(count=1000):
            yield key
            yield link.dump(key) or b""  # short values stand in it as they are
            kind: Any = link.type(key)
            reads: dict[bytes, Any] = {
                b"hash": link.hgetall,
                b"string": link.get,
                b"set": link.smembers,
                b"stream": link.xrange,
            }
            if kind in reads:
                yield repr(reads[kind](key)).encode()
            elif kind == b"list":
                yield repr(link.lrange(key, 0, -1)).encode()


def _in_postgres(plant: Plant) -> Iterator[bytes]:
    with plant.connect() as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        for (table,) in tables.fetchall():
            for row in connection.execute(f"TABLE {table}".encode()).fetchall():
                yield b"\n".join(
                    value if isinstance(value, bytes) else str(value).encode() for value in row
                )


@pytest.mark.fault(
    "security", "a secret that its handler logs, reports, answers with and fails with"
)
def test_a_secret_is_in_no_answer_log_store_or_dead_letter(fault: Fault) -> None:
    async def main(plant: Plant, address: str) -> str:
        async with plant.client() as client:
            names = await client.submit(
                _telling("telling", fails=False), fault.size(short=2, full=50)
            )
            names += await client.submit(
                _telling("failing", fails=True), fault.size(short=2, full=50)
            )
            await client.until_ended()
            return await _answers(address, names)

    with open_plant() as plant:
        plant.start("worker", *HANDLERS, ready=False, SECRET_TOKEN=CANARY)
        (api,) = begin(plant, orchestrators=1, workers=0, apis=1)
        answers = asyncio.run(main(plant, api.address))
        said = "\n".join(role.said() for role in plant.roles)
        data_by_source = {
            "API": answers.encode(),
            "logs": said.encode(),
            "Redis": b"\n".join(_in_redis(plant)),
            "PostgreSQL": b"\n".join(_in_postgres(plant)),
        }
        assert b"***" in data_by_source["API"], "the handler didn't tell anything"
        assert "the token is ***" in said
        assert [where for where, data in data_by_source.items() if CANARY.encode() in data] == []
        fault.shows(
            **{f"bytes_of_{where}": len(data) for where, data in data_by_source.items()}, found=0
        )


async def _refused(client: Client, urls: list[str]) -> int:
    # by reference: an address that is written in a document is checked at submission
    nodes = [
        works.node(
            f"n{i}", (), "call_external_service", config={"url": f"{{{{ input.urls[{i}] }}}}"}
        )
        for i in range(len(urls))
    ]
    document = {
        "name": "calls",
        "on_failure": "continue",
        "input": {"urls": urls},
        "nodes": nodes,
    }
    (name,) = await client.submit(document)
    await client.until_ended(name)
    view = msgspec.to_builtins(await client.service.executions.view(name))
    for number, url in enumerate(urls):
        node = view["nodes"][f"n{number}"]
        assert node["state"] == "FAILED", url
        is_forbidden = node["error"]["category"] == "address"
        assert is_forbidden or "isn't an http or https URL" in node["error"]["message"], (url, node)
        assert node["attempt"] == 1, "what is forbidden isn't tried again"
    return len(urls)


@pytest.mark.fault(
    "security",
    "calls of private, metadata, mapped, decimal and hex addresses, and of other schemes",
)
def test_a_worker_calls_no_forbidden_address_however_it_is_written(fault: Fault) -> None:
    calls = 0

    async def count(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        writer.close()

    async def main(plant: Plant) -> int:
        server = await asyncio.start_server(count, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, plant.client() as client:
            return await _refused(client, [*(f"http://{host}:{port}/" for host in HOSTS), *SCHEMES])

    with open_plant() as plant:
        begin(plant, orchestrators=1, workers=1)
        refused = asyncio.run(main(plant))
        assert calls == 0
        fault.shows(addresses=len(HOSTS), schemes=len(SCHEMES), refused=refused, connections=calls)
