"""The handle of one execution on a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from penstock.client.answers import RemoteResult
from penstock.client.following import follow
from penstock.client.transport import Transport, path_of
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import RateLimited
from penstock.runtime.result import Result

PAGE = 500


class Execution:
    """What `Client.start` gives. Nothing is asked of the server before a method is called.

    `accepted` is the server's answer to the start, with `workflow`, `version` and `created_at`;
    empty for a handle that was made from an id.
    """

    def __init__(
        self, transport: Transport, execution_id: str, accepted: dict[str, Any] | None = None
    ) -> None:
        self._transport, self.id = transport, execution_id
        self.accepted = accepted or {}
        self._ended = accepted if accepted and accepted.get("finished_at") else None

    @property
    def execution_id(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<Execution {self.id}>"

    def _path(self, *parts: str) -> str:
        return path_of("executions", self.id, *parts)

    async def result(self, timeout: float | None = None) -> Result:  # noqa: ASYNC109 -- for callers without asyncio too
        """Waits for the end. A failed execution is a result too: look at `state` and `error`.

        `TimeoutError` when it takes longer than `timeout` seconds; the execution goes on.
        """
        async with asyncio.timeout(timeout):
            while self._ended is None:
                await self._wait_for_the_end()
                found = await self._transport.call("GET", self._path())
                if found["state"] in EXECUTION_ENDS:
                    self._ended = found
        return RemoteResult(self._ended)

    async def _wait_for_the_end(self) -> None:
        try:
            async for _ in self.events():
                pass
        except RateLimited as error:
            # More streams than the server has room for: those that wait take turns.
            await asyncio.sleep(error.retry_after)

    async def status(self) -> Result:
        """How it stands now, in the same shape."""
        return RemoteResult(await self._transport.call("GET", self._path()))

    def events(self, after: int = 0) -> AsyncGenerator[dict[str, Any], None]:
        """Every change of state after the one with this `seq`, live; ends with the execution."""
        return follow(self._transport, self._path("events"), str(after) if after else None)

    async def cancel(self) -> None:
        """Raises `Conflict` if it has ended, `NotFound` if there is none; so do `pause` and `resume`."""
        await self._transport.call("POST", self._path("cancel"))

    async def pause(self) -> None:
        await self._transport.call("POST", self._path("pause"))

    async def resume(self) -> None:
        await self._transport.call("POST", self._path("resume"))

    async def retry(
        self, start: str | None = None, version: str | int = "same", *, preview: bool = False
    ) -> dict[str, Any]:
        """A new execution that runs what didn't complete, or all from the node `start` on, and keeps the rest.

        Answers `execution_id`, `runs` (which nodes, and why) and `keeps`; a `preview` starts nothing. `version` is
        `same`, `latest` or a number.
        """
        query = {"from": start, "version": version, "preview": preview or None}
        answer: dict[str, Any] = await self._transport.call(
            "POST", self._path("retry"), query=query
        )
        return answer

    async def results(self) -> dict[str, Any]:
        """`state`, `completed`, `output`, `outputs` by node, `error`: the values without the rest."""
        answer: dict[str, Any] = await self._transport.call("GET", self._path("results"))
        return answer

    async def history(self) -> list[dict[str, Any]]:
        """Every change of state so far."""
        found: list[dict[str, Any]] = []
        while True:
            query = {"after": found[-1]["seq"] if found else None, "limit": PAGE}
            page = await self._transport.call("GET", self._path("history"), query=query)
            found += page["items"]
            if page["next_cursor"] is None or not page["items"]:
                return found

    async def node(self, name: str) -> dict[str, Any]:
        """One node: its state, its part of the document, what it was given, and every attempt."""
        answer: dict[str, Any] = await self._transport.call("GET", self._path("nodes", name))
        return answer

    async def logs(self, name: str) -> dict[int, str]:
        """What the node's handler logged, by attempt."""
        answer = await self._transport.call("GET", self._path("nodes", name, "logs"))
        return {item["attempt"]: item["text"] for item in answer["items"]}

    async def graph(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._transport.call("GET", self._path("graph"))
        return answer
