"""What a task costs in an API process, an orchestrator, a worker, Redis and PostgreSQL."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis as redis_client

from benchmarks.costs.load import NODES, processes, submit
from benchmarks.costs.report import Costs
from benchmarks.scaled import cpu_seconds, servers
from penstock.local import PostgresServer, RedisServer
from penstock.runtime import run_loop
from penstock.stores.redis.connection import script

ROLES = {"api": ["api", "--port", "0"], "orchestrator": ["orchestrator"], "worker": ["worker"]}
SCRIPTS = {"commit": "commit", "fetch": "fetch", "report": "report", "read": "archive"}
CALLS = {"XADD": "inbox", "XREAD": "inbox"}
"""Of Redis: which part a script or a command is of.

A lease's script with `taken` in it is the archiver's too.
"""
BACKENDS = {"api": "api", "orchestrator": "archive"}
"""Of PostgreSQL: whose connections do which part.

An orchestrator's read intents (`load`), and that is the smaller.
"""
LOG_LENGTH = 1_000_000
PATIENCE_SECONDS = 120.0
ARCHIVED = "SELECT count(*) FROM executions WHERE phase <> 'ended'"


class Watch:
    """What both servers have done since the first call of `begin`."""

    def __init__(self, redis: RedisServer, postgres: PostgresServer) -> None:
        self._redis = psutil.Process(redis.pid)
        self._postgres = psutil.Process(postgres.pid)
        self._calls = redis_client.Redis.from_url(redis.url)
        self._rows = psycopg.connect(f"{postgres.url}?application_name=costs", autocommit=True)
        self._digests = {
            script(name).digest: name for name in ("commit", "fetch", "report", "lease", "read")
        }
        self._before: dict[str, Any] = {}

    def begin(self) -> None:
        self._calls.config_set("slowlog-max-len", LOG_LENGTH)
        self._calls.config_set("slowlog-log-slower-than", 0)  # every command, with its time
        self._calls.slowlog_reset()
        self._before = self._now()

    def _now(self) -> dict[str, Any]:
        info = self._calls.info("everything")
        figures = {
            "redis": cpu_seconds(self._redis),
            "backends": self._backends(),
            "wal": self._row("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"),
            "tables": self._row(
                "SELECT pg_total_relation_size('executions') + pg_total_relation_size('segments')"
            ),
        }
        names = {
            "to Redis": "total_net_input_bytes",
            "from Redis": "total_net_output_bytes",
            "append-only file": "aof_current_size",
        }
        return {**figures, **{name: int(info.get(key, 0)) for name, key in names.items()}}

    def _row(self, statement: str) -> int:
        row = self._rows.execute(statement).fetchone()
        assert row is not None
        return int(row[0])

    def _backends(self) -> dict[str, float]:
        """CPU seconds by whose connections they are; what serves nobody is the rest."""
        names = dict(
            self._rows.execute("SELECT pid, application_name FROM pg_stat_activity").fetchall()
        )
        seconds: defaultdict[str, float] = defaultdict(float)
        for process in self._postgres.children():
            try:
                seconds[
                    BACKENDS.get(names.get(process.pid, ""), names.get(process.pid) or "rest")
                ] += cpu_seconds(process)
            except psutil.NoSuchProcess:
                continue
        return seconds

    def until_archived(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while self._row(ARCHIVED):
            assert time.monotonic() < end, "some executions aren't archived"
            time.sleep(0.1)

    def costs(self, tasks: int) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
        now, before = self._now(), self._before
        micros = {("Redis", part): spent / tasks for part, spent in self._by_part().items()}
        micros["Redis", "rest"] = (now["redis"] - before["redis"]) * 1e6 / tasks - sum(
            micros.values()
        )
        for name, seconds in now["backends"].items():
            if name in ("api", "archive", "rest"):
                micros["PostgreSQL", name] = (
                    (seconds - before["backends"].get(name, 0.0)) * 1e6 / tasks
                )
        names = {
            "to Redis": "to Redis",
            "from Redis": "from Redis",
            "append-only file": "append-only file",
            "wal": "PostgreSQL's log (WAL)",
            "tables": "kept in PostgreSQL",
        }
        return micros, {title: (now[name] - before[name]) / tasks for name, title in names.items()}

    def _by_part(self) -> dict[str, float]:
        """Microseconds that commands took, without reading requests and writing replies."""
        micros: defaultdict[str, float] = defaultdict(float)
        for entry in self._calls.slowlog_get(LOG_LENGTH):
            words = entry["command"].split(b" ", 4)
            name = words[0].decode().upper()
            if name in ("EVALSHA", "EVAL"):
                called = (
                    self._digests.get(words[1].decode(errors="replace"), "")
                    if name == "EVALSHA"
                    else ""
                )
                part = SCRIPTS.get(called, "archive" if b" taken " in entry["command"] else "rest")
            else:
                part = CALLS.get(name, "rest")
            micros[part] += entry["duration"]
        micros.pop("rest", None)  # what is left of the process's CPU
        return micros


def measure(folder: Path, way: str, executions: int) -> Costs:
    way_folder = folder / way.replace(" ", "-")
    way_folder.mkdir()
    way_folder.chmod(0o711)
    tasks = executions * NODES
    with servers(way_folder, "everysec") as (redis, postgres):
        watch = Watch(redis, postgres)
        settings = {"PENSTOCK_STORE": redis.url, "PENSTOCK_LOG_LEVEL": "WARNING"}
        roles = {
            name: [*arguments, "--database", f"{postgres.url}?application_name={name}"]
            for name, arguments in ROLES.items()
        }
        with processes(way_folder, roles, settings) as started:
            before: dict[str, float] = {}

            def begin() -> None:
                before.update({name: timed.begin() for name, timed in started.items()})
                watch.begin()

            run_loop(submit(started["api"].address, way, executions, begin))
            watch.until_archived()
            used = {name: (timed.seconds() - before[name]) * 1e6 for name, timed in started.items()}
            micros, sizes = watch.costs(tasks)
            for name, timed in started.items():
                parts = timed.stop()
                micros.update({(name, part): spent / tasks for part, spent in parts.items()})
                micros[name, "rest"] = (used[name] - sum(parts.values())) / tasks
            started.clear()
    return Costs("scaled", way, tasks, micros, sizes)
