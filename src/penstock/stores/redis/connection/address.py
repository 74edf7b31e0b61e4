"""Where a Redis is, from its URL.

One server, the seed nodes of a Redis Cluster, or the Sentinels that know where the master is:

    redis://:password@host:6379/0
    redis://:password@host1:6379,host2:6379,host3:6379
    redis+sentinel://:password@sentinel1:26379,sentinel2:26379/mymaster/0

`rediss://` and `rediss+sentinel://` use TLS. `sentinel_username` and `sentinel_password` in the
query are for Sentinels that want a password of their own.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection, parse_url

from penstock.config import hide_password
from penstock.errors import SettingsError

DEFAULT_PORT = 6379
DEFAULT_SENTINEL_PORT = 26379
SENTINEL_SUFFIX = "+sentinel"


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
        """The address of another node of the cluster, or another master of the Sentinels."""
        return replace(self, host=host, port=port, path="")

    def greetings(self) -> list[tuple[Any, ...]]:
        """Commands that are sent first on a new connection."""
        hello: tuple[Any, ...] = ("HELLO", 2)
        if self.password is not None:
            hello += ("AUTH", self.username or "default", self.password)
        greetings = [(*hello, "SETNAME", "penstock")]
        if self.db:
            greetings.append(("SELECT", self.db))
        return greetings

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}/{self.db}"


@dataclass(frozen=True)
class Endpoints:
    """What a URL names: servers to connect to, or Sentinels to ask."""

    servers: tuple[Address, ...]
    """At least one.

    With Sentinels, the first is where the master would be: only its host and port aren't known.
    """
    sentinels: tuple[Address, ...] = ()
    master_name: str = ""

    def __str__(self) -> str:
        if self.sentinels:
            hosts = ",".join(f"{sentinel.host}:{sentinel.port}" for sentinel in self.sentinels)
            return f"{self.master_name} (Sentinels {hosts})"
        return ",".join(map(str, self.servers))


def parse(url: str) -> Endpoints:
    """The endpoints that a URL names. Raises `SettingsError`."""
    try:
        parts = urlsplit(url)
        if parts.scheme.endswith(SENTINEL_SUFFIX):
            return _with_sentinels(parts)
        user, at, hosts = parts.netloc.rpartition("@")
        servers = [
            _address(parts._replace(netloc=f"{user}{at}{host}").geturl())
            for host in hosts.split(",")
        ]
    except ValueError as error:
        raise SettingsError(
            f"the store {hide_password(url)!r} isn't the URL of a Redis: {error}"
        ) from None
    return Endpoints(tuple(servers))


def first_url(url: str) -> str:
    """As redis-py reads it: with one host, and without what is only for Sentinels."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    parts = parts._replace(netloc=f"{user}{at}{hosts.split(',')[0]}")
    if not parts.scheme.endswith(SENTINEL_SUFFIX):
        return parts.geturl()
    _, _, db = parts.path.strip("/").partition("/")
    options = {
        name: value for name, value in parse_qsl(parts.query) if not name.startswith("sentinel_")
    }
    scheme = parts.scheme.removesuffix(SENTINEL_SUFFIX)
    return parts._replace(scheme=scheme, path=f"/{db}", query=urlencode(options)).geturl()


def _with_sentinels(parts: SplitResult) -> Endpoints:
    name = parts.path.strip("/").partition("/")[0]
    if not name:
        raise ValueError(
            "the name of the master is missing: redis+sentinel://host:26379/mymaster/0"
        )
    master = _address(first_url(parts.geturl()))
    options = dict(parse_qsl(parts.query))
    username = options.get("sentinel_username")
    password = options.get("sentinel_password")
    sentinels = []
    for host in parts.netloc.rpartition("@")[2].split(","):
        sentinel = _address(f"redis://{host}", DEFAULT_SENTINEL_PORT)
        sentinels.append(replace(sentinel, username=username, password=password, tls=master.tls))
    return Endpoints((master,), tuple(sentinels), unquote(name))


def _address(url: str, default_port: int = DEFAULT_PORT) -> Address:
    options = parse_url(url)
    kind = options.pop("connection_class", None)
    return Address(
        host=options.get("host", "localhost"),
        port=options.get("port", default_port),
        path=options["path"] if kind is UnixDomainSocketConnection else "",
        db=options.get("db", 0),
        username=options.get("username"),
        password=options.get("password"),
        tls=SSLConnection(**options).ssl_context.get() if kind is SSLConnection else None,
    )
