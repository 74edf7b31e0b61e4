"""A pool of connections to PostgreSQL, each used by one call at a time. No call waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import socket
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from penstock.config import hide_password
from penstock.errors import SettingsError, StoreUnavailable
from penstock.stores.postgres.failures import Broken, Unknowable, explained

log = logging.getLogger("penstock.stores")

Row = tuple[Any, ...]
Connection = AsyncConnection[Row]
Values = Sequence[Any] | Mapping[str, Any]

CONNECTIONS = 8
TRIES = 3
"""How often a repeatable call is made, on connections that break."""
SLOW_SECONDS = 30.0
"""The time limit of calls that read or write much, and for which nobody waits in a hurry."""
DEFAULTS = {
    "application_name": "penstock",
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
# A process that is stopped in mid-transaction holds its locks no longer than 30 s. Sequential scans
# are never right here, and a plan that was made while a table was empty would use one. With the
# default cost of a random page (that of a hard disk) the planner would read a large part of a table
# in order, and not a page from the right index.
PREPARE = """
    SELECT
      set_config('statement_timeout', '20s', false),
      set_config('enable_seqscan', 'off', false),
      set_config('random_page_cost', '1.1', false),
      set_config('idle_in_transaction_session_timeout', '30s', false)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTiming:
    call_seconds: float = 4.0
    """The time limit of a call, with the wait for a free connection.

    Nothing else notices a server that is silent behind a connection that stays open.
    """
    cancel_seconds: float = 1.0
    """How long a cancelled call tries to tell the server so, before its connection is cut."""
    connect_seconds: float = 3.0
    """How long a silent server has to answer a new connection."""
    probe_seconds: float = 1.0
    """How often a silent server is asked whether it is back. Other calls are refused meanwhile."""
    idle_seconds: float = 30.0
    """How long an idle connection stays open: the server has few, and workers rarely use theirs.
    """


def conninfo(database_url: str) -> str:
    """The connection string for psycopg. Raises `SettingsError`, which shows no password."""
    without_password = hide_password(database_url)
    if not database_url.startswith(("postgresql://", "postgres://")):
        raise SettingsError(
            f"the database {without_password!r} can't be opened; "
            "use postgresql://USER:PASSWORD@HOST:PORT/NAME"
        )
    try:
        return make_conninfo("", **{**DEFAULTS, **conninfo_to_dict(database_url)})
    except psycopg.Error:  # its text may quote a part of the password
        raise SettingsError(
            f"the database {without_password!r} can't be read; "
            "use postgresql://USER:PASSWORD@HOST:PORT/NAME, "
            "with %-escapes for anything else than letters and digits in the password"
        ) from None


class HastyConnection(AsyncConnection[Row]):
    """A connection whose cancelled calls end within a second or so, even on a silent server."""

    cancel_seconds: float
    """Set by whoever has opened it."""

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 -- psycopg's own
        """Cancel the running statement; psycopg calls this when a call is cancelled.

        Without this method it waits ten seconds for a silent server.
        """
        asyncio.get_running_loop().call_later(self.cancel_seconds, _hang_up, self)
        await super().cancel_safe(timeout=min(timeout, self.cancel_seconds))


def _hang_up(connection: Connection) -> None:
    """Cut the connection, so that the call that waits for an answer on it fails at once."""
    if not connection.closed:
        with (
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(connection.fileno())) as shared,
        ):
            shared.shutdown(socket.SHUT_RDWR)


class Database:
    def __init__(self, database_url: str, timing: DatabaseTiming | None = None) -> None:
        self.timing = timing or DatabaseTiming()
        self._conninfo = conninfo(database_url)
        self.where = hide_password(database_url)
        self._idle: deque[tuple[Connection, float]] = deque()
        """Idle connections, and since when. The last one is used next, so that the first grow old.
        """
        self._pruning: asyncio.TimerHandle | None = None
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._closed = False
        self._is_silent = False
        """Whether the last call wasn't answered in time, and no new connection since."""
        self._probing: asyncio.Task[None] | None = None
        self._in_use: set[Connection] = set()

    async def close(self) -> None:
        self._closed = True
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait((self._probing,))
        if self._pruning is not None:
            self._pruning.cancel()
        while self._idle:
            await self._idle.pop()[0].close()

    @asynccontextmanager
    async def connection(self, seconds: float | None = None) -> AsyncIterator[Connection]:
        """A connection in autocommit mode, for at most `seconds`.

        Errors of psycopg become a `StoreError`.
        """
        if self._is_silent:
            raise StoreUnavailable(f"{self.where} doesn't answer")
        call_seconds = self.timing.call_seconds
        timeout_seconds = call_seconds if seconds is None else seconds
        cancelled = _times_cancelled()
        broken = False
        limit = asyncio.timeout(timeout_seconds)
        doubt = asyncio.get_running_loop().call_later(call_seconds, self._doubt)
        try:
            async with limit, self._room:
                connection = await self._take()
                self._in_use.add(connection)
                try:
                    yield connection
                except Exception:
                    broken = connection.broken
                    await self._give_back(connection)
                    raise
                except BaseException:
                    # cancelled: a late answer would be taken for that of the next call
                    await connection.close()
                    raise
                finally:
                    self._in_use.discard(connection)
                await self._give_back(connection)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"{self.where} hasn't answered for {timeout_seconds:g} s"
            ) from error
        except (psycopg.Error, UnicodeEncodeError, TypeError) as error:
            # the connection broke while the call was cancelled: a caller that retries wouldn't end
            if _times_cancelled() > cancelled:
                raise asyncio.CancelledError from error
            # the connection was cut before the server could be told to cancel the call
            if limit.expired():
                raise StoreUnavailable(
                    f"{self.where} hasn't answered for {timeout_seconds:g} s"
                ) from error
            # psycopg raises a TypeError if a call ends while a large statement is being sent
            if isinstance(error, TypeError):
                raise
            raise explained(error, self.where, broken=broken and not self._is_silent) from error
        finally:
            doubt.cancel()

    def _doubt(self) -> None:
        """Probe the server, because a call takes long: it is slow, or the server is silent."""
        if self._probing is None and not self._closed:
            self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        """Probe the server until it answers a new connection.

        Until then all other calls are refused, so that each needn't wait for its own timeout.
        """
        while not await self._answers():
            if not self._is_silent:
                log.warning("%s doesn't answer; calls are refused until it does", self.where)
            self._is_silent = True
            for connection in self._in_use:
                _hang_up(connection)
            await asyncio.sleep(self.timing.probe_seconds)
        if self._is_silent:
            log.warning("%s answers again", self.where)
        self._is_silent = False
        self._probing = None

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(self.timing.connect_seconds):
                connection = await self._connect()
                await connection.close()
        except (TimeoutError, psycopg.Error):
            return False
        return True

    @asynccontextmanager
    async def transaction(self, seconds: float | None = None) -> AsyncIterator[Connection]:
        async with self.connection(seconds) as connection, connection.transaction():
            yield connection

    async def rows(
        self,
        statement: str,
        values: Values = (),
        *,
        prepare: bool | None = None,
        seconds: float | None = None,
    ) -> list[Row]:
        """The rows that a repeatable statement answers. It is run again if its connection broke.

        No rows if one of the values can't be in a database: then no row has it.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                async with self.connection(seconds) as connection:
                    cursor = await connection.execute(
                        statement, values, prepare=prepare, binary=True
                    )
                    return await cursor.fetchall()
            except Unknowable:
                break
            except Broken:
                if not tries_left:
                    raise
        return []

    async def change(
        self, statement: str, values: Values = (), *, seconds: float | None = None
    ) -> int:
        """Run a statement and answer how many rows it changed.

        None if one of the values can't be in a database.
        """
        try:
            async with self.connection(seconds) as connection:
                cursor = await connection.execute(statement, values)
                return cursor.rowcount
        except Unknowable:
            return 0

    async def _take(self) -> Connection:
        while self._idle:
            connection, _ = self._idle.pop()
            if _is_alive(connection):
                return connection
            await connection.close()
        if self._closed:
            raise StoreUnavailable(f"{self.where} has been closed")
        return await self._connect()

    async def _connect(self) -> Connection:
        connection = await HastyConnection.connect(self._conninfo, autocommit=True)
        connection.cancel_seconds = self.timing.cancel_seconds
        try:
            await connection.execute(PREPARE)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _give_back(self, connection: Connection) -> None:
        if self._closed or connection.closed or not _is_idle(connection):
            await connection.close()
            return
        self._idle.append((connection, asyncio.get_running_loop().time()))
        if self._pruning is None:
            self._prune()

    def _prune(self) -> None:
        """Close connections that have been idle for long, and schedule the next call of this."""
        loop = asyncio.get_running_loop()
        idle_seconds = self.timing.idle_seconds
        while self._idle and loop.time() - self._idle[0][1] >= idle_seconds:
            connection, _ = self._idle.popleft()
            connection.pgconn.finish()  # what `close` does, and without a wait

        self._pruning = None
        if self._idle:
            idle_since = self._idle[0][1]
            self._pruning = loop.call_at(idle_since + idle_seconds, self._prune)


def _times_cancelled() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _is_idle(connection: Connection) -> bool:
    return connection.info.transaction_status == TransactionStatus.IDLE


def _is_alive(connection: Connection) -> bool:
    """Whether the server hasn't closed the connection meanwhile.

    Checked before a call is sent, because then the call can still use another connection.
    """
    try:
        for _ in range(2):  # first the server's last message, then the end
            if connection.closed:
                return False
            if not _is_readable(connection.fileno()):
                return True
            connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return not _is_readable(connection.fileno())


def _is_readable(file: int) -> bool:
    if not hasattr(select, "poll"):
        return bool(select.select([file], [], [], 0)[0])
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(0))


async def copy_in(
    connection: Connection, table: str, columns: str, types: Sequence[str], rows: Iterable[Row]
) -> None:
    """Write many rows by COPY, the fastest way."""
    statement = f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            await copy.write_row(row)
