"""Links to approvals: opening one changes nothing, and only a valid one decides, once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette

from penstock import Engine, ExecutionHandle, Workflow
from penstock.api.app import create_app
from penstock.config import Settings
from penstock.service.fleet import EmbeddedFleet
from tests.api.asgi import Answer, bearer, call
from tests.waiting import until

FORM = {
    "type": "object",
    "required": ["tone"],
    "properties": {
        "tone": {"enum": ["warm", "plain"]},
        "copies": {"type": "integer"},
        "urgent": {"type": "boolean"},
    },
}
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded", "Host": "localhost"}
JSON_TYPE = {"Content-Type": "application/json", "Host": "localhost"}


class Desk:
    """An API with an approval that waits, and a key that may decide it."""

    def __init__(self, app: Starlette, engine: Engine, execution: ExecutionHandle) -> None:
        self._app = app
        self.engine = engine
        self.execution = execution
        self.token = ""

    async def link(self, **body: Any) -> Answer:
        path = f"/api/v1/executions/{self.execution.id}/approvals/release/links"
        text = str(body).replace("'", '"').encode()
        return await call(self._app, "POST", path, {**JSON_TYPE, **self._key()}, body=text)

    def _key(self) -> dict[str, str]:
        return bearer(self.token) if self.token else {}

    async def target(self) -> str:
        """The path of a link of Ada."""
        made = await self.link(by="ada@example.com", seconds=60)
        assert made.status == 201, made
        found = re.fullmatch(r"https?://[^/]+(/approve/.+)", made.json["url"])
        assert found is not None
        return found[1]

    async def open(self, target: str) -> Answer:
        return await call(self._app, "GET", target, {"Host": "localhost"})

    async def send(self, target: str, **fields: str) -> Answer:
        body = urlencode(fields).encode()
        return await call(self._app, "POST", target, FORM_TYPE, body=body)

    async def state(self) -> str:
        return str((await self.execution.status()).nodes["release"]["state"])


@asynccontextmanager
async def desk(folder: Path, **config: Any) -> AsyncIterator[Desk]:
    settings = Settings()
    flow = Workflow("letter")
    flow.approval("release", "<b>Send?</b>", "to <Ada>", config=config)
    async with Engine(f"sqlite:///{folder}/store.db", settings=settings) as engine:
        fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
        app = create_app(engine.service, fleet, settings, version="1")
        new = Desk(app, engine, await engine.start(flow))

        async def is_open() -> bool:
            return await new.state() == "WAITING"

        await until(is_open)
        _, new.token = await engine.service.keys.create("ops", ["approve"])
        yield new


def test_opening_a_link_shows_the_approval_and_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk(tmp_path, form=FORM) as approval:
            target = await approval.target()
            await approval.open(target)
            page = await approval.open(target)
            assert page.status == 200
            text = page.body.decode()
            assert "&lt;b&gt;Send?&lt;/b&gt;" in text
            assert "to &lt;Ada&gt;" in text
            assert "<script" not in text
            assert "default-src 'none'" in page.headers["content-security-policy"]
            assert await approval.state() == "WAITING"

    asyncio.run(main())


def test_a_link_decides_once_and_then_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk(tmp_path, form=FORM) as approval:
            target = await approval.target()
            assert (await approval.send(target, decision="perhaps")).status == 422
            unfit = await approval.send(target, decision="approved", **{"form.tone": "cold"})
            assert unfit.status == 422
            fields = {"form.tone": "warm", "form.copies": "2", "form.urgent": "true"}
            sent = await approval.send(target, decision="approved", comment="fine", **fields)
            assert sent.status == 200
            output = (await approval.execution.result()).nodes["release"]["output"]
            assert output["form"] == {"tone": "warm", "copies": 2, "urgent": True}
            assert (output["by"], output["comment"]) == ("ada@example.com", "fine")

            assert (await approval.open(target)).status == 410
            assert (await approval.send(target, decision="rejected")).status == 410

    asyncio.run(main())


def test_links_that_are_not_valid_open_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk(tmp_path) as approval:
            target = await approval.target()
            body, _, signature = target.removeprefix("/approve/").partition(".")
            other = "A" if signature[0] != "A" else "B"
            for token in (f"{body}.{other}{signature[1:]}", body, f"{body}.", "x.y", "é" * 9):
                assert (await approval.open(f"/approve/{token}")).status == 410, token
            (key,) = await approval.engine.service.keys.list()
            await approval.engine.service.keys.revoke(key.id)
            assert (await approval.open(target)).status == 410
            assert (await approval.send(target, decision="approved")).status == 410
            assert await approval.state() == "WAITING"

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0, -1, 10**9])
def test_a_link_has_a_time_of_its_own(tmp_path: Path, seconds: int) -> None:
    async def main() -> None:
        async with desk(tmp_path) as approval:
            assert (await approval.link(by="ada", seconds=seconds)).status == 422
            soon = await approval.link(by="ada", seconds=0.001)
            path = soon.json["url"].partition("/approve/")[2]
            gone = f"/approve/{path}"

            async def has_expired() -> bool:
                return (await approval.open(gone)).status == 410

            await until(has_expired)

    asyncio.run(main())


def test_a_link_to_a_cancelled_approval_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk(tmp_path) as approval:
            target = await approval.target()
            await approval.execution.cancel()
            await approval.execution.result()
            page = await approval.open(target)
            assert page.status == 410
            assert "the approval is over: &#x27;release&#x27; is CANCELLED" in page.body.decode()
            assert (await approval.send(target, decision="approved")).status == 410

    asyncio.run(main())
