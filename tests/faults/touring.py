"""A client that calls every route that writes.

It calls another API process when the first is gone.

A call that was cut off is made again, as a good client does: with the same key where there is one.
So a repeated call may find that the first was heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import aiohttp

from tests.acceptance import works
from tests.acceptance.outside import LOST, Answer
from tests.waiting import until

FLOW = works.document("tour", works.node("a"), works.node("b", "a"))
SLOW = works.chain(3, "work_pause", config={"seconds": 0.2})
WAITING = works.document("waiting", works.node("a"))
FAILING = works.single("dying", "work_fail", config={"times": 1}, retry={"max_attempts": 1})
TOLD = works.document(
    "told",
    {"id": "sent", "handler": "signal", "config": {"name": "sent"}},
    {
        "id": "posted",
        "handler": "signal",
        "config": {"name": "posted", "correlation": "{{ input.key }}"},
    },
    works.node("after", ["sent", "posted"]),
)
FLOWS = (FLOW, SLOW, WAITING, FAILING, TOLD)


class Tour:
    """On a machine that has too much to do, an answer may also be that it can't be done now."""

    def __init__(self, session: aiohttp.ClientSession, name: str, first: str, second: str) -> None:
        self._session = session
        self._name = name
        self._address = first
        self._second = second
        self.accepted: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, str] = {}
        """By idempotency key, the id that it was answered with."""
        self.cut = 0
        """Calls whose answer never came."""

    async def go(self) -> None:
        await self._store()
        await self._request_control(await self._start("slow", {"definition": SLOW}, SLOW))
        await self._trigger()
        await self._tell()
        await self._retry(await self._start("dying", {"definition": FAILING}, FAILING))
        await self._call("DELETE", "/workflows/tour/aliases/stable", may=(204, 404))
        await self._call("DELETE", "/workflows/tour", may=(204, 404))
        answer = await self._call(
            "POST", "/keys", {"name": self._name, "scopes": ["read"]}, may=(201,)
        )
        await self._call("DELETE", f"/keys/{answer.body['id']}", may=(204, 404))

    async def _store(self) -> None:
        answer = await self._call("POST", "/workflows", FLOW, may=(200, 201))
        version = {"version": answer.body["version"]}
        await self._call("PUT", "/workflows/tour/aliases/stable", version, may=(200,))
        await self._start("tour", {"workflow": "tour@stable"}, FLOW)

    async def _start(self, what: str, order: dict[str, Any], document: dict[str, Any]) -> str:
        key = f"{self._name} {what}"
        body = {**order, "labels": {"key": key}}
        answer = await self._call(
            "POST", "/executions", body, may=(201,), headers={"Idempotency-Key": key}
        )
        name = self.keys[key] = str(answer.body["execution_id"])
        self.accepted[name] = document
        return name

    async def _request_control(self, name: str) -> None:
        for request in ("pause", "resume", "cancel"):
            await self._call("POST", f"/executions/{name}/{request}", {}, may=(202, 409))

    async def _trigger(self) -> None:
        answer = await self._call("POST", "/workflow", WAITING, may=(201,))
        name = str(answer.body["execution_id"])
        await self._call("POST", f"/workflow/trigger/{name}", {}, may=(200, 409))
        self.accepted[name] = WAITING

    async def _tell(self) -> None:
        """Send what an execution waits for: to itself, and by its correlation."""
        key = f"{self._name} order"
        order = {"definition": TOLD, "input": {"key": key}}
        name = await self._start("told", order, TOLD)
        signal = {"payload": 7}
        once = {"Idempotency-Key": key}
        path = f"/executions/{name}/signals/sent"
        await self._call("POST", path, signal, may=(202,), headers=once)
        post = {"correlation": key, **signal}
        await self._call("POST", "/signals/posted", post, may=(202,))

    async def _retry(self, failing: str) -> None:
        async def dead_letters() -> list[dict[str, Any]]:
            answer = await self._call("GET", f"/dead-letters?execution_id={failing}", may=(200,))
            return list(answer.body["items"])

        (dead_letter,) = await until(dead_letters, "the dead letter is there", seconds=60)
        again = await self._call("POST", f"/dead-letters/{dead_letter['id']}/retry", may=(201, 409))
        if again.status == 201:
            self.accepted[again.body["execution_id"]] = FAILING

    async def _call(
        self, method: str, path: str, body: Any = None, *, may: Collection[int], **options: Any
    ) -> Answer:
        while True:
            try:
                url = f"{self._address}/api/v1{path}"
                async with self._session.request(method, url, json=body, **options) as response:
                    answer = Answer(
                        response.status, response.headers, await response.json(content_type=None)
                    )
            except LOST:
                assert self._address != self._second, "an API that nobody harmed is gone"
                self._address = self._second
                self.cut += 1
                continue
            assert answer.status in (*may, 503), (
                f"{self._name}: {method} {path} was answered with {answer}"
            )
            if answer.status in may:
                return answer
            await asyncio.sleep(float(answer.headers["Retry-After"]))
