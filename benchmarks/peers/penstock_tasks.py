"""Handlers and documents of the peers' work, for Penstock."""

from __future__ import annotations

import time
from typing import Any

import penstock
from benchmarks.peers.yardstick import CHAIN, DEPTH, DIAMONDS, FAN, LIGHT, WIDTH, light
from benchmarks.workloads import Document, chain, diamond, fan, layers

GRAPHS: dict[str, tuple[Document, int]] = {
    "chain": (chain(CHAIN), 1),
    "fan": (fan(FAN), 1),
    "diamonds": (diamond(), DIAMONDS),
    "layers": (layers(DEPTH, WIDTH), 1),
    "light": (chain(LIGHT), 1),
}
for node in GRAPHS["light"][0]["nodes"]:
    node["handler"] = "light"
UNITS = {"chain": CHAIN, "fan": 1, "diamonds": DIAMONDS, "layers": DEPTH * WIDTH, "light": LIGHT}
STAMP: Document = {"name": "stamp", "nodes": [{"id": "a", "handler": "stamp"}]}


@penstock.handler("stamp")
async def stamp(_config: dict[str, Any]) -> dict[str, float]:
    return {"at": time.time()}


@penstock.handler("light")
async def light_task(_config: dict[str, Any]) -> dict[str, Any]:
    light()
    return {}
