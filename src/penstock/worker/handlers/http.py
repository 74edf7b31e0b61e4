"""`call_external_service`: one HTTP call, as the document describes it and the operator allows it.

The output is `{status_code, headers, data, url, elapsed_ms}`. `headers` has lower-case names.
`data` is parsed JSON when the content type says JSON, text when it is text, `{"base64": ...,
"content_type": ...}` when it is neither, and null without a body. `url` is where redirects led,
without credentials.

Without `timeout_seconds` the call may take as long as the node's attempt. Network errors, 408, 425,
429 and 5xx are tried again, other statuses outside 200-299 (or outside `expect_status`) fail the
node.
"""

from __future__ import annotations

import asyncio
import codecs
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.config import Settings, nearest
from penstock.definition.handler_configs import METHODS, config_keys
from penstock.definition.value_faults import header_faults, is_never_unknown, is_status
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal
from penstock.sandbox import Sandbox, sandbox_of
from penstock.worker.context import Context
from penstock.worker.handlers.addresses import AddressPolicy, Resolver, system_resolver
from penstock.worker.handlers.http_exchange import Request, Response, failure, read_answer

if TYPE_CHECKING:
    from penstock.worker.handlers.http_client import HttpClient

KEYS = config_keys("call_external_service")
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
FORM = "application/x-www-form-urlencoded"
FUNCTION = "penstock.worker.handlers.http:run"
CLIENT_MODULE = "penstock.worker.handlers.http_client"


class HttpHandler:
    def __init__(
        self,
        settings: Settings,
        *,
        sandbox: Sandbox | None = None,
        resolver: Resolver = system_resolver,
    ) -> None:
        self._policy = AddressPolicy(
            private=settings.http_private, allow=settings.http_allow, resolver=resolver
        )
        self._max_response_bytes = settings.http_max_response_bytes
        self._client: HttpClient | None = None
        self.sandbox: Sandbox = sandbox or sandbox_of(settings)
        """The sandbox in which large answers are read."""

    async def __call__(self, config: dict[str, Any], ctx: Context) -> Any:
        request = read_config(config, ctx)
        response = await self.send(request)
        if not request.accepts(response.status_code):
            raise failure(request, response)
        return await read_answer(self.sandbox, FUNCTION, response, ctx.workflow) or output(response)

    async def send(self, request: Request) -> Response:
        """The answer to a request of another handler, from the client of this one."""
        await self.load_client()
        if self._client is None:
            self._client = self.new_client()
        return await self._client.send(request)

    async def load_client(self) -> None:
        """Import the HTTP library, once, in a thread.

        It takes a quarter of a second, in which other tasks go on.
        """
        if CLIENT_MODULE not in sys.modules:
            await asyncio.to_thread(import_module, CLIENT_MODULE)

    def new_client(self, *allow: str) -> HttpClient:
        """A client of its own, with its own connections, that may also call these hosts.

        The caller closes it.
        """
        from penstock.worker.handlers.http_client import HttpClient  # noqa: PLC0415 -- see there

        return HttpClient(self._policy.widened(*allow), max_response_bytes=self._max_response_bytes)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None
        await self.sandbox.close()


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The sandbox job that reads a large answer: the handler's output as JSON."""
    response = Response.from_parts(parts)
    if response.is_json and response.charset is None:
        text = response.body.removeprefix(codecs.BOM_UTF8)
        try:
            text.decode()
            # only checked to be well-formed: nobody needs the values here
            msgspec.json.decode(text, type=msgspec.Raw)
            without_data = output(replace(response, body=b""))
            yield msgspec.json.encode({**without_data, "data": msgspec.Raw(text)})
            return  # noqa: TRY300 -- what isn't JSON goes on below
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    yield msgspec.json.encode(output(response))


def output(response: Response) -> dict[str, Any]:
    return {
        "status_code": response.status_code,
        "headers": dict(response.headers),
        "data": response.data,
        "url": response.url,
        "elapsed_ms": response.elapsed_ms,
    }


def read_config(config: Mapping[str, Any], ctx: Context) -> Request:
    check_keys(config, KEYS, ctx)
    url = config.get("url")
    if not isinstance(url, str) or not url:
        raise bad_config("url must be text, such as 'https://api.example.com/users'")

    headers = _read_headers(config.get("headers"))
    body = _read_body(config, headers)
    method = _read_method(config, has_body=body is not None)
    if method in UNSAFE and ctx.idempotency_key and not _has(headers, "idempotency-key"):
        headers["Idempotency-Key"] = quote(ctx.idempotency_key, safe=":/@[]")

    return Request(
        method=method,
        url=url,
        headers=headers,
        params=_pairs(config.get("params"), "params"),
        body=body,
        timeout_seconds=_read_timeout(config.get("timeout_seconds")),
        expect=_read_expected(config.get("expect_status")),
        secrets=tuple(ctx.secrets),
    )


def bad_config(message: str) -> Terminal:
    return Terminal(message, category=ErrorCategory.CONFIG)


def check_keys(
    config: Mapping[str, Any], keys: tuple[str, ...], ctx: Context, hint: str = ""
) -> None:
    """Raise an error for a key that the handler doesn't know.

    `hint` says what to do with a key that isn't like any that it knows. In a lenient attempt the
    error is a warning in the attempt's log.
    """
    unknown = sorted(config.keys() - set(keys))
    if not unknown:
        return
    name = unknown[0][:80]
    near = nearest(name, keys)
    message = f"the config has no key '{name}'{near or hint} (known: {', '.join(keys)})"
    if not ctx.lenient_config:
        raise bad_config(message)
    and_more = f", and {len(unknown) - 1} more are unknown" if len(unknown) > 1 else ""
    ctx.log.warning("%s%s; ignored", message, and_more)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _read_method(config: Mapping[str, Any], *, has_body: bool) -> str:
    name = config.get("method") or ("POST" if has_body else "GET")
    method = str(name).upper()
    if method not in METHODS:
        raise bad_config(f"method is {name!r}; allowed: {', '.join(METHODS)}")
    return method


def _read_headers(value: Any) -> dict[str, str]:
    headers = dict(_pairs(value, "headers"))
    for path, message in header_faults(value or {}, is_never_unknown):
        raise bad_config(f"headers.{path[0]}: {message}")
    return headers


def _has(headers: Mapping[str, str], lowered: str) -> bool:
    return any(name.lower() == lowered for name in headers)


def _pairs(fields: Any, where: str) -> tuple[tuple[str, str], ...]:
    """Names and values of an object in the config; a list repeats its name.

    Null values are left out, so that a reference with a fallback can drop one.
    """
    if fields is None:
        return ()
    if not isinstance(fields, Mapping):
        raise bad_config(f"{where} must be an object")
    pairs = []
    for name, value in fields.items():
        values = value if isinstance(value, list) and where != "headers" else [value]
        texts = [_scalar(item, f"{where}.{name}") for item in values if item is not None]
        pairs += [(str(name), text) for text in texts]
    return tuple(pairs)


def _scalar(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return msgspec.json.encode(value).decode()
    raise bad_config(f"{where} must be text, a number or a boolean")


def _read_body(config: Mapping[str, Any], headers: dict[str, str]) -> bytes | None:
    """The bytes to send; sets the content type unless the config does.

    An object as `body` goes as JSON, or as a form when the content type says so.
    """
    body = config.get("body")
    as_json = config.get("json")
    if body is not None and as_json is not None:
        raise bad_config("give body or json, not both")
    if body is None and as_json is None:
        return None

    content_type = ""
    for name, value in headers.items():
        if name.lower() == "content-type":
            content_type = value

    if isinstance(body, str):
        default_type = "text/plain; charset=utf-8"
        content = body.encode()
    elif isinstance(body, Mapping) and content_type.lower().startswith(FORM):
        default_type = FORM
        content = urlencode(_pairs(body, "body")).encode()
    else:
        default_type = "application/json"
        content = msgspec.json.encode(body if as_json is None else as_json)

    if not content_type:
        headers["Content-Type"] = default_type
    return content


def _read_timeout(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if not is_number(seconds) or seconds <= 0:
        raise bad_config(f"timeout_seconds is {seconds!r}; allowed: a number above 0")
    return float(seconds)


def _read_expected(value: Any) -> frozenset[int]:
    """The statuses that count as success; empty if the config names none."""
    if value is None:
        return frozenset()
    statuses = value if isinstance(value, list) else [value]
    if not all(is_status(status) for status in statuses):
        raise bad_config(
            f"expect_status is {value!r}; allowed: a status such as 200, or a list of them"
        )
    return frozenset(int(status) for status in statuses)
