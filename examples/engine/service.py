"""Penstock inside your own program: one process, facts in a SQLite file, nothing else to run.

    python service.py [FILE.db]

Run it twice with the same file: the second time every order is known already, and nothing is
charged again. Kill it in the middle (`kill -9`) and start it again: what was unfinished is taken
up.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import penstock

ORDERS = [{"order": f"order-{number}", "cents": 100 * number} for number in (1, 2, 3)]


@penstock.handler("charge")
async def charge(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    # Handlers run at least once. Give this key to the service that you call, and the call acts
    # once.
    return {"charged": config["cents"], "key": ctx.idempotency_key}


@penstock.handler("pack")
async def pack(config: dict[str, Any]) -> dict[str, Any]:
    return {"packed": config["order"]}


def build() -> penstock.Workflow:
    flow = penstock.Workflow("fulfil")
    charged = flow.node("charge", charge, cents="{{ input.cents }}")
    packed = flow.node("pack", pack, order="{{ input.order }}")
    flow.node(
        "output", "output", config={"charged": charged["charged"], "packed": packed["packed"]}
    )
    return flow


async def fulfil(engine: penstock.Engine, flow: penstock.Workflow, order: dict[str, Any]) -> str:
    # The same key gives the same execution, however often this program asks.
    execution = await engine.start(flow, input=order, idempotency_key=order["order"])
    async for event in execution.events():
        if event["node_id"] is not None:
            print(f"  {order['order']}  {event['node_id']:<7} {event['from']} -> {event['to']}")
    result = await execution.result()
    return f"{order['order']}: {result.state} {result.output}"


async def main(store: str) -> None:
    flow = build()
    async with penstock.Engine(store) as engine:
        for line in await asyncio.gather(*(fulfil(engine, flow, order) for order in ORDERS)):
            print(line)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(f"sqlite:///{sys.argv[1]}"))
    else:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(main(f"sqlite:///{Path(directory) / 'orders.db'}"))
