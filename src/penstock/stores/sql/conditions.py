"""Conditions of a statement: texts with a `?` for each value, and the values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

Condition = tuple[str, tuple[Any, ...]]

NUMBER_MAX = 2**63 - 1
"""A number that is greater than this is greater than any in a database."""


def conjunction(conditions: Iterable[Condition], mark: str) -> tuple[str, tuple[Any, ...]]:
    """The text behind WHERE, with `mark` for each value, and the values."""
    all_conditions = list(conditions)
    text = " AND ".join(text for text, _ in all_conditions) or "1 = 1"
    values = chain.from_iterable(values for _, values in all_conditions)
    return text.replace("?", mark), tuple(values)


def given(wanted: Mapping[str, Any]) -> Iterable[Condition]:
    """Those conditions whose value isn't None."""
    for text, value in wanted.items():
        if value is not None:
            yield text, (value,)


def clamped(number: int | None) -> int | None:
    """A number to compare with, so that a database can hold it."""
    return None if number is None else min(number, NUMBER_MAX)
