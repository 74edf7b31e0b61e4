"""`penstock.asgi`: API and UI mounted in another web application."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fastapi import FastAPI
from yarl import URL

import penstock
from penstock.api.mounting import prefix_of, unmounted
from penstock.contract.waiting import until
from tests.runtime.mounted import PREFIX, dispatching, engine_on, in_fastapi, in_starlette, serve

FLOW = {"name": "greet", "nodes": [{"id": "say", "handler": "echo", "config": {"x": 1}}]}
NAP = {"name": "nap", "nodes": [{"id": "a", "handler": "sleep", "config": {"seconds": 3600}}]}
NEEDS_JSON = {"Content-Type": "application/json"}


def nested(engine: penstock.Engine) -> FastAPI:
    outer = in_fastapi(engine)
    inner = FastAPI()
    inner.mount("/deep er", penstock.asgi(engine))
    outer.mount("/outer", inner)
    return outer


HOSTS: dict[str, tuple[Callable[[penstock.Engine], Any], str, dict[str, Any]]] = {
    "FastAPI": (in_fastapi, PREFIX, {}),
    "Starlette": (in_starlette, PREFIX, {}),
    "a dispatcher that passes the lifespan on": (dispatching, PREFIX, {}),
    "an app in an app": (nested, "/outer/deep%20er", {}),
    "a server with a root path": (in_fastapi, f"/api{PREFIX}", {"root_path": "/api"}),
    "at the top": (penstock.asgi, "", {}),
}


@pytest.mark.parametrize("host", HOSTS)
def test_the_api_works_below_the_path_that_it_is_mounted_under(host: str) -> None:
    build, prefix, options = HOSTS[host]

    async def main() -> None:
        engine = engine_on()
        app = build(engine)
        async with serve(app, **options) as url:
            # behind a proxy that takes the root path off, the server gets what stands after it
            sent = prefix.removeprefix(options.get("root_path", ""))
            async with penstock.Client(url + sent) as client:
                execution = await client.start(FLOW)
                assert (await execution.result(timeout=30)).output == {"say": {"x": 1}}
                assert (await client.health())["status"] == "ok"
            async with aiohttp.ClientSession(url) as session:
                await check_addresses(session, sent, prefix)
            assert engine.is_open
        assert not engine.is_open

    asyncio.run(main())


async def check_addresses(session: aiohttp.ClientSession, sent: str, prefix: str) -> None:
    """Every address in an answer has the prefix, and leads somewhere."""

    def path(inside: str) -> URL:
        return URL(sent + inside, encoded=True)

    async with session.get(path("/"), allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (307, f"{prefix}/ui/")
    async with session.get(path("/ui/executions")) as answer:
        page = await answer.text()
    assert f'<meta name="penstock-prefix" content="{prefix}" />' in page
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(addresses) > 3
    for address in addresses:
        assert address.startswith(f"{prefix}/ui/"), address
        async with session.get(path(address.removeprefix(prefix))) as answer:
            assert answer.status == 200, address
    async with session.get(path("/docs")) as answer:
        assert "href='openapi.json'" in await answer.text()
    async with session.get(path("/openapi.json")) as answer:
        document = await answer.json()
        assert document.get("servers", []) == ([{"url": prefix}] if prefix else [])
    async with session.post(path("/api/v1/executions"), json={"workflow": "greet"}) as answer:
        assert answer.status == 404  # started inline, not stored
    async with session.post(path("/api/v1/executions"), json={"definition": FLOW}) as answer:
        execution_id = (await answer.json())["execution_id"]
        assert answer.headers["Location"] == f"{prefix}/api/v1/executions/{execution_id}"


def test_the_application_and_the_api_share_the_engine() -> None:
    async def main() -> None:
        engine = engine_on()
        async with serve(in_fastapi(engine)) as url, aiohttp.ClientSession(url) as session:
            async with session.get("/own") as answer:
                assert await answer.json() == {"state": "COMPLETED"}
            async with session.get(f"{PREFIX}/api/v1/executions") as answer:
                [execution] = (await answer.json())["items"]
                assert execution["workflow"] == "own"

    asyncio.run(main())


def test_an_engine_that_is_not_open_is_said_to_be() -> None:
    async def main() -> None:
        engine = engine_on()
        app = FastAPI()
        app.mount(PREFIX, penstock.asgi(engine))
        async with serve(app) as url, aiohttp.ClientSession(url) as session:
            async with session.get(f"{PREFIX}/api/v1/executions") as answer:
                assert answer.status == 503
                assert "the engine isn't open: open it" in (await answer.json())["detail"]
            for _ in range(2):  # also after it was closed and opened again
                async with engine, session.get(f"{PREFIX}/api/v1/executions") as answer:
                    assert answer.status == 200
                async with session.get(f"{PREFIX}/api/v1/executions") as answer:
                    assert answer.status == 503

    asyncio.run(main())


def test_an_engine_that_cannot_be_opened_fails_the_start_of_the_application(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = f"sqlite:///{tmp_path / 'work.db'}"
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "lifespan.startup"}

        async with engine_on(store):
            await penstock.asgi(engine_on(store))({"type": "lifespan"}, receive, send)
        [message] = sent
        assert message["type"] == "lifespan.startup.failed"
        assert "is in use by process" in message["message"]

    asyncio.run(main())


def test_who_comes_from_elsewhere_needs_a_key_or_the_word_of_the_application() -> None:
    async def main() -> None:
        app = in_fastapi(engine_on())
        async with serve(app) as url, aiohttp.ClientSession(url) as session:
            target = f"{PREFIX}/api/v1/executions"
            async with session.get(target, headers={"Host": "shop.example"}) as answer:
                assert (answer.status, (await answer.json())["code"]) == (403, "foreign_host")
            async with session.get(target, headers={"X-Forwarded-For": "192.0.2.1"}) as answer:
                assert answer.status == 401

        engine = engine_on(host="192.0.2.1")
        async with serve(in_fastapi(engine)) as url, aiohttp.ClientSession(url) as session:
            async with session.get(target, headers={"Host": "shop.example"}) as answer:
                assert answer.status == 503
                assert "there is no API key yet" in (await answer.json())["detail"]
            _, token = await engine.service.keys.create("ops", ["read"])
            for headers, status in (({}, 401), ({"Authorization": f"Bearer {token}"}, 200)):
                async with session.get(target, headers=headers) as answer:
                    assert answer.status == status

    asyncio.run(main())


def test_the_application_may_decide_who_may_do_what() -> None:
    def authorize(scope: Any) -> Any:
        headers = dict(scope["headers"])
        return {b"ada": ("operate", "Ada"), b"bob": "read"}.get(headers.get(b"x-user", b""))

    async def later(scope: Any) -> Any:
        await asyncio.sleep(0)
        return authorize(scope)

    async def main(decide: Any) -> None:
        engine = engine_on()
        app = in_fastapi(engine, authorize=decide)
        shop = {"Host": "shop.example", **NEEDS_JSON}
        async with serve(app) as url, aiohttp.ClientSession(url) as session:

            async def status_of(method: str, user: str = "", **headers: str) -> tuple[int, Any]:
                target = f"{PREFIX}/api/v1/workflows"
                sent = {**shop, "X-User": user, **headers}
                body = json.dumps(FLOW) if method == "POST" else None
                async with session.request(method, target, headers=sent, data=body) as answer:
                    return answer.status, await answer.json()

            assert (await status_of("GET", "ada"))[0] == 200
            assert (await status_of("GET", "bob"))[0] == 200
            assert (await status_of("POST", "ada"))[0] == 201
            status, problem = await status_of("POST", "bob")
            assert status == 403
            assert problem["detail"] == "this needs the scope 'operate'; you have read"
            status, problem = await status_of("GET")
            assert status == 403
            assert "aren't signed in to its application" in problem["detail"]
            # another site's page can't use the session of whoever looks at it
            foreign = {"Origin": "https://evil.example"}
            assert (await status_of("POST", "ada", **foreign))[1]["code"] == "foreign_origin"
            assert (await status_of("GET", "ada", Origin="http://shop.example"))[0] == 200
            as_text = {"Content-Type": "text/plain"}
            assert (await status_of("POST", "ada", **as_text))[0] == 415

            _, token = await engine.service.keys.create("script", ["read"])
            assert (await status_of("GET", Authorization=f"Bearer {token}"))[0] == 200
            assert (await status_of("GET", Authorization="Bearer pk_wrong"))[0] == 401
            # a token of the application itself is the application's to judge
            assert (await status_of("GET", "bob", Authorization="Bearer eyJh"))[0] == 200

            lines = [line async for line in engine.audit(action="put_workflow")]
            assert {line["key_name"] for line in lines if line["status"] == 201} == {"Ada"}

    asyncio.run(main(authorize))
    asyncio.run(main(later))


def test_streams_end_when_the_engine_closes() -> None:
    async def main() -> None:
        engine = engine_on()
        app = FastAPI()
        app.mount(PREFIX, penstock.asgi(engine))
        async with serve(app) as url, penstock.Client(url + PREFIX, retry_seconds=0) as client:
            async with engine:
                execution = await client.start(NAP)
                reading = asyncio.create_task(execution.result())
                await until(lambda: engine.service.live_events.streams)
            with pytest.raises(penstock.PenstockError):
                await reading

    asyncio.run(main())


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
import uvicorn
from tests.runtime.mounted import engine_on, in_fastapi
uvicorn.run(in_fastapi(engine_on()), port=0, log_level="info", ws="none")
"""


def test_a_server_that_is_told_to_stop_does_not_wait_for_streams(tmp_path: Path) -> None:
    script = SCRIPT.format(root=str(Path(__file__).resolve().parents[2]))
    process = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stderr is not None
        line = ""
        while "running on" not in line:
            line = process.stderr.readline()
            assert line, "the server didn't start"
        address = re.findall(r"http://\S+", line)[0]

        async def follow() -> None:
            async with penstock.Client(address + PREFIX, retry_seconds=0) as client:
                execution = await client.start(NAP)
                async for _ in execution.events():
                    process.send_signal(signal.SIGTERM)

        with pytest.raises(penstock.Unreachable):
            asyncio.run(follow())
        assert process.wait(timeout=20) in {0, -signal.SIGTERM}
        assert "Application shutdown complete" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("root", "path", "inside", "prefix"),
    [
        ("", "/ui/", "/ui/", ""),
        ("/p", "/p/ui/", "/ui/", "/p"),
        ("/p/", "/p/ui/", "/ui/", "/p"),
        ("/p", "/p", "/", "/p"),
        ("/p", "/ui/", "/ui/", "/p"),
        ("/a/p", "/p/ui/", "/ui/", "/a/p"),
        ("/a/p", "/a/p/ui/", "/ui/", "/a/p"),
        ("/p", "/pq/ui/", "/pq/ui/", "/p"),
        ('/ä "<b>', '/ä "<b>/ui/', "/ui/", "/%C3%A4%20%22%3Cb%3E"),
    ],
)
def test_inside_the_paths_are_those_of_a_service_of_its_own(
    root: str, path: str, inside: str, prefix: str
) -> None:
    scope = {"type": "http", "path": path, "raw_path": path.encode(), "root_path": root}
    inner = unmounted(scope)
    assert (inner["path"], inner["raw_path"], inner["root_path"]) == (inside, inside.encode(), "")
    assert prefix_of(inner) == prefix
    assert scope["path"] == path  # the outer application's own stays as it is
