"""Handlers and documents of the growth measurements."""

from __future__ import annotations

from typing import Any

import penstock
from benchmarks.workloads import Document, chain, diamond

DAY = 86_400
NOBODY = "nobody"
"""A queue that no worker serves."""
PROBE_CHAIN = 100


@penstock.handler("payload")
async def payload(config: dict[str, Any]) -> dict[str, str]:
    return {"data": "x" * int(config["size"])}


@penstock.handler("swallow")
async def swallow(config: dict[str, Any]) -> dict[str, int]:
    return {"size": len(config["data"])}


def passes_on(size: int) -> Document:
    """A node whose output of `size` bytes is in its child's config."""
    return {
        "name": f"payload-{size}",
        "nodes": [
            {"id": "make", "handler": "payload", "config": {"size": size}},
            {
                "id": "take",
                "handler": "swallow",
                "config": {"data": "{{ make.data }}"},
                "dependencies": ["make"],
            },
        ],
    }


def waits_in_queue() -> Document:
    """Has begun, and its second node waits for a worker that never comes."""
    first, second = (
        {"id": "first", "handler": "noop"},
        {"id": "second", "handler": "noop", "queue": NOBODY},
    )
    return {"name": "waits-in-queue", "nodes": [first, {**second, "dependencies": ["first"]}]}


def waits_for_timer() -> Document:
    """Has begun, and its second node is tried again in a day."""
    retry = {
        "max_attempts": 2,
        "initial_delay_seconds": DAY,
        "max_delay_seconds": DAY,
        "jitter_seconds": 0,
    }
    second = {
        "id": "second",
        "handler": "fail",
        "config": {"times": 1},
        "retry": retry,
        "dependencies": ["first"],
    }
    return {"name": "waits-for-timer", "nodes": [{"id": "first", "handler": "noop"}, second]}


def probe() -> tuple[Document, Document]:
    """What is run beside everything else: many at once, and one thing after another."""
    return diamond(), chain(PROBE_CHAIN)
