"""What `penstock doctor` looks at on a Redis and a PostgreSQL, with nothing but their own clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from penstock.config import Settings

CLOCK_SECONDS_MAX = 2.0
TIMEOUT_SECONDS = 5.0
LAG_MAX = 10_000
REDIS_VERSION_MIN, VALKEY_VERSION_MIN, POSTGRES_VERSION_MIN = 7, 8, 13
EXTRA = "pip install 'penstock[scale]' brings it"


class Check(NamedTuple):
    name: str
    outcome: str
    """`ok`, `note` (worth knowing) or `failed`."""
    text: str


class Found(NamedTuple):
    """What the database says about the store."""

    partitions: int
    store_id: str


def check_servers(settings: Settings) -> list[Check]:
    """PostgreSQL first: it knows how many partitions there are to look at in Redis."""
    found: list[Found] = []
    checks = list(_checked("PostgreSQL", lambda: _postgres(settings.database, found)))
    return checks + list(_checked("Redis", lambda: _redis(settings, found[0] if found else None)))


def _checked(name: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Whatever goes wrong is the last check's outcome: nothing behind it could be looked at."""
    try:
        yield from look()
    except ImportError as error:
        yield Check(name, "failed", f"its client, {error.name}, isn't installed; {EXTRA}")
    except Exception as error:  # noqa: BLE001 -- a doctor that breaks off says nothing at all
        lines = str(error).strip().splitlines() or [type(error).__name__]
        yield Check(name, "failed", lines[0])


def _postgres(database: str | None, found: list[Found]) -> Iterator[Check]:
    if database is None:
        yield Check(
            "PostgreSQL",
            "failed",
            "PENSTOCK_DATABASE isn't set; with Redis as its store Penstock needs one",
        )
        return
    import psycopg

    with psycopg.connect(
        database, connect_timeout=int(TIMEOUT_SECONDS), autocommit=True
    ) as connection:
        version = connection.info.server_version // 10000
        enough = version >= POSTGRES_VERSION_MIN
        text = f"version {version}, {connection.info.host}:{connection.info.port}/{connection.info.dbname}"
        yield Check(
            "PostgreSQL",
            "ok" if enough else "failed",
            text + ("" if enough else f"; {POSTGRES_VERSION_MIN} is needed"),
        )
        yield from _writable(connection)
        before = time.time()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        yield clock_check("PostgreSQL clock", float(row[0]) if row else before, before)
        yield from _schema(connection, found)


def _writable(connection: Any) -> Iterator[Check]:
    row = connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')"
    ).fetchone()
    if row[0] or row[1] == "on":
        yield Check("PostgreSQL writes", "failed", "it is read-only (a standby?); name the primary")


def _schema(connection: Any, found: list[Found]) -> Iterator[Check]:
    from penstock.errors import SchemaMismatch
    from penstock.stores.postgres.schema import VERSION_TABLE, check_schema

    known = connection.execute("SELECT to_regclass(%s)::text", (VERSION_TABLE,)).fetchone()[0]
    row = (
        connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() if known else None  # noqa: S608 -- ours
    )
    version = row[0] if row else None
    try:
        check_schema(version, "the database")
    except SchemaMismatch as error:
        yield Check("schema", "failed", str(error))
        return
    yield Check("schema", "ok", f"{version}, as this version needs it")
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    found.append(Found(int(meta.get("partitions", 0)), meta.get("store_id", "")))
    yield Check("partitions", "ok", f"{found[0].partitions}, fixed when the database was made")


def _redis(settings: Settings, found: Found | None) -> Iterator[Check]:
    from penstock.stores.redis.clients import client as open_client

    options: dict[str, Any] = {
        "socket_timeout": TIMEOUT_SECONDS,
        "socket_connect_timeout": TIMEOUT_SECONDS,
    }
    with open_client(settings.store, decode_responses=True, **options) as client:
        yield _redis_version(client.info("server"))
        yield from _redis_settings(client)
        before = time.time()
        seconds, micros = client.time()
        yield clock_check("Redis clock", seconds + micros / 1e6, before)
        owner = str(client.get("penstock:{fleet}:store") or "").partition(" ")[0]
        if found is not None and owner and owner != found.store_id:
            yield Check(
                "Redis store",
                "failed",
                "it belongs to another Penstock database; use another number (…/1)",
            )
        elif found is not None:
            yield _lag(client, found.partitions)
            yield from _fleet(client, found.partitions, settings.worker_dead_seconds)


def _redis_version(info: Any) -> Check:
    name, least = (
        ("Valkey", VALKEY_VERSION_MIN) if "valkey_version" in info else ("Redis", REDIS_VERSION_MIN)
    )
    version = str(info.get("valkey_version") or info.get("redis_version", "unknown"))
    enough = version.partition(".")[0].isdigit() and int(version.partition(".")[0]) >= least
    needed = "" if enough else f"; {least}.0 or newer is needed"
    return Check("Redis", "ok" if enough else "failed", f"{name} {version}{needed}")


def _redis_settings(client: Any) -> Iterator[Check]:
    import redis

    try:
        policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
        persistence = client.config_get("append*")
    except redis.ResponseError:
        text = "it doesn't show its settings; see to it that maxmemory-policy is noeviction and appendonly is yes"
        yield Check("Redis settings", "note", text)
        return
    evicts = policy != "noeviction"
    text = f"maxmemory-policy {policy}" + (
        ", which throws data away; set noeviction" if evicts else ""
    )
    yield Check("Redis memory", "failed" if evicts else "ok", text)
    if persistence.get("appendonly") == "yes":
        yield Check(
            "Redis persistence", "ok", f"append-only file, fsync {persistence.get('appendfsync')}"
        )
    else:
        text = "no append-only file: after a crash of it, steps since the last checkpoint run again (appendonly yes)"
        yield Check("Redis persistence", "note", text)


def _lag(client: Any, partitions: int) -> Check:
    """What orchestrators haven't decided yet, and what hasn't reached PostgreSQL yet."""
    with client.pipeline(transaction=False) as calls:
        for partition in range(partitions):
            calls.xlen(f"penstock:{{{partition}}}:inbox")
            calls.llen(f"penstock:{{{partition}}}:outbox")
        lengths = calls.execute()
    inbox, outbox = sum(lengths[::2]), sum(lengths[1::2])
    text = f"{inbox:,} entries in the inboxes, {outbox:,} in the outboxes"
    late = max(inbox, outbox) > LAG_MAX
    return Check(
        "lag",
        "note" if late else "ok",
        text + ("; are there enough orchestrators?" if late else ""),
    )


def _fleet(client: Any, partitions: int, dead_seconds: float) -> Iterator[Check]:
    from penstock.orchestrator.routing import explain, live, missing
    from penstock.stores.redis.fleet import offers_of

    seconds, micros = client.time()
    offers = live(
        offers_of(client.hgetall("penstock:{fleet}:workers"), seconds + micros / 1e6), dead_seconds
    )
    orchestrators = client.hlen("penstock:{fleet}:orchestrators")
    lacking = [
        name
        for name, count in (("orchestrator", orchestrators), ("worker", len(offers)))
        if not count
    ]
    text = f"{orchestrators} orchestrators, {len(offers)} live workers"
    hint = f"; start one with 'penstock {lacking[0]}'" if lacking else ""
    yield Check("fleet", "note" if lacking else "ok", text + hint)
    for (queue, handler), waiting in sorted(_waiting(client, partitions).items(), key=str):
        why = missing(offers, queue, handler)
        if why is not None:
            yield Check(
                "queue", "failed", f"{waiting:,} tasks wait: {explain(why, queue, handler or '')}"
            )


def _waiting(client: Any, partitions: int) -> dict[tuple[str, str | None], int]:
    """By queue, and by handler for tasks that workers of their queue passed over."""
    from penstock.stores.redis import keys

    found: dict[tuple[str, str | None], int] = {}
    for prefix in map(keys.prefix, range(partitions)):
        for stream in client.smembers(prefix + "queues"):
            key = f"{prefix}tasks:{stream}"
            groups = client.xinfo_groups(key) if client.exists(key) else []
            waiting = client.xlen(key) - sum(int(group["pending"]) for group in groups)
            if waiting > 0:
                where = keys.queue_of(stream)
                found[where] = found.get(where, 0) + waiting
    return found


def clock_check(name: str, theirs: float, before: float) -> Check:
    """It was looked at between two looks at ours; only what lies outside of these is a difference."""
    seconds = max(before - theirs, theirs - time.time(), 0.0)
    if seconds <= CLOCK_SECONDS_MAX:
        return Check(name, "ok", "agrees with this machine's")
    return Check(
        name,
        "note",
        f"differs by {seconds:.0f} s from this machine's; leases and timers go by Redis's",
    )
