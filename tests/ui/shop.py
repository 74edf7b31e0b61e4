"""Workflows and handlers for the tests of the page.

What a handler waits for is in the test's hands.
"""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry


class Shop:
    """Handlers: `step` waits until its name is let go; `pay` fails while `broken`."""

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        self.broken = True
        self.began: list[str] = []
        self.registry = Registry([Handler("step", self._step), Handler("pay", self._pay)])

    async def _step(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        self.began.append(ctx.node_id)
        ctx.log.info("%s begins", ctx.node_id)
        if config.get("waits"):
            await self._gate(ctx.node_id).wait()
        return {"node": ctx.node_id, **config.get("gives", {})}

    async def _pay(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.log.info("asks the bank for %s", config.get("amount"))
        if self.broken:
            raise Terminal("the bank refused the card")
        return {"paid": config.get("amount")}

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    async def let(self, *names: str) -> None:
        """To be called on the service's loop."""
        for name in names:
            self._gate(name).set()


def node(
    name: str, handler: str = "step", after: tuple[str, ...] = (), **fields: Any
) -> dict[str, Any]:
    return {"id": name, "handler": handler, "dependencies": list(after), **fields}


ORDER = {
    "name": "order",
    "input_schema": {
        "type": "object",
        "required": ["amount"],
        "properties": {
            "amount": {"type": "integer", "minimum": 1, "description": "In cents"},
            "express": {"type": "boolean"},
            "size": {"enum": ["small", "large"]},
        },
    },
    "input": {"size": "small"},
    "nodes": [
        node("cart", config={"gives": {"items": 3}}),
        node("stock", after=("cart",), config={"items": "{{ cart.items }}"}),
        node(
            "pay",
            "pay",
            ("cart",),
            config={"amount": "{{ input.amount }}", "key": "Bearer {{ secrets.BANK }}"},
        ),
        node("gift", after=("cart",), condition="cart.items > 5"),
        node("ship", after=("stock", "pay", "gift")),
        node("output", "output", ("ship",)),
    ],
}

SLOW = {
    "name": "slow",
    "nodes": [
        node("first", config={"waits": True}),
        node("second", after=("first",), config={"waits": True}),
        node("third", after=("second",)),
    ],
}
