"""`python -m tests.faults.launched ORDER ROLE …`: a role with a faulty process.

ORDER is JSON. `die_at` names a point (`HotStore.commit:before:3`): on its third way there the
process kills itself with SIGKILL, before the call or after it was answered. `clock_seconds` is how
far its clock is off, from the moment on when there is a file `clock_file`; the system's own can't
be set here, so everything that Python asks for the time of day is moved instead, before anything of
Penstock is imported. `worker_timing` gives a worker other times than the settings do
(`{"silence_margin_seconds": 1}`), for tests that can't wait as long as people can.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    order = json.loads(sys.argv[1])
    if "clock_seconds" in order:
        move_clock(order["clock_seconds"], order.get("clock_file", ""))
    if "die_at" in order:
        arm(order["die_at"])
    if "worker_timing" in order:
        hurry(order["worker_timing"])
    sys.argv = ["penstock", *sys.argv[2:]]
    from penstock.cli import main as penstock  # noqa: PLC0415 -- what it imports must see the moved clock

    sys.exit(penstock())


def move_clock(seconds: float, file: str) -> None:
    true_time, true_time_ns = time.time, time.time_ns
    is_told = False

    def moved() -> float:
        nonlocal is_told
        if not is_told:
            if file and not os.path.exists(file):  # noqa: PTH110 -- asked all the time
                return 0.0
            is_told = True
            os.write(sys.stderr.fileno(), f"the clock is moved by {seconds:g} s\n".encode())
        return seconds

    class Moved(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Moved:
            return cls.fromtimestamp(time.time(), tz)

    time.time = lambda: true_time() + moved()
    time.time_ns = lambda: true_time_ns() + round(moved() * 1e9)
    dt.datetime = Moved  # type: ignore[misc]


def hurry(times: dict[str, float]) -> None:
    from penstock.worker.timing import WorkerTiming  # noqa: PLC0415 -- see `main`

    of_settings = WorkerTiming.of
    WorkerTiming.of = lambda settings: dataclasses.replace(of_settings(settings), **times)  # type: ignore[method-assign]


def arm(text: str) -> None:
    from tests.faults.points import REPLY, read_point  # noqa: PLC0415 -- it imports Penstock, see `main`

    point = read_point(text)
    owner, name = _reply() if point.write == REPLY else _method_of(point.write)
    die = die_at_passing(point.passing, f"dies {point.side} {point.write}\n")
    setattr(owner, name, armed(getattr(owner, name), die, is_before=point.side == "before"))


def _method_of(write: str) -> tuple[type, str]:
    """The class that has the method in a process of the scaled engine."""
    from penstock.stores.postgres.api_keys import PostgresApiKeys  # noqa: PLC0415 -- as above, and so below
    from penstock.stores.postgres.audit_log import PostgresAuditLog  # noqa: PLC0415
    from penstock.stores.postgres.blobs import PostgresBlobs  # noqa: PLC0415
    from penstock.stores.postgres.cold_tier import PostgresColdTier  # noqa: PLC0415
    from penstock.stores.postgres.dead_letters import PostgresDeadLetters  # noqa: PLC0415
    from penstock.stores.postgres.definitions import PostgresDefinitions  # noqa: PLC0415
    from penstock.stores.postgres.posts import PostgresPosts  # noqa: PLC0415
    from penstock.stores.postgres.signals import PostgresSignals  # noqa: PLC0415
    from penstock.stores.redis.hot import RedisHotStore  # noqa: PLC0415
    from penstock.stores.redis.hot_tier import RedisHotTier  # noqa: PLC0415
    from penstock.stores.redis.queue import RedisTaskQueue  # noqa: PLC0415
    from penstock.stores.scaled import ScaledExecutions  # noqa: PLC0415

    protocol, _, name = write.partition(".")
    owners: dict[str, type] = {
        "HotStore": RedisHotStore,
        "TaskQueue": RedisTaskQueue,
        "HotTier": RedisHotTier,
        "BlobStore": PostgresBlobs,
        "ColdTier": PostgresColdTier,
        "Definitions": PostgresDefinitions,
        "Executions": ScaledExecutions,
        "Signals": PostgresSignals,
        "Posts": PostgresPosts,
        "DeadLetters": PostgresDeadLetters,
        "ApiKeys": PostgresApiKeys,
        "AuditLog": PostgresAuditLog,
    }
    return owners[protocol], name


def _reply() -> tuple[type, str]:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle  # noqa: PLC0415 -- only an API has it

    return RequestResponseCycle, "send"


def armed(
    call: Callable[..., Any], die: Callable[[], None], *, is_before: bool
) -> Callable[..., Any]:
    @functools.wraps(call)
    async def made(*arguments: Any, **named: Any) -> Any:
        if is_before:
            die()
        answer = await call(*arguments, **named)
        if not is_before:
            die()
        return answer

    return made


def die_at_passing(passing: int, word: str) -> Callable[[], None]:
    passed = 0

    def die() -> None:
        nonlocal passed
        passed += 1
        if passed >= passing:
            os.write(sys.stderr.fileno(), word.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    return die


if __name__ == "__main__":
    main()
