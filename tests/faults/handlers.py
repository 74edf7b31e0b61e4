"""Handlers for faults that `tests.acceptance.works` has none for. Workers have both files, and nothing else of ours."""

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
