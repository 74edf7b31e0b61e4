"""The rate limit: a sliding window for each key, or each address where there is no key.

The limit is exact in any window.

Calls that change something and calls that read are counted apart. A call for many items counts as
many calls. Open routes aren't counted: a health check that is told to wait looks like a service
that is down.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from limits import RateLimitItem, parse
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Request

from penstock.api.access import CALLER, OPEN, READING, ROUTE, Caller, Found
from penstock.api.auth import is_loopback
from penstock.api.client_address import limited_part
from penstock.api.problems import Refused, problem_response
from penstock.config import Settings

CHANGES, READS = "60/minute", "600/minute"
OFF: Final = "off"
SWEEP_EACH = 1024
CHARGE: Final = "penstock.charge"
"""Where a request carries a call that counts it as more than one."""


def limits_of(settings: Settings) -> tuple[RateLimitItem | None, RateLimitItem | None]:
    """The rate limits for changes and for reads; None is no limit.

    On loopback only what is set; `off` for changes is off for reads.
    """
    local = is_loopback(settings.host)
    changes = settings.rate_limit or (OFF if local else CHANGES)
    reads = settings.rate_limit_reads or (OFF if local or changes == OFF else READS)
    return _item(changes), _item(reads)


def _item(text: str) -> RateLimitItem | None:
    return None if text == OFF else parse(text)


class Entered(NamedTuple):
    """Whether calls were let in, and how full their window is."""

    let_in: bool
    used: int
    """Calls in the window now."""
    reset_seconds: float
    """Seconds until the oldest of them leaves it."""


class RateLimitStorage(Protocol):
    """Counts calls in sliding windows."""

    async def enter(self, key: str, limit: int, seconds: int, amount: int = 1) -> Entered:
        """Let this many calls in if they fit into the window; none only looks."""


class MemoryRateLimitStorage:
    """Sliding windows in this process's memory.

    The `limits` library's own starts a task or a thread for every call, goes by the clock on the
    wall, and either forgets an entry now and then when many come at once, or never forgets an
    address.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, tuple[int, deque[float]]] = {}
        """Windows by key: seconds and the times of those let through, the oldest first."""
        self._until_sweep = SWEEP_EACH

    async def enter(self, key: str, limit: int, seconds: int, amount: int = 1) -> Entered:
        self._sweep()
        now = self._clock()
        times = self._window(key, now - seconds)
        let_in = len(times) + amount <= limit
        if let_in and amount:
            self._entries[key] = seconds, times
            times.extend([now] * amount)
        return Entered(let_in, len(times), times[0] + seconds - now if times else 0.0)

    def _window(self, key: str, oldest: float) -> deque[float]:
        times = self._entries[key][1] if key in self._entries else deque()
        while times and times[0] < oldest:
            times.popleft()
        return times

    def _sweep(self) -> None:
        """Delete empty windows now and then, so that addresses that are gone don't stay."""
        self._until_sweep -= 1
        if self._until_sweep > 0:
            return
        now = self._clock()
        gone = [
            key
            for key, (seconds, times) in self._entries.items()
            if not times or times[-1] < now - seconds
        ]
        for key in gone:
            del self._entries[key]
        self._until_sweep = max(SWEEP_EACH, len(self._entries))


class RateLimitMiddleware:
    """Refuses calls that are over the rate limit."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        changes: RateLimitItem | None,
        reads: RateLimitItem | None,
        storage: RateLimitStorage | None = None,
    ) -> None:
        self._app, self._changes, self._reads = app, changes, reads
        self._storage = storage or MemoryRateLimitStorage()

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        limit = self._limit(scope) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return
        kind = "changes" if limit is self._changes else "reads"
        key, amount = limit.key_for(kind, who(scope[CALLER])), 0 if _is_open(scope) else 1
        let_in, used, reset_seconds = await self._storage.enter(
            key, limit.amount, limit.get_expiry(), amount
        )
        headers = [
            (b"x-ratelimit-limit", str(limit.amount).encode()),
            (b"x-ratelimit-remaining", str(max(0, limit.amount - used)).encode()),
        ]

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        scope[CHARGE] = partial(self._charge, limit, kind, key, headers)
        seconds = max(1, math.ceil(reset_seconds))
        app = self._app if let_in else _refusal(limit, kind, seconds)
        await app(scope, receive, send_with)

    async def _charge(
        self,
        limit: RateLimitItem,
        kind: str,
        key: str,
        headers: list[tuple[bytes, bytes]],
        amount: int,
    ) -> None:
        """Count as many calls more as this one stands for."""
        if amount >= limit.amount:
            detail = f"this counts as {amount + 1:,} calls, and {limit.amount:,} are allowed; send fewer at once"
            raise Refused(413, "batch_too_large", detail)
        entered = await self._storage.enter(key, limit.amount, limit.get_expiry(), amount)
        headers[1] = (headers[1][0], str(max(0, limit.amount - entered.used)).encode())
        if not entered.let_in:
            seconds = max(1, math.ceil(entered.reset_seconds))
            detail = f"this counts as {amount + 1:,} calls; {_told(limit, kind, seconds)}"
            raise Refused(429, "rate_limited", detail, headers={"Retry-After": str(seconds)})

    def _limit(self, scope: Request) -> RateLimitItem | None:
        found: Found | None = scope.get(ROUTE)
        changes = found.rule.changes if found else scope["method"] not in READING
        return self._changes if changes else self._reads


def _is_open(scope: Request) -> bool:
    found: Found | None = scope.get(ROUTE)
    return found is not None and found.scope == OPEN


def who(caller: Caller) -> str:
    return f"key:{caller.key_id}" if caller.key_id else f"address:{limited_part(caller.address)}"


def _refusal(limit: RateLimitItem, kind: str, seconds: int) -> ASGIApp:
    return problem_response(
        429, "rate_limited", _told(limit, kind, seconds), headers={"Retry-After": str(seconds)}
    )


def _told(limit: RateLimitItem, kind: str, seconds: int) -> str:
    what = "calls that change something" if kind == "changes" else "calls that read"
    return (
        f"{limit.amount} {what} per {limit.get_expiry()} seconds are allowed; wait for {seconds} s"
    )


async def charge(scope: Request, items: int) -> None:
    """Charge a call for many items as many calls.

    Raises `Refused`; to be called before anything is done.
    """
    more: Callable[[int], Awaitable[None]] | None = scope.get(CHARGE)
    if more is not None and items > 1:
        await more(items - 1)
