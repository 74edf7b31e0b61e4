"""While a store is away: 503 with a Retry-After, never 500.

What was accepted stays accepted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette

from penstock import Engine
from penstock.api.app import create_app
from penstock.api.routing import routes_of
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.errors import NotOpen, SchemaMismatch, StoreUnavailable
from penstock.service import Service
from penstock.service.fleet import EmbeddedFleet, ScaledFleet
from penstock.stores.base import Offer
from penstock.stores.fleet import OrchestratorDetails, WorkerDetails
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.views.fleet import Orchestrator
from tests.api.asgi import Answer, call
from tests.waiting import until

START = b'{"definition": {"name": "flow", "nodes": [{"id": "a", "handler": "noop"}]}}'
NEVER = (
    b'{"definition": {"name": "never", "nodes": [{"id": "a", "handler": "sleep", "config": '
    b'{"seconds": 900}}]}}'
)
JSON = {"Content-Type": "application/json"}
OK_WITHOUT_STORES = {
    "/health/live",
    "/metrics",
    "/",
    "/docs",
    "/openapi.json",
    "/schema.json",
    "/api/v1/workflows/validate",
    "/api/v1/me",
    "/ui",
    "/ui/some-id",
}


COLD_PARTS = {
    "definitions",
    "executions",
    "signals",
    "posts",
    "hooks",
    "schedules",
    "waits",
    "dead_letters",
    "counts",
    "api_keys",
    "audit_log",
}


class Away:
    """A part of the stores that a test takes away.

    Every call then fails as a call does that can't reach its server.
    """

    def __init__(self, real: Any, whole: Away | None = None) -> None:
        """`whole`: the store that this is a part of, which says what fails and hangs."""
        self._real = real
        self._whole = whole or self
        self.error: Exception | None = None
        self.hangs: set[str] = set()
        self.replaced: dict[str, Any] = {}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        whole = self._whole
        attribute = whole.replaced.get(name) or getattr(self._real, name)
        if name in COLD_PARTS and not callable(attribute):
            return Away(attribute, whole)
        if not callable(attribute) or name in {"now", "knows"}:
            return attribute
        if not asyncio.iscoroutinefunction(attribute):
            return partial(self._call, attribute)

        async def answer(*arguments: Any, **named: Any) -> Any:
            whole.calls.append(name)
            if name in whole.hangs:
                await asyncio.Event().wait()
            whole._fail()
            return await attribute(*arguments, **named)

        return answer

    def _call(self, method: Any, *arguments: Any) -> Any:
        self._whole._fail()
        return method(*arguments)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class Nobody:
    """A fleet of which nobody is there."""

    async def workers(self) -> list[Any]:
        return []

    orchestrators = queues = workers

    async def inbox(self) -> int:
        return 0


class ApiUnderTest:
    def __init__(self, app: Starlette, engine: Engine, stores: Any) -> None:
        self.app = app
        self.engine = engine
        self.hot = stores.hot
        self.cold = stores.cold
        self.stores = stores

    async def call(self, method: str, target: str, body: bytes = b"") -> Answer:
        return await call(self.app, method, target, JSON if body else {}, body=body)


@asynccontextmanager
async def open_api(
    *, tiered: bool = False, has_fleet: bool = True, timing: ApiTiming | None = None
) -> AsyncIterator[ApiUnderTest]:
    """The engine keeps its stores; only the API's are taken away."""
    settings = Settings()
    async with Engine("memory://", settings=settings) as engine:
        stores: Any = MemoryStores(engine.stores.hot.now)
        stores.queue, stores.blobs = engine.stores.queue, engine.stores.blobs
        stores.hot, stores.cold = Away(engine.stores.hot), Away(engine.stores.cold)
        if tiered:
            stores.tiering = object()
            stores.topology = stores.topology._replace(is_tiered=True)
        service = engine.service = Service(
            stores,
            PlanCache(stores.cold, engine.registry.defaults),
            settings,
            engine.registry.defaults,
        )
        fleet = EmbeddedFleet(stores, engine.worker, engine.orchestrator) if has_fleet else Nobody()
        await service.keys.exist()  # a server reads them before it answers anybody
        app = create_app(service, fleet, settings, version="1", timing=timing)
        yield ApiUnderTest(app, engine, stores)
        stores.hot.error = stores.cold.error = None


def with_api(scenario: Callable[[ApiUnderTest], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with open_api(**options) as api:
            await scenario(api)

    asyncio.run(main())


def assert_away(answer: Answer) -> None:
    assert answer.status == 503, answer
    assert answer.code == "unavailable"
    assert int(answer.headers["retry-after"]) >= 1


def test_a_submission_is_refused_before_anything_is_written_while_the_hot_store_is_away() -> None:
    async def scenario(api: ApiUnderTest) -> None:
        running = (await api.call("POST", "/api/v1/executions", NEVER)).json["execution_id"]
        waits = (
            await api.call(
                "POST",
                "/api/v1/workflow",
                msgspec.json.encode(msgspec.json.decode(START)["definition"]),
            )
        ).json
        api.hot.error = StoreUnavailable("Redis doesn't answer")
        api.cold.calls.clear()
        for target in (
            "/api/v1/executions",
            "/api/v1/executions?wait=1",
            f"/api/v1/executions/{running}/cancel",
            f"/api/v1/executions/{running}/pause",
            f"/api/v1/workflow/trigger/{waits['execution_id']}",
        ):
            body = (
                START.replace(b"flow", b"new")
                if target.partition("?")[0].endswith("executions")
                else b""
            )
            assert_away(await api.call("POST", target, body))
        batch = await api.call(
            "POST", "/api/v1/executions/batch", b'{"executions": [%b, %b]}' % (START, START)
        )
        assert [item["error"]["status"] for item in batch.json["items"]] == [503, 503]
        assert not {"record_intents", "put_workflow", "request_control", "trigger"} & set(
            api.cold.calls
        )
        assert (await api.call("GET", f"/api/v1/executions/{running}")).status == 200

    with_api(scenario)


def test_what_was_stored_is_answered_positively_though_the_rest_fails() -> None:
    async def scenario(api: ApiUnderTest) -> None:
        real = api.engine.stores.cold.executions.record_intents

        async def create_and_lose_both(*arguments: Any) -> Any:
            answer = await real(*arguments)
            api.hot.error = api.cold.error = StoreUnavailable("gone")
            return answer

        api.cold.replaced["record_intents"] = create_and_lose_both
        for target in ("/api/v1/executions", "/api/v1/executions?wait=5"):
            api.hot.error = api.cold.error = None
            answer = await api.call("POST", target, START)
            assert (answer.status, answer.json["state"]) == (201, "PENDING")
            assert answer.headers["location"].endswith(answer.json["execution_id"])

    with_api(scenario)


def test_a_retry_that_is_stored_is_answered_though_its_dead_letters_could_not_be_closed() -> None:
    async def scenario(api: ApiUnderTest) -> None:
        bad = (
            b'{"definition": {"nodes": [{"id": "a", "handler": "fail", "retry": '
            b'{"max_attempts": 1}}]}}'
        )
        failed = (await api.call("POST", "/api/v1/executions?wait=20", bad)).json
        assert failed["state"] == "FAILED"
        real = api.engine.stores.cold.executions.record_intents

        async def create_and_go(*arguments: Any) -> Any:
            answer = await real(*arguments)
            api.cold.error = StoreUnavailable("gone")
            return answer

        api.cold.replaced["record_intents"] = create_and_go
        answer = await api.call("POST", f"/api/v1/executions/{failed['execution_id']}/retry")
        assert (answer.status, answer.json["retry_of"]) == (201, failed["execution_id"])

    with_api(scenario)


@pytest.mark.parametrize("which", ["cold", "both"])
def test_no_route_answers_500_while_the_stores_are_away(which: str) -> None:
    async def scenario(api: ApiUnderTest) -> None:
        api.cold.error = StoreUnavailable("PostgreSQL doesn't answer")
        api.hot.error = api.cold.error if which == "both" else None
        for route in routes_of(api.app):
            target = re.sub(r"\{\w+(?::(\w+))?\}", lambda match: _value(match[1]), route.path)
            for method in route.methods:
                answer = await api.call(method, target, START if method in {"POST", "PUT"} else b"")
                assert answer.status != 500, (method, target, answer)
                if answer.status == 503 and "health" not in target:
                    assert_away(answer)
                assert (
                    answer.status >= 400
                    or target in OK_WITHOUT_STORES
                    or "batch" in target
                    or _is_live(target)
                ), (
                    method,
                    target,
                    answer,
                )

    with_api(scenario)


SECRETS = ("10.1.2.3", "db.internal", "5432", "postgresql://", "alice")


@pytest.mark.parametrize("error", [NotOpen("it stops"), SchemaMismatch("of another version")])
def test_a_store_that_is_closed_or_of_another_version_is_unavailable(error: Exception) -> None:
    async def scenario() -> None:
        async with open_api() as api:
            api.cold.error = error
            answer = await api.call("GET", "/api/v1/workflows")
            assert (answer.status, answer.json["code"]) == (503, "unavailable")

    asyncio.run(scenario())


def test_no_answer_shows_where_a_store_is_and_the_log_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    where = (
        "postgresql://alice:***@db.internal:5432/jobs is not available: connection to "
        '"10.1.2.3", port 5432 failed'
    )

    async def scenario(api: ApiUnderTest) -> None:
        api.cold.error = api.hot.error = StoreUnavailable(where)
        for route in routes_of(api.app):
            target = re.sub(r"\{\w+(?::(\w+))?\}", lambda match: _value(match[1]), route.path)
            for method in route.methods:
                answer = await api.call(method, target, START if method in {"POST", "PUT"} else b"")
                text = answer.body.decode(errors="replace")
                assert not [secret for secret in SECRETS if secret in text], (
                    method,
                    target,
                    text,
                )

    with caplog.at_level("WARNING", "penstock.service"):
        with_api(scenario)
    assert where in caplog.text
    lines = [line for line in caplog.messages if "requests are refused" in line and where in line]
    assert 0 < len(lines) < 5, "once in a while, not for each request"


def test_each_of_many_is_told_that_the_store_is_away() -> None:
    async def scenario(api: ApiUnderTest) -> None:
        api.cold.error = StoreUnavailable("PostgreSQL doesn't answer")
        for action in ("cancel", "retry"):
            body = msgspec.json.encode({"action": action, "execution_ids": ["a", "b"]})
            answer = await api.call("POST", "/api/v1/executions/bulk", body)
            assert answer.status == 200
            errors = [item["error"] for item in answer.json["items"]]
            assert [(error["status"], error["code"]) for error in errors] == [
                (503, "unavailable")
            ] * 2

    with_api(scenario)


def _value(kind: str | None) -> str:
    return {"int": "7", "uuid": "0192e3a4-0000-7000-8000-000000000000"}.get(kind or "", "some-id")


def _is_live(target: str) -> bool:
    """Of this process alone."""
    return target in {"/api/v1/workers", "/api/v1/orchestrators", "/api/v1/queues"}


@pytest.mark.parametrize("tiered", [False, True])
def test_ready_says_whether_each_store_answers(
    tiered: bool,  # noqa: FBT001
) -> None:
    async def scenario(api: ApiUnderTest) -> None:
        async def status() -> int:
            return (await api.call("GET", "/health/ready")).status

        async def is_ready() -> bool:
            return await status() == 200

        await until(is_ready, "it is ready")
        names = {"redis", "database"} if tiered else {"store"}
        health = (await api.call("GET", "/health")).json
        assert health["checks"].keys() == {*names, "orchestrator", "workers", "queues"}
        for part in (api.hot, api.cold):
            part.error = StoreUnavailable("away")
            assert await status() == 503
            assert (await api.call("GET", "/v1/health")).status == 503
            health = await api.call("GET", "/health")
            assert health.status == 503
            assert any(
                "away" in check.get("detail", "") for check in health.json["checks"].values()
            )
            part.error = None
        api.cold.hangs |= {"commits_end", "get_workflow"}
        assert await status() == 503
        api.cold.hangs.clear()
        assert await status() == 200

    with_api(scenario, tiered=tiered, timing=ApiTiming(check_seconds=0.05))


def test_an_api_alone_is_ready_without_orchestrators() -> None:
    async def scenario(api: ApiUnderTest) -> None:
        assert (await api.call("GET", "/health/ready")).status == 200
        assert (await api.call("GET", "/health")).json["checks"]["orchestrator"]["ok"] is False

    with_api(scenario, tiered=True, has_fleet=False)


class FleetElsewhere:
    async def workers(self, _tasks_max: int) -> list[WorkerDetails]:
        silences = {"alive": 4.9, "slow": 14.0, "dead": 15.1}
        workers: list[WorkerDetails] = []
        for name, seconds in silences.items():
            offer = Offer(name, ["echo"], None, silent_seconds=seconds)
            workers.append(WorkerDetails(offer, running=1, heartbeats=7, tasks=[]))
        return workers

    async def orchestrators(self) -> dict[str, OrchestratorDetails]:
        return {"one": OrchestratorDetails([0, 3], pid=7)}

    async def inbox_length(self) -> int:
        return 5


def test_a_fleet_elsewhere_is_listed_without_those_that_died() -> None:
    async def scenario() -> None:
        stores: Any = MemoryStores(lambda: 1000.0)
        stores.fleet = FleetElsewhere()
        fleet = ScaledFleet(stores, Settings().worker_dead_seconds)
        assert [worker.worker_id for worker in await fleet.workers()] == ["alive", "slow"]
        assert await fleet.orchestrators() == [Orchestrator(name="one", partitions=[0, 3], pid=7)]
        assert await fleet.inbox() == 5
        assert await fleet.queues() == []

    asyncio.run(scenario())
