"""How often: a sliding window for each key, or each address where there is no key. The limit is exact in any window.

Calls that change something and calls that read are counted apart. Open routes aren't counted: a health check that is
told to wait looks like a service that is down.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from limits import RateLimitItem, parse
from limits.aio.storage import MovingWindowSupport, Storage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Request

from penstock.api.access import CALLER, OPEN, READING, ROUTE, Caller, Found
from penstock.api.auth import is_loopback
from penstock.api.peers import limited_part
from penstock.api.problems import problem_response
from penstock.config import Settings

CHANGES, READS = "60/minute", "600/minute"
OFF: Final = "off"
SWEEP_EACH = 1024


def limits_of(settings: Settings) -> tuple[RateLimitItem | None, RateLimitItem | None]:
    """For changes and for reads; None is no limit. On loopback only what is set; `off` for changes is off for reads."""
    local = is_loopback(settings.host)
    changes = settings.rate_limit or (OFF if local else CHANGES)
    reads = settings.rate_limit_reads or (OFF if local or changes == OFF else READS)
    return _item(changes), _item(reads)


def _item(text: str) -> RateLimitItem | None:
    return None if text == OFF else parse(text)


class Windows(Storage, MovingWindowSupport):
    """In this process's memory.

    The library's own starts a task or a thread for every call, goes by the clock on the wall, and either forgets an
    entry now and then when many come at once, or never forgets an address.
    """

    STORAGE_SCHEME: list[str] | None = None

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._entries: dict[str, tuple[int, deque[float]]] = {}
        """By key, the window's seconds and the times of those let through, the oldest first."""
        self._until_sweep = SWEEP_EACH

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        self._sweep()
        times = self._window(key, expiry)
        if len(times) + amount > limit:
            return False
        self._entries[key] = expiry, times
        times.extend([self._clock()] * amount)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002
        times = self._window(key, expiry)
        return (times[0] if times else self._clock()), len(times)

    def _window(self, key: str, seconds: int) -> deque[float]:
        times = self._entries[key][1] if key in self._entries else deque()
        oldest = self._clock() - seconds
        while times and times[0] < oldest:
            times.popleft()
        return times

    def _sweep(self) -> None:
        """Now and then, so that addresses that are gone don't stay."""
        self._until_sweep -= 1
        if self._until_sweep > 0:
            return
        now = self._clock()
        gone = [key for key, (seconds, times) in self._entries.items() if not times or times[-1] < now - seconds]
        for key in gone:
            del self._entries[key]
        self._until_sweep = max(SWEEP_EACH, len(self._entries))

    async def check(self) -> bool:
        return True

    async def reset(self) -> int | None:
        count = len(self._entries)
        self._entries.clear()
        return count

    async def clear(self, key: str) -> None:
        self._entries.pop(key, None)

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        raise NotImplementedError("only moving windows are kept here")

    async def get(self, key: str) -> int:
        raise NotImplementedError("only moving windows are kept here")

    async def get_expiry(self, key: str) -> float:
        raise NotImplementedError("only moving windows are kept here")


class RateLimit:
    def __init__(
        self,
        app: ASGIApp,
        *,
        changes: RateLimitItem | None,
        reads: RateLimitItem | None,
        storage: Storage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is the one that the storage goes by."""
        self._app, self._changes, self._reads, self._clock = app, changes, reads, clock
        self._windows = MovingWindowRateLimiter(storage or Windows(clock))

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        limit = self._limit(scope) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return
        who = _who(scope[CALLER])
        kind = "changes" if limit is self._changes else "reads"
        let_in = _is_open(scope) or await self._windows.hit(limit, kind, who)
        reset, remaining = await self._windows.get_window_stats(limit, kind, who)
        headers = [
            (b"x-ratelimit-limit", str(limit.amount).encode()),
            (b"x-ratelimit-remaining", str(max(0, remaining)).encode()),
        ]

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        seconds = max(1, math.ceil(reset - self._clock()))
        app = self._app if let_in else _refusal(limit, kind, seconds)
        await app(scope, receive, send_with)

    def _limit(self, scope: Request) -> RateLimitItem | None:
        found: Found | None = scope.get(ROUTE)
        changes = found.rule.changes if found else scope["method"] not in READING
        return self._changes if changes else self._reads


def _is_open(scope: Request) -> bool:
    found: Found | None = scope.get(ROUTE)
    return found is not None and found.scope == OPEN


def _who(caller: Caller) -> str:
    return f"key:{caller.key_id}" if caller.key_id else f"address:{limited_part(caller.address)}"


def _refusal(limit: RateLimitItem, kind: str, seconds: int) -> ASGIApp:
    what = "calls that change something" if kind == "changes" else "calls that read"
    detail = f"{limit.amount} {what} per {limit.get_expiry()} seconds are allowed; wait for {seconds} s"
    return problem_response(429, "rate_limited", detail, headers={"Retry-After": str(seconds)})
