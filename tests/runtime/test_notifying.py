"""`notify` of approvals: others are told, signed and if need be again, and may decide by a link."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import web

from penstock import Engine, ExecutionHandle, testing
from penstock.config import Settings
from penstock.definition.plan import compile_document
from penstock.errors import Conflict, InvalidWorkflow, NotFound
from penstock.stores.memory import MemoryStores
from penstock.views.approval_links import read_token, sign
from tests.waiting import until
from tests.worker.servers import Server, serving

SECRET = "whsec_" + base64.b64encode(b"hush").decode()
SETTINGS = {"http_private": True, "public_url": "https://flows.example.com/"}


def letter(notify: Any, **config: Any) -> dict[str, Any]:
    config = {"title": "Send {{ input.to }} this?", "notify": notify, **config}
    release = {"id": "release", "handler": "approval", "config": config}
    return {"name": "letter", "nodes": [release]}


async def answered(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503 if request.path.startswith("/busy") else 204)


@asynccontextmanager
async def told(
    requests: int = 1, path: str = "/hook", **config: Any
) -> AsyncIterator[tuple[Engine, ExecutionHandle, Server]]:
    """A letter whose approval waits, after so many requests have come."""
    async with serving(answered) as server:
        settings = Settings.load({**SETTINGS, "notify_secret": SECRET}, {})
        async with Engine(MemoryStores(time.time), settings=settings) as engine:
            document = letter(server.url + path, **config)
            execution = await engine.start(document, {"to": "Ada"})

            async def is_told() -> bool:
                return len(server.bodies) >= requests

            await until(is_told)
            yield engine, execution, server


def token_of(server: Server) -> str:
    link = str(json.loads(server.bodies[0])["links"]["decide"])
    return link.removeprefix("https://flows.example.com/approve/")


def test_what_is_posted_is_signed_and_has_a_link_that_decides_once() -> None:
    async def main() -> None:
        async with told() as (engine, execution, server):
            headers = server.requests[0].headers
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
            digest = hmac.new(b"hush", signed + server.bodies[0], sha256).digest()
            assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
            assert headers["webhook-id"] == f"{execution.id}:release~notify"
            body = json.loads(server.bodies[0])
            assert body["title"] == "Send Ada this?"
            assert (body["execution_id"], body["node_id"]) == (execution.id, "release")

            approvals = engine.service.approvals
            await approvals.decide_by_link(token_of(server), "approved")
            with pytest.raises(Conflict):
                await approvals.decide_by_link(token_of(server), "rejected")
            result = await execution.result()
            assert result.output["release"]["by"] == "link to 127.0.0.1"
            assert set(result.output) == {"release"}

    asyncio.run(main())


def test_a_link_of_another_secret_or_of_a_cancelled_execution_decides_nothing() -> None:
    async def main() -> None:
        async with told() as (engine, execution, server):
            token = token_of(server)
            signed = read_token(token)
            assert signed is not None
            with pytest.raises(NotFound):
                await engine.service.approvals.open_link(sign(signed.link, b"other"))
            await execution.cancel()
            await execution.result()
            with pytest.raises(Conflict, match="the approval is over"):
                await engine.service.approvals.decide_by_link(token, "approved")

    asyncio.run(main())


def test_a_service_that_is_busy_is_told_again_with_the_same_id() -> None:
    async def main() -> None:
        async with told(requests=2, path="/busy") as (_, execution, server):
            ids = {request.headers["webhook-id"] for request in server.requests}
            assert ids == {f"{execution.id}:release~notify"}
            nodes = (await execution.status()).nodes
            assert nodes["release"]["state"] == "WAITING"

    asyncio.run(main())


def test_where_approvers_are_named_a_notification_has_no_link_that_decides() -> None:
    async def main() -> None:
        async with told(approvers={"not_starter": True}) as (_, _, server):
            links = json.loads(server.bodies[0])["links"]
            assert links == {"ui": "https://flows.example.com/ui/#/approvals"}

    asyncio.run(main())


def test_an_approval_in_a_map_tells_for_each_item_and_gives_the_decision() -> None:
    calls: list[str] = []

    def notify(_: dict[str, Any], ctx: Any) -> None:
        calls.append(ctx.node_id)

    ask = letter("https://hooks.example.com/x")["nodes"][0]
    document = {"name": "letters", "nodes": [{**ask, "id": "ask", "for_each": [1, 2]}]}
    decisions = {"ask[0].ask": "approved", "ask[1].ask": "rejected"}
    handlers = {"penstock.notify": notify}
    run = testing.run(document, {"to": "Ada"}, decisions=decisions, handlers=handlers)
    assert [item["approved"] for item in run.result.output["ask"]] == [True, False]
    assert sorted(calls) == ["ask[0].ask~notify", "ask[1].ask~notify"]


@pytest.mark.parametrize(
    ("notify", "path"),
    [
        ("ftp://example.com", "nodes[0].config.notify"),
        (["https://a.example.com", 7], "nodes[0].config.notify[1]"),
        ([], "nodes[0].config.notify"),
        ("{{ nobody.url }}", "nodes[0].config.notify"),
    ],
)
def test_a_mistake_in_notify_is_refused_once_at_its_place(notify: Any, path: str) -> None:
    with pytest.raises(InvalidWorkflow) as raised:
        compile_document(letter(notify))
    assert [problem.path for problem in raised.value.problems] == [path]


def test_a_mistake_in_the_title_is_reported_of_the_approval_alone() -> None:
    with pytest.raises(InvalidWorkflow) as raised:
        compile_document(letter("https://a.example.com", title="{{ nobody.x }}"))
    assert [problem.node_id for problem in raised.value.problems] == ["release"]
