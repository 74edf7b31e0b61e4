"""Handlers for faults that `tests.acceptance.works` has none for.

Workers have both files, and nothing else of ours.
"""

from __future__ import annotations

import asyncio
from typing import Any

import penstock


@penstock.handler("work_large")
async def large(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """Tells of itself, takes `seconds`, and answers with a text of `size`."""
    ctx.log.info("%d characters", config["size"])
    await asyncio.sleep(config.get("seconds", 0))
    return {"text": "x" * config["size"]}


@penstock.handler("work_tell")
def tell(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """Leaks its config everywhere: logs it, prints it, returns it, fails with it."""
    ctx.log.warning("the token is %s", config["token"])
    ctx.heartbeat({"token": config["token"]})
    if config.get("fails"):
        raise RuntimeError(f"{config['token']} was refused")
    return {"echo": config["token"], config["token"]: [f"Bearer {config['token']}"]}
