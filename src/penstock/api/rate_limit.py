"""The rate limit: a sliding window for each key, or each address where there is no key.

The limit is exact in any window. Calls that change something and calls that read are counted apart.
A call for many items counts as many calls. Open routes aren't counted: a health check that is told
to wait looks like a service that is down.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Request

from penstock.api.access import CALLER, OPEN, READING, ROUTE, Caller, Found
from penstock.api.client_address import limited_part
from penstock.api.problems import Refused, problem_response
from penstock.config import Settings, is_loopback

CHANGES = "60/minute"
READS = "600/minute"
OFF: Final = "off"
SWEEP_EACH = 1024
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
CHARGE: Final = "penstock.charge"
"""The key in a request's ASGI scope for a function that counts further calls."""


class RateLimit(NamedTuple):
    """So many calls in any so many seconds."""

    amount: int
    seconds: int

    def key_for(self, kind: str, caller: str) -> str:
        """The name of a caller's window: another one for each limit."""
        return f"{kind}/{caller}/{self.amount}/{self.seconds}"


def limits_of(settings: Settings) -> tuple[RateLimit | None, RateLimit | None]:
    """The rate limits for changes and for reads; None is no limit.

    On loopback there are no default limits. If changes are `off`, reads are too by default.
    """
    local = is_loopback(settings.host)
    default_changes = OFF if local else CHANGES
    changes = settings.rate_limit or default_changes
    default_reads = OFF if local or changes == OFF else READS
    reads = settings.rate_limit_reads or default_reads
    return _parse_limit(changes), _parse_limit(reads)


def _parse_limit(text: str) -> RateLimit | None:
    return None if text == OFF else parse_limit(text)


def parse_limit(text: str) -> RateLimit:
    """Read a limit that the settings have checked, such as `60/minute`."""
    amount, _, unit = text.partition("/")
    return RateLimit(int(amount), UNITS[unit])


class Entered(NamedTuple):
    """The result of entering a window: whether the calls were let in, and how full it is."""

    let_in: bool
    used: int
    """Calls in the window now."""
    reset_seconds: float
    """Seconds until the oldest call leaves the window."""


class RateLimitStorage(Protocol):
    """Counts calls in sliding windows."""

    async def enter(self, key: str, limit: int, seconds: int, amount: int = 1) -> Entered:
        """Let this many calls in if they fit into the window; an amount of 0 only looks."""


class MemoryRateLimitStorage:
    """Sliding windows in this process's memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, tuple[int, deque[float]]] = {}
        """Windows by key: their seconds, and the times of calls let in, the oldest first."""
        self._until_sweep = SWEEP_EACH

    async def enter(self, key: str, limit: int, seconds: int, amount: int = 1) -> Entered:
        self._sweep()
        now = self._clock()
        times = self._window(key, now - seconds)
        let_in = len(times) + amount <= limit
        if let_in and amount:
            self._entries[key] = seconds, times
            times.extend([now] * amount)
        reset_seconds = times[0] + seconds - now if times else 0.0
        return Entered(let_in, len(times), reset_seconds)

    def _window(self, key: str, oldest: float) -> deque[float]:
        times = self._entries[key][1] if key in self._entries else deque()
        while times and times[0] < oldest:
            times.popleft()
        return times

    def _sweep(self) -> None:
        """Delete empty windows now and then, so that unused addresses don't pile up."""
        self._until_sweep -= 1
        if self._until_sweep > 0:
            return
        now = self._clock()
        for key, (seconds, times) in list(self._entries.items()):
            if not times or times[-1] < now - seconds:
                del self._entries[key]
        self._until_sweep = max(SWEEP_EACH, len(self._entries))


class RateLimitMiddleware:
    """Refuses calls that are over the rate limit."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        changes: RateLimit | None,
        reads: RateLimit | None,
        storage: RateLimitStorage | None = None,
    ) -> None:
        self._app = app
        self._changes = changes
        self._reads = reads
        self._storage = storage or MemoryRateLimitStorage()

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        limit = self._limit(scope) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return

        kind = "changes" if limit is self._changes else "reads"
        key = limit.key_for(kind, who(scope[CALLER]))
        amount = 0 if _is_open(scope) else 1
        let_in, used, reset_seconds = await self._storage.enter(
            key, limit.amount, limit.seconds, amount
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
        app = self._app if let_in else _refusal(limit, kind, _whole_seconds(reset_seconds))
        await app(scope, receive, send_with)

    async def _charge(
        self,
        limit: RateLimit,
        kind: str,
        key: str,
        headers: list[tuple[bytes, bytes]],
        amount: int,
    ) -> None:
        """Count `amount` further calls, as this one stands for many."""
        if amount >= limit.amount:
            raise Refused(
                413,
                "batch_too_large",
                f"this counts as {amount + 1:,} calls, and {limit.amount:,} are allowed;"
                " send fewer at once",
            )

        entered = await self._storage.enter(key, limit.amount, limit.seconds, amount)
        headers[1] = (headers[1][0], str(max(0, limit.amount - entered.used)).encode())
        if not entered.let_in:
            seconds = _whole_seconds(entered.reset_seconds)
            detail = f"this counts as {amount + 1:,} calls; {_explain(limit, kind, seconds)}"
            raise Refused(429, "rate_limited", detail, headers={"Retry-After": str(seconds)})

    def _limit(self, scope: Request) -> RateLimit | None:
        route: Found | None = scope.get(ROUTE)
        changes = route.rule.changes if route else scope["method"] not in READING
        return self._changes if changes else self._reads


def _is_open(scope: Request) -> bool:
    route: Found | None = scope.get(ROUTE)
    return route is not None and route.scope == OPEN


def who(caller: Caller) -> str:
    """The caller, as the rate limit counts: its key, or the network of its address."""
    if caller.key_id:
        return f"key:{caller.key_id}"
    return f"address:{limited_part(caller.address)}"


def _whole_seconds(seconds: float) -> int:
    return max(1, math.ceil(seconds))


def _refusal(limit: RateLimit, kind: str, seconds: int) -> ASGIApp:
    detail = _explain(limit, kind, seconds)
    return problem_response(429, "rate_limited", detail, headers={"Retry-After": str(seconds)})


def _explain(limit: RateLimit, kind: str, seconds: int) -> str:
    calls = "calls that change something" if kind == "changes" else "calls that read"
    return f"{limit.amount} {calls} per {limit.seconds} seconds are allowed; wait for {seconds} s"


async def charge(scope: Request, items: int) -> None:
    """Count a call for many items as many calls. Call it before anything is done.

    Raises `Refused`.
    """
    count_further: Callable[[int], Awaitable[None]] | None = scope.get(CHARGE)
    if count_further is not None and items > 1:
        await count_further(items - 1)
