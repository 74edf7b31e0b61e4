"""The audit log: a line for every call that changes something, also for one that failed or wasn't allowed.

The answer waits for its line, so that nothing is done that the log doesn't know of. Lines of one turn of the loop are
written together, and the store's writer puts them into the same transaction as whatever else is written then.

A route may add what only it knows, `note(request.scope, f"executions/{new_id}", retry_of=…)`, or say that nothing was
changed, as a preview does: `skip_audit(request.scope)`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Request

from penstock.api.access import CALLER, ROUTE, Caller, Found
from penstock.errors import StoreError, StoreUnavailable
from penstock.stores.cold import AuditLog as AuditStore
from penstock.stores.records import AuditLine

log = logging.getLogger("penstock.audit")

AUDIT = "penstock.audit"
"""Where a request carries what its line is going to say: `object`, `detail`, or `skip`."""
STORE_WAIT_SECONDS_MAX = 2.0
"""No answer waits longer than this for a store that doesn't answer; the line is written when it
does.
"""
OBJECT_LENGTH = 300


IDS_MAX = 50
"""Ids that a line about many has; how many there were is in its `count`."""
DAY_SECONDS = 86400.0
FORGET_EACH_SECONDS = 3600.0
BATCH = 1000


async def run_audit_retention(
    store: AuditStore,
    days: float,
    now: Callable[[], float],
    *,
    each_seconds: float = FORGET_EACH_SECONDS,
) -> None:
    """Delete lines of the audit log, for ever: those that are older than so many days.

    0 keeps all of them.
    """
    while days:
        try:
            is_more = True
            while is_more:
                is_more = await store.forget_audit(now() - days * DAY_SECONDS, BATCH) == BATCH
        except StoreError as error:
            log.info("old lines of the audit log can't be deleted now: %s", error)
        except Exception:
            log.exception("old lines of the audit log can't be deleted")
        await asyncio.sleep(each_seconds)


def note(scope: Request, about: str | None = None, **detail: Any) -> None:
    """Add to this request's line: what it was about, where its path doesn't say, and any detail."""
    noted = scope.setdefault(AUDIT, {})
    if about is not None:
        noted["object"] = about
    noted.setdefault("detail", {}).update(detail)


def skip_audit(scope: Request) -> None:
    scope[AUDIT] = {"skip": True}


class _Batch(NamedTuple):
    lines: list[AuditLine]
    done: asyncio.Future[None]
    patience: asyncio.TimerHandle


class AuditLog:
    """Writes lines of the audit log, those of one turn of the loop at once."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store
        self._batch: _Batch | None = None
        self._writing: set[asyncio.Task[None]] = set()

    async def write(self, line: AuditLine) -> None:
        """Write a line, and wait until it is stored.

        A store that fails or hangs holds nobody up: then the log has the line.
        """
        batch = self._batch
        if batch is None:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[None] = loop.create_future()
            batch = self._batch = _Batch(
                [], done, loop.call_later(STORE_WAIT_SECONDS_MAX, _resolve, done)
            )
            loop.call_soon(self._begin)
        batch.lines.append(line)
        await asyncio.shield(batch.done)

    async def drain(self) -> None:
        """Wait for lines that are still being written; before the store is closed."""
        while self._batch or self._writing:
            await asyncio.gather(*self._writing, asyncio.sleep(0))

    def _begin(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            task = asyncio.create_task(self._store_batch(batch))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _store_batch(self, batch: _Batch) -> None:
        try:
            await self._store.write_audit(batch.lines)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the log has the lines
            self._log(batch.lines, error)
        finally:
            batch.patience.cancel()
            _resolve(batch.done)

    def _log(self, lines: list[AuditLine], error: Exception) -> None:
        trace = (
            None if isinstance(error, StoreUnavailable) else error
        )  # that one is no mistake, and comes in crowds
        for line in lines:  # as JSON, in which no text can begin a new line
            log.error(
                "not in the audit log: %s (%s)",
                msgspec.json.encode(line).decode(),
                error,
                exc_info=trace,
            )


def _resolve(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


class AuditMiddleware:
    """Writes a line of the audit log for each call that changes something."""

    def __init__(
        self, app: ASGIApp, *, audit_log: AuditLog, clock: Callable[[], float] = time.time
    ) -> None:
        self._app, self._audit_log, self._clock = app, audit_log, clock

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        found: Found | None = scope.get(ROUTE) if scope["type"] == "http" else None
        if found is None or not found.rule.changes:
            await self._app(scope, receive, send)
            return
        at = self._clock()
        written = False

        async def write(status: int) -> None:
            nonlocal written
            noted = scope.get(AUDIT, {})
            if not written and not noted.get("skip"):
                written = True
                await self._audit_log.write(_line(scope, found, noted, at, status))

        async def record(message: Message) -> None:
            if message["type"] == "http.response.start":
                await write(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, record)
        except Exception:
            await write(500)  # what the framework is going to answer, further out
            raise


def line_of(scope: Request, status: int) -> AuditLine | None:
    """The audit line of a request that ends with this status.

    For whoever writes it with the change itself.
    """
    found: Found | None = scope.get(ROUTE)
    return None if found is None else _line(scope, found, scope.get(AUDIT, {}), time.time(), status)


def _line(
    scope: Request, found: Found, noted: Mapping[str, Any], at: float, status: int
) -> AuditLine:
    caller: Caller = scope.get(CALLER, Caller())
    rule, params = found.rule, list(found.params.items())
    about = noted.get("object") or rule.object.format(*[value for _, value in params])
    detail = {**dict(params[rule.object.count("{") :]), **noted.get("detail", {})}
    return AuditLine(
        at,
        caller.key_id,
        caller.name,
        rule.operation,
        about[:OBJECT_LENGTH],
        caller.address,
        status,
        detail,
    )
