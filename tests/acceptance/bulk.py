"""Handlers for large values, for workers that have them as `--handlers`."""

from __future__ import annotations

import hashlib
from typing import Any

import penstock


def text_of(size: int) -> str:
    """So many characters that don't repeat soon."""
    line = hashlib.sha256(b"bulk").hexdigest()
    return (line * (size // len(line) + 1))[:size]


@penstock.handler("bulk_make")
def make(config: dict[str, Any]) -> dict[str, Any]:
    return {"text": text_of(config["size"])}


@penstock.handler("bulk_measure")
def measure(config: dict[str, Any]) -> dict[str, Any]:
    text = config["text"]
    return {"size": len(text), "digest": hashlib.sha256(text.encode()).hexdigest()}
