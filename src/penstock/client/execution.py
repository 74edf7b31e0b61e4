"""The handle of one execution on a server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlencode

from penstock.client.following import follow, follow_lines
from penstock.client.transport import Transport, path_of
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import RateLimited
from penstock.views.result import Result
from penstock.views.retries import RetriedItems

PAGE = 500


class Execution:
    """The handle of an execution on a server; only its methods make calls.

    `accepted` is the server's answer to the start, with `workflow`, `version` and `created_at`. It
    is empty for a handle that was made from an id.
    """

    def __init__(
        self, transport: Transport, execution_id: str, accepted: dict[str, Any] | None = None
    ) -> None:
        self._transport = transport
        self.id = execution_id
        self.accepted = accepted or {}
        self._ended: dict[str, Any] | None = None
        if self.accepted.get("finished_at"):
            self._ended = self.accepted

    @property
    def execution_id(self) -> str:
        """The execution's id; the same as `id`."""
        return self.id

    def __repr__(self) -> str:
        return f"<Execution {self.id}>"

    def _path(self, *parts: str) -> str:
        return path_of("executions", self.id, *parts)

    async def result(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 -- for callers without asyncio too
    ) -> Result:
        """Wait for the end. A failed execution has a result too, with `state` and `error`.

        Raises `TimeoutError` after `timeout` seconds; the execution goes on.
        """
        async with asyncio.timeout(timeout):
            while self._ended is None:
                await self._wait_for_the_end()
                view = await self._transport.call("GET", self._path())
                if view["state"] in EXECUTION_ENDS:
                    self._ended = view
        return Result.of_answer(self._ended)

    async def _wait_for_the_end(self) -> None:
        try:
            async for _ in self.events():
                pass
        except RateLimited as error:
            # The server has no room for more streams, so waiting clients take turns.
            await asyncio.sleep(error.retry_after)

    async def status(self) -> Result:
        """The current state, in the shape of a result."""
        return Result.of_answer(await self._transport.call("GET", self._path()))

    def events(
        self, after: int = 0, *, depth: int | None = None, under: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Live events: every transition after `seq`, until the execution has ended.

        With `depth`, only those of nodes that are in so many maps or loops; what is deeper comes as
        `items`, the counts of a map's items. `under` is a map, a loop or an item: only what is
        inside of it.
        """
        path = self._path("events")
        query = {"depth": depth, "under": under}
        chosen = {name: value for name, value in query.items() if value is not None}
        if chosen:
            path += f"?{urlencode(chosen)}"
        return follow(self._transport, path, str(after) if after else None)

    async def cancel(self) -> None:
        """Cancel it. Raises `Conflict` if it has ended, `NotFound` if it doesn't exist.

        `pause` and `resume` raise the same.
        """
        await self._transport.call("POST", self._path("cancel"))

    async def pause(self) -> None:
        """Start no more nodes; running ones go on."""
        await self._transport.call("POST", self._path("pause"))

    async def resume(self) -> None:
        """Let the paused execution go on."""
        await self._transport.call("POST", self._path("resume"))

    async def signal(
        self,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Send it a signal. Returns its `number`, and `state`: `taken` or `kept`.

        It carries an idempotency key, yours or a generated one, so a lost answer does no harm.
        Raises `Conflict` if the execution has ended, `NotFound` if it doesn't exist.
        """
        body = {"name": name, "payload": payload, "correlation": correlation}
        path = self._path("signals")
        answer: dict[str, Any] = await self._transport.call(
            "POST", path, body=body, key=idempotency_key or uuid.uuid4().hex
        )
        return answer

    async def signals(self, name: str | None = None) -> list[dict[str, Any]]:
        """Its signals by number, and which node has taken each."""
        answer = await self._transport.call("GET", self._path("signals"), query={"name": name})
        items: list[dict[str, Any]] = answer["items"]
        return items

    async def approve(
        self, node: str, *, comment: str | None = None, form: Any = None, by: str | None = None
    ) -> dict[str, Any]:
        """Approve what a node waits for. Returns the decision, and whether it `is_final`.

        Raises `Conflict` if it is decided already, `Unauthorized` if your key may not decide.
        """
        return await self._decide(node, "approved", comment, form, by)

    async def reject(
        self, node: str, *, comment: str | None = None, by: str | None = None
    ) -> dict[str, Any]:
        """Reject what a node waits for; as `approve`."""
        return await self._decide(node, "rejected", comment, None, by)

    async def _decide(
        self, node: str, decision: str, comment: str | None, form: Any, by: str | None
    ) -> dict[str, Any]:
        body = {"decision": decision, "comment": comment, "form": form}
        if by is not None:
            body["by"] = by
        path = self._path("approvals", node)
        answer: dict[str, Any] = await self._transport.call("POST", path, body=body)
        return answer

    async def retry(
        self,
        start: str | None = None,
        version: str | int = "same",
        *,
        items: RetriedItems | None = None,
        preview: bool = False,
    ) -> dict[str, Any]:
        """Retry it: a new execution runs what didn't complete, and reuses the other outputs.

        With `start`, that node and all nodes after it run again. Of maps that run again, `items`
        says which items do: those that `failed` (the default), or `all` (the default of the map
        that `start` names). Returns `execution_id`, `runs` (which nodes, and why) and `keeps`; a
        `preview` starts nothing. `version` is `same`, `latest` or a number.
        """
        query = {"from": start, "version": version, "items": items, "preview": preview or None}
        path = self._path("retry")
        answer: dict[str, Any] = await self._transport.call("POST", path, query=query)
        return answer

    async def results(self) -> dict[str, Any]:
        """The values alone: `state`, `completed`, `output`, `outputs` by node, `error`."""
        answer: dict[str, Any] = await self._transport.call("GET", self._path("results"))
        return answer

    async def history(self) -> list[dict[str, Any]]:
        """The history so far."""
        lines: list[dict[str, Any]] = []
        while True:
            last_seq = lines[-1]["seq"] if lines else None
            query = {"after": last_seq, "limit": PAGE}
            page = await self._transport.call("GET", self._path("history"), query=query)
            lines += page["items"]
            if page["next_cursor"] is None or not page["items"]:
                return lines

    async def node(self, name: str) -> dict[str, Any]:
        """One node: its state, its part of the document, config, inputs and all attempts."""
        answer: dict[str, Any] = await self._transport.call("GET", self._path("nodes", name))
        return answer

    async def nodes(
        self, under: str | None = None, state: str | None = None
    ) -> list[dict[str, Any]]:
        """Its nodes; with `under`, what is inside of a map, a loop or an item and has begun."""
        nodes: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            query = {"under": under, "state": state, "cursor": cursor, "limit": PAGE}
            page = await self._transport.call("GET", self._path("nodes"), query=query)
            nodes += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return nodes

    async def items(
        self, name: str, *, follow: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The items of a map, in the order of their ends; with `follow`, until the map ends.

        Each has `index`, `key`, `state`, `output` and `error`.
        """
        path = self._path("nodes", name, "items")
        async for line in follow_lines(self._transport, path, follow=follow):
            yield line

    async def why(self, name: str) -> dict[str, Any]:
        """Why a node isn't running now: `reason`, and `text` in words."""
        path = self._path("nodes", name, "why")
        answer: dict[str, Any] = await self._transport.call("GET", path)
        return answer

    async def logs(self, name: str) -> dict[int, str]:
        """The logs of the node's handler, by attempt."""
        answer = await self._transport.call("GET", self._path("nodes", name, "logs"))
        return {item["attempt"]: item["text"] for item in answer["items"]}

    async def all_logs(self) -> AsyncGenerator[dict[str, Any], None]:
        """The logs of all nodes, in the order in which their attempts began.

        Each has `node_id`, `attempt`, `text` and `live`: whether the attempt still runs.
        """
        cursor = None
        while True:
            query = {"cursor": cursor}
            page = await self._transport.call("GET", self._path("logs"), query=query)
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if cursor is None:
                return

    async def graph(self) -> dict[str, Any]:
        """The nodes and edges, with their states."""
        answer: dict[str, Any] = await self._transport.call("GET", self._path("graph"))
        return answer

    async def tree(self) -> dict[str, Any]:
        """This execution with its children, and theirs: each before those below it."""
        answer: dict[str, Any] = await self._transport.call("GET", self._path("tree"))
        return answer
