"""Access: the table of routes and scopes, and spellings of paths.

A local service cannot be driven by a web page.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import compile_path

from penstock.api.access import OPEN, TABLE, Needed, RouteMissing, Routes, Rule, check_routes
from penstock.api.auth import Access, require_keys
from penstock.api.client_address import TrustedProxies, limited_part
from penstock.api.failed_logins import FailedLogins
from penstock.config import Settings, is_loopback
from penstock.errors import SettingsError, StoreUnavailable
from penstock.service.keys import SCOPES, Keys
from tests.api.asgi import EVERYWHERE, Cold, Site, bearer, call, filled, whoami
from tests.faults.table import Fault

BY_LINK = ("POST", "/approve/{}")
BY_SIGNATURE = ("POST", "/hooks/{}")
OPEN_PATHS = [
    "/",
    "/approve/{}",
    "/docs",
    "/health/live",
    "/health/ready",
    "/hooks/{}",
    "/openapi.json",
    "/schema.json",
    "/ui",
    "/ui/{}",
]
JSON = {"Content-Type": "application/json"}


def public(**settings: Any) -> Site:
    return Site(host=EVERYWHERE, rate_limit="off", **settings)


def test_the_open_list_is_this_one():
    assert sorted({path for (_, path), rule in TABLE.items() if rule.scope == OPEN}) == OPEN_PATHS
    changing = [key for key, rule in TABLE.items() if rule.scope == OPEN and key[0] != "GET"]
    assert changing == [BY_LINK, BY_SIGNATURE], "a token or a signature is the right to it"


def test_nothing_that_changes_something_needs_only_read():
    weak = [row for row, rule in TABLE.items() if rule.changes and rule.scope in {OPEN, "read"}]
    assert weak == [BY_LINK, BY_SIGNATURE]
    strong = {
        "cancel_execution",
        "retry_execution",
        "retry_dead_letter",
        "retry_dead_letters",
        "drop_dead_letter",
    }
    strong |= {"steer_executions", "drop_dead_letters"}
    assert all(rule.scope == "operate" for rule in TABLE.values() if rule.operation in strong)


def test_what_changes_what_others_run_needs_operate():
    """A name, its latest version and its aliases: whoever starts them gets what they mean then."""
    operations = {"put_workflow", "delete_workflow", "set_alias", "remove_alias"}
    rules = [rule for rule in TABLE.values() if rule.operation in operations]
    assert {rule.operation for rule in rules} == operations
    assert {rule.scope for rule in rules} == {"operate"}


@pytest.mark.fault("security", "every route with every scope")
def test_every_route_with_every_scope(fault: Fault):
    async def scenario() -> None:
        site = public()
        granted = {scope: await site.key(scope) for scope in SCOPES}
        for (method, path), rule in TABLE.items():
            for scope, header in granted.items():
                allowed = rule.scope == OPEN or SCOPES.index(scope) >= SCOPES.index(rule.scope)
                answer = await site.call(method, filled(path), header)
                assert answer.status == (200 if allowed else 403), (method, path, scope)
                assert allowed or answer.code == "forbidden"

    asyncio.run(scenario())
    fault.shows(routes=len(TABLE), scopes=len(SCOPES))


@pytest.mark.fault("security", "every route without a key")
def test_every_route_without_a_key(fault: Fault):
    async def scenario() -> None:
        site = public()
        for (method, path), rule in TABLE.items():
            answer = await site.call(method, filled(path))
            assert answer.status == (200 if rule.scope == OPEN else 401), (method, path)
            if rule.scope != OPEN:
                assert answer.code == "unauthorized"
                assert answer.headers["www-authenticate"] == "Bearer"

    asyncio.run(scenario())
    fault.shows(routes=len(TABLE), let_through=0)


def spellings(path: str) -> Iterator[str]:
    """Of a path, so that a lenient reader would take them for it."""
    slash = path.rfind("/")
    yield from [
        "/" + path,
        path + "/",
        path + "//",
        path.replace("/", "//"),
        path + ";x",
        path + ";",
        path + "%00",
    ]
    yield from [
        path[:slash] + "%2f" + path[slash + 1 :],
        path[:slash] + "%2F" + path[slash + 1 :],
        "%2f" + path[1:],
    ]
    yield from [
        path + "%2f",
        path + "%20",
        path + "%0a",
        path + "%0d%0a",
        path + ".",
        path + "/.",
        path + "/x/..",
    ]
    yield from [
        path.upper(),
        path.title(),
        path + "?",
        path + "?a=/health/live",
        path + "%3f",
        path + "%23",
    ]
    yield from [
        "/health/live/.." + path,
        "/health/live/%2e%2e" + path,
        "/ui/.." + path,
        "/ui/%2e%2e" + path,
    ]
    yield from [
        "/health/live;" + path,
        path + "/health/live",
        "/./" + path[1:],
        "http://localhost" + path,
    ]
    yield path[:slash] + "\\" + path[slash + 1 :]
    yield path[:-1] + f"%{ord(path[-1]):02x}"
    yield path[:-1] + f"%25{ord(path[-1]):02x}"


@pytest.mark.fault("security", "every route without a key, in every spelling of its path")
def test_no_spelling_of_a_path_gets_by_without_a_key(fault: Fault):
    """What is below /ui/ is open, however it is spelled: there are only files.

    So is what is below /approve/ and /hooks/: whatever stands there is a token, which is only good
    for itself, or the id of a hook, which lets in what is signed for it.
    """

    async def scenario() -> None:
        site = public()
        for (method, path), rule in TABLE.items():
            for target in spellings(filled(path)):
                if target.startswith("/ui/") and method == "GET":
                    continue
                if target.startswith(("/approve/", "/hooks/")):
                    continue
                answer = await site.call(method, target)
                exact = rule.scope == OPEN and target.partition("?")[0] == filled(path)
                assert answer.status == (200 if exact else 401), (method, target)

    asyncio.run(scenario())
    fault.shows(routes=len(TABLE), spellings=len(list(spellings("/x/y"))), let_through=0)


@pytest.mark.fault("security", "every route with a scope too low, in every spelling of its path")
def test_no_spelling_of_a_path_gets_by_with_a_scope_too_low(fault: Fault):
    async def scenario() -> None:
        site = public()
        for (method, path), rule in TABLE.items():
            if rule.scope in {OPEN, "read"}:
                continue
            lower = await site.key(SCOPES[SCOPES.index(rule.scope) - 1])
            for target in spellings(filled(path)):
                if not (method == "GET" and target.startswith("/ui/")):
                    answer = await site.call(method, target, lower)
                    assert answer.status in {403, 404, 405}, (method, target)

    asyncio.run(scenario())
    fault.shows(routes=len(TABLE), spellings=len(list(spellings("/x/y"))), let_through=0)


@pytest.mark.parametrize(
    "target", ["/health%2flive", "/health/liv%65", "//health/live", "/health/live/", "/HEALTH/live"]
)
def test_what_is_open_is_open_only_as_it_is_written(target):
    async def scenario() -> None:
        assert (await public().call("GET", target)).status == 401

    asyncio.run(scenario())


def test_a_head_needs_what_a_get_needs():
    async def scenario() -> None:
        site = public()
        read, submit = await site.key("read"), await site.key("operate")
        assert (await site.call("HEAD", "/api/v1/executions")).status == 401
        assert (await site.call("HEAD", "/api/v1/keys", read)).status == 403
        assert (await site.call("HEAD", "/api/v1/keys", submit)).status == 403

    asyncio.run(scenario())


def test_what_is_not_there_is_said_only_to_those_with_a_key():
    async def scenario() -> None:
        site = public()
        read = await site.key("read")
        assert (await site.call("GET", "/api/v1/nothing")).code == "unauthorized"
        assert (await site.call("PATCH", "/api/v1/executions")).code == "unauthorized"
        assert (await site.call("GET", "/api/v1/nothing", read)).code == "not_found"
        other = await site.call("PATCH", "/api/v1/executions", read)
        assert (other.code, other.headers["allow"]) == ("method_not_allowed", "GET, POST")

    asyncio.run(scenario())


@pytest.mark.fault("security", "a route without a scope")
def test_a_route_that_the_table_lacks_stops_the_start():
    app = Starlette()
    app.add_route("/api/v1/executions/{execution_id}", whoami, methods=["GET"])
    check_routes(app)
    app.add_route("/api/v1/executions/{execution_id}/secrets", whoami, methods=["GET"])
    with pytest.raises(RouteMissing, match=r"GET /api/v1/executions/.execution_id./secrets"):
        check_routes(app)


def test_a_method_that_the_table_lacks_stops_the_start():
    app = Starlette()
    app.add_route("/api/v1/executions", whoami, methods=["GET", "PATCH"])
    with pytest.raises(RouteMissing, match="PATCH /api/v1/executions"):
        check_routes(app)


def test_a_route_that_is_added_later_can_not_be_reached():
    async def scenario() -> None:
        site = public()
        site.app.add_route("/api/v1/late", whoami, methods=["GET"])
        assert (await site.call("GET", "/api/v1/late")).status == 401
        assert (await site.call("GET", "/api/v1/late", await site.key("admin"))).status == 404

    asyncio.run(scenario())


def test_of_several_routes_for_a_path_the_strictest_counts():
    routes = Routes()
    scopes: dict[str, Needed] = {
        "/a/{x}": OPEN,
        "/{x}/b": "admin",
        "/a/c": "read",
        "/{x}/c": "operate",
        "/a/d": OPEN,
    }
    for path, scope in scopes.items():
        routes.add("GET", path, compile_path(path)[0], Rule(scope, path, "", changes=False))
    routes.close()
    rule_by_path = {
        path: routes.find("GET", path)
        for path in ("/a/x", "/a/b", "/a/c", "/a/d", "/z/b", "/z/x", "/a/c\n")
    }
    assert {path: rule and rule.scope for path, rule in rule_by_path.items()} == {
        "/a/x": OPEN,
        "/a/b": "admin",
        "/a/c": "operate",
        "/a/d": OPEN,
        "/z/b": "admin",
        "/z/x": None,
        "/a/c\n": None,
    }
    assert rule_by_path["/a/b"] is not None
    assert (rule_by_path["/a/b"].rule.operation, dict(rule_by_path["/a/b"].params)) == (
        "/a/{x}",
        {"x": "b"},
    )


def test_a_parameter_may_have_slashes_where_the_router_lets_it():
    app = Starlette()
    app.add_route("/api/v1/workflows/{name:path}", whoami, methods=["DELETE"])
    rule = check_routes(app).find("DELETE", "/api/v1/workflows/a/b")
    assert rule is not None
    assert (rule.rule.operation, rule.scope, dict(rule.params)) == (
        "delete_workflow",
        "operate",
        {"name": "a/b"},
    )
    assert check_routes(app).find("GET", "/api/v1/workflows/a") is None


def test_without_someone_identified_nothing_gets_through():
    async def scenario() -> None:
        site = public()
        routes = check_routes(site.app)
        for host in (EVERYWHERE, "127.0.0.1"):
            logins = FailedLogins(site.audit_log)
            bare = Access(never, routes=routes, settings=Settings(host=host), failed_logins=logins)
            assert (await call(bare, "GET", "/api/v1/executions")).status == 401

    asyncio.run(scenario())


async def never(*_: Any) -> Any:
    raise AssertionError("got through")


def test_web_sockets_are_refused():
    async def scenario() -> None:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await public().app(
            {"type": "websocket", "path": "/api/v1/events", "headers": []}, never, send
        )
        assert sent == [{"type": "websocket.close", "code": 1008}]

    asyncio.run(scenario())


@pytest.mark.parametrize("scheme", ["Bearer {}", "bearer {}", "BEARER   {} "])
def test_the_header_of_a_key(scheme):
    async def scenario() -> None:
        site = public()
        key, token = await site.keys.create("ci", ["read"])
        answer = await site.call(
            "GET", "/api/v1/executions", {"Authorization": scheme.format(token)}
        )
        assert (answer.status, answer.json["key_id"]) == (200, key.id)

    asyncio.run(scenario())


@pytest.mark.parametrize("host", [EVERYWHERE, "127.0.0.1"])
def test_wrong_unknown_revoked_and_malformed_keys_get_the_same_answer(host):
    async def scenario() -> None:
        site = Site(host=host, rate_limit="off")
        key, revoked = await site.keys.create("old", ["admin"])
        await site.keys.revoke(key.id)
        _, good = await site.keys.create("new", ["admin"])
        last = "A" if good[-1] != "A" else "B"
        tokens = [
            revoked,
            good[:-1] + last,
            "pk_000000000000_" + good[16:],
            "x",
            good + "x",
            f"{good} {good}",
        ]
        values = [f"Bearer {token}" for token in tokens]
        values += ["Bearer", "Bearer ", "", good, f"Basic {good}", f"Bearer{good}", "Bearer \xff"]
        answers = [
            await site.call("GET", "/api/v1/executions", {"Authorization": value})
            for value in values
        ]
        assert {answer.status for answer in answers} == {401}
        assert len({(answer.body, tuple(answer.headers.items())) for answer in answers}) == 1
        twice = [("Authorization", f"Bearer {good}"), ("Authorization", f"Bearer {good}")]
        assert (await site.call("GET", "/api/v1/executions", twice)).status == 401
        assert (await site.call("GET", "/api/v1/executions", bearer(good))).status == 200

    asyncio.run(scenario())


def test_a_store_that_is_away_is_told_and_does_not_take_the_health_check_with_it():
    async def scenario() -> None:
        site = public()
        key = await site.key("admin")
        site.cold.failure = StoreUnavailable("the store is away")
        answer = await site.call("GET", "/api/v1/executions", key)
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (
            503,
            "unavailable",
            "1",
        )
        assert (await site.call("GET", "/health/live", key)).status == 200

    asyncio.run(scenario())


def test_on_loopback_no_key_is_needed_and_one_that_is_sent_counts():
    async def scenario() -> None:
        site = Site()
        for method, path in TABLE:
            assert (await site.call(method, filled(path))).status == 200, (method, path)
        read = await site.key("read")
        assert (await site.call("GET", "/api/v1/executions", read)).status == 200
        assert (await site.call("DELETE", "/api/v1/keys/x", read)).status == 403
        assert (await site.call("GET", "/api/v1/nothing", read)).status == 404

    asyncio.run(scenario())


async def assert_closed(site: Site, headers: dict[str, str] | None = None) -> None:
    for (method, path), rule in TABLE.items():
        answer = await site.call(method, filled(path), headers or {})
        assert answer.status == (200 if rule.scope == OPEN else 401), (method, path)


@pytest.mark.fault("security", "on loopback, as soon as there is a key")
def test_on_loopback_a_key_is_needed_as_soon_as_there_is_one(fault: Fault):
    async def scenario() -> None:
        site = Site()
        assert (await site.call("GET", "/api/v1/me")).status == 200
        key, _ = await site.keys.create("first", ["read"])
        await assert_closed(site)
        await site.keys.revoke(key.id)
        await assert_closed(site)  # revoking the last one doesn't open it

    asyncio.run(scenario())
    fault.shows(routes=len(TABLE), let_through=0)


FORWARDING = [
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Server",
    "X-Forwarded",
    "Forwarded",
    "X-Real-IP",
    "Via",
    "CF-Connecting-IP",
    "True-Client-IP",
    "CDN-Loop",
]


@pytest.mark.parametrize("header", FORWARDING)
def test_on_loopback_what_came_through_a_proxy_needs_a_key(header):
    async def scenario() -> None:
        site = Site()
        await assert_closed(site, {header: "127.0.0.1"})
        assert (await site.call("GET", "/api/v1/me")).status == 200

    asyncio.run(scenario())


def test_a_setting_demands_keys_always_or_never():
    async def scenario() -> None:
        await assert_closed(Site(require_keys="always", rate_limit="off"))
        with pytest.raises(SettingsError, match="require_keys is always"):
            await require_keys(Settings(require_keys="always"), Keys(Cold()))
        free = Site(require_keys="never")
        await free.key("admin")
        assert (await free.call("GET", "/api/v1/me", {"Via": "a proxy"})).status == 200
        await assert_closed(public(require_keys="never"))

    asyncio.run(scenario())


def test_a_store_that_is_away_or_silent_opens_nothing_and_holds_nobody_up():
    async def scenario() -> None:
        site, closed = Site(), Site()
        await closed.key("read")
        clock = Clock()
        for each_site in (site, closed):
            each_site.keys._clock = clock
            await each_site.keys.exist()
        clock.now += 60
        for each_site in (site, closed):
            each_site.cold.failure = StoreUnavailable("away")
        assert (await site.call("GET", "/api/v1/me")).status == 200
        assert (await closed.call("GET", "/api/v1/me")).status == 401
        site.cold.failure, site.cold.gate = None, asyncio.Event()
        assert (await site.call("GET", "/api/v1/me")).status == 200
        site.cold.gate.set()

    asyncio.run(scenario())


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_service_that_others_can_reach_does_not_start_without_a_key():
    async def scenario() -> None:
        keys = Keys(Cold())
        for host in ("127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost", "LOCALHOST"):
            assert is_loopback(host)
            await require_keys(Settings(host=host), keys)
        for host in (
            EVERYWHERE,
            "::",
            "10.0.0.1",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org",
        ):
            with pytest.raises(SettingsError, match="penstock keys create --scope submit"):
                await require_keys(Settings(host=host), keys)
        work = Settings(host=EVERYWHERE, store="sqlite:///work.db")
        with pytest.raises(SettingsError, match=r"--scope submit --store sqlite:///work\.db'"):
            await require_keys(work, keys)
        key, _ = await keys.create("first", ["read"])
        await require_keys(Settings(host=EVERYWHERE), keys)
        await keys.revoke(key.id)
        with pytest.raises(SettingsError):
            await require_keys(Settings(host=EVERYWHERE), keys)

    asyncio.run(scenario())


HOSTS = [
    "localhost",
    "localhost:1",
    "LocalHost:65535",
    "127.0.0.1",
    "127.0.0.1:8000",
    "[::1]",
    "[::1]:8000",
]
FOREIGN_HOSTS = [
    "example.org",
    "example.org:8000",
    "localhost.example.org",
    "example.localhost",
    "127.0.0.1.example.org",
    "",
    "localhost@example.org",
    "example.org/localhost",
    "localhost:x",
    "::1",
    "[::1",
    "0.0.0.0:8000",
    "10.0.0.1",
    "localhost:8000 example.org",
    "localhost,example.org",
    "[::ffff:127.0.0.1]",
]


@pytest.mark.parametrize("host", HOSTS)
def test_names_of_this_machine(host):
    async def scenario() -> None:
        assert (await Site().call("GET", "/api/v1/executions", {"Host": host})).status == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused_on_loopback(host):
    async def scenario() -> None:
        for target in ("/api/v1/executions", "/health/live", "/openapi.json"):
            answer = await Site().call("GET", target, {"Host": host})
            assert (answer.status, answer.code) == (403, "foreign_host")

    asyncio.run(scenario())


def test_a_second_host_is_refused_on_loopback():
    async def scenario() -> None:
        twice = [("Host", "localhost"), ("Host", "example.org")]
        assert (await Site().call("GET", "/api/v1/executions", twice)).code == "foreign_host"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8000", "localhost:8000"),
        ("http://127.0.0.1:3000", "127.0.0.1:3000"),
        ("https://[::1]:8000", "[::1]:8000"),
        ("http://localhost", "localhost"),
        ("http://localhost", "localhost:80"),
        ("https://LOCALHOST:443", "localhost"),
    ],
)
def test_pages_of_this_service_may_call(origin, host):
    async def scenario() -> None:
        headers = {"Origin": origin, "Host": host, "Sec-Fetch-Site": "same-origin", **JSON}
        answer = await Site().call("POST", "/api/v1/executions", headers, body=b"{}")
        assert answer.status == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "http://localhost",
        "http://127.0.0.1:8000",
        "http://[::1]:8000",
        "http://localhost:80008",
        "http://localhost:8000:8000",
        "http://user@localhost:8000",
    ],
)
def test_a_page_on_another_port_of_this_machine_is_foreign(origin):
    async def scenario() -> None:
        answer = await Site().call(
            "POST", "/api/v1/executions", {"Origin": origin, **JSON}, body=b"{}"
        )
        assert answer.code == "foreign_origin"
        # a form or an image of it, which some browsers send without an Origin
        for method in ("POST", "GET"):
            answer = await Site().call(
                method, "/api/v1/executions", {"Sec-Fetch-Site": "same-site"}
            )
            assert answer.code == "foreign_origin"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost.example.org"},
        {"Origin": "http://localhost:8000.example.org"},
        {"Origin": "http://user@localhost"},
        {"Origin": "file://"},
        {"Origin": "chrome-extension://localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
        },
        {"Origin": "http://localhost:8000", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("body", [b"", b"{}"])
def test_pages_of_others_may_not(headers, body):
    async def scenario() -> None:
        site = Site()
        answer = await site.call(
            "POST", "/api/v1/executions/some-id/cancel", {**headers, **JSON}, body=body
        )
        assert (answer.status, answer.code) == (403, "foreign_origin")
        assert site.cold.lines == []

    asyncio.run(scenario())


def test_a_link_from_elsewhere_may_be_followed_and_nothing_may_be_embedded():
    async def scenario() -> None:
        site = Site()
        followed = {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
        }
        assert (await site.call("GET", "/ui/x", followed)).status == 200
        for dest, mode in [
            ("script", "no-cors"),
            ("image", "no-cors"),
            ("iframe", "navigate"),
            ("empty", "cors"),
        ]:
            embedded = {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": mode,
                "Sec-Fetch-Dest": dest,
            }
            assert (await site.call("GET", "/api/v1/executions", embedded)).code == "foreign_origin"
        assert (
            await site.call("GET", "/api/v1/executions", {"Origin": "https://example.org"})
        ).status == 403
        assert (
            await site.call("OPTIONS", "/api/v1/executions", {"Origin": "https://example.org"})
        ).status == 403

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "given",
    [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/merge-patch+json",
        "application/json ;x",
    ],
)
def test_bodies_that_are_json(given):
    async def scenario() -> None:
        answer = await Site().call(
            "POST", "/api/v1/executions", {"Content-Type": given}, body=b"{}"
        )
        assert answer.status == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "text/plain; application/json"},
        {"Content-Type": "text/plain, application/json"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=application/json"},
        {"Content-Type": "application/jsonp"},
        {"Content-Type": "text/json"},
        {"Content-Type": ""},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_bodies_are_refused_on_loopback(method, headers):
    async def scenario() -> None:
        target = "/api/v1/executions" if method == "POST" else "/api/v1/workflows/a/aliases/b"
        answer = await Site().call(method, target, headers, body=b"{}")
        assert (answer.status, answer.code) == (415, "unsupported_media_type")
        chunked = await Site().call(method, target, {**headers, "Transfer-Encoding": "chunked"})
        assert chunked.status == 415

    asyncio.run(scenario())


def test_a_second_content_type_is_refused_on_loopback():
    async def scenario() -> None:
        twice = [("Content-Type", "application/json"), ("Content-Type", "text/plain")]
        assert (await Site().call("POST", "/api/v1/executions", twice, body=b"{}")).status == 415

    asyncio.run(scenario())


def test_no_body_needs_no_type():
    async def scenario() -> None:
        site = Site()
        for headers in (
            {},
            {"Content-Length": "0"},
            {"Content-Length": "0", "Content-Type": "text/plain"},
        ):
            assert (await site.call("POST", "/api/v1/executions/x/cancel", headers)).status == 200

    asyncio.run(scenario())


def test_elsewhere_the_name_of_the_service_is_its_own_affair():
    async def scenario() -> None:
        site = public()
        headers = {
            **await site.key("submit"),
            "Host": "penstock.example.org",
            "Origin": "https://example.org",
        }
        assert (await site.call("POST", "/api/v1/executions", headers, body=b"{}")).status == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "address"),
    [
        ([], "192.0.2.7", ["203.0.113.9"], "192.0.2.7"),
        (["10.0.0.0/8"], "192.0.2.7", ["203.0.113.9"], "192.0.2.7"),
        (["10.0.0.0/8"], "10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.0.0.1", [], "10.0.0.1"),
        (["10.0.0.0/8"], "10.0.0.1", ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.0.0.1", ["198.51.100.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.0.0.1", ["198.51.100.1", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (["10.0.0.0/8"], "10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        (["10.0.0.0/8"], "10.0.0.1", ["198.51.100.1, <x>, 10.0.0.2"], "10.0.0.2"),
        (["10.0.0.0/8"], "10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        (["10.0.0.0/8"], "::ffff:10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        (["10.0.0.0/8"], "10.0.0.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        (["2001:db8::/32"], "2001:db8::5", ["203.0.113.9"], "203.0.113.9"),
        (["10.0.0.0/8"], "10.0.0.1", [""], "10.0.0.1"),
    ],
)
def test_only_trusted_proxies_say_who_is_behind_them(trusted, peer, forwarded, address):
    async def scenario() -> None:
        site = public(trusted_proxies=tuple(trusted))
        headers = [
            *(await site.key("read")).items(),
            *[("X-Forwarded-For", value) for value in forwarded],
        ]
        answer = await site.call("GET", "/api/v1/executions", headers, client=peer)
        assert answer.json["address"] == address

    asyncio.run(scenario())


def test_a_server_that_does_not_know_its_client():
    assert TrustedProxies(["10.0.0.0/8"]).client_address({"client": None, "headers": []}) == ""


def test_addresses_of_one_network_count_as_one():
    assert limited_part("192.0.2.7") == "192.0.2.7"
    assert (
        limited_part("2001:db8:1:2:3::4")
        == limited_part("2001:db8:1:2:ffff::1")
        == "2001:db8:1:2::/64"
    )
    assert limited_part("2001:db8:1:3::4") != limited_part("2001:db8:1:2::4")
    assert limited_part("") == ""


@pytest.mark.parametrize("raw", ["example.org", "10.0.0.0/33", "10.0.0", ["10.0.0.1", 5]])
def test_proxies_are_named_by_address(raw, tmp_path):
    with pytest.raises(SettingsError, match="trusted-proxies"):
        Settings.load({"trusted_proxies": raw}, {}, tmp_path)


def test_proxies_in_the_environment(tmp_path):
    settings = Settings.load({}, {"PENSTOCK_TRUSTED_PROXIES": "10.1.2.3/8, [::1]"}, tmp_path)
    assert settings.trusted_proxies == ("10.0.0.0/8", "::1/128")
