"""The handlers of the order workflow.

A handler receives the resolved config of its node and returns any JSON value.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import penstock


@dataclass
class Order:
    prices: list[dict[str, Any]]
    available: dict[str, int]


@penstock.handler("add_up")
def add_up(order: Order) -> dict[str, Any]:
    missing = [price["item"] for price in order.prices if not order.available.get(price["item"])]
    if missing:
        raise penstock.Terminal(f"sold out: {', '.join(missing)}")  # another attempt can't help
    print(f"adding up {len(order.prices)} prices")  # stored in the attempt's log
    return {"items": len(order.prices), "cents": sum(price["cents"] for price in order.prices)}


@penstock.handler("write_letter")
def write_letter(config: dict[str, Any], ctx: penstock.Context) -> dict[str, str]:
    ctx.log.info("writing to %s", config["name"])
    time.sleep(0.4)  # sync handlers run in threads, so this blocks no other node
    return {
        "text": (
            f"Dear {config['name']}, thank you! Your order of {_euros(config['cents'])} "
            "ships for free."
        )
    }


@penstock.handler("write_receipt")
async def write_receipt(config: dict[str, Any]) -> dict[str, str]:
    return {"text": f"Receipt for {config['name']}: {_euros(config['cents'])}, plus shipping."}


def _euros(cents: int) -> str:
    return f"{cents / 100:.2f} €"
