"""The audit log: a line for every call that changes something, also if it failed or was refused.

The answer waits until its line is stored, so that no change is missing in the log. Lines of one
turn of the event loop are written together, and the store's writer puts them into the same
transaction as whatever else is written then.

A route may add details that only it has, `note(request.scope, f"executions/{id}", retry_of=…)`, or
say that nothing was changed, as a preview does: `skip_audit(request.scope)`.
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
from penstock.api.timing import ApiTiming
from penstock.errors import StoreUnavailable
from penstock.stores.cold import AuditLog as AuditStore
from penstock.stores.records import AuditLine

log = logging.getLogger("penstock.audit")

AUDIT = "penstock.audit"
"""The key in a request's ASGI scope for the notes for its line: `object`, `detail`, or `skip`."""
OBJECT_LENGTH = 300
IDS_MAX = 50
"""Ids in a line about many objects; the line's `count` says how many there were."""


def note(scope: Request, about: str | None = None, **detail: Any) -> None:
    """Add to this request's line: the object, if the path doesn't name it, and any details."""
    notes = scope.setdefault(AUDIT, {})
    if about is not None:
        notes["object"] = about
    notes.setdefault("detail", {}).update(detail)


def skip_audit(scope: Request) -> None:
    scope[AUDIT] = {"skip": True}


class _Batch(NamedTuple):
    lines: list[AuditLine]
    done: asyncio.Future[None]
    patience: asyncio.TimerHandle


class AuditLog:
    """Writes lines of the audit log, those of one turn of the event loop together."""

    def __init__(self, store: AuditStore, timing: ApiTiming | None = None) -> None:
        self._wait_seconds = (timing or ApiTiming()).audit_wait_seconds
        self._store = store
        self._batch: _Batch | None = None
        self._writing: set[asyncio.Task[None]] = set()

    async def write(self, line: AuditLine) -> None:
        """Write a line, and wait until it is stored.

        If the store fails, the line is in the service's log; if it hangs, the wait ends.
        """
        batch = self._batch
        if batch is None:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[None] = loop.create_future()
            patience = loop.call_later(self._wait_seconds, _resolve, done)
            batch = _Batch([], done, patience)
            self._batch = batch
            loop.call_soon(self._begin)
        batch.lines.append(line)
        await asyncio.shield(batch.done)

    async def drain(self) -> None:
        """Wait for lines that are being written. Call it before the store is closed."""
        while self._batch or self._writing:
            await asyncio.gather(*self._writing, asyncio.sleep(0))

    def _begin(self) -> None:
        batch = self._batch
        self._batch = None
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
        # an outage is no bug and fails many lines, so its traceback is left out
        trace = None if isinstance(error, StoreUnavailable) else error
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
        self._app = app
        self._audit_log = audit_log
        self._clock = clock

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        route: Found | None = scope.get(ROUTE) if scope["type"] == "http" else None
        if route is None or not route.rule.changes:
            await self._app(scope, receive, send)
            return

        at = self._clock()
        written = False

        async def write(status: int) -> None:
            nonlocal written
            notes = scope.get(AUDIT, {})
            if not written and not notes.get("skip"):
                written = True
                await self._audit_log.write(_line(scope, route, notes, at, status))

        async def record(message: Message) -> None:
            if message["type"] == "http.response.start":
                await write(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, record)
        except Exception:
            await write(500)  # the framework answers with this status
            raise


def line_of(scope: Request, status: int) -> AuditLine | None:
    """The audit line of a request that ends with this status, to be written with the change."""
    route: Found | None = scope.get(ROUTE)
    if route is None:
        return None
    return _line(scope, route, scope.get(AUDIT, {}), time.time(), status)


def _line(
    scope: Request, route: Found, notes: Mapping[str, Any], at: float, status: int
) -> AuditLine:
    caller: Caller = scope.get(CALLER, Caller())
    rule = route.rule
    params = list(route.params.items())
    about = notes.get("object") or rule.object.format(*route.params.values())
    # parameters of the path that the object doesn't name
    other_params = dict(params[rule.object.count("{") :])
    detail = {**other_params, **notes.get("detail", {})}
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
