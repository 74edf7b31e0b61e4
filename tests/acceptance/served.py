"""`penstock dev` as a process of its own, and its clients.

It can be called, killed and started again on the same store.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec

from tests.acceptance.shop import STEADY, document
from tests.waiting import until

START_SECONDS = 60.0
STOP_SECONDS = 30.0
READY = "Penstock is ready at "
LOST = (aiohttp.ClientError, TimeoutError, ConnectionError)
FLOWS = (
    document("diamond", {"a": "", "b": "a", "c": "a", "d": "bc"}, handler="echo"),
    document("slow", {"a": "", "b": "a", "c": "b"}, handler="sleep", config={"seconds": 0.02}),
    document(
        "fan",
        {"a": (), **{f"n{i}": ("a",) for i in range(5)}, "z": [f"n{i}" for i in range(5)]},
        handler="noop",
    ),
)


def chain(name: str, length: int, seconds: float) -> dict[str, Any]:
    nodes = [
        {
            "id": f"n{i}",
            "handler": "sleep",
            "config": {"seconds": seconds},
            "dependencies": [f"n{i - 1}"] if i else [],
        }
        for i in range(length)
    ]
    return {"name": name, "defaults": {"retry": STEADY}, "nodes": nodes}


class Life:
    """One run of the service. Its output is read when it has ended."""

    def __init__(self, folder: Path, *, store: str = "store.db", port: int = 0) -> None:
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")
        }
        self._folder = folder
        self._store = folder / store
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "penstock",
                "dev",
                "--port",
                str(port),
                "--store",
                f"sqlite:///{self._store}",
            ],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.address = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()

    async def ready(self) -> str:
        assert self.process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await asyncio.to_thread(self.process.stdout.readline)
        assert line.startswith(READY), (line, *self.end())
        self.address = line.removeprefix(READY).strip()
        return self.address

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.returncode == -signal.SIGKILL, "it had ended by itself"

    def end(self) -> tuple[int, str]:
        """Its exit code and what it said on stderr."""
        if self.process.stdout is None or self.process.stdout.closed:
            return self.process.returncode, ""
        _, errors = self.process.communicate(timeout=STOP_SECONDS)
        return self.process.returncode, errors

    async def stop(self) -> tuple[int, str]:
        os.kill(self.process.pid, signal.SIGTERM)
        return await asyncio.to_thread(self.end)


class Clients:
    """Many clients of a service that comes and goes.

    Each order has a number. Even ones have a key and are repeated until they are answered, also
    afterwards now and then; odd ones have none, and one whose answer is lost isn't repeated.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.begun = 0
        """How many orders there are."""
        self._address = ""
        self._up = asyncio.Event()
        self.answered: defaultdict[int, set[str]] = defaultdict(set)
        """The ids that each order was answered with."""
        self.lost: set[int] = set()
        """Orders without a key that were sent and have no answer."""
        self.repeated = 0
        self.refused: list[str] = []

    def serve(self, address: str) -> None:
        self._address = address
        self._up.set()

    def leave(self) -> None:
        self._up.clear()

    async def order_for_ever(self) -> None:
        while True:
            number, self.begun = self.begun, self.begun + 1
            if number % 2:
                await self._order_once(number)
            else:
                await self._order_until_answered(number)
                if number % 10 == 0:
                    await self._order_until_answered(number)

    async def _order_once(self, number: int) -> None:
        await self._up.wait()
        self.lost.add(number)
        with suppress(*LOST):
            await self._post(number)
            self.lost.remove(number)

    async def _order_until_answered(self, number: int) -> None:
        while True:
            await self._up.wait()
            try:
                return await self._post(number)
            except LOST:
                self.repeated += 1
                await asyncio.sleep(0)

    async def _post(self, number: int) -> None:
        order = {
            "definition": FLOWS[number % len(FLOWS)],
            "input": {"n": number},
            "labels": {"order": str(number)},
        }
        headers = {"Idempotency-Key": f"order-{number}"} if number % 2 == 0 else {}
        url = f"{self._address}/api/v1/executions"
        async with self._session.post(url, json=order, headers=headers) as response:
            body = await response.json(content_type=None)
            if response.status == 201:
                self.answered[number].add(body["execution_id"])
            else:
                self.refused.append(f"{response.status} {body}")

    async def get(self, path: str, **query: str) -> Any:
        async with self._session.get(f"{self._address}/api/v1{path}", params=query) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def start(self, written: dict[str, Any], wait: float = 0) -> str:
        url = f"{self._address}/api/v1/executions?wait={wait:g}"
        async with self._session.post(url, json={"definition": written}) as response:
            assert response.status == 201, await response.text()
            return str((await response.json())["execution_id"])

    async def until_idle(self, seconds: float) -> None:
        async def idle() -> bool:
            pages = [
                await self.get("/executions", state=state, limit="1")
                for state in ("PENDING", "RUNNING")
            ]
            return not any(page["items"] for page in pages)

        await until(idle, "everything has ended", seconds=seconds)

    async def follow(self, path: str, last_id: str = "") -> AsyncIterator[tuple[str, str, Any]]:
        """Id, kind and data of each event, until the stream ends or breaks."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        fields: dict[str, str] = {}
        async with self._session.get(f"{self._address}/api/v1{path}", headers=headers) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    yield fields["id"], fields["event"], msgspec.json.decode(fields.pop("data"))
