"""Where a Redis is, from its URL, as redis-py reads it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from typing import Any

from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection, parse_url

from penstock.config import hide_password
from penstock.errors import SettingsError

DEFAULT_PORT = 6379


@dataclass(frozen=True)
class Address:
    host: str
    port: int
    path: str = ""
    """Of a Unix socket; then host and port mean nothing."""
    db: int = 0
    username: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None

    def at(self, host: str, port: int) -> Address:
        """Another node of the same cluster."""
        return replace(self, host=host, port=port, path="")

    def greetings(self) -> list[tuple[Any, ...]]:
        """What is said first on a new connection."""
        hello: tuple[Any, ...] = ("HELLO", 2)
        if self.password is not None:
            hello += ("AUTH", self.username or "default", self.password)
        greetings = [(*hello, "SETNAME", "penstock")]
        if self.db:
            greetings.append(("SELECT", self.db))
        return greetings

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}/{self.db}"


def parse(url: str) -> Address:
    """Raises `SettingsError`."""
    try:
        options = parse_url(url)
    except ValueError as error:
        raise SettingsError(f"the store {hide_password(url)!r} isn't the URL of a Redis: {error}") from None
    kind = options.pop("connection_class", None)
    return Address(
        options.get("host", "localhost"), options.get("port", DEFAULT_PORT),
        options["path"] if kind is UnixDomainSocketConnection else "", options.get("db", 0),
        options.get("username"), options.get("password"),
        SSLConnection(**options).ssl_context.get() if kind is SSLConnection else None,
    )  # fmt: skip
