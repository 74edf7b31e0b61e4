"""The audit log: a line for every call that changes something, before it is answered."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from penstock.api.access import OPEN, TABLE
from penstock.api.audit_log import AuditLog, note, skip_audit
from penstock.api.failed_logins import ADDRESSES_MAX, FailedLogins
from penstock.api.timing import ApiTiming
from penstock.errors import Conflict, StoreUnavailable
from penstock.stores.records import AuditLine
from tests.api.asgi import EVERYWHERE, Site, bearer, filled
from tests.api.caller import Caller
from tests.api_server import running_service
from tests.waiting import let_others_run, until

LINE = AuditLine(1.0, "", "", "cancel_execution", "executions/1", "", 202)


def with_route(method: str, path: str, endpoint: Any, **settings: Any) -> Site:
    """A site where one route does something else."""
    site = Site(**settings)
    for route in site.app.router.routes:
        if getattr(route, "path", None) == path and method in getattr(route, "methods", ()):
            replaced = type(route)(path, endpoint, methods=[method])  # type: ignore[call-arg]
            site.app.router.routes[site.app.router.routes.index(route)] = replaced
            return site
    raise AssertionError(f"no route {method} {path}")


def test_every_call_that_changes_something_leaves_a_line_and_no_other_does():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="off")
        key, token = await site.keys.create("ops", ["admin"])
        for (method, path), rule in TABLE.items():
            site.cold.lines.clear()
            await site.call(method, filled(path), {"Authorization": f"Bearer {token}"})
            changes = method != "GET" and not path.endswith(("/validate", "/test"))
            assert len(site.cold.lines) == changes, (method, path)
            for line in site.cold.lines:
                sender = ("", "") if rule.scope == OPEN else (key.id, "ops")
                assert (line.key_id, line.key_name) == sender
                assert (line.action, line.status) == (rule.operation, 200)
                assert line.address == "192.0.2.7"
                assert line.at > 1_700_000_000

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("method", "target", "action", "about", "detail"),
    [
        ("POST", "/api/v1/executions/0192-ab/cancel", "cancel_execution", "executions/0192-ab", {}),
        ("DELETE", "/v1/workflow/0192-ab", "cancel_execution", "executions/0192-ab", {}),
        ("POST", "/workflow/trigger/0192-ab", "trigger_execution", "executions/0192-ab", {}),
        ("POST", "/api/v1/dead-letters/7/retry", "retry_dead_letter", "dead-letters/7", {}),
        ("POST", "/api/admin/dlq/7/retry", "retry_dead_letter", "dead-letters/7", {}),
        (
            "PUT",
            "/api/v1/workflows/report/aliases/stable",
            "set_alias",
            "workflows/report",
            {"p1": "stable"},
        ),
        ("DELETE", "/api/v1/workflows/a%20%7B0%7D%0d%0ab", "delete_workflow", None, {}),
        (
            "DELETE",
            "/api/v1/workflows/a%7B0%7D%7Bx%7D%0d",
            "delete_workflow",
            "workflows/a{0}{x}\r",
            {},
        ),
        (
            "DELETE",
            "/api/v1/workflows/" + "x" * 5000,
            "delete_workflow",
            "workflows/" + "x" * 290,
            {},
        ),
        ("POST", "/api/v1/executions", "start_execution", "executions", {}),
    ],
)
def test_what_a_line_is_about(method, target, action, about, detail):
    async def scenario() -> None:
        site = Site()
        await site.call(method, target)
        lines = [(line.action, line.object, line.detail, line.key_id) for line in site.cold.lines]
        assert lines == ([(action, about, detail, "")] if about else [])

    asyncio.run(scenario())


def test_a_call_that_is_not_allowed_leaves_a_line_and_a_stranger_none():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE)
        read = await site.key("read", name="dashboard")
        await site.call("POST", "/api/v1/executions/x/cancel", read)
        await site.call("POST", "/api/v1/executions/x/cancel")
        await site.call("POST", "/api/v1/nothing", read)
        assert [(line.key_name, line.status) for line in site.cold.lines] == [("dashboard", 403)]

    asyncio.run(scenario())


def test_a_route_adds_what_only_it_knows():
    async def start(request: Request) -> Response:
        note(request.scope, "executions/0192-new", retry_of="0192-old")
        note(request.scope, count=1)
        return Response(status_code=201)

    async def scenario() -> None:
        site = with_route("POST", "/api/v1/executions", start)
        await site.call("POST", "/api/v1/executions")
        (line,) = site.cold.lines
        assert (line.object, line.status) == ("executions/0192-new", 201)
        assert line.detail == {"retry_of": "0192-old", "count": 1}

    asyncio.run(scenario())


def test_a_route_may_also_set_it_as_a_whole():
    async def start(request: Request) -> Response:
        request.scope["penstock.audit"] = {"object": "keys/1", "detail": {"a": 1}}
        return Response()

    async def scenario() -> None:
        site = with_route("POST", "/api/v1/keys", start)
        await site.call("POST", "/api/v1/keys")
        assert [(line.object, line.detail) for line in site.cold.lines] == [("keys/1", {"a": 1})]

    asyncio.run(scenario())


def test_a_preview_leaves_no_line():
    async def preview(request: Request) -> Response:
        skip_audit(request.scope)
        return Response()

    async def scenario() -> None:
        site = with_route("POST", "/api/v1/dead-letters/retry", preview)
        assert (await site.call("POST", "/api/v1/dead-letters/retry")).status == 200
        assert site.cold.lines == []

    asyncio.run(scenario())


def test_a_call_that_fails_leaves_a_line_with_its_answer():
    async def conflict(_request: Request) -> Response:
        raise Conflict("it has ended")

    async def broken(_request: Request) -> Response:
        raise RuntimeError("a bug")

    async def scenario() -> None:
        site = with_route("POST", "/api/v1/executions", conflict)
        assert (await site.call("POST", "/api/v1/executions")).status == 409
        assert [line.status for line in site.cold.lines] == [409]
        site = with_route("POST", "/api/v1/executions", broken)
        # the framework answers 500 and lets the server log it
        with pytest.raises(RuntimeError, match="a bug"):
            await site.call("POST", "/api/v1/executions")
        assert [line.status for line in site.cold.lines] == [500]

    asyncio.run(scenario())


def test_lines_of_one_turn_are_written_together():
    async def scenario() -> None:
        site = Site()
        calls = [site.call("POST", f"/api/v1/executions/{n}/cancel") for n in range(50)]
        assert {answer.status for answer in await asyncio.gather(*calls)} == {200}
        assert sum(site.cold.batches) == 50
        assert len(site.cold.batches) <= 3

    asyncio.run(scenario())


def test_an_answer_waits_for_its_line():
    async def scenario() -> None:
        site = Site()
        site.cold.gate = asyncio.Event()
        answer = asyncio.create_task(site.call("POST", "/api/v1/executions/1/cancel"))
        await let_others_run()
        assert not answer.done()
        site.cold.gate.set()
        assert (await answer).status == 200
        assert len(site.cold.lines) == 1

    asyncio.run(scenario())


def test_a_store_that_hangs_holds_nobody_up():
    async def scenario() -> None:
        site = Site(timing=ApiTiming(audit_wait_seconds=0.02))
        await site.keys.exist()
        site.cold.gate = asyncio.Event()
        assert (await site.call("POST", "/api/v1/executions/1/cancel")).status == 200
        assert site.cold.lines == []
        site.cold.gate.set()
        await site.audit_log.drain()
        assert len(site.cold.lines) == 1

    asyncio.run(scenario())


def test_a_line_that_can_not_be_written_is_logged_on_one_line_and_the_answer_stays(caplog):
    async def scenario() -> None:
        site = Site()
        await site.keys.exist()
        site.cold.failure = StoreUnavailable("disk is full")
        with caplog.at_level(logging.ERROR, "penstock.audit"):
            assert (await site.call("DELETE", "/api/v1/workflows/a%0d%1b")).status == 200
        site.cold.failure = None
        assert (await site.call("POST", "/api/v1/executions/2/cancel")).status == 200
        assert [line.object for line in site.cold.lines] == ["executions/2"]

    asyncio.run(scenario())
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith("not in the audit log: {")
    assert '"object":"workflows/a\\r\\u001b"' in message
    assert message.isprintable()


def test_a_caller_that_gives_up_takes_no_other_line_with_it():
    async def scenario() -> None:
        site = Site()
        site.cold.gate = asyncio.Event()
        first = asyncio.create_task(site.audit_log.write(LINE))
        second = asyncio.create_task(site.audit_log.write(LINE))
        await let_others_run()
        first.cancel()
        await let_others_run()
        site.cold.gate.set()
        await second
        assert site.cold.batches == [2]

    asyncio.run(scenario())


def test_what_is_being_written_can_be_waited_for():
    async def scenario() -> None:
        site = Site()
        audit_log: AuditLog = site.audit_log
        await audit_log.drain()
        writing = asyncio.create_task(audit_log.write(LINE))
        await asyncio.sleep(0)
        await audit_log.drain()
        assert site.cold.batches == [1]
        await until(writing.done)

    asyncio.run(scenario())


DOCUMENT = {"name": "report", "nodes": [{"id": "a", "handler": "noop"}]}


def test_every_line_names_what_it_was_about(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        api = Caller(service.address)

        def last() -> tuple[str, str, int, dict[str, Any]]:
            line = api.items("/audit", limit=500)[0]
            return line["action"], line["object"], line["status"], line["detail"]

        api.store(DOCUMENT)
        assert last() == ("put_workflow", "workflows/report", 201, {"version": 1, "created": True})
        api.store(DOCUMENT)
        assert last() == ("put_workflow", "workflows/report", 200, {"version": 1, "created": False})
        api.store({**DOCUMENT, "description": "changed"})
        assert last() == ("put_workflow", "workflows/report", 201, {"version": 2, "created": True})
        assert api.post("/workflows", {"name": "wrong", "nodes": [{}]}).status == 422
        assert last() == ("put_workflow", "workflows/wrong", 422, {})

        api.put("/workflows/report/aliases/stable", {"version": 1})
        moved = {"alias": "stable", "old": None, "new": {"1": 100}}
        assert last() == ("set_alias", "workflows/report", 200, moved)
        api.put("/workflows/report/aliases/stable", {"weights": {"1": 90, "2": 10}})
        moved = {"alias": "stable", "old": {"1": 100}, "new": {"1": 90, "2": 10}}
        assert last() == ("set_alias", "workflows/report", 200, moved)
        api.delete("/workflows/report/aliases/stable")
        assert last() == (
            "remove_alias",
            "workflows/report",
            204,
            {"alias": "stable", "old": {"1": 90, "2": 10}},
        )

        started = api.start("report")
        assert last() == ("start_execution", f"executions/{started}", 201, {"workflow": "report@2"})
        inline = api.start({**DOCUMENT, "name": "other"})
        assert last() == ("start_execution", f"executions/{inline}", 201, {"workflow": "other@1"})
        assert api.post("/executions", {"workflow": "nobody"}).status == 404
        assert last() == ("start_execution", "executions", 404, {"workflow": "nobody"})
        items = api.post(
            "/executions/batch", {"executions": [{"workflow": "report"}, {"workflow": "nobody"}]}
        ).body
        execution_id = items["items"][0]["execution_id"]
        assert last()[3] == {"count": 2, "started": 1, "execution_ids": [execution_id]}
        api.until_state(execution_id, "COMPLETED")
        items = api.post(
            "/executions/bulk", {"action": "cancel", "execution_ids": [execution_id, "nobody"]}
        ).body["items"]
        assert last()[3] == {"action": "cancel", "count": 2, "done": 0, "execution_ids": []}

        assert api.post("/dead-letters/drop", {"ids": [7, 8]}).body == {"dropped": 0}
        assert last() == (
            "drop_dead_letters",
            "dead-letters",
            200,
            {"count": 0, "dead_letter_ids": [7, 8]},
        )
        api.delete("/workflows/report")
        assert last() == ("delete_workflow", "workflows/report", 204, {"latest": 2})

        key = api.post("/keys", {"name": "ops", "scopes": ["admin"]}).body
        admin = bearer(key["key"])
        other = api.post("/keys", {"name": "ci", "scopes": ["read"]}, admin).body
        assert api.call("DELETE", f"/keys/{other['id']}", headers=admin).status == 204
        lines = api.call("GET", "/audit", headers=admin).body["items"]
        assert [(line["action"], line["object"], line["detail"]) for line in lines[:3]] == [
            ("revoke_key", f"keys/{other['id']}", {"name": "ci"}),
            ("create_key", f"keys/{other['id']}", {"name": "ci", "scopes": ["read"]}),
            ("create_key", f"keys/{key['id']}", {"name": "ops", "scopes": ["admin"]}),
        ]


def test_a_line_of_a_bulk_retry_of_dead_letters_names_them(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        api = Caller(service.address)
        failing = {
            "name": "fails",
            "nodes": [{"id": "a", "handler": "fail", "retry": {"max_attempts": 1}}],
        }
        failed = api.ended(failing)["execution_id"]
        (dead_letter,) = api.items("/dead-letters", execution_id=failed)
        (retried,) = api.post("/dead-letters/retry", {"ids": [dead_letter["id"]]}).body["items"]
        line = api.items("/audit", action="retry_dead_letters")[0]
        assert line["detail"] == {
            "count": 1,
            "dead_letter_ids": [dead_letter["id"]],
            "execution_ids": [retried["execution_id"]],
            "failed": 0,
        }


def test_failed_logins_leave_a_trace_and_no_flood(caplog):
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="off")
        key = await site.key("read")
        wrong = {"Authorization": key["Authorization"][:-3] + "abc"}
        for _ in range(50):
            assert (await site.call("GET", "/api/v1/me", wrong)).status == 401
        assert (await site.call("GET", "/api/v1/me")).status == 401, "no key is no login"
        await until(lambda: site.cold.lines, "a line")
        (line,) = site.cold.lines
        assert (line.action, line.object, line.status, line.address) == (
            "failed_login",
            "GET /api/v1/me",
            401,
            "192.0.2.7",
        )
        assert line.detail == {"count": 1, "sent_key_id": wrong["Authorization"][10:22]}
        secret = wrong["Authorization"][-20:]
        assert secret not in caplog.text
        assert secret not in str(line)

    with caplog.at_level(logging.WARNING, "penstock.api"):
        asyncio.run(scenario())
    assert len([record for record in caplog.records if "failed login" in record.getMessage()]) == 1


def test_what_fails_after_the_first_login_is_counted_and_many_addresses_are_one():
    async def scenario() -> None:
        site = Site()
        logins = FailedLogins(site.audit_log, window_seconds=0.05)
        for n in range(ADDRESSES_MAX + 200):
            for _ in range(3):
                logins.note(f"10.0.{n // 250}.{n % 250}", "GET /", "Bearer x")
        await until(
            lambda: len(site.cold.lines) == 2 * (ADDRESSES_MAX + 1), "first lines and counts"
        )
        assert sum(line.detail["count"] for line in site.cold.lines) == 3 * (ADDRESSES_MAX + 200)

    asyncio.run(scenario())
