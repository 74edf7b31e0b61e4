"""Handlers of a shop.

They are slow and sometimes fail, so that there is something to see in the UI.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import penstock

dice = random.Random(7)


@penstock.handler("shop.work")
async def work(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """Take about `seconds`, in a few steps, and return what `gives` contains."""
    steps = int(config.get("steps", 3))
    for step in range(1, steps + 1):
        ctx.log.info("%s: step %d of %d", ctx.node_id, step, steps)
        await asyncio.sleep(config.get("seconds", 0.3) / steps * dice.uniform(0.6, 1.4))
    return {"node": ctx.node_id, **config.get("gives", {})}


@penstock.handler(
    "shop.charge",
    retry=penstock.Retry(max_attempts=3, initial_delay_seconds=0.3, jitter_seconds=0.1),
)
async def charge(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """Fail for the cards that the bank refuses."""
    ctx.log.info("asks the bank for %s, attempt %d", config.get("amount"), ctx.attempt)
    await asyncio.sleep(0.15)
    if config.get("card") == "expired":
        raise penstock.Terminal(
            f"the bank refused the card: expired (code 54, order {config.get('order')})"
        )
    if config.get("card") == "unlucky":
        raise ConnectionError("the bank at bank.example didn't answer within 0.15 s")
    return {"paid": config.get("amount"), "receipt": f"R-{dice.randint(10_000, 99_999)}"}
