"""Calls of an ASGI app without a server, and a small app behind its middleware.

The calls are spelled as uvicorn would pass them on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from penstock.api import problems
from penstock.api.access import CALLER, TABLE
from penstock.api.audit_log import AuditLog
from penstock.api.middleware import install_middleware
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.service.keys import Keys
from penstock.stores.records import ApiKey, AuditLine

EVERYWHERE = "0.0.0.0"  # noqa: S104
"""A host that is not loopback."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return str(self.json["code"])


Headers = Mapping[str, str] | Sequence[tuple[str, str]]


async def call(
    app: Any,
    method: str,
    target: str,
    headers: Headers = (),
    *,
    body: bytes = b"",
    client: str = "192.0.2.7",
) -> Answer:
    """`target` is what stands in the request line.

    A `Host` is added, and `Content-Length` for a body.
    """
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    names = {name.lower() for name, _ in pairs}
    pairs += [("host", "localhost:8000")] if "host" not in names else []
    pairs += [("content-length", str(len(body)))] if body else []
    raw, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
        "client": (client, 50000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
    return await _exchange(app, scope, body)


async def _exchange(app: Any, scope: dict[str, Any], body: bytes) -> Answer:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers_sent = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(
        sent[0]["status"], headers_sent, b"".join(part.get("body", b"") for part in sent[1:])
    )


@dataclass
class Cold:
    """The parts of a cold store that keys and the audit log need, with what can go wrong there."""

    keys_by_id: dict[str, ApiKey] = field(default_factory=dict)
    lines: list[AuditLine] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    reads: int = 0
    failure: Exception | None = None
    gate: asyncio.Event | None = None
    """Reads and writes wait for it."""

    async def put_key(self, key: ApiKey) -> None:
        self.keys_by_id[key.id] = key

    async def keys(self) -> list[ApiKey]:
        self.reads += 1
        api_keys = list(self.keys_by_id.values())
        await self._answer()
        return api_keys

    async def revoke_key(self, key_id: str, now: float) -> bool:
        key = self.keys_by_id.get(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self.keys_by_id[key_id] = msgspec.structs.replace(key, revoked_at=now)
        return True

    async def write_audit(self, lines: Sequence[AuditLine]) -> None:
        await self._answer()
        self.batches.append(len(lines))
        self.lines += lines

    async def audit(self, search: Any) -> list[AuditLine]:
        raise NotImplementedError

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        raise NotImplementedError

    async def _answer(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure


class Site:
    """An app with every route of the table, each answering who called, behind its middleware."""

    def __init__(self, *, timing: ApiTiming | None = None, **settings: Any) -> None:
        self.cold = Cold()
        self.keys = Keys(self.cold)
        self.audit_log = AuditLog(self.cold, timing)
        self.app = Starlette()
        problems.install(self.app)
        for method, path in TABLE:
            self.app.add_route(named(path), whoami, methods=[method])
        install_middleware(
            self.app, settings=Settings(**settings), keys=self.keys, audit_log=self.audit_log
        )

    async def call(self, method: str, target: str, headers: Headers = (), **options: Any) -> Answer:
        return await call(self.app, method, target, headers, **options)

    async def key(self, *scopes: str, name: str = "someone") -> dict[str, str]:
        """The header of a new key."""
        _, token = await self.keys.create(name, scopes)
        return bearer(token)


async def whoami(request: Request) -> Response:
    caller = request.scope[CALLER]
    return Response(msgspec.json.encode({"key_id": caller.key_id, "address": caller.address}))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def named(path: str) -> str:
    """With names for the parameters: `{}` has none in the table."""
    first, *rest = path.split("{}")
    return first + "".join(f"{{p{number}}}{part}" for number, part in enumerate(rest))


def filled(path: str) -> str:
    return path.replace("{}", "some-id")
