"""Checks of Redis and PostgreSQL for `penstock doctor`, by their own clients alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from penstock.config import Settings

CLOCK_SECONDS_MAX = 2.0
TIMEOUT_SECONDS = 5.0
LAG_MAX = 10_000
REDIS_VERSION_MIN = 7
VALKEY_VERSION_MIN = 8
POSTGRES_VERSION_MIN = 13
EXTRA = "install it with pip install 'penstock[scale]'"


class Check(NamedTuple):
    name: str
    outcome: str
    """`ok`, `note` (worth knowing) or `failed`."""
    text: str


class StoreFacts(NamedTuple):
    """What the database says about the store."""

    partitions: int
    store_id: str


def check_servers(settings: Settings) -> list[Check]:
    """Check PostgreSQL first, which knows how many partitions there are in Redis."""
    facts: list[StoreFacts] = []
    checks = list(_run_checks("PostgreSQL", lambda: _check_postgres(settings.database, facts)))

    store_facts = facts[0] if facts else None
    checks += _run_checks("Redis", lambda: _check_redis(settings, store_facts))
    return checks


def _run_checks(name: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """The checks of a server; an error is the last one, since those after it couldn't run."""
    try:
        yield from checks()
    except ImportError as error:
        yield Check(name, "failed", f"its client, {error.name}, is not installed; {EXTRA}")
    except Exception as error:  # noqa: BLE001 -- any failure is a finding
        lines = str(error).strip().splitlines() or [type(error).__name__]
        yield Check(name, "failed", lines[0])


def _check_postgres(database: str | None, facts: list[StoreFacts]) -> Iterator[Check]:
    if database is None:
        text = "PENSTOCK_DATABASE isn't set; a store on Redis needs a PostgreSQL too"
        yield Check("PostgreSQL", "failed", text)
        return
    import psycopg

    timeout = int(TIMEOUT_SECONDS)
    with psycopg.connect(database, connect_timeout=timeout, autocommit=True) as connection:
        info = connection.info
        version = info.server_version // 10000
        text = f"version {version}, {info.host}:{info.port}/{info.dbname}"
        if version >= POSTGRES_VERSION_MIN:
            yield Check("PostgreSQL", "ok", text)
        else:
            yield Check("PostgreSQL", "failed", f"{text}; {POSTGRES_VERSION_MIN} is needed")

        yield from _check_writable(connection)

        before = time.time()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        theirs = float(row[0]) if row else before
        yield clock_check("PostgreSQL clock", theirs, before)
        yield from _check_schema(connection, facts)


def _check_writable(connection: Any) -> Iterator[Check]:
    row = connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')"
    ).fetchone()
    if row[0] or row[1] == "on":
        yield Check("PostgreSQL writes", "failed", "it is read-only (a standby?); use the primary")


def _check_schema(connection: Any, facts: list[StoreFacts]) -> Iterator[Check]:
    from penstock.errors import SchemaMismatch
    from penstock.stores.postgres.schema import VERSION_TABLE, check_schema

    version_table = connection.execute("SELECT to_regclass(%s)::text", (VERSION_TABLE,)).fetchone()[
        0
    ]
    version = None
    if version_table:
        query = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 -- ours
        row = connection.execute(query).fetchone()
        version = row[0] if row else None

    try:
        check_schema(version, "the database")
    except SchemaMismatch as error:
        yield Check("schema", "failed", str(error))
        return
    yield Check("schema", "ok", f"{version}, as this version needs it")

    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    facts.append(StoreFacts(int(meta.get("partitions", 0)), meta.get("store_id", "")))
    yield Check("partitions", "ok", f"{facts[0].partitions}, fixed when the database was made")


def _check_redis(settings: Settings, facts: StoreFacts | None) -> Iterator[Check]:
    from penstock.stores.redis.connection import open_client

    options: dict[str, Any] = {
        "socket_timeout": TIMEOUT_SECONDS,
        "socket_connect_timeout": TIMEOUT_SECONDS,
    }
    with open_client(settings.store, decode_responses=True, **options) as client:
        yield _check_redis_version(client.info("server"))
        yield from _check_redis_settings(client)

        before = time.time()
        seconds, micros = client.time()
        yield clock_check("Redis clock", seconds + micros / 1e6, before)
        if facts is None:
            return

        owner = str(client.get("penstock:{fleet}:store") or "").partition(" ")[0]
        if owner and owner != facts.store_id:
            text = "it belongs to another Penstock database; use another number (…/1)"
            yield Check("Redis store", "failed", text)
        else:
            yield _check_lag(client, facts.partitions)
            yield from _check_fleet(client, facts.partitions, settings.worker_dead_seconds)


def _check_redis_version(info: Any) -> Check:
    if "valkey_version" in info:
        name = "Valkey"
        version_min = VALKEY_VERSION_MIN
    else:
        name = "Redis"
        version_min = REDIS_VERSION_MIN

    version = str(info.get("valkey_version") or info.get("redis_version", "unknown"))
    major = version.partition(".")[0]
    if major.isdigit() and int(major) >= version_min:
        return Check("Redis", "ok", f"{name} {version}")
    return Check("Redis", "failed", f"{name} {version}; {version_min}.0 or newer is needed")


def _check_redis_settings(client: Any) -> Iterator[Check]:
    import redis

    try:
        policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
        persistence = client.config_get("append*")
    except redis.ResponseError:
        text = (
            "it doesn't show its settings; "
            "make sure that maxmemory-policy is noeviction and appendonly is yes"
        )
        yield Check("Redis settings", "note", text)
        return

    text = f"maxmemory-policy {policy}"
    if policy == "noeviction":
        yield Check("Redis memory", "ok", text)
    else:
        yield Check("Redis memory", "failed", f"{text}, which throws data away; set noeviction")

    if persistence.get("appendonly") == "yes":
        text = f"append-only file, fsync {persistence.get('appendfsync')}"
        yield Check("Redis persistence", "ok", text)
    else:
        text = (
            "no append-only file: if Redis crashes, steps since the last checkpoint run again; "
            "set appendonly yes"
        )
        yield Check("Redis persistence", "note", text)


def _check_lag(client: Any, partitions: int) -> Check:
    """Count the events that wait for orchestrators, and the entries that wait for PostgreSQL."""
    with client.pipeline(transaction=False) as calls:
        for partition in range(partitions):
            calls.xlen(f"penstock:{{{partition}}}:inbox")
            calls.llen(f"penstock:{{{partition}}}:outbox")
        lengths = calls.execute()

    inbox = sum(lengths[::2])
    outbox = sum(lengths[1::2])
    text = f"{inbox:,} entries in the inboxes, {outbox:,} in the outboxes"
    if max(inbox, outbox) > LAG_MAX:
        return Check("lag", "note", f"{text}; are there enough orchestrators?")
    return Check("lag", "ok", text)


def _check_fleet(client: Any, partitions: int, dead_seconds: float) -> Iterator[Check]:
    from penstock.orchestrator.routing import explain, live, missing
    from penstock.stores.redis.fleet import offers_of

    seconds, micros = client.time()
    entries = client.hgetall("penstock:{fleet}:workers")
    offers = live(offers_of(entries, seconds + micros / 1e6), dead_seconds)
    orchestrators = client.hlen("penstock:{fleet}:orchestrators")

    text = f"{orchestrators} orchestrators, {len(offers)} live workers"
    if not orchestrators:
        yield Check("fleet", "note", f"{text}; start one with 'penstock orchestrator'")
    elif not offers:
        yield Check("fleet", "note", f"{text}; start one with 'penstock worker'")
    else:
        yield Check("fleet", "ok", text)

    for (queue, handler), waiting in sorted(_waiting_tasks(client, partitions).items(), key=str):
        why = missing(offers, queue, handler)
        if why is not None:
            reason = explain(why, queue, handler or "")
            yield Check("queue", "failed", f"{waiting:,} tasks wait: {reason}")


def _waiting_tasks(client: Any, partitions: int) -> dict[tuple[str, str | None], int]:
    """Counts of waiting tasks by queue, and by handler where workers passed tasks over."""
    from penstock.stores.redis import keys

    counts: dict[tuple[str, str | None], int] = {}
    for prefix in map(keys.prefix, range(partitions)):
        for stream in client.smembers(prefix + "queues"):
            key = f"{prefix}tasks:{stream}"
            groups = client.xinfo_groups(key) if client.exists(key) else []
            waiting = client.xlen(key) - sum(int(group["pending"]) for group in groups)
            if waiting > 0:
                where = keys.queue_of(stream)
                counts[where] = counts.get(where, 0) + waiting
    return counts


def clock_check(name: str, theirs: float, before: float) -> Check:
    """Compare a server's clock, read between `before` and now, with ours.

    Only what lies outside of these two times is a difference.
    """
    seconds = max(before - theirs, theirs - time.time(), 0.0)
    if seconds <= CLOCK_SECONDS_MAX:
        return Check(name, "ok", "agrees with this machine's")
    text = f"differs by {seconds:.0f} s from this machine's; leases and timers go by Redis's"
    return Check(name, "note", text)
