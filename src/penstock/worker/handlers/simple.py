"""The small handlers, for tests and demos: `noop`, `echo`, `sleep` and `fail`."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from penstock.definition.handler_configs import config_keys
from penstock.errors import Retryable
from penstock.worker.context import Context
from penstock.worker.handlers.http import bad_config, check_keys, is_number


async def noop(config: dict[str, Any], ctx: Context) -> dict[str, Any]:  # noqa: ARG001
    return {"status": "ok"}


async def echo(config: dict[str, Any], ctx: Context) -> msgspec.Raw:  # noqa: ARG001
    """The config as the output.

    A config is JSON, so it needn't be checked again: for 5 MB that would hold the worker's loop.
    """
    return msgspec.Raw(msgspec.json.encode(config))


async def sleep(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    check_keys(config, config_keys("sleep"), ctx)
    seconds = config.get("seconds", 0)
    if not is_number(seconds) or seconds < 0:
        raise bad_config(f"seconds is {seconds!r}; allowed: a number, 0 or more")

    await asyncio.sleep(seconds)
    return {"slept_seconds": seconds}


async def fail(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Fail the first `times` attempts, or all of them."""
    check_keys(config, config_keys("fail"), ctx)
    times = config.get("times")
    if times is not None and (not is_number(times) or times < 0):
        raise bad_config(f"times is {times!r}; allowed: a number, 0 or more")

    if times is None or ctx.attempt <= times:
        raise Retryable(str(config.get("message") or "failed on purpose"))
    return {"attempt": ctx.attempt}
