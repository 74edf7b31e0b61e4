"""Start requests to APIs over HTTP, each with a key, repeated until it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import aiohttp

from tests.acceptance.outside import LOST
from tests.acceptance.plant import Plant

PAUSE_SECONDS = 0.02
MANY = 16


class Submitter:
    def __init__(self, session: aiohttp.ClientSession, addresses: Sequence[str]) -> None:
        self._session = session
        self._addresses = addresses
        self._room = asyncio.Semaphore(MANY)
        self.accepted: dict[str, dict[str, Any]] = {}
        self.by_key: dict[str, str] = {}
        self.repeated = 0
        """Calls that had no answer, or the answer that it can't be done now."""

    async def submit(self, documents: Sequence[dict[str, Any]], name: str = "request") -> None:
        await asyncio.gather(
            *[self._submit(f"{name} {n}", document) for n, document in enumerate(documents)]
        )

    async def _submit(self, key: str, document: dict[str, Any]) -> None:
        body = {"definition": document, "labels": {"key": key}}
        async with self._room:
            number = len(self.by_key)
            while not (
                execution_id := await self._post(
                    key, body, self._addresses[number % len(self._addresses)]
                )
            ):
                number += 1
                self.repeated += 1
                await asyncio.sleep(PAUSE_SECONDS)
        self.by_key[key] = execution_id
        self.accepted[execution_id] = document

    async def _post(self, key: str, body: dict[str, Any], address: str) -> str:
        try:
            async with self._session.post(
                f"{address}/api/v1/executions", json=body, headers={"Idempotency-Key": key}
            ) as answer:
                if answer.status == 201:
                    return str((await answer.json())["execution_id"])
                assert answer.status == 503, f"{answer.status} {await answer.text()}"
        except LOST:
            pass
        return ""

    def assert_once(self, plant: Plant) -> None:
        """One execution for each key, and it is the one that was answered."""
        with plant.connect() as connection:
            rows = connection.execute(
                "SELECT labels::json ->> 'key', id FROM executions WHERE labels IS NOT NULL"
            )
            stored = sorted((str(key), str(name)) for key, name in rows.fetchall())
        assert stored == sorted(self.by_key.items())
