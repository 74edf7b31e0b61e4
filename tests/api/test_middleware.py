"""The real application behind its middleware: every route that it has, with and without keys."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette

from penstock import Engine
from penstock.api.access import OPEN, PREFIXES, TABLE, Rule
from penstock.api.app import create_app
from penstock.api.routing import routes_of
from penstock.config import Settings
from penstock.service.fleet import EmbeddedFleet
from penstock.service.hooks import CLOSED
from penstock.service.keys import SCOPES
from penstock.stores.records import AuditSearch
from tests.api.asgi import EVERYWHERE, bearer, call
from tests.api.test_access import spellings

VALUES = {
    "int": "7",
    "uuid": "0192e3a4-0000-7000-8000-000000000000",
    "path": "some-name",
    None: "some-id",
}
ENDLESS = "/api/v1/events"


@asynccontextmanager
async def running(**settings_given: Any) -> AsyncIterator[tuple[Starlette, Engine]]:
    settings = Settings(**settings_given)
    async with Engine("memory://", settings=settings) as engine:
        fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
        yield create_app(engine.service, fleet, settings, version="1"), engine


def routes(app: Starlette) -> Iterator[tuple[str, str, Rule, str | None]]:
    """Method, a path, the row of the table, the operation's id in the OpenAPI document."""
    for route in routes_of(app):
        target = re.sub(r"\{\w+(?::(\w+))?\}", lambda match: VALUES[match[1]], route.path)
        rule = TABLE[route.method, re.sub(r"\{[^}]*\}", "{}", route.path_format)]
        yield route.method, target, rule, route.description.get("operationId")


def test_the_table_calls_operations_as_the_document_does():
    async def scenario() -> None:
        async with running() as (app, _):
            named = {(rule.operation, shown) for _, _, rule, shown in routes(app) if shown}
            assert {
                (ours, shown)
                for ours, shown in named
                if ours != shown and not shown.startswith("compat_")
            } == set()

    asyncio.run(scenario())


SPARE = {
    ("GET", "/api/v1/workflows/{}/aliases"),
    ("POST", "/api/v1/workflow/{}/trigger"),
    ("POST", "/api/v1/workflows/trigger/{}"),
}
"""Rows below /api/v1 for spellings that the app doesn't have.

They are listed, so that a route that gets lost is noticed.
"""


def test_every_row_below_the_base_has_its_route_but_for_those_listed():
    async def scenario() -> None:
        async with running() as (app, _):
            have = {
                (route.method, re.sub(r"\{[^}]*\}", "{}", route.path_format))
                for route in routes_of(app)
            }
            assert {
                row for row in TABLE if row not in have and row[1].startswith("/api/v1/")
            } == SPARE
            for prefix in PREFIXES:
                assert ("POST", f"{prefix}/workflow") in have
                assert ("POST", f"{prefix}/admin/dlq/{{}}/retry") in have

    asyncio.run(scenario())


def test_no_route_without_a_key_outside_the_open_list():
    async def scenario() -> None:
        async with running(host=EVERYWHERE, rate_limit="off") as (app, _):
            for method, target, rule, _ in routes(app):
                answer = await call(app, method, target)
                if target.startswith("/hooks/"):
                    # open, but the hook itself wants a signature
                    assert answer.json["detail"] == CLOSED
                    continue
                assert (answer.status == 401) == (rule.scope != OPEN), (method, target)
                for spelling in spellings(target):
                    if rule.scope != OPEN and not spelling.startswith("/ui/"):
                        answer = await call(app, method, spelling)
                        assert answer.status == 401, (method, spelling)

    asyncio.run(scenario())


def test_every_route_with_every_scope():
    async def scenario() -> None:
        async with running(host=EVERYWHERE, rate_limit="off") as (app, engine):
            granted = {
                scope: bearer((await engine.service.keys.create(scope, [scope]))[1])
                for scope in SCOPES
            }
            for method, target, rule, _ in routes(app):
                if rule.scope == OPEN or target == ENDLESS:
                    continue
                for scope in SCOPES:
                    answer = await call(app, method, target, granted[scope])
                    allowed = SCOPES.index(scope) >= SCOPES.index(rule.scope)
                    assert (answer.status == 403) == (not allowed), (method, target, scope, answer)
                    assert answer.status < 500, (method, target, scope, answer)

    asyncio.run(scenario())


@pytest.mark.parametrize("scope", SCOPES)
def test_no_spelling_of_a_path_gets_a_key_further(scope):
    """What it may do is fine; what it may not do has no other name."""

    async def scenario() -> None:
        async with running(host=EVERYWHERE, rate_limit="off") as (app, engine):
            key = bearer((await engine.service.keys.create(scope, [scope]))[1])
            for method, target, rule, _ in routes(app):
                if rule.scope == OPEN or SCOPES.index(scope) >= SCOPES.index(rule.scope):
                    continue
                for spelling in spellings(target):
                    if spelling.startswith("/ui/"):
                        continue
                    answer = await call(app, method, spelling, key)
                    assert answer.status in {403, 404, 405}, (method, spelling, answer)

    asyncio.run(scenario())


def test_what_was_done_is_in_the_trail_of_the_store():
    async def scenario() -> None:
        async with running(host=EVERYWHERE) as (app, engine):
            key, token = await engine.service.keys.create("ci", ["operate"])
            headers = {**bearer(token), "Content-Type": "application/json"}
            body = b'{"definition": {"nodes": [{"id": "a", "handler": "noop"}]}}'
            started = await call(app, "POST", "/api/v1/executions", headers, body=body)
            assert started.status == 201
            await call(app, "POST", "/api/v1/executions/nobody/cancel", headers)
            lines = await engine.stores.cold.audit_log.audit(AuditSearch(key_id=key.id))
            assert [(line.action, line.object, line.status) for line in lines] == [
                ("cancel_execution", "executions/nobody", 404),
                ("start_execution", f"executions/{started.json['execution_id']}", 201),
            ]
            audit_lines = (await call(app, "GET", "/api/v1/audit", headers)).json["items"]
            assert [line["key_name"] for line in audit_lines] == ["ci", "ci"]

    asyncio.run(scenario())


def test_a_key_is_made_and_revoked_over_http():
    async def scenario() -> None:
        async with running(host=EVERYWHERE) as (app, engine):
            _, token = await engine.service.keys.create("root", ["admin"])
            admin = {**bearer(token), "Content-Type": "application/json"}
            body = msgspec.json.encode({"name": "new", "scopes": ["read"]})
            api_key = (await call(app, "POST", "/api/v1/keys", admin, body=body)).json
            assert (
                await call(app, "GET", "/api/v1/executions", bearer(api_key["key"]))
            ).status == 200
            secret = api_key["key"].split("_", 2)[2].encode()
            assert secret not in (await call(app, "GET", "/api/v1/keys", admin)).body
            assert secret not in (await call(app, "GET", "/api/v1/audit", admin)).body
            assert (await call(app, "DELETE", f"/api/v1/keys/{api_key['id']}", admin)).status == 204
            assert (
                await call(app, "GET", "/api/v1/executions", bearer(api_key["key"]))
            ).status == 401
            objects = [
                line.object for line in await engine.stores.cold.audit_log.audit(AuditSearch())
            ]
            assert objects == [f"keys/{api_key['id']}"] * 2

    asyncio.run(scenario())
