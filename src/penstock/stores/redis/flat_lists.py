"""Flat lists: how scripts take and answer several values for each of many things."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def pairs(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Two values for each thing, such as a name and what it has."""
    return zip(items[::2], items[1::2], strict=True)


def triples(items: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Three values for each thing, such as a task's stream, its entry id and the task itself."""
    return zip(items[::3], items[1::3], items[2::3], strict=True)


def portions(items: Sequence[Any], things: int, width: int = 1) -> list[Sequence[Any]]:
    """A list in parts of at most so many things, each of `width` values.

    A script can't take any number of arguments: Lua's stack is limited.
    """
    size = things * width
    return [items[first : first + size] for first in range(0, len(items), size)]
