import asyncio
import gzip
import json
import socket
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, ClassVar

import msgspec
import pytest
from aiohttp import web

from penstock.config import Settings
from penstock.errors import HandlerError, Retryable, Terminal
from penstock.worker.handlers.http import HttpHandler, read_config
from penstock.worker.handlers.http_exchange import retry_after, shown_url
from penstock.worker.secrets import SecretInUse
from tests.worker.servers import Answer, FakeDns, Server, always, context, redirects, serving

LOCAL = Settings(http_private=True)
JSON = "application/json"
CANARY = "canary-5f2a"


async def call(
    config: dict[str, Any], settings: Settings = LOCAL, dns: FakeDns | None = None, **fields: Any
) -> Any:
    handler = HttpHandler(settings, resolver=dns) if dns else HttpHandler(settings)
    try:
        return await handler(config, context(**fields))
    finally:
        await handler.close()


async def exchange(
    answer: Answer, settings: Settings = LOCAL, **config: Any
) -> tuple[dict[str, Any], Server]:
    """The output of one call; `{url}` in a text of the config is the server's address."""
    async with serving(answer) as server:
        url = config.pop("url", "{url}/").replace("{url}", server.url)
        return await call({"url": url, **config}, settings), server


async def answered(raw: bytes) -> Any:
    """The output of a call that is answered with exactly these bytes."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        return await call({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"})


def got(answer: Answer, **config: Any) -> dict[str, Any]:
    return asyncio.run(exchange(answer, **config))[0]


def sent(**config: Any) -> tuple[web.Request, bytes]:
    _, server = asyncio.run(exchange(always(text="ok"), **config))
    return server.requests[0], server.bodies[0]


def failed(
    kind: type[HandlerError],
    answer: Answer = always(text="ok"),  # noqa: B008
    **config: Any,
) -> HandlerError:
    with pytest.raises(kind) as raised:
        asyncio.run(exchange(answer, **config))
    return raised.value


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(Terminal) as raised:
        asyncio.run(call({"url": "http://127.0.0.1:1/", **config}))
    assert raised.value.category == "config"
    return str(raised.value)


class TestTheRequest:
    def test_is_a_get_by_default(self):
        request, body = sent(
            url="{url}/users/7?a=1", params={"b": [2, 3], "c": True, "d": None, "e": "x y&z"}
        )
        assert (request.method, request.path, body) == ("GET", "/users/7", b"")
        assert list(request.query.items()) == [
            ("a", "1"),
            ("b", "2"),
            ("b", "3"),
            ("c", "true"),
            ("e", "x y&z"),
        ]
        assert request.headers["User-Agent"].startswith("penstock/")
        assert "Idempotency-Key" not in request.headers

    def test_is_a_post_when_there_is_a_body(self):
        request, body = sent(json={"a": [1, None]})
        assert (request.method, request.content_type, body) == ("POST", JSON, b'{"a":[1,null]}')

    def test_sends_a_text_as_it_is(self):
        request, body = sent(body="grüße")
        assert (request.headers["Content-Type"], body.decode()) == (
            "text/plain; charset=utf-8",
            "grüße",
        )

    def test_sends_an_object_as_json(self):
        request, body = sent(body={"a": 1})
        assert (request.content_type, body) == (JSON, b'{"a":1}')

    def test_sends_an_object_as_a_form_when_the_content_type_says_so(self):
        form = {"content-type": "application/x-www-form-urlencoded"}
        request, body = sent(body={"a": "x y", "b": [1, 2]}, headers=form)
        assert (request.content_type, body) == (form["content-type"], b"a=x+y&b=1&b=2")

    def test_has_the_headers_of_the_config(self):
        request, _ = sent(headers={"X-One": "1", "X-Two": 2, "X-None": None, "User-Agent": "mine"})
        assert [request.headers.get(name) for name in ("X-One", "X-Two", "X-None")] == [
            "1",
            "2",
            None,
        ]
        assert request.headers["User-Agent"] == "mine"

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_that_changes_something_has_the_idempotency_key(self, method):
        assert sent(method=method)[0].headers["Idempotency-Key"] == "e1:n1"

    def test_has_an_idempotency_key_that_fits_into_a_header(self):
        request = read_config(
            {"url": "http://a.test", "method": "POST"}, context(idempotency_key="e1:é b[3].c")
        )
        assert request.headers["Idempotency-Key"] == "e1:%C3%A9%20b[3].c"

    def test_keeps_the_idempotency_key_of_the_config(self):
        assert sent(method="post", headers={"idempotency-key": "mine"})[0].headers.getall(
            "Idempotency-Key"
        ) == ["mine"]

    def test_sends_user_and_password_of_the_url_as_a_header(self):
        async def scenario() -> tuple[dict[str, Any], web.Request]:
            async with serving(always(text="ok")) as server:
                output = await call({"url": f"http://joe:p%40ss@127.0.0.1:{server.port}/x"})
                return output, server.requests[0]

        output, request = asyncio.run(scenario())
        assert request.headers["Authorization"] == "Basic am9lOnBAc3M="
        assert output["url"] == f"http://{request.host}/x"

    @pytest.mark.fault("security", "a proxy in the environment")
    def test_uses_no_proxy_from_the_environment(self, monkeypatch):
        async def scenario() -> int:
            async with (
                serving(always(text="proxy")) as proxy,
                serving(always(text="direct")) as server,
            ):
                for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
                    monkeypatch.setenv(name, proxy.url)
                assert (await call({"url": server.url}))["data"] == "direct"
                return len(proxy.requests)

        assert asyncio.run(scenario()) == 0

    def test_shares_no_cookies_with_another_task(self):
        async def scenario() -> list[str | None]:
            handler = HttpHandler(LOCAL)
            async with serving(
                always(text="ok", headers={"Set-Cookie": "session=1; Path=/"})
            ) as server:
                url = f"http://localhost:{server.port}/"
                for _ in range(2):
                    await handler({"url": url}, context())
                await handler.close()
                return [request.headers.get("Cookie") for request in server.requests]

        assert asyncio.run(scenario()) == [None, None]


class TestTheConfig:
    @pytest.mark.parametrize(
        ("config", "text"),
        [
            (
                {"mehtod": "GET"},
                (
                    "the config has no key 'mehtod'; did you mean 'method'? "
                    "(known: url, method, headers, params, body, json, "
                    "timeout_seconds, expect_status)"
                ),
            ),
            ({"url": 7}, "url must be text, such as 'https://api.example.com/users'"),
            ({"url": ""}, "url must be text, such as 'https://api.example.com/users'"),
            (
                {"method": "TRACE"},
                "method is 'TRACE'; allowed: GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE",
            ),
            (
                {"headers": {"X-A": "b\r\nX-C: d"}},
                "headers.X-A: line breaks and control characters aren't allowed",
            ),
            (
                {"headers": {"X-A": "b\nc"}},
                "headers.X-A: line breaks and control characters aren't allowed",
            ),
            (
                {"headers": {"X-A": "b\0c"}},
                "headers.X-A: line breaks and control characters aren't allowed",
            ),
            ({"headers": {"X A": "b"}}, "headers.X A: 'X A' can't be the name of a header"),
            (
                {"headers": {"X-A\r\nB": "b"}},
                "headers.X-A\r\nB: 'X-A\\r\\nB' can't be the name of a header",
            ),
            *(
                (
                    {"headers": {name: "x"}},
                    f"headers.{name}: the HTTP client sets this header; remove it",
                )
                for name in (
                    "Content-Length",
                    "Host",
                    "hOST",
                    "Transfer-Encoding",
                    "Connection",
                    "Expect",
                    "TE",
                )
            ),
            ({"headers": {"X-A": "1", "x-a": "2"}}, "headers.x-a: the header is given twice"),
            ({"headers": {"X-A": {}}}, "headers.X-A must be text, a number or a boolean"),
            ({"headers": "X-A: b"}, "headers must be an object"),
            ({"params": [1]}, "params must be an object"),
            ({"body": "a", "json": 1}, "give body or json, not both"),
            ({"timeout_seconds": 0}, "timeout_seconds is 0; allowed: a number above 0"),
            ({"timeout_seconds": True}, "timeout_seconds is True; allowed: a number above 0"),
            (
                {"expect_status": "200"},
                "expect_status is '200'; allowed: a status such as 200, or a list of them",
            ),
            (
                {"expect_status": [200, 99]},
                "expect_status is [200, 99]; allowed: a status such as 200, or a list of them",
            ),
        ],
    )
    def test_is_refused_with_what_is_wrong(self, config, text):
        assert refused(config) == text

    @pytest.mark.parametrize(
        ("url", "text"),
        [
            (
                "ftp://127.0.0.1/x",
                "GET ftp://127.0.0.1/x: 'ftp://127.0.0.1/x' isn't an http or https URL",
            ),
            (
                "file:///etc/passwd",
                "GET file:///etc/passwd: 'file:///etc/passwd' isn't an http or https URL",
            ),
            ("/relative", "GET /relative: '/relative' isn't an http or https URL"),
            ("http:///x", "GET http:///x: 'http:///x' isn't an http or https URL"),
            ("http://[::1", "GET a malformed URL: 'a malformed URL' isn't a URL"),
            (
                "http://127.0.0.1:99999/",
                "GET http://127.0.0.1:99999/: 'http://127.0.0.1:99999/' isn't a URL",
            ),
            ("http://a b/", "GET http://a b/: 'a b' isn't a host name"),
            ("http://exa%6dple/", "GET http://exa%6dple/: 'exa%6dple' isn't a host name"),
            (
                f"http://{'a' * 64}.test/",
                f"GET http://{'a' * 64}.test/: '{'a' * 64}.test' isn't a host name",
            ),
            ("http://1.2.3.4.5/", "the host '1.2.3.4.5' is neither a name nor an address"),
        ],
    )
    def test_is_refused_when_the_url_cannot_be_called(self, url, text, connections):
        with pytest.raises(Terminal) as raised:
            asyncio.run(call({"url": url}))
        assert str(raised.value) == text
        assert connections == []

    def test_is_refused_when_the_url_has_a_line_break(self, connections):
        with pytest.raises(Terminal, match=r"isn't a URL$"):
            asyncio.run(call({"url": "http://127.0.0.1:1/\r\nX: y"}))
        assert connections == []


class TestTheOutput:
    def test_has_status_headers_data_url_and_time(self):
        output = got(
            always(text='{"name": "Ann"}', content_type=JSON, headers={"X-A": "1"}),
            url="{url}/a?b=c",
        )
        assert sorted(output) == ["data", "elapsed_ms", "headers", "status_code", "url"]
        assert (output["status_code"], output["data"], output["headers"]["x-a"]) == (
            200,
            {"name": "Ann"},
            "1",
        )
        assert output["url"].endswith("/a?b=c")
        assert output["elapsed_ms"] >= 0
        json.dumps(output)

    @pytest.mark.parametrize(
        ("response", "data"),
        [
            ({"body": b"[1]", "content_type": "application/problem+json"}, [1]),
            ({"body": b"[1]", "content_type": "text/plain"}, "[1]"),
            ({"body": b"[NaN]", "content_type": JSON}, "[NaN]"),
            ({"body": b"{", "content_type": JSON}, "{"),
            ({"body": b"\xef\xbb\xbf[1]", "content_type": JSON}, [1]),
            ({"body": b"[" * 100_000, "content_type": JSON}, "[" * 100_000),
            ({"body": b"", "content_type": JSON}, None),
            ({"status": 204}, None),
            (
                {
                    "body": "é".encode("latin-1"),
                    "headers": {"Content-Type": "text/plain; charset=latin-1"},
                },
                "é",
            ),
            ({"body": b"abc", "headers": {"Content-Type": "text/plain; charset=punycode"}}, "abc"),
            ({"body": b"abc", "headers": {"Content-Type": "text/plain; charset=nonsense"}}, "abc"),
            ({"body": b"\xff", "content_type": "text/plain"}, "\ufffd"),
            ({"body": b"a,b", "content_type": "application/octet-stream"}, "a,b"),
            ({"body": b"a\0b", "content_type": "a/b"}, {"base64": "YQBi", "content_type": "a/b"}),
            (
                {"body": b"\xff\x00", "content_type": "image/png"},
                {"base64": "/wA=", "content_type": "image/png"},
            ),
        ],
    )
    def test_has_json_text_or_bytes(self, response, data):
        assert got(always(**response))["data"] == data

    def test_joins_repeated_headers(self):
        async def answer(_: web.Request) -> web.Response:
            response = web.Response(text="ok")
            response.headers.add("X-A", "1")
            response.headers.add("X-A", "2")
            return response

        assert got(answer)["headers"]["x-a"] == "1, 2"

    def test_can_be_stored_whatever_bytes_a_header_has(self):
        output = asyncio.run(
            answered(b"HTTP/1.1 200 OK\r\nX-A: caf\xe9\r\nContent-Length: 2\r\n\r\nok")
        )
        assert output["headers"]["x-a"] == "caf\ufffd"
        assert msgspec.json.decode(msgspec.json.encode(output)) == output

    def test_hides_what_is_named_like_a_secret_in_the_url(self):
        output = got(
            always(text="ok"), url="{url}/?a=1&api_key=abc", params={"access_token": "def"}
        )
        assert output["url"].endswith("/?a=1&api_key=***&access_token=***")


class TestStatuses:
    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
    def test_that_may_pass_are_tried_again(self, status):
        error = failed(Retryable, always(status=status, text="busy"), url="{url}/a?token=x")
        assert str(error).endswith(f"/a answered {status}")
        assert (error.category, error.detail["status_code"], error.detail["body"]) == (
            "http",
            status,
            "busy",
        )
        assert error.detail["url"].endswith("/a?token=***")

    @pytest.mark.parametrize("status", [304, 400, 401, 404, 409, 422])
    def test_that_stay_fail_the_node(self, status):
        assert failed(Terminal, always(status=status)).detail["status_code"] == status

    def test_can_be_expected(self):
        assert got(always(status=404), expect_status=[200, 404])["status_code"] == 404
        assert (
            got(always(status=302, headers={"Location": "/x"}), expect_status=302)["status_code"]
            == 302
        )

    def test_outside_the_expected_ones_fail(self):
        error = failed(Terminal, always(status=200), expect_status=[202, 201])
        assert str(error).endswith("/ answered 200, expected 201, 202")
        failed(Retryable, always(status=503), expect_status=[201])

    def test_have_an_excerpt_of_the_body_at_most(self):
        error = failed(Terminal, always(status=400, text="x" * 1_000_000))
        assert error.detail["body"] == "x" * 2048

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("7", 7.0),
            ("0", 0.0),
            ("86400", 3600.0),
            ("1.5", 1.5),
            ("nonsense", None),
            ("", None),
            ("inf", None),
        ],
    )
    def test_obey_retry_after_in_seconds(self, header, seconds):
        error = failed(Retryable, always(status=503, headers={"Retry-After": header}))
        assert isinstance(error, Retryable)
        assert error.after == seconds

    def test_obey_retry_after_as_a_date(self):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        date = format_datetime(now + timedelta(seconds=90), usegmt=True)
        assert retry_after(date, now.timestamp()) == 90.0
        assert retry_after(date, now.timestamp() + 1000) == 0.0
        assert retry_after(date, now.timestamp() - 100_000) == 3600.0


class TestTheNetwork:
    def test_refusing_a_connection_is_tried_again(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        with pytest.raises(Retryable) as raised:
            asyncio.run(call({"url": f"http://joe:pw@127.0.0.1:{port}/x?token=abc"}))
        assert str(raised.value).startswith(
            f"GET http://127.0.0.1:{port}/x: "
            f"no connection to '127.0.0.1' port {port}: Connect call failed"
        )
        assert raised.value.detail == {"url": f"http://127.0.0.1:{port}/x?token=***"}
        assert raised.value.category == "http"

    def test_not_knowing_a_name_is_tried_again(self):
        with pytest.raises(
            Retryable,
            match=r"^GET http://nowhere.test/: the name 'nowhere.test' can't be resolved: ",
        ):
            asyncio.run(call({"url": "http://nowhere.test/"}))

    def test_giving_a_name_no_address_is_tried_again(self):
        with pytest.raises(
            Retryable, match=r"the name 'empty\.test' can't be resolved: the name has no address"
        ):
            asyncio.run(call({"url": "http://empty.test/"}, dns=FakeDns([])))

    def test_closing_the_connection_is_tried_again(self):
        async def answer(request: web.Request) -> web.Response:
            assert request.transport
            request.transport.close()
            return web.Response()

        assert str(failed(Retryable, answer)).endswith("/: the server closed the connection")

    def test_closing_in_the_middle_of_the_body_is_tried_again(self):
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Length": "100"})
            await response.prepare(request)
            await response.write(b"half")
            assert request.transport
            request.transport.close()
            return response

        assert str(failed(Retryable, answer)).endswith(
            "/: the answer can't be read (ClientPayloadError)"
        )

    def test_speaking_another_protocol_is_tried_again(self):
        with pytest.raises(
            Retryable, match=r"the answer can't be read|the server closed the connection"
        ):
            asyncio.run(answered(b"220 mail.test ESMTP\r\n"))

    def test_being_too_slow_is_tried_again(self):
        async def scenario() -> None:
            was_called = asyncio.Event()
            release = asyncio.Event()

            async def answer(_: web.Request) -> web.Response:
                was_called.set()
                await release.wait()
                return web.Response()

            async with serving(answer) as server:
                try:
                    await call({"url": server.url, "timeout_seconds": 0.05})
                finally:
                    release.set()

        with pytest.raises(Retryable, match=r"no answer within 0.05 s$"):
            asyncio.run(scenario())

    @pytest.mark.fault("security", "a response that comes byte by byte")
    def test_dripping_is_cut_off_by_the_total_time(self):
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b".")
                await asyncio.sleep(0)

        assert str(failed(Retryable, answer, timeout_seconds=0.1)).endswith(
            "no answer within 0.1 s"
        )


class TestSizes:
    SMALL = Settings(http_private=True, http_max_response_bytes=1000)

    def test_a_response_at_the_limit_is_read(self):
        assert got(always(text="x" * 1000), settings=self.SMALL)["data"] == "x" * 1000

    def test_a_larger_response_fails_the_node(self):
        error = failed(Terminal, always(text="x" * 1001), settings=self.SMALL)
        assert str(error).endswith(
            "/: response larger than 1000 bytes (PENSTOCK_HTTP_MAX_RESPONSE_BYTES sets the limit)"
        )

    @pytest.mark.fault("security", "a response without an end")
    def test_an_endless_response_fails_the_node(self):
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x" * 1000)

        assert "response larger than" in str(failed(Terminal, answer, settings=self.SMALL))

    def test_of_an_endless_failure_only_the_start_is_read(self):
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(status=500)
            await response.prepare(request)
            while True:
                await response.write(b"x" * 1000)

        assert failed(Retryable, answer).detail["body"] == "x" * 2048

    @pytest.mark.fault("security", "a response that unpacks to far more")
    def test_a_small_body_that_unpacks_to_a_large_one_is_stopped_before_it_fills_the_memory(self):
        bomb = gzip.compress(bytes(64 * 1024 * 1024))
        settings = Settings(http_private=True, http_max_response_bytes=1024 * 1024)
        tracemalloc.start()
        try:
            error = failed(
                Terminal, always(body=bomb, headers={"Content-Encoding": "gzip"}), settings=settings
            )
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert "response larger than 1048576 bytes" in str(error)
        assert peak < 16 * 1024 * 1024


class TestRedirects:
    def test_are_followed(self):
        output = got(redirects("/a", "b?c=d"))
        assert output["data"] == "arrived"
        assert output["url"].endswith("/b?c=d")

    @pytest.mark.fault("security", "redirects without an end")
    def test_are_followed_five_times_at_most(self):
        assert got(redirects(*["/"] * 5))["data"] == "arrived"
        assert str(failed(Terminal, redirects(*["/"] * 6))).endswith("/: more than 5 redirects")

    def test_without_a_target_are_not_followed(self):
        assert failed(Terminal, always(status=302)).detail["status_code"] == 302

    @pytest.mark.parametrize(
        ("status", "method", "after"),
        [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (303, "POST", "GET"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (301, "PUT", "PUT"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
            (302, "GET", "GET"),
        ],
    )
    def test_keep_or_change_the_method_as_http_says(self, status, method, after):
        config: dict[str, Any] = {"json": {"a": 1}} if method in {"POST", "PUT"} else {}
        _, server = asyncio.run(exchange(redirects("/x", status=status), method=method, **config))
        first, second = server.requests
        assert (first.method, second.method) == (method, after)
        stays = after == method and bool(config)
        assert server.bodies[1] == (b'{"a":1}' if stays else b"")
        assert ("Content-Type" in second.headers, "Idempotency-Key" in second.headers) == (
            stays,
            stays,
        )

    HEADERS: ClassVar = {
        "Authorization": "Bearer abc",
        "Cookie": "a=b",
        "Proxy-Authorization": "x",
        "X-Api-Key": "k",
        "Accept": JSON,
    }

    def test_to_the_same_host_keep_the_credentials(self):
        _, server = asyncio.run(exchange(redirects("/x"), headers=self.HEADERS))
        assert {name: server.requests[1].headers.get(name) for name in self.HEADERS} == self.HEADERS

    @pytest.mark.parametrize("target", ["http://localhost:{port}/", "http://127.0.0.1:{other}/"])
    def test_to_another_host_or_port_drop_the_credentials(self, target):
        async def scenario() -> web.Request:
            async with serving(always(text="other")) as other, serving(always(text="x")) as first:
                first._answer = redirects(target.format(port=first.port, other=other.port))
                await call(
                    {"url": f"http://joe:pw@127.0.0.1:{first.port}/", "headers": self.HEADERS}
                )
                return (other.requests or first.requests)[-1]

        request = asyncio.run(scenario())
        stays = {name for name in self.HEADERS if name in request.headers}
        assert stays == {"Accept"}

    @pytest.mark.fault("security", "a body across a redirect to another host")
    @pytest.mark.parametrize(
        ("status", "method"),
        [(307, "POST"), (308, "POST"), (307, "PUT"), (301, "PUT"), (302, "PATCH"), (308, "DELETE")],
    )
    def test_to_another_host_or_port_do_not_carry_a_body(self, status, method):
        async def scenario() -> tuple[str, Server]:
            async with serving(always(text="other")) as other, serving(always(text="x")) as first:
                first._answer = redirects(f"{other.url}/eve", status=status)
                with pytest.raises(Terminal) as raised:
                    await call({"url": first.url, "method": method, "json": {"key": CANARY}})
                return str(raised.value), other

        text, other = asyncio.run(scenario())
        assert (
            f"answered {status}, a redirect to {other.url}, "
            "and a body isn't sent on to another host" in text
        )
        assert (other.requests, CANARY in text) == ([], False)

    def test_to_another_host_drop_every_header_with_a_secret(self):
        async def scenario() -> web.Request:
            async with serving(always(text="other")) as other, serving(always(text="x")) as first:
                first._answer = redirects(other.url)
                headers = {"User-Agent": f"me {CANARY}", "Accept": JSON, "Idempotency-Key": CANARY}
                await call(
                    {"url": first.url, "headers": headers},
                    secrets=[SecretInUse("TOKEN", CANARY, None)],
                )
                return other.requests[0]

        request = asyncio.run(scenario())
        assert request.headers["Accept"] == JSON
        assert CANARY not in str(request.headers)

    @pytest.mark.fault("security", "a secret to a host that its rules don't allow")
    def test_a_secret_goes_to_its_hosts_only(self):
        async def scenario(hosts: tuple[str, ...], target: str) -> list[Server]:
            async with serving(always(text="other")) as other, serving(always(text="x")) as first:
                if target:
                    first._answer = redirects(target.format(port=other.port))
                calling = call({"url": first.url}, secrets=[SecretInUse("TOKEN", CANARY, hosts)])
                outcome = (await asyncio.gather(calling, return_exceptions=True))[0]
                assert isinstance(outcome, dict) or "the secret 'TOKEN' may not be sent to" in str(
                    outcome
                )
                assert CANARY not in str(outcome)
                return [server for server in (first, other) if server.requests]

        assert len(asyncio.run(scenario(("127.0.0.1",), ""))) == 1
        assert asyncio.run(scenario(("api.example.com",), "")) == []
        assert asyncio.run(scenario((), "")) == []
        assert len(asyncio.run(scenario(("127.0.0.1",), "http://localhost:{port}/"))) == 1
        assert (
            len(asyncio.run(scenario(("127.0.0.1", "localhost"), "http://localhost:{port}/"))) == 2
        )

    @pytest.mark.parametrize(
        ("host", "allowed"),
        [
            ("api.example.com", True),
            ("API.Example.com.", True),
            ("deep.api.example.org", True),
            ("example.org", False),
            ("evilexample.org", False),
            ("api.example.com.evil.test", False),
            ("10.0.0.1", True),
        ],
    )
    def test_hosts_are_names_addresses_and_whole_domains(self, host, allowed):
        secret = SecretInUse("TOKEN", CANARY, ("Api.example.com", "*.example.org", "10.0.0.1"))
        assert secret.may_go_to(host) is allowed
        assert CANARY not in repr(secret)

    @pytest.mark.fault("security", "credentials across a redirect from https to http")
    def test_from_https_to_http_drop_the_credentials(self):
        from yarl import URL  # noqa: PLC0415

        from penstock.worker.handlers.http_client import Hop  # noqa: PLC0415

        secure = Hop("GET", URL("https://a.test/"), self.HEADERS, None)
        assert secure.redirected(302, URL("http://a.test/")).headers == {"Accept": JSON}
        assert secure.redirected(302, URL("https://a.test/x")).headers == self.HEADERS
        plain = Hop("GET", URL("http://a.test/"), self.HEADERS, None)
        assert plain.redirected(302, URL("https://a.test/")).headers == self.HEADERS
        assert plain.redirected(302, URL("https://b.test/")).headers == {"Accept": JSON}

    def test_with_a_user_in_the_target_do_not_send_it(self):
        async def scenario() -> web.Request:
            async with serving(always(text="x")) as server:
                server._answer = redirects(f"http://eve:pw@127.0.0.1:{server.port}/x")
                await call({"url": server.url})
                return server.requests[1]

        assert "Authorization" not in asyncio.run(scenario()).headers

    @pytest.mark.parametrize(
        "target",
        [
            "http://10.0.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::ffff:10.0.0.1]/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "//192.168.0.1/x",
            "http://127.0.0.2/",
        ],
    )
    def test_to_a_forbidden_address_are_refused(self, target, connections):
        settings = Settings(http_allow=("127.0.0.1",))
        error = failed(Terminal, redirects(target), settings=settings)
        assert error.category == "address"
        assert set(connections) == {"127.0.0.1"}

    @pytest.mark.fault("security", "a redirect to a name with a forbidden address")
    def test_to_a_name_with_a_forbidden_address_are_refused(self, connections):
        async def scenario() -> None:
            async with serving(redirects("http://inside.test/")) as server:
                settings = Settings(http_allow=("127.0.0.1",))
                await call({"url": server.url}, settings, FakeDns(["10.0.0.1"]))

        with pytest.raises(
            Terminal, match=r"the address 10\.0\.0\.1 of 'inside\.test' is refused: private"
        ):
            asyncio.run(scenario())
        assert connections == ["127.0.0.1"]

    @pytest.mark.parametrize(
        "target", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "http://[::1"]
    )
    def test_to_something_else_than_http_are_refused(self, target):
        failed(Terminal, redirects(target))


class TestAddresses:
    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:{port}/",
            "http://0x7f.1:{port}/",
            "http://2130706433:{port}/",
            "http://127.1:{port}/",
        ],
    )
    def test_of_this_machine_are_called_in_every_notation_when_allowed(self, url):
        async def scenario() -> tuple[Any, str]:
            async with serving(always(text="ok")) as server:
                output = await call({"url": url.format(port=server.port)})
                return output["data"], server.requests[0].host.partition(":")[0]

        assert asyncio.run(scenario()) == ("ok", "127.0.0.1")

    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "①②⑦.0.0.1",
            "127。0。0。1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
        ],
    )
    def test_of_this_machine_are_refused_by_default_in_every_notation(self, host, connections):
        async def scenario() -> int:
            async with serving(always(text="ok")) as server:
                with pytest.raises(Terminal, match="is refused: loopback") as raised:
                    await call({"url": f"http://{host}:{server.port}/"}, Settings())
                assert raised.value.category == "address"
                return len(server.requests)

        assert asyncio.run(scenario()) == 0
        assert connections == []

    @pytest.mark.fault(
        "security", "a host name that resolves to another address when it is resolved again"
    )
    def test_that_change_between_check_and_connection_gain_nothing(self, connections):
        """The name means an allowed address when it is checked, and another one after that."""
        dns = FakeDns(["127.0.0.1"], ["127.0.0.2"])

        async def scenario() -> Any:
            async with serving(always(text="ok")) as server:
                settings = Settings(http_allow=("127.0.0.1",))
                return (await call({"url": f"http://rebind.test:{server.port}/"}, settings, dns))[
                    "data"
                ]

        assert asyncio.run(scenario()) == "ok"
        assert dns.questions == ["rebind.test"]
        assert connections == ["127.0.0.1"]

    @pytest.mark.fault(
        "security", "a host name that resolves to another address at the next connection"
    )
    def test_that_change_between_two_connections_are_checked_again(self, connections):
        dns = FakeDns(["127.0.0.1"], ["127.0.0.2"])

        async def scenario() -> None:
            async with serving(always(text="ok", headers={"Connection": "close"})) as server:
                handler = HttpHandler(Settings(http_allow=("127.0.0.1",)), resolver=dns)
                config = {"url": f"http://rebind.test:{server.port}/"}
                try:
                    await handler(config, context())
                    await handler(config, context())
                finally:
                    await handler.close()

        with pytest.raises(
            Terminal, match=r"the address 127\.0\.0\.2 of 'rebind\.test' is refused: loopback"
        ):
            asyncio.run(scenario())
        assert connections == ["127.0.0.1"]

    @pytest.mark.fault("security", "a name with an allowed and a forbidden address")
    def test_are_refused_together_when_one_is_forbidden(self, connections):
        async def scenario() -> None:
            async with serving(always(text="ok")) as server:
                dns = FakeDns(["127.0.0.1", "10.0.0.1"])
                await call(
                    {"url": f"http://mixed.test:{server.port}/"},
                    Settings(http_allow=("127.0.0.1",)),
                    dns,
                )

        with pytest.raises(
            Terminal, match=r"the address 10\.0\.0\.1 of 'mixed\.test' is refused: private"
        ):
            asyncio.run(scenario())
        assert connections == []

    def test_of_an_allowed_name_are_called(self):
        async def scenario() -> Any:
            async with serving(always(text="ok")) as server:
                dns = FakeDns(["127.0.0.1"])
                settings = Settings(http_allow=("billing.test",))
                return (await call({"url": f"http://billing.test:{server.port}/"}, settings, dns))[
                    "data"
                ]

        assert asyncio.run(scenario()) == "ok"


def test_a_shown_url_has_no_credentials():
    assert shown_url("https://joe:pw@a.test/x?q=1&X-Amz-Signature=abc&sig=d#f") == (
        "https://a.test/x?q=1&X-Amz-Signature=***&sig=***"
    )
    assert shown_url("https://a.test/x?design=1") == "https://a.test/x?design=1"


def test_a_closed_handler_can_be_closed_again():
    async def scenario() -> None:
        handler = HttpHandler(LOCAL)
        await handler.close()
        async with serving(always(text="ok")) as server:
            await handler({"url": server.url}, context())
        await handler.close()
        await handler.close()

    asyncio.run(scenario())
